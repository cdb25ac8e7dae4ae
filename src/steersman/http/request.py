"""HTTP/1.1 requests as handlers receive them: head, and a body that is read on demand."""

from __future__ import annotations

import asyncio

from steersman.http.head import Headers, MalformedRequest, RequestHead
from steersman.http.response import ResponseWriter

MAX_DISCARDED = 64 * 1024
"""Bytes of an unread body that are read and discarded to keep the connection open."""
_MAX_CHUNK_LINE = 1024
"""Bytes of the line that gives a chunk's size."""


class RequestBody:
    """The body of one request as it arrives, framed by Content-Length or in chunks.

    Data beyond the reader's limit, or after `discard`, is dropped.
    """

    __slots__ = ("_chunk", "_held", "_in_trailer", "_parts", "_remaining", "_waiter", "complete", "size")

    def __init__(self, length: int, *, chunked: bool) -> None:
        self.size = length if not chunked else 0
        """Content-Length in bytes; for a chunked body, the bytes received so far."""
        self.complete = not length and not chunked
        self._remaining = length
        """Bytes still to come, where Content-Length was given."""
        self._chunk: int | None = 0 if chunked else None
        """Bytes still to come of this chunk; -1 at the line end behind it; None for a body that is not chunked."""
        self._held = b""
        """The beginning of an incomplete line."""
        self._in_trailer = False
        self._parts: list[bytes] | None = []
        self._waiter: asyncio.Future[None] | None = None

    @property
    def has_length(self) -> bool:
        """The request gave a Content-Length."""
        return self._chunk is None

    def feed(self, data: bytes) -> bytes:
        """Take received bytes and return those behind the body. Raises `MalformedRequest`."""
        if self._chunk is not None:
            return self._feed_chunked(data)
        taken, rest = data, b""
        if len(data) > self._remaining:
            taken, rest = data[: self._remaining], data[self._remaining :]
        self._remaining -= len(taken)
        self._append(taken)
        if not self._remaining:
            self._end()
        return rest

    async def read(self, limit: int) -> bytes | None:
        """Return the whole body, or None as soon as it exceeds ``limit`` bytes. Raises `ConnectionResetError`."""
        while not self.complete and self.size <= limit:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self.size > limit or self._parts is None:
            return None
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    @property
    def awaited(self) -> bool:
        """A `read` is waiting for more bytes."""
        return self._waiter is not None and not self._waiter.done()

    def discard(self) -> None:
        """Drop the body, including all that is still to come."""
        self._parts = None

    def connection_lost(self) -> None:
        """Fail a pending `read`: no more bytes will come."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(ConnectionResetError("the client closed the connection"))

    def _append(self, data: bytes) -> None:
        if self._parts is not None:
            self._parts.append(data)

    def _end(self) -> None:
        self.complete = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _feed_chunked(self, data: bytes) -> bytes:
        assert self._chunk is not None
        data, self._held = self._held + data, b""
        while data and not self.complete:
            if self._chunk > 0:
                taken, data = data[: self._chunk], data[self._chunk :]
                self._chunk -= len(taken)
                self.size += len(taken)
                self._append(taken)
                if not self._chunk:
                    # The line end behind the chunk is parsed as an empty line.
                    self._chunk = -1
                continue
            line, end, rest = data.partition(b"\r\n")
            if not end:
                if len(line) > _MAX_CHUNK_LINE:
                    raise MalformedRequest(400, "Bad Request")
                self._held = data
                break
            data = rest
            self._parse_line(line)
        self._wake()
        return data if self.complete else b""

    def _parse_line(self, line: bytes) -> None:
        if self._chunk == -1:
            if line:
                raise MalformedRequest(400, "Bad Request")
            self._chunk = 0
        elif self._in_trailer:
            # Trailer fields are ignored; an empty line ends them.
            if not line:
                self._end()
        else:
            digits = line.partition(b";")[0].strip(b" \t")
            if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
                raise MalformedRequest(400, "Bad Request")
            self._chunk = int(digits, 16)
            self._in_trailer = not self._chunk


class HttpRequest:
    """One request. Its body is received only when a handler reads it."""

    __slots__ = ("_body", "_expect_continue", "headers", "method", "raw_path", "writer")

    def __init__(self, head: RequestHead, body: RequestBody, writer: ResponseWriter) -> None:
        self.method = head.method
        self.raw_path = head.target
        """Path and query, percent-encoded as sent."""
        self.headers: Headers = head.block.headers
        self.writer = writer
        self._expect_continue = head.block.expect_continue
        self._body = body

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport of the connection; None once the connection is lost."""
        return self.writer.transport

    @property
    def certificate(self) -> bytes | None:
        """The client certificate as DER, already verified by TLS; None if the client sent none."""
        return self.writer.peer_certificate

    async def read(self, limit: int) -> bytes | None:
        """Return the body, or None if it exceeds ``limit`` bytes. Raises `ConnectionResetError`."""
        body = self._body
        if self._expect_continue and not body.complete and not (body.has_length and body.size > limit):
            self._expect_continue = False
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return await body.read(limit)

    @property
    def has_unread_body(self) -> bool:
        """Part of the body has not arrived yet."""
        return not self._body.complete

    @property
    def discardable(self) -> bool:
        """The rest of the body is short enough to read and discard, so that the connection can be kept.

        A client that was never told ``100 Continue`` may send its next request instead of the body: the two
        cannot be told apart.
        """
        body = self._body
        return not self._expect_continue and body.has_length and body.size <= MAX_DISCARDED
