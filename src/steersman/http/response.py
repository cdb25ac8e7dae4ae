"""HTTP/1.1 responses: whole ones, streamed ones, and the writer that puts them on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TypeAlias

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
_WITHOUT_BODY = (204, 304)

HeaderLine: TypeAlias = tuple[str, str]


class HttpResponse:
    """A response whose body is complete when it is sent."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Iterable[HeaderLine], body: bytes = b"") -> None:
        self.status = status
        self.headers = headers
        self.body = body


class ResponseWriter:
    """The sending side of one connection, and the flow control of both sides.

    ``http11``, ``head_only`` and ``keep_alive`` describe the request that is being answered.
    """

    __slots__ = (
        "_date",
        "_drained",
        "_loop",
        "_peer_certificate",
        "head_only",
        "http11",
        "keep_alive",
        "paused",
        "reading_paused",
        "streaming",
        "transport",
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
        self._drained: asyncio.Future[None] | None = None
        self._peer_certificate: tuple[bytes | None] | None = None

    @property
    def peer_certificate(self) -> bytes | None:
        """The client certificate as DER, already verified by TLS; None if the client sent none."""
        if self._peer_certificate is None:
            tls = self.transport.get_extra_info("ssl_object") if self.transport is not None else None
            self._peer_certificate = (tls.getpeercert(True) if tls is not None else None,)
        return self._peer_certificate[0]

    def write(self, data: bytes) -> None:
        """Send bytes. Raises `ConnectionResetError` if the connection is closed."""
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the client closed the connection")
        self.transport.write(data)

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
        self.write(self.head(response.status, headers) + (b"" if self.head_only else body))

    def head(self, status: int, headers: Iterable[HeaderLine]) -> bytes:
        """Serialize status line and headers, with the ``Date`` header added."""
        lines = [f"{name}: {value}\r\n" for name, value in headers]
        block = "".join(lines)
        if block.count("\n") != len(lines) or block.count("\r") != len(lines):
            # A line break in a value would begin another header, or another response.
            block = "".join(f"{_on_one_line(line[:-2])}\r\n" for line in lines)
        date = self._date(self._loop.time())
        return f"{_STATUS_LINES[status]}{block}Date: {date}\r\n\r\n".encode("utf-8", "surrogateescape")

    def pause(self) -> None:
        """Note that the transport's send buffer is full."""
        self.paused = True

    def resume(self) -> None:
        """Note that the transport's send buffer has room again."""
        self.paused = False
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
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self) -> None:
        """Fail the pending `drain`: the connection is closed."""
        self.transport = None
        if self._drained is not None and not self._drained.done():
            self._drained.set_exception(ConnectionResetError("the client closed the connection"))


class StreamingResponse:
    """A response whose length is not known when it begins, such as a watch.

    The body is chunked for HTTP/1.1. An HTTP/1.0 client sees its end when the connection closes.
    """

    __slots__ = ("_writer", "status")

    def __init__(self, writer: ResponseWriter) -> None:
        self._writer = writer
        self.status = 200

    def begin(self, headers: Iterable[HeaderLine]) -> None:
        """Send the head. Raises `ConnectionResetError` if the connection is closed."""
        writer = self._writer
        if writer.reading_paused:
            # Without reading, the end of the connection would not be noticed, and a stream may last for hours.
            writer.abort()
            raise ConnectionResetError("the client sent too much before a stream")
        writer.streaming = True
        if not writer.http11:
            writer.keep_alive = False
        framing = (("Transfer-Encoding", "chunked"),) if writer.http11 else ()
        writer.write(writer.head(200, (*headers, *framing)))

    async def write(self, data: bytes) -> None:
        """Send part of the body and wait while the client reads slowly.

        Raises `ConnectionResetError` if the connection is closed.
        """
        writer = self._writer
        writer.write(b"%x\r\n%b\r\n" % (len(data), data) if writer.http11 else data)
        await writer.drain()

    def end(self) -> None:
        """Send the last chunk."""
        self._writer.streaming = False
        if self._writer.http11:
            self._writer.write(b"0\r\n\r\n")


def _on_one_line(value: str) -> str:
    return value.replace("\r", " ").replace("\n", " ")
