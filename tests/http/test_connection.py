"""HTTP/1.1 connections, tested through raw sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from steersman.http import connection
from steersman.http.connection import HttpServer
from steersman.http.limits import TIMEOUTS, Wait
from steersman.http.request import HttpRequest, RequestBody
from steersman.http.response import HttpResponse, StreamingResponse

LIMIT = 100
LARGE = 10_000
HIGH_WATER = 64 * 1024
PACKET = 64 * 1024
CHUNKED = b"Host: x\r\nTransfer-Encoding: chunked\r\n\r\n"


class Site:
    """A server that echoes, waits, streams or fails, as its path says."""

    def __init__(self) -> None:
        self.server = HttpServer(self.handle, lambda: "Thu, 01 Jan 1970 00:00:00 GMT")
        self.release = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.served: list[str] = []
        self.port = 0

    async def handle(self, request: HttpRequest) -> HttpResponse | StreamingResponse:
        self.served.append(request.raw_path)
        if request.raw_path == "/wait":
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if request.raw_path == "/late-stream":
            await asyncio.sleep(0)
        if request.raw_path.endswith("stream"):
            stream = StreamingResponse(request.writer)
            stream.begin((("Content-Type", "text/plain"),))
            await stream.write(b"one")
            await self.release.wait()
            await stream.write(b"two")
            return stream
        if request.raw_path == "/large":
            return HttpResponse(200, (), b"x" * LARGE)
        if request.raw_path == "/late":
            await self.release.wait()
            body = await request.read(1_000_000)
            return HttpResponse(200, (), b"%d" % len(body or b""))
        if request.raw_path == "/refuse":
            return HttpResponse(403, (), b"no")
        if request.raw_path.endswith("unsendable"):
            if request.raw_path.startswith("/late"):
                await asyncio.sleep(0)
            after_events = request.raw_path.startswith("/after-events")
            return HttpResponse(200, (("X", "\ud800"),), b"", after_events=after_events)
        if request.raw_path == "/fail":
            raise RuntimeError("of its own")
        if request.raw_path in ("/known-length", "/too-short"):
            stream = StreamingResponse(request.writer)
            stream.status = 404
            stream.begin((), 6)
            await stream.write(b"one")
            if request.raw_path == "/known-length":
                await stream.write(b"two")
            return stream
        if request.raw_path == "/break":
            return HttpResponse(200, (("X", "a\r\nY: b"),), b"")
        body = await request.read(LIMIT)
        return HttpResponse(413, (), b"much") if body is None else HttpResponse(200, (), b"<%b>" % body)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    listening = await asyncio.get_running_loop().create_server(made.server, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    yield made
    made.release.set()
    listening.close()
    await made.server.shutdown(1)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> tuple[int, bytes, bytes]:
        """Return status, head and body of the next response."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        body = await self.reader.readexactly(int(length)) if length else b""
        return int(head.split()[1]), head, body

    async def ended(self) -> bool:
        return await self.reader.read() == b""


async def dial(site: Site) -> Client:
    return Client(*await asyncio.open_connection("127.0.0.1", site.port))


def post(path: str, body: bytes, *lines: str) -> bytes:
    head = "".join(f"{line}\r\n" for line in (f"POST {path} HTTP/1.1", "Host: x", *lines))
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def test_pipelined_requests_are_answered_in_order(site: Site) -> None:
    client = await dial(site)
    client.send(
        post("/a", b"1") + post("/b", b"22") + b"GET /c HTTP/1.1\r\nHost: x\r\n\r\n" + post("/wait", b"4")
    )
    assert [(await client.answer())[2] for _ in range(3)] == [b"<1>", b"<22>", b"<>"]
    client.send(post("/e", b"5"))
    site.release.set()
    assert [(await client.answer())[2] for _ in range(2)] == [b"<4>", b"<5>"]
    assert site.served == ["/a", "/b", "/c", "/wait", "/e"]


async def test_a_request_may_arrive_byte_by_byte(site: Site) -> None:
    client = await dial(site)
    for byte in post("/a", b"slow"):
        client.send(bytes([byte]))
        await client.writer.drain()
        await asyncio.sleep(0)
    assert (await client.answer())[2] == b"<slow>"


async def test_a_chunked_body_is_joined(site: Site) -> None:
    client = await dial(site)
    client.send(b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    client.send(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" + post("/b", b"f"))
    assert [(await client.answer())[2] for _ in range(2)] == [b"<abcde>", b"<f>"]


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
        b"GET /" + b"a" * 300_000,
    ],
)
async def test_a_malformed_request_is_answered_and_nothing_after_it_is_parsed(
    site: Site, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_LINGER", 0.0)
    client = await dial(site)
    client.send(data + b"\r\n\r\n" + post("/smuggled", b""))
    code, head, body = await client.answer()
    assert code in (400, 431)
    assert b"Connection: close" in head
    assert body.startswith(b"4")
    assert await client.ended()
    assert site.served == []


async def test_100_continue_is_sent_only_when_the_body_is_read(site: Site) -> None:
    client = await dial(site)
    client.send(b"POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"ok")
    assert (await client.answer())[2] == b"<ok>"
    client.send(b"POST /refuse HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    code, head, _ = await client.answer()
    assert code == 403
    # The server cannot tell whether the body or another request follows.
    assert b"Connection: close" in head


async def test_an_unread_body_is_not_parsed_as_a_request(site: Site) -> None:
    client = await dial(site)
    hidden = b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
    whole = post("/refuse", hidden)
    client.send(whole[:-3])
    assert (await client.answer())[0] == 403
    client.send(whole[-3:] + post("/next", b""))
    assert (await client.answer())[2] == b"<>"
    assert site.served == ["/refuse", "/next"]


async def test_a_too_large_body_is_refused_before_it_arrives(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_LINGER", 0.0)
    client = await dial(site)
    client.send(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\nsome")
    code, head, _ = await client.answer()
    assert code == 413
    assert b"Connection: close" in head
    assert await client.ended()


async def test_a_head_request_is_answered_without_a_body(site: Site) -> None:
    client = await dial(site)
    client.send(b"HEAD /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n")
    head = await client.reader.readuntil(b"\r\n\r\n")
    assert b"Content-Length: 2" in head
    assert (await client.answer())[0] == 200


async def test_an_http_1_0_client_is_answered_and_disconnected(site: Site) -> None:
    client = await dial(site)
    client.send(b"GET /a HTTP/1.0\r\n\r\n")
    assert (await client.answer())[2] == b"<>"
    assert await client.ended()
    client = await dial(site)
    client.send(b"GET /stream HTTP/1.0\r\n\r\n")
    head = await client.reader.readuntil(b"\r\n\r\n")
    assert b"chunked" not in head
    site.release.set()
    assert await client.reader.read() == b"onetwo"


async def test_a_stream_is_chunked_and_keeps_the_connection(site: Site) -> None:
    client = await dial(site)
    client.send(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in await client.reader.readuntil(b"\r\n\r\n")
    assert await client.reader.readexactly(8) == b"3\r\none\r\n"
    site.release.set()
    assert await client.reader.readuntil(b"0\r\n\r\n") == b"3\r\ntwo\r\n0\r\n\r\n"
    client.send(post("/a", b"1"))
    assert (await client.answer())[2] == b"<1>"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_stream_of_known_length_is_not_chunked_and_keeps_the_connection(
    site: Site, method: str
) -> None:
    client = await dial(site)
    client.send(f"{method} /known-length HTTP/1.1\r\nHost: x\r\n\r\n".encode() + post("/a", b"1"))
    head = await client.reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404 ")
    assert b"\r\nContent-Length: 6\r\n" in head
    assert b"Transfer-Encoding" not in head
    if method == "GET":
        assert await client.reader.readexactly(6) == b"onetwo"
    assert (await client.answer())[2] == b"<1>"


async def test_a_stream_that_is_shorter_than_its_length_closes_the_connection(site: Site) -> None:
    client = await dial(site)
    client.send(b"GET /too-short HTTP/1.1\r\nHost: x\r\n\r\n" + post("/a", b"1"))
    async with asyncio.timeout(10):
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.answer()
    assert site.served == ["/too-short"]


async def test_a_chunked_response_to_head_has_no_body(site: Site) -> None:
    site.release.set()
    client = await dial(site)
    client.send(b"HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n" + post("/a", b"1"))
    assert b"chunked" in await client.reader.readuntil(b"\r\n\r\n")
    assert (await client.answer())[2] == b"<1>"


@pytest.mark.parametrize("path", ["/unsendable", "/late-unsendable", "/after-events-unsendable", "/fail"])
async def test_a_response_that_cannot_be_written_closes_the_connection_and_is_reported(
    site: Site, path: str
) -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    client = await dial(site)
    client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() + post("/a", b"1"))
    async with asyncio.timeout(10):
        try:
            assert await client.ended()
        except ConnectionResetError:
            pass
    assert site.served == [path]
    (context,) = reported
    assert context["message"] == "an HTTP handler failed"
    assert isinstance(context["exception"], RuntimeError if path == "/fail" else UnicodeEncodeError)


async def test_a_disconnect_cancels_the_handler(site: Site) -> None:
    client = await dial(site)
    client.send(post("/wait", b""))
    while not site.served:
        await asyncio.sleep(0)
    client.writer.transport.abort()
    async with asyncio.timeout(10):
        await site.cancelled.wait()
    assert not site.server.connections


async def test_a_header_value_cannot_inject_another_header(site: Site) -> None:
    client = await dial(site)
    client.send(post("/break", b""))
    _, head, _ = await client.answer()
    assert b"X: a  Y: b\r\n" in head


async def test_shutdown_lets_a_request_in_progress_finish(site: Site) -> None:
    idle, busy = await dial(site), await dial(site)
    busy.send(post("/wait", b"1"))
    idle.send(post("/a", b""))
    await idle.answer()
    while "/wait" not in site.served:
        await asyncio.sleep(0)
    ending = asyncio.create_task(site.server.shutdown(10))
    assert await idle.ended()
    site.release.set()
    _, head, body = await busy.answer()
    assert body == b"<1>"
    assert b"Connection: close" in head
    await ending


async def test_an_idle_client_is_disconnected(site: Site) -> None:
    client = await dial(site)
    client.send(post("/a", b""))
    await client.answer()
    now = asyncio.get_running_loop().time()
    site.server.sweep(now + TIMEOUTS[Wait.HEAD])
    client.send(post("/b", b""))
    await client.answer()
    site.server.sweep(now + TIMEOUTS[Wait.NEXT] + 1)
    assert await client.ended()


async def test_a_disconnect_within_a_body_logs_nothing(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    client = await dial(site)
    client.send(post("/a", b"whole")[:-2])
    while not site.served:
        await asyncio.sleep(0)
    client.writer.transport.abort()
    while site.server.connections:
        await asyncio.sleep(0)
    assert caplog.records == []


async def test_reading_pauses_when_a_client_pipelines_too_much(site: Site) -> None:
    client = await dial(site)
    many = 3000
    client.send(post("/wait", b""))
    while not site.served:
        await asyncio.sleep(0)
    client.send(post("/ahead", b"x" * LIMIT) * many)
    (served,) = site.server.connections
    while not served._writer.reading_paused:
        await asyncio.sleep(0)
    assert served.held < 600_000
    site.release.set()
    assert (await client.answer())[2] == b"<>"
    for _ in range(many):
        assert len((await client.answer())[2]) == LIMIT + 2


# -- limits -----------------------------------------------------------------------------------
# A transport that counts takes the place of the socket, whose buffers differ between machines.


class CountingTransport(asyncio.Transport):
    """A transport whose client sends what it is told to, and reads nothing until `drain`."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.protocol = site.server()
        self.unsent = bytearray()
        self.received = 0
        self.reading = True
        self.closing = False
        self._full = False
        self.protocol.connection_made(self)

    def feed(self, data: bytes, count: int = 1) -> None:
        """Send packets as long as the server reads them."""
        for _ in range(count):
            if self.reading and not self.closing:
                self.received += len(data)
                self.protocol.data_received(data)

    def drain(self) -> bytes:
        """Read all there is."""
        sent, self.unsent = bytes(self.unsent), bytearray()
        if self._full:
            self._full = False
            self.protocol.resume_writing()
        return sent

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.unsent += data
        if len(self.unsent) > HIGH_WATER and not self._full:
            self._full = True
            self.protocol.pause_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def get_write_buffer_size(self) -> int:
        return len(self.unsent)

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    abort = close


async def test_requests_wait_while_the_client_does_not_read_its_responses(site: Site) -> None:
    client = CountingTransport(site)
    many = 2000
    client.feed(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n" * many)
    assert len(client.unsent) <= HIGH_WATER + 2 * LARGE
    client.feed(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n" * 1000, 100)
    assert not client.reading
    assert client.received < 3 * PACKET
    answered = len(site.served)
    read = client.drain()
    while not client.reading or len(site.served) > answered:
        answered = len(site.served)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(client.unsent) <= HIGH_WATER + 2 * LARGE
        read += client.drain()
    assert len(site.served) >= many
    assert read.count(b"HTTP/1.1 200") == len(site.served)


async def test_input_during_a_stream_is_limited(site: Site) -> None:
    client = CountingTransport(site)
    client.feed(b"POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 300000000\r\n\r\n")
    client.feed(b"x" * PACKET, 100)
    assert client.received <= 4 * PACKET
    assert client.closing


@pytest.mark.parametrize("path", ["/stream", "/late-stream"])
@pytest.mark.parametrize("size", [PACKET // 2, 4 * PACKET])
async def test_a_stream_behind_too_much_input_is_closed(site: Site, path: str, size: int) -> None:
    client = CountingTransport(site)
    client.feed(
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 300000000\r\n\r\n".encode() + b"x" * size
    )
    for _ in range(5):
        await asyncio.sleep(0)
    assert (b"one" in client.unsent) is (size < PACKET or path == "/stream")
    assert client.closing is (size > PACKET)


async def test_a_body_that_no_handler_reads_is_neither_parsed_nor_kept(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = 0
    parse_line: Any = RequestBody._parse_line

    def counted(*args: Any) -> Any:
        nonlocal lines
        lines += 1
        return parse_line(*args)

    monkeypatch.setattr(RequestBody, "_parse_line", counted)
    client = CountingTransport(site)
    client.feed(b"POST /refuse HTTP/1.1\r\n" + CHUNKED + b"1\r\na\r\n" * 20_000)
    assert b"403 Forbidden" in client.unsent
    assert b"Connection: close" in client.unsent
    client.feed(b"1\r\na\r\n" * 10_000, 10)
    client.feed(b"0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n")
    assert lines <= PACKET / 3
    assert client.protocol.held == 0
    assert site.served == ["/refuse"]


async def test_the_body_of_a_request_that_waits_is_held_up_to_a_limit_and_read_when_wanted(
    site: Site,
) -> None:
    client = CountingTransport(site)
    size = 10 * PACKET
    client.feed(b"POST /late HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
    client.feed(b"x" * PACKET, 10)
    assert not client.reading
    held = client.protocol.held
    assert PACKET < held <= 2 * PACKET
    site.release.set()
    while not client.reading:
        await asyncio.sleep(0)
    client.feed(b"x" * (size - held))
    while not client.unsent:
        await asyncio.sleep(0)
    assert client.unsent.endswith(b"\r\n\r\n%d" % size)
    assert not client.closing


async def test_a_short_chunked_body_that_no_handler_reads_keeps_the_connection(site: Site) -> None:
    client = await dial(site)
    client.send(b"POST /refuse HTTP/1.1\r\n" + CHUNKED + b"1\r\na\r\n0\r\n\r\n" + post("/a", b"1"))
    assert [(await client.answer())[0] for _ in range(2)] == [403, 200]


@pytest.mark.parametrize("late", [False, True])
async def test_a_malformed_body_is_answered_whenever_it_arrives(
    site: Site, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_LINGER", 0.0)
    client = await dial(site)
    client.send(b"POST /a HTTP/1.1\r\n" + CHUNKED + b"1\r\n")
    if late:
        while not site.served:
            await asyncio.sleep(0)
    client.send(b"abc" + post("/smuggled", b""))
    code, head, _ = await client.answer()
    assert code == 400
    assert b"Connection: close" in head
    assert await client.ended()
    assert site.served == ["/a"]


async def test_no_request_is_handled_behind_one_that_closes_the_connection(site: Site) -> None:
    client = await dial(site)
    client.send(post("/a", b"", "Connection: close") + post("/b", b""))
    assert (await client.answer())[0] == 200
    assert await client.ended()
    assert site.served == ["/a"]


async def test_a_head_is_searched_once_however_it_arrives(site: Site) -> None:
    client = CountingTransport(site)
    for _ in range(100):
        client.feed(b"\r\n")
    head = b"GET /a HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 100 + b"\r\n"
    for at in range(len(head)):
        client.feed(head[at : at + 1])
        assert client.protocol._scanned >= client.protocol.held - 3
    assert b"200 OK" in client.unsent
