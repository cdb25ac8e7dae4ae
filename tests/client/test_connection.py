"""One connection, against a server that sends bytes as a test tells it to."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from steersman.client.connection import Connection, ConnectionBroke, NotHttp, RequestFailed, Response

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
GZIPPED = gzip.compress(b"hello", mtime=0)
COMPRESSED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (
    len(GZIPPED),
    GZIPPED,
)
HINTED = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + OK

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Peer:
    """A connection, and what its pool was told of it."""

    def __init__(self) -> None:
        self.taken_back: list[bool] = []
        """Whether the connection was usable each time it was taken back."""
        self.connection = Connection(lambda each: self.taken_back.append(each.usable))

    async def ask(self, seconds: float = 10.0) -> Response:
        return await self.connection.send(REQUEST, None, asyncio.get_running_loop().time() + seconds)


@asynccontextmanager
async def talking(talk: Talk) -> AsyncIterator[Peer]:
    """A connection to a server that talks as it is told."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    peer = Peer()
    async with server, asyncio.timeout(30):
        await asyncio.get_running_loop().create_connection(lambda: peer.connection, "127.0.0.1", port)
        try:
            yield peer
        finally:
            peer.connection.abort()


class Sink(asyncio.Transport):
    """A transport to no server: a test hands over what one would send."""

    closed = False

    def write(self, data: object) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True


def answering(*answers: bytes, keep: bool = True) -> Talk:
    """One answer to each request; then the server keeps the connection, or closes it."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
        if keep:
            await reader.read()

    return talk


@pytest.mark.parametrize(
    "answer", [OK, CHUNKED, COMPRESSED, HINTED], ids=["sized", "chunked", "gzip", "hints"]
)
async def test_a_response_in_single_bytes_is_the_same(answer: bytes) -> None:
    peer = Peer()
    peer.connection.connection_made(Sink())
    asked = asyncio.create_task(peer.ask())
    await asyncio.sleep(0)
    for at in range(len(answer)):
        peer.connection.data_received(answer[at : at + 1])
    response = await asked
    assert (response.status, await response.read()) == (200, b"hello")
    assert peer.taken_back == [True]


async def test_a_connection_takes_the_next_request_once_a_response_is_complete() -> None:
    async with talking(answering(OK, CHUNKED, COMPRESSED, HINTED)) as peer:
        for _ in range(4):
            response = await peer.ask()
            assert await response.read() == b"hello"
            response.close()
        assert peer.taken_back == [True] * 4


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        OK + b"HTTP/1.1 200 OK\r\n",
    ],
)
async def test_a_connection_that_the_server_closes_or_writes_on_is_not_used_again(answer: bytes) -> None:
    async with talking(answering(answer)) as peer:
        assert await (await peer.ask()).read() == b"hello"
        assert peer.taken_back == [False]
        with pytest.raises(ConnectionBroke):
            await peer.ask()


async def test_a_response_without_a_length_ends_with_the_connection() -> None:
    async with talking(answering(b"HTTP/1.1 200 OK\r\n\r\nhello", keep=False)) as peer:
        assert await (await peer.ask()).read() == b"hello"
        assert not peer.connection.usable


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"", "the server closed the connection"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "the server closed the connection"),
        (OK[:-1], "the response was cut off"),
        (CHUNKED[:-3], "the response was cut off"),
        (COMPRESSED.replace(b"Content-Length: ", b"X: ")[:-3], "the response was cut off"),
    ],
)
async def test_a_response_that_is_cut_off_says_so(answer: bytes, says: str) -> None:
    async with talking(answering(answer, keep=False)) as peer:
        with pytest.raises(ConnectionBroke, match=says):
            await (await peer.ask()).read()
        assert True not in peer.taken_back


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"A" * 300_000,
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 300_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
        COMPRESSED.replace(b"Content-Length: %d" % len(GZIPPED), b"Content-Length: 9"),
    ],
)
async def test_what_is_not_http_closes_the_connection(answer: bytes) -> None:
    async with talking(answering(answer)) as peer:
        with pytest.raises(NotHttp):
            await (await peer.ask()).read()
        assert not peer.connection.usable


async def test_an_answer_without_a_question_is_not_taken_for_that_to_the_next() -> None:
    said = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await writer.drain()
        said.set()
        await reader.read()

    async with talking(talk) as peer:
        await said.wait()
        while peer.connection.usable:
            await asyncio.sleep(0)
        with pytest.raises(RequestFailed):
            await peer.ask()


async def test_at_its_deadline_an_exchange_fails_wherever_it_is() -> None:
    async with talking(answering(b"")) as peer:
        with pytest.raises(TimeoutError):
            await peer.ask(seconds=0.01)
    async with talking(answering(OK[:-1])) as peer:
        response = await peer.ask(seconds=0.01)
        with pytest.raises(TimeoutError):
            await response.read()
        assert True not in peer.taken_back


async def test_a_request_that_is_cancelled_closes_its_connection() -> None:
    arrived = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        assert await reader.read() == b""

    async with talking(talk) as peer:
        asked = asyncio.create_task(peer.ask())
        await arrived.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert not peer.connection.usable


async def test_a_request_that_is_cancelled_after_its_response_leaves_the_connection_to_the_next() -> None:
    peer = Peer()
    sink = Sink()
    peer.connection.connection_made(sink)
    first = asyncio.create_task(peer.ask())
    await asyncio.sleep(0)
    peer.connection.data_received(OK)
    second = peer.ask()
    second.send(None)  # It is sent before the first task goes on, and finds that it is cancelled.
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not sink.closed
    peer.connection.data_received(OK)
    with pytest.raises(StopIteration) as stop:
        second.send(None)
    assert await stop.value.value.read() == b"hello"


async def test_closing_a_response_fails_its_reader() -> None:
    async with talking(answering(OK[:-1])) as peer:
        response = await peer.ask()
        assert await response.read_some() == b"hell"
        reading = asyncio.create_task(response.read_some())
        await asyncio.sleep(0)
        response.close()
        with pytest.raises(ConnectionBroke):
            await reading


async def test_a_server_that_sends_faster_than_its_reader_reads_has_to_wait() -> None:
    sent = 0
    stuck = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        transport = writer.transport
        while sent < 64 << 20:
            writer.write(bytes(1 << 20))
            sent += 1 << 20
            if transport.get_write_buffer_size():
                stuck.set()
            await writer.drain()

    async with talking(talk) as peer:
        response = await peer.ask()
        await stuck.wait()
        for _ in range(100):  # The reader is away, while the loop goes on.
            await asyncio.sleep(0)
        assert sent < 32 << 20
        received = 0
        while content := await response.read_some():
            received += len(content)
        assert received == sent == 64 << 20
