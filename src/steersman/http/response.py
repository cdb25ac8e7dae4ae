"""HTTP/1.1 responses: whole ones, streamed ones, and the writer that puts them on the wire."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TypeAlias

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
_WITHOUT_BODY = (204, 304)

_PIECE = 64 * 1024
"""Bytes of a large response that are given to the transport at once."""

HeaderLine: TypeAlias = tuple[str, str]


class HttpResponse:
    """A response whose body is complete when it is sent."""

    __slots__ = ("after_events", "body", "headers", "status")

    def __init__(
        self, status: int, headers: Iterable[HeaderLine], body: bytes = b"", *, after_events: bool = False
    ) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.after_events = after_events
        """Whether tasks that are ready to run go first: watches that have an event to send."""


class ResponseWriter:
    """The sending side of one connection, and the flow control of both sides.

    ``http11``, ``head_only`` and ``keep_alive`` describe the request that is being answered.

    The transport is given as much of a large response as its client reads. The rest is kept here, where it is counted
    and takes no second copy.
    """

    __slots__ = (
        "_at",
        "_closes",
        "_date",
        "_drained",
        "_loop",
        "_peer_certificate",
        "_pieces",
        "authenticated",
        "backlog",
        "head_only",
        "http11",
        "keep_alive",
        "paused",
        "reading_paused",
        "streaming",
        "transport",
        "unsent",
        "upgraded",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, date: Callable[[float], str]) -> None:
        """``date`` formats the ``Date`` header, given the loop's time in seconds."""
        self.transport: asyncio.Transport | None = None
        """None before the connection is made, and after it is lost."""
        self.http11 = True
        self.head_only = False
        """The response is sent without its body: the request is a HEAD."""
        self.keep_alive = True
        self._loop = loop
        self._date = date
        self.paused = False
        """The transport's send buffer is full: the client does not read its responses."""
        self.reading_paused = False
        """Input is left in the socket: more is held than the connection allows."""
        self.streaming = False
        """A `StreamingResponse` has begun and not ended."""
        self.authenticated = False
        """A request on this connection was authenticated."""
        self.upgraded: Callable[[bytes], None] | None = None
        """Takes all further input, where the connection has left HTTP for another protocol."""
        self.backlog = 0
        """Bytes that the handler of a stream keeps until they can be sent."""
        self.unsent = 0
        """Bytes that wait until the transport's send buffer has room, with those already sent of the first piece."""
        self._pieces: deque[bytes] | None = None
        """The unsent bytes. Those before offset ``_at`` are sent."""
        self._at = 0
        self._closes = False
        """The connection closes once everything is sent."""
        self._drained: asyncio.Future[None] | None = None
        self._peer_certificate: tuple[bytes | None] | None = None

    @property
    def peer_certificate(self) -> bytes | None:
        """The client certificate as DER, not yet verified; None if the client sent none."""
        if self._peer_certificate is None:
            tls = self.transport.get_extra_info("ssl_object") if self.transport is not None else None
            self._peer_certificate = (tls.getpeercert(True) if tls is not None else None,)
        return self._peer_certificate[0]

    def write(self, data: bytes) -> None:
        """Send bytes. Raises `ConnectionResetError` if the connection is closed."""
        if self.transport is None or self._closes or self.transport.is_closing():
            raise ConnectionResetError("the client closed the connection")
        if len(data) <= _PIECE and not self.unsent:
            self.transport.write(data)
            return
        if self._pieces is None:
            self._pieces = deque()
        self._pieces.append(data)
        self.unsent += len(data)
        if not self.paused:
            self._send_pieces(self.transport)

    def _send_pieces(self, transport: asyncio.Transport) -> None:
        """Send what waits, as long as the send buffer has room."""
        pieces = self._pieces
        while pieces and not self.paused and not transport.is_closing():
            data, at = pieces[0], self._at
            self._at += _PIECE
            if self._at >= len(data):
                # Only now its memory is free.
                pieces.popleft()
                self.unsent -= len(data)
                self._at = 0
            transport.write(memoryview(data)[at : at + _PIECE])
        if not pieces:
            self._pieces = None
            if self._closes:
                transport.close()

    @property
    def buffered(self) -> int:
        """Bytes that wait for the client: those unsent, and those in a send buffer that is full."""
        if not self.paused or self.transport is None:
            return self.unsent
        return self.unsent + self.backlog + self.transport.get_write_buffer_size()

    @property
    def closing(self) -> bool:
        """The connection is closed, or closes once everything is sent."""
        return self.transport is None or self._closes or self.transport.is_closing()

    def write_response(self, response: HttpResponse, *, keep_alive: bool) -> None:
        """Send a whole response. Raises `ConnectionResetError` if the connection is closed."""
        headers = [*response.headers]
        if not keep_alive:
            headers.append(("Connection", "close"))
        elif not self.http11:
            headers.append(("Connection", "keep-alive"))
        body = response.body
        if response.status in _WITHOUT_BODY:
            body = b""
        else:
            headers.append(("Content-Length", str(len(body))))
        head = self.head(response.status, headers)
        if self.head_only:
            self.write(head)
        elif len(body) <= _PIECE:
            self.write(head + body)
        else:
            self.write(head)
            self.write(body)

    def head(self, status: int, headers: Iterable[HeaderLine]) -> bytes:
        """Serialize status line and headers, with the ``Date`` header added."""
        lines = [f"{name}: {value}\r\n" for name, value in headers]
        block = "".join(lines)
        if block.count("\n") != len(lines) or block.count("\r") != len(lines):
            # A line break in a value would begin another header, or another response.
            block = "".join(f"{_on_one_line(line[:-2])}\r\n" for line in lines)
        date = self._date(self._loop.time())
        # Webhooks and aggregated servers may answer with a code that has no name; the phrase is then that of Go.
        line = _STATUS_LINES.get(status) or f"HTTP/1.1 {status} status code {status}\r\n"
        return f"{line}{block}Date: {date}\r\n\r\n".encode("utf-8", "surrogateescape")

    def pause(self) -> None:
        """Note that the transport's send buffer is full."""
        self.paused = True

    def resume(self) -> None:
        """Note that the transport's send buffer has room again."""
        self.paused = False
        if self.unsent and self.transport is not None:
            self._send_pieces(self.transport)
            if self.unsent:
                return
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    async def drain(self) -> None:
        """Wait until the send buffer has room. Raises `ConnectionResetError` if the connection is closed."""
        if self.paused:
            self._drained = self._loop.create_future()
            await self._drained

    def pause_reading(self) -> None:
        """Leave further input in the socket, so that the client has to wait."""
        if not self.reading_paused and self.transport is not None:
            self.reading_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Receive input again."""
        if self.reading_paused and self.transport is not None:
            self.reading_paused = False
            self.transport.resume_reading()

    def close(self) -> None:
        """Close the connection once everything written is sent."""
        self._closes = True
        if self.transport is not None and not self.unsent:
            self.transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._closes = True
        self._drop_pieces()
        if self.transport is not None:
            self.transport.abort()

    def _drop_pieces(self) -> None:
        self._pieces = None
        self.unsent = self._at = 0

    def connection_lost(self) -> None:
        """Fail the pending `drain`: the connection is closed."""
        self.transport = None
        self._drop_pieces()
        if self._drained is not None and not self._drained.done():
            self._drained.set_exception(ConnectionResetError("the client closed the connection"))


class StreamingResponse:
    """A response whose body is sent in parts, such as a watch.

    Without a length, the body is chunked for HTTP/1.1. An HTTP/1.0 client sees its end when the connection closes.
    """

    __slots__ = ("_chunked", "_missing", "_writer", "status")

    def __init__(self, writer: ResponseWriter) -> None:
        self._writer = writer
        self.status = 200
        self._chunked = False
        self._missing = 0
        """Bytes that are not written yet of a body whose length the head gives."""

    def begin(self, headers: Iterable[HeaderLine], length: int | None = None) -> None:
        """Send the head, with the length of the body where it is known.

        Raises `ConnectionResetError` if the connection is closed.
        """
        writer = self._writer
        if writer.reading_paused:
            # Without reading, the end of the connection would not be noticed, and a stream may last for hours.
            writer.abort()
            raise ConnectionResetError("the client sent too much before a stream")
        writer.streaming = True
        if not writer.http11:
            writer.keep_alive = False
        framing: tuple[HeaderLine, ...] = ()
        if length is not None:
            framing = (("Content-Length", str(length)),)
            self._missing = 0 if writer.head_only else length
        elif writer.http11:
            framing = (("Transfer-Encoding", "chunked"),)
            self._chunked = not writer.head_only
        if not writer.keep_alive:
            framing = (*framing, ("Connection", "close"))
        writer.write(writer.head(self.status, (*headers, *framing)))

    async def write(self, data: bytes) -> None:
        """Send part of the body, unless the request is a HEAD, and wait while the client reads slowly.

        Raises `ConnectionResetError` if the connection is closed.
        """
        writer = self._writer
        if writer.head_only:
            return
        self._missing -= len(data)
        writer.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
        await writer.drain()

    def keep(self, size: int) -> None:
        """Note how many bytes the handler keeps until they can be sent."""
        self._writer.backlog = size

    def end(self) -> None:
        """Send the last chunk. Raises `ValueError` where bytes of the length are missing, for which the client would wait."""
        self._writer.backlog = 0
        self._writer.streaming = False
        if self._chunked:
            self._writer.write(b"0\r\n\r\n")
        elif self._missing > 0:
            raise ValueError(f"{self._missing} bytes of a response are missing")


def _on_one_line(value: str) -> str:
    return value.replace("\r", " ").replace("\n", " ")
