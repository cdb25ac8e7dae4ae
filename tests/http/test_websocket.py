"""WebSocket over the HTTP connection: the handshake, messages, the closing handshake, slow and broken clients."""

from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.http.connection import HttpServer
from steersman.http.request import HttpRequest
from steersman.http.response import HttpResponse, StreamingResponse
from steersman.http.websocket import (
    MAX_MESSAGE,
    MAX_UNREAD,
    FrameParser,
    WebSocket,
    WebSocketError,
    choose,
    is_upgrade,
    masked,
    refusal,
    subprotocols,
)
from tests.fuzz.targets.websocket_frames import client_frame

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""Key and answer of the example in RFC 6455."""
TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9
Talk = Callable[[WebSocket], Awaitable[None]]


# -- frames -----------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=300), max_size=5), st.binary(min_size=4, max_size=4))
def test_messages_are_read_back_however_they_are_fragmented(pieces: list[bytes], mask: bytes) -> None:
    frames = b"".join(
        client_frame(BINARY if not i else 0, piece, final=i == len(pieces) - 1, mask=mask)
        for i, piece in enumerate(pieces)
    )
    found = list(FrameParser().receive(frames))
    assert [each.data for each in found] == ([b"".join(pieces)] if pieces else [])


@given(st.binary(max_size=100), st.binary(min_size=4, max_size=4))
def test_a_mask_is_taken_off_by_applying_it_again(data: bytes, mask: bytes) -> None:
    assert masked(masked(data, mask), mask) == data
    assert masked(data, mask) == bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x82\x01a", 1002),  # not masked
        (b"\xc2\x80mask", 1002),  # a reserved bit
        (b"\x83\x80mask", 1002),  # an unknown opcode
        (b"\x09\x80mask", 1002),  # a ping in fragments
        (client_frame(PING, b"x" * 126), 1002),
        (client_frame(0, b"x"), 1002),  # continues nothing
        (client_frame(TEXT, b"a", final=False) + client_frame(TEXT, b"b"), 1002),
        (b"\x82\xfe\x00\x05mask", 1002),  # a length that is longer than it has to be
        (b"\x82\xff" + struct.pack("!Q", MAX_MESSAGE + 1), 1009),
        (
            client_frame(BINARY, b"x" * 1000, final=False) + client_frame(0, b"x" * 1000, final=False) * 1100,
            1009,
        ),
        (client_frame(BINARY, b"", final=False) + client_frame(0, b"", final=False) * 20_000, 1009),
    ],
)
def test_a_broken_frame_is_refused_with_a_code(data: bytes, code: int) -> None:
    with pytest.raises(WebSocketError) as refused:
        list(FrameParser().receive(data))
    assert refused.value.code == code


def test_the_first_protocol_is_chosen_that_both_sides_know() -> None:
    assert choose(["a", "b", "c"], ("c", "b")) == "b"
    assert choose(["a"], ("b",)) == ""


# -- a connection -----------------------------------------------------------------------------


class Client:
    """A client that sends and reads bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def frame(self) -> tuple[int, bytes]:
        first, second = await self.reader.readexactly(2)
        assert not second & 0x80, "a server does not mask"
        size = second & 0x7F
        if size >= 126:
            size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8), "big")
        return first & 0x0F, await self.reader.readexactly(size)


@asynccontextmanager
async def connected(talk: Talk, more: bytes = b"", /, **headers: str) -> AsyncIterator[tuple[Client, bytes]]:
    """A client that has sent a handshake, and the head of the answer."""

    async def handle(http: HttpRequest) -> HttpResponse | StreamingResponse:
        if not is_upgrade(http.headers) or (why := refusal(http)):
            return HttpResponse(400, (), b"no upgrade" if not is_upgrade(http.headers) else why.encode())
        socket = WebSocket(http)
        socket.accept(http, choose(subprotocols(http.headers), ("chat",)))
        await talk(socket)
        await socket.close()
        return socket

    server = HttpServer(handle, lambda: "now")
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
    fields = {
        "Host": "x",
        "Connection": "keep-alive, Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": KEY,
        "Sec-WebSocket-Protocol": "other, chat",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    writer.write(f"GET / HTTP/1.1\r\n{lines}\r\n".encode() + more)
    try:
        async with asyncio.timeout(30):
            head = await reader.readuntil(b"\r\n\r\n")
            yield Client(reader, writer), head
    finally:
        writer.close()
        listener.close()
        await server.shutdown(0.0)


async def echo(socket: WebSocket) -> None:
    while (data := await socket.receive()) is not None:
        await socket.send(data.upper())


async def test_a_handshake_is_answered_as_the_standard_says() -> None:
    async with connected(echo) as (client, head):
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        assert f"Sec-WebSocket-Accept: {ACCEPT}\r\n".encode() in head
        assert b"Sec-WebSocket-Protocol: chat\r\n" in head
        assert b"Transfer-Encoding" not in head
        client.writer.write(client_frame(BINARY, b"hello") + client_frame(TEXT, b"you"))
        assert [await client.frame(), await client.frame()] == [(BINARY, b"HELLO"), (BINARY, b"YOU")]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Upgrade": "SPDY/3.1"}, b"no upgrade"),
        ({"Sec_WebSocket_Version": "8"}, b"version 13"),
        ({"Sec_WebSocket_Key": "short"}, b"Sec-WebSocket-Key"),
        ({"Sec_WebSocket_Key": base64.b64encode(b"x" * 15).decode()}, b"Sec-WebSocket-Key"),
        ({"Content_Length": "0"}, b"without a body"),
    ],
)
async def test_a_wrong_handshake_is_an_ordinary_answer(headers: dict[str, str], said: bytes) -> None:
    async with connected(echo, **headers) as (client, head):
        assert head.startswith(b"HTTP/1.1 400 ")
        assert said in await client.reader.read(100)


async def test_a_ping_is_answered_and_a_close_as_well() -> None:
    async with connected(echo) as (client, _):
        client.writer.write(client_frame(PING, b"are you there"))
        assert await client.frame() == (10, b"are you there")
        client.writer.write(client_frame(CLOSE, struct.pack("!H", 1000)))
        assert await client.frame() == (CLOSE, struct.pack("!H", 1000))
        assert await client.reader.read() == b"", "the server closes the connection"


async def test_a_client_that_does_not_wait_for_the_handshake_loses_nothing() -> None:
    early = client_frame(BINARY, b"early")
    async with connected(echo, early[:4]) as (client, _):
        client.writer.write(early[4:])
        assert await client.frame() == (BINARY, b"EARLY")


async def test_bytes_that_are_no_frames_end_the_connection_with_a_code() -> None:
    async def talk(socket: WebSocket) -> None:
        with pytest.raises(WebSocketError) as refused:
            await socket.receive()
        await socket.close(refused.value.code, "no")

    async with connected(talk) as (client, _):
        client.writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await client.frame() == (CLOSE, struct.pack("!H", 1002) + b"no")


async def test_a_handler_that_does_not_read_holds_the_client_back() -> None:
    go = asyncio.Event()
    received = []

    async def talk(socket: WebSocket) -> None:
        await go.wait()
        while (data := await socket.receive()) is not None:
            received.append(len(data))

    async with connected(talk) as (client, _):
        sent, piece = 0, client_frame(BINARY, b"x" * 60_000)
        client.writer.transport.set_write_buffer_limits(high=65536)
        blocked = False
        while not blocked and sent < 1000:
            client.writer.write(piece)
            sent += 1
            try:
                async with asyncio.timeout(0.2):
                    await client.writer.drain()
            except TimeoutError:
                blocked = True
        assert blocked, f"{sent} messages were taken without being read"
        assert sent * 60_000 > MAX_UNREAD
        go.set()
        client.writer.write(client_frame(CLOSE, struct.pack("!H", 1000)))
        assert (await client.frame())[0] == CLOSE
        assert sum(received) == sent * 60_000


async def test_a_handler_is_cancelled_when_its_client_is_gone() -> None:
    ended = asyncio.Event()

    async def talk(socket: WebSocket) -> None:
        try:
            await socket.receive()
        finally:
            ended.set()

    async with connected(talk) as (client, _):
        client.writer.transport.abort()
        await ended.wait()
