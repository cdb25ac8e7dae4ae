"""The limits of an HTTP server: who loses its connection when there are too many, too large or too slow ones."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest

from steersman.http import connection
from steersman.http.connection import HttpConnection, HttpServer
from steersman.http.limits import SWEEP, TIMEOUTS, Limits, Wait, overdue, to_evict
from steersman.http.request import HttpRequest
from steersman.http.response import HttpResponse, StreamingResponse

MIB = 1024 * 1024
HIGH_WATER = 64 * 1024
GET = b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n"


class Client(NamedTuple):
    """A connection in a table."""

    wait: Wait
    since: float = 0.0
    authenticated: bool = False


@pytest.mark.parametrize("wait", list(TIMEOUTS))
def test_each_wait_for_a_client_ends(wait: Wait) -> None:
    patient = Client(wait, since=100.0)
    assert overdue([patient], 100.0 + TIMEOUTS[wait] - 0.1) == []
    assert overdue([patient], 100.0 + TIMEOUTS[wait]) == [patient]


def test_a_handler_may_take_its_time() -> None:
    assert overdue([Client(Wait.NOTHING)], 1e9) == []


def test_the_longest_wait_is_evicted_first_and_the_authenticated_last() -> None:
    stranger, older, newer = (
        Client(Wait.HEAD, 9.0),
        Client(Wait.NEXT, 1.0, True),
        Client(Wait.BODY, 2.0, True),
    )
    watch = Client(Wait.NOTHING, 0.0)
    everyone = [watch, newer, older, stranger]
    assert to_evict(everyone, 2) == [stranger, older]
    assert to_evict(everyone, 9) == [stranger, older, newer]


# -- a server -----------------------------------------------------------------------------------


async def handle(request: HttpRequest) -> HttpResponse | StreamingResponse:
    path = request.raw_path
    if path == "/large":
        return HttpResponse(200, (), b"x" * MIB)
    if path == "/stream":
        stream = StreamingResponse(request.writer)
        stream.begin(())
        while True:
            await stream.write(b"x" * MIB)
    if path == "/watch":
        stream = StreamingResponse(request.writer)
        stream.begin(())
        await asyncio.get_running_loop().create_future()
    if path == "/login":
        request.writer.authenticated = True
    body = await request.read(4 * MIB)
    return HttpResponse(200, (), b"%d" % len(body or b""))


class Wire(asyncio.Transport):
    """A transport whose client reads only what it is told to."""

    def __init__(self, server: HttpServer) -> None:
        super().__init__()
        made = server()
        assert isinstance(made, HttpConnection)
        self.protocol: HttpConnection = made
        self.buffer = bytearray()
        self.received = bytearray()
        self.closed = self.aborted = self.reading = False
        self._full = False
        made.connection_made(self)

    def send(self, data: bytes) -> None:
        if not self.gone:
            self.protocol.data_received(data)

    def read(self) -> bytes:
        """Read all there is until the server sends no more."""
        while self.buffer:
            self.received += self.buffer
            self.buffer.clear()
            if self._full:
                self._full = False
                self.protocol.resume_writing()
        if self.closed:
            self._lose()
        return bytes(self.received)

    @property
    def gone(self) -> bool:
        return self.protocol._writer.transport is None

    def _lose(self) -> None:
        if not self.gone:
            self.protocol.connection_lost(None)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        assert len(data) <= HIGH_WATER, "a large response is written in pieces"
        self.buffer += data
        if len(self.buffer) > HIGH_WATER and not self._full:
            self._full = True
            self.protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return len(self.buffer)

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def close(self) -> None:
        self.closed = True
        if not self.buffer:
            self._lose()

    def abort(self) -> None:
        self.aborted = True
        self.buffer.clear()
        self._lose()


def served(limits: Limits = Limits()) -> HttpServer:
    return HttpServer(handle, lambda: "now", limits)


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def later(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_a_large_response_reaches_a_client_that_reads_it() -> None:
    client = Wire(served())
    client.send(GET % b"large" + GET % b"a")
    client.read()
    await turns()
    head, _, body = client.read().partition(b"\r\n\r\n")
    assert b"Content-Length: 1048576" in head
    assert body[:MIB] == b"x" * MIB
    assert body[MIB:].endswith(b"\r\n\r\n0")


async def test_the_end_of_a_connection_waits_for_a_large_response() -> None:
    client = Wire(served())
    client.send(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert not client.closed
    assert len(client.read().partition(b"\r\n\r\n")[2]) == MIB
    assert client.gone
    assert not client.aborted


@pytest.mark.parametrize("path", [b"large", b"stream"])
@pytest.mark.parametrize("ending", ["keep-alive", "close"])
async def test_a_client_that_never_reads_is_disconnected(path: bytes, ending: str) -> None:
    server = served()
    client = Wire(server)
    client.send(b"GET /%b HTTP/1.1\r\nHost: x\r\nConnection: %b\r\n\r\n" % (path, ending.encode()))
    await turns()
    server.sweep(later(TIMEOUTS[Wait.READER] - 1))
    assert not client.gone
    server.sweep(later(TIMEOUTS[Wait.READER] + 1))
    assert client.aborted
    await turns()
    assert server.buffered == 0
    assert not server.connections


async def test_a_client_that_reads_slowly_is_not() -> None:
    server = served()
    client = Wire(server)
    client.send(GET % b"large")
    client.read()
    server.sweep(later(TIMEOUTS[Wait.READER] + 1))
    assert not client.gone


@pytest.mark.parametrize(
    ("sent", "wait"),
    [
        (b"", Wait.HEAD),
        (b"GET / HTTP/1.1\r\nX: ", Wait.HEAD),
        (GET % b"a" + b"GET / HTTP", Wait.HEAD),
        (GET % b"a", Wait.NEXT),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1", Wait.BODY),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na", Wait.BODY),
    ],
)
async def test_a_client_that_stops_in_the_middle_is_disconnected(
    sent: bytes, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_LINGER", 0.0)
    server = served()
    client = Wire(server)
    if sent:
        client.send(sent)
    await turns()
    answered = client.read()
    assert client.protocol.wait is wait
    server.sweep(later(TIMEOUTS[wait] - 1))
    await turns()
    assert not client.gone
    server.sweep(later(TIMEOUTS[wait] + 1))
    while not client.gone:
        await asyncio.sleep(0)
        client.read()
    assert (b" 408 " in client.received[len(answered) :]) is (wait is Wait.BODY)


async def test_a_body_that_trickles_in_ends_all_the_same() -> None:
    server = served()
    client = Wire(server)
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
    began = client.protocol.since
    client.send(b"x")
    await turns()
    assert client.protocol.since == began


async def test_a_server_looks_after_its_connections_as_long_as_it_has_some() -> None:
    server = served()
    assert server._timer is None
    client = Wire(server)
    timer: Any = server._timer
    assert timer.when() <= later(SWEEP)
    timer._run()
    assert server._timer is not None
    client.abort()
    timer = server._timer
    timer._run()
    assert server._timer is None


async def test_idle_connections_make_room_for_new_ones_and_watches_do_not() -> None:
    server = served(Limits(connections=40))
    watches = [Wire(server) for _ in range(30)]
    for each in watches:
        each.send(GET % b"watch")
    known = Wire(server)
    known.send(GET % b"login")
    strangers = [Wire(server) for _ in range(100)]
    assert len(server.connections) <= 40
    assert not any(each.gone for each in watches)
    assert not known.gone
    assert strangers[0].aborted
    assert not strangers[-1].gone
    strangers[-1].send(GET % b"a")
    await turns()
    assert b" 200 " in strangers[-1].read()


async def test_where_only_watches_are_left_the_new_connection_is_refused() -> None:
    server = served(Limits(connections=5))
    watches = [Wire(server) for _ in range(5)]
    for each in watches:
        each.send(GET % b"watch")
    assert Wire(server).aborted
    assert not any(each.gone for each in watches)


@pytest.mark.parametrize(
    "kind", ["unread responses", "unread streams", "unfinished bodies", "unfinished heads"]
)
async def test_clients_that_keep_much_waiting_are_shed_the_slowest_first(kind: str) -> None:
    most = 4 * MIB
    server = served(Limits(buffered=most))
    sent = {
        "unread responses": GET % b"large",
        "unread streams": GET % b"stream",
        "unfinished bodies": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n" + b"x" * MIB,
        "unfinished heads": b"GET / HTTP/1.1\r\n" + b"X-Y: z\r\n" * 30_000,
    }[kind]
    clients = []
    for _ in range(40):
        client = Wire(server)
        client.send(sent)
        clients.append(client)
        await turns(3)
        assert server.buffered <= most + 2 * MIB
    held = [each for each in clients if not each.gone]
    assert held == clients[-len(held) :]
    assert 2 <= len(held) < 40


async def test_one_response_may_be_larger_than_all_that_is_kept() -> None:
    client = Wire(served(Limits(buffered=MIB // 2)))
    client.send(GET % b"large")
    assert len(client.read().partition(b"\r\n\r\n")[2]) == MIB


async def test_a_large_head_is_not_kept_for_the_next_request() -> None:
    server = served()
    client = Wire(server)
    client.send(b"GET /a HTTP/1.1\r\nHost: x\r\n" + b"X-Y: z\r\n" * 10_000 + b"\r\n")
    assert len(client.protocol._header_block[0]) < 100
    assert server.buffered == 0


async def test_a_watch_is_charged_for_its_large_head() -> None:
    server = served()
    client = Wire(server)
    client.send(b"GET /watch HTTP/1.1\r\nHost: x\r\n" + b"X-Y: z\r\n" * 10_000 + b"\r\n")
    assert server.buffered >= 80_000


async def test_pipelined_requests_take_turns_with_those_of_others() -> None:
    server = served()
    many, one = Wire(server), Wire(server)
    many.send(GET % b"a" * 1000)
    one.send(GET % b"b")
    assert many.buffer.count(b" 200 ") < 10
    assert one.buffer.count(b" 200 ") == 1
    many.send(GET % b"a" * 1000)
    assert many.buffer.count(b" 200 ") < 10
    for _ in range(2000):
        await asyncio.sleep(0)
        many.read()
    assert many.received.count(b" 200 ") == 2000
