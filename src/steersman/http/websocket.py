"""WebSocket (RFC 6455), the server's side: the handshake, frames, and a connection that a handler reads and writes messages on.

`FrameParser` is pure and bounds everything it holds. `WebSocket` answers pings, completes the closing handshake, and leaves further
input in the socket while its handler does not read.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import struct
from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from steersman.http.head import Headers
from steersman.http.request import HttpRequest
from steersman.http.response import HeaderLine, StreamingResponse

MAX_MESSAGE = 1024 * 1024
"""Bytes of a message, however many frames it comes in."""
MAX_CONTROL = 125
"""Bytes of a ping, pong or close."""
MAX_UNREAD = 256 * 1024
"""Bytes of messages that wait to be read; then the connection is not read any more."""
CLOSE_TIMEOUT = 5.0
"""Seconds to wait for the client's side of the closing handshake."""
NORMAL, PROTOCOL_ERROR, INVALID_TEXT, TOO_BIG, INTERNAL_ERROR = 1000, 1002, 1007, 1009, 1011

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA


class WebSocketError(Exception):
    """Bytes that are not WebSocket, with the code to close with. The connection must be closed."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Message(msgspec.Struct, frozen=True):
    """A whole message, or a control frame."""

    opcode: int
    data: bytes

    @property
    def is_control(self) -> bool:
        return self.opcode >= _CLOSE


class FrameParser:
    """Parses the frames of a client into messages. Its time is linear in the bytes received, its memory bounded by one message."""

    __slots__ = ("_at", "_buffer", "_fragments", "_opcode", "_size")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0
        """Offset in the buffer up to which frames are parsed."""
        self._fragments: list[bytes] = []
        self._opcode = 0
        """Of the message in fragments; 0 where there is none."""
        self._size = 0

    def receive(self, data: bytes) -> Iterator[Message]:
        """Take received bytes; yields the messages that are complete. Raises `WebSocketError`."""
        self._buffer += data
        while (frame := self._frame()) is not None:
            message = self._assemble(*frame)
            if message is not None:
                yield message
        if self._at:
            del self._buffer[: self._at]
            self._at = 0

    def _frame(self) -> tuple[bool, int, bytes] | None:
        """The next frame: whether it is the last of its message, its opcode and its data. None where it is incomplete."""
        buffer, at = self._buffer, self._at
        if len(buffer) - at < 2:
            return None
        first, second = buffer[at], buffer[at + 1]
        final, opcode, length = bool(first & 0x80), first & 0x0F, second & 0x7F
        if first & 0x70:
            raise WebSocketError(PROTOCOL_ERROR, "reserved bits are set")
        if not second & 0x80:
            raise WebSocketError(PROTOCOL_ERROR, "a client's frame is not masked")
        if opcode not in (_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG):
            raise WebSocketError(PROTOCOL_ERROR, f"unknown opcode {opcode}")
        if opcode >= _CLOSE and (length > MAX_CONTROL or not final):
            raise WebSocketError(PROTOCOL_ERROR, "a control frame is too long or fragmented")
        at += 2
        if length >= 126:
            size = 2 if length == 126 else 8
            if len(buffer) - at < size:
                return None
            length = int.from_bytes(buffer[at : at + size], "big")
            if length < 126 or (size == 8 and length < 0x10000):
                raise WebSocketError(PROTOCOL_ERROR, "a length is not in its shortest form")
            at += size
        if length + self._size > MAX_MESSAGE:
            raise WebSocketError(TOO_BIG, f"a message is larger than {MAX_MESSAGE} bytes")
        if len(buffer) - at < 4 + length:
            return None
        mask = bytes(buffer[at : at + 4])
        data = bytes(buffer[at + 4 : at + 4 + length])
        self._at = at + 4 + length
        return final, opcode, masked(data, mask)

    def _assemble(self, final: bool, opcode: int, data: bytes) -> Message | None:
        if opcode >= _CLOSE:
            return Message(opcode, data)
        if opcode == _CONTINUATION:
            if not self._opcode:
                raise WebSocketError(PROTOCOL_ERROR, "a continuation of no message")
        elif self._opcode:
            raise WebSocketError(PROTOCOL_ERROR, "a message begins within another")
        elif final:
            return Message(opcode, data)
        else:
            self._opcode = opcode
        self._fragments.append(data)
        # An empty fragment takes memory, too.
        self._size += max(len(data), 64)
        if self._size > MAX_MESSAGE:
            raise WebSocketError(TOO_BIG, f"a message is larger than {MAX_MESSAGE} bytes")
        if not final:
            return None
        message = Message(self._opcode, b"".join(self._fragments))
        self._fragments, self._opcode, self._size = [], 0, 0
        return message


def masked(data: bytes, mask: bytes) -> bytes:
    """Data with a mask of four bytes applied, or taken off."""
    size = len(data)
    if not size:
        return data
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


def frame(opcode: int, data: bytes) -> bytes:
    """A server's frame, a whole message of its own."""
    size = len(data)
    if size < 126:
        return struct.pack("!BB", 0x80 | opcode, size) + data
    if size < 0x10000:
        return struct.pack("!BBH", 0x80 | opcode, 126, size) + data
    return struct.pack("!BBQ", 0x80 | opcode, 127, size) + data


# -- the handshake ----------------------------------------------------------------------------


def is_upgrade(headers: Headers) -> bool:
    """Whether a request asks for a WebSocket."""
    connection = {each.strip().lower() for line in headers.getall("Connection") for each in line.split(",")}
    return "upgrade" in connection and headers.get("Upgrade").lower() == "websocket"


def subprotocols(headers: Headers) -> list[str]:
    """The subprotocols that a client offers, in its order."""
    lines = headers.getall("Sec-WebSocket-Protocol")
    return [each.strip() for line in lines for each in line.split(",") if each.strip()]


def choose(offered: Sequence[str], supported: Sequence[str]) -> str:
    """The first subprotocol offered that is supported; empty where there is none."""
    return next((each for each in offered if each in supported), "")


def refusal(http: HttpRequest) -> str:
    """Why a request is no valid handshake; empty where it is."""
    headers = http.headers
    if http.method != "GET":
        return "a WebSocket begins with a GET request"
    if "Content-Length" in headers or "Transfer-Encoding" in headers:
        return "a WebSocket begins with a request without a body"
    if headers.get("Sec-WebSocket-Version") != "13":
        return "version 13 of the WebSocket protocol is required"
    try:
        valid = len(base64.b64decode(headers.get("Sec-WebSocket-Key"), validate=True)) == 16
    except (binascii.Error, ValueError):
        valid = False
    return "" if valid else "Sec-WebSocket-Key is missing or invalid"


def _accepted(key: str) -> str:
    digest = hashlib.sha1(key.encode() + _GUID, usedforsecurity=False)
    return base64.b64encode(digest.digest()).decode()


class WebSocket(StreamingResponse):
    """The server's side of a WebSocket, from its handshake on. It is the response of its request."""

    __slots__ = (
        "_closed",
        "_code",
        "_error",
        "_finished",
        "_lock",
        "_messages",
        "_moved",
        "_parser",
        "_unread",
    )

    def __init__(self, http: HttpRequest) -> None:
        super().__init__(http.writer)
        self.status = 101
        self._parser = FrameParser()
        self._messages: deque[bytes] = deque()
        self._unread = 0
        self._error: WebSocketError | None = None
        self._code: int | None = None
        """The code that the client closed with; None while it has not."""
        self._closed = False
        """A close was sent."""
        self._finished = False
        """The handler reads no more."""
        self._moved = asyncio.Event()
        """Set when something was received, or the handler has finished."""
        self._lock = asyncio.Lock()
        """One sender at a time waits for a client that reads slowly."""

    def accept(self, http: HttpRequest, protocol: str) -> None:
        """Complete the handshake, with a subprotocol. Raises `ConnectionResetError` if the connection is closed."""
        headers: list[HeaderLine] = [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", _accepted(http.headers.get("Sec-WebSocket-Key"))),
        ]
        if protocol:
            headers.append(("Sec-WebSocket-Protocol", protocol))
        writer = self._writer
        writer.keep_alive = False
        writer.upgraded = self._receive
        writer.write(writer.head(101, headers))

    def _receive(self, data: bytes) -> None:
        """Take the bytes that the connection received."""
        if self._error is not None or self._code is not None:
            return
        try:
            for message in self._parser.receive(data):
                self._take(message)
                if self._code is not None:
                    break
        except WebSocketError as error:
            self._error = error
        if self._unread > MAX_UNREAD:
            self._writer.pause_reading()
        self._moved.set()

    def _take(self, message: Message) -> None:
        match message.opcode:
            case 0x9:  # a ping
                if not self._closed and not self._writer.paused:
                    self._writer.write(frame(_PONG, message.data))
            case 0xA:  # a pong
                pass
            case 0x8:  # a close
                data = message.data
                self._code = int.from_bytes(data[:2], "big") if len(data) >= 2 else NORMAL
            case _ if not self._closed:
                self._messages.append(message.data)
                self._unread += len(message.data) + 64

    def finish(self) -> None:
        """Let `receive` return None: there is nothing left to do for the client."""
        self._finished = True
        self._moved.set()

    async def receive(self) -> bytes | None:
        """The next message; None once the client has closed. Raises `WebSocketError`."""
        while True:
            if self._finished:
                return None
            if self._messages:
                data = self._messages.popleft()
                self._unread -= len(data) + 64
                if self._unread <= MAX_UNREAD // 2:
                    self._writer.resume_reading()
                return data
            if self._error is not None:
                raise self._error
            if self._code is not None:
                return None
            await self._more()

    async def _more(self) -> None:
        self._moved.clear()
        await self._moved.wait()

    async def send(self, data: bytes) -> None:
        """Send a binary message, and wait while the client reads slowly. Raises `ConnectionResetError`."""
        async with self._lock:
            if self._closed:
                raise ConnectionResetError("the WebSocket is closed")
            self._writer.write(frame(_BINARY, data))
            await self._writer.drain()

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Close the WebSocket, and wait for the client to do so, for a while: an answer it has not read must not be lost."""
        if self._closed:
            return
        self._closed = True
        self._messages.clear()
        self._unread = 0
        data = struct.pack("!H", code) + reason.encode()[: MAX_CONTROL - 2].decode(errors="ignore").encode()
        self._writer.write(frame(_CLOSE, data))
        self._writer.resume_reading()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                while self._code is None and self._error is None:
                    await self._more()
        except TimeoutError:
            pass  # the connection is closed all the same

    def end(self) -> None:
        """The connection closes; there is no last chunk."""
        self._writer.upgraded = None
