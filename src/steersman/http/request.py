"""HTTP/1.1 requests as handlers receive them: head, and a body that is read on demand."""

from __future__ import annotations

import asyncio

from steersman.http.head import Headers, MalformedRequest, RequestHead, parse_field
from steersman.http.response import ResponseWriter

MAX_DISCARDED = 64 * 1024
"""Bytes of an unread body that are read and discarded to keep the connection open."""
_MAX_CHUNK_LINE = 4096
"""Bytes of the line that gives a chunk's size, as in Go's net/http."""
_MAX_CHUNK_DIGITS = 16
"""Hexadecimal digits of a chunk's size: 64 bits."""
_MAX_TRAILER = 4096
"""Bytes of all trailer fields together, as in Go's net/http."""
_FRAMING_FIELDS = ("content-length", "transfer-encoding")
"""Fields that come too late in a trailer."""
_CLOSED = "the client closed the connection"
_HEX_DIGITS = b"0123456789abcdefABCDEF"


class RequestBody:
    """The body of one request, framed by Content-Length or in chunks, and the input that follows it.

    Received bytes are held as they are until a handler reads the body: a body that no handler reads is not parsed.
    The connection limits how many bytes it holds. Parsing goes by offsets, so that its time is linear in the bytes
    received however they are cut into packets and chunks.
    """

    __slots__ = (
        "_at",
        "_chunk",
        "_data",
        "_exceeded",
        "_framing",
        "_in_trailer",
        "_input",
        "_limit",
        "_lost",
        "_remaining",
        "_trailer",
        "_waiter",
        "complete",
        "size",
    )

    def __init__(self, length: int, *, chunked: bool) -> None:
        self.size = length if not chunked else 0
        """Content-Length in bytes; for a chunked body, the bytes of data parsed so far."""
        self.complete = not length and not chunked
        """The end of the body is parsed."""
        self._input = b""
        """Received bytes. Those before offset ``_at`` are parsed."""
        self._at = 0
        self._data: bytes | bytearray = bytearray() if chunked else b""
        """The body as far as it is parsed, without its framing."""
        self._remaining = length
        """Bytes still to parse, where Content-Length was given."""
        self._chunk: int | None = 0 if chunked else None
        """Bytes still to parse of this chunk; -1 at the line end behind it; None for a body that is not chunked."""
        self._framing = 0
        """Bytes of chunk lines and trailers."""
        self._in_trailer = False
        self._trailer = 0
        """Bytes of trailer fields."""
        self._limit = 0
        self._exceeded = False
        """Data or framing is larger than the reader's limit."""
        self._lost = False
        """The connection is closed, and the body is dropped."""
        self._waiter: asyncio.Future[None] | None = None

    @property
    def has_length(self) -> bool:
        """The request gave a Content-Length."""
        return self._chunk is None

    @property
    def held(self) -> int:
        """Bytes received and not parsed, including those behind the body."""
        return len(self._input) - self._at

    @property
    def rest(self) -> tuple[bytes, int]:
        """The received bytes and the offset in them up to which they are parsed."""
        return self._input, self._at

    def receive(self, data: bytes, at: int = 0) -> None:
        """Take the received bytes from offset ``at`` on."""
        if self._lost:
            return
        if self._at < len(self._input):
            self._input, self._at = self._input[self._at :] + data[at:], 0
        else:
            self._input, self._at = data, at
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        try:
            self._parse()
        except MalformedRequest as error:
            waiter.set_exception(error)
            return
        if self.complete or self._exceeded:
            waiter.set_result(None)

    async def read(self, limit: int) -> bytes | None:
        """Return the whole body, or None as soon as its data or its framing exceeds ``limit`` bytes.

        Raises `MalformedRequest` and `ConnectionResetError`.
        """
        if not self.complete:
            if self._chunk is None and self.size > limit:
                return None
            self._limit = limit
            self._parse()
            if not self.complete and not self._exceeded:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
        if self._lost:
            # The client may have gone between the last byte and this.
            raise ConnectionResetError(_CLOSED)
        if self._exceeded:
            return None
        # One copy, which the handler and this share.
        self._data = bytes(self._data)
        return self._data

    @property
    def awaited(self) -> bool:
        """A `read` is waiting for more bytes."""
        return self._waiter is not None and not self._waiter.done()

    def skip(self) -> None:
        """Drop what has arrived of a body that no handler reads. Of a chunked body, only a short one is parsed."""
        if self._chunk is None:
            skipped = min(self._remaining, self.held)
            self._at += skipped
            self._remaining -= skipped
            self.complete = not self._remaining
            return
        self._limit = MAX_DISCARDED
        if not self._exceeded:
            try:
                self._parse()
            except MalformedRequest:
                pass  # the body stays incomplete, and the connection closes

    @property
    def parsed(self) -> int:
        """Bytes of the body that are parsed and kept."""
        return len(self._data)

    def connection_lost(self) -> None:
        """Drop what has arrived, and fail a pending `read`: no more bytes will come.

        The request may be referred to for longer, by its handler's exception for example.
        """
        self._lost = True
        self._input, self._at = b"", 0
        self._data = b"" if self._chunk is None else bytearray()
        self.fail(ConnectionResetError(_CLOSED))

    def fail(self, error: Exception) -> None:
        """Fail a pending `read`."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    def _parse(self) -> None:
        if self._chunk is not None:
            self._parse_chunks(self._chunk)
        else:
            taken = self._input[self._at : self._at + self._remaining]
            self._at += len(taken)
            self._remaining -= len(taken)
            self.complete = not self._remaining
            if not self._data:
                self._data = taken
            elif isinstance(self._data, bytearray):
                self._data += taken
            else:
                self._data = bytearray(self._data) + taken
        if self._at == len(self._input):
            self._input, self._at = b"", 0

    def _parse_chunks(self, chunk: int) -> None:
        data, at = self._input, self._at
        end = len(data)
        parsed = self._data
        assert isinstance(parsed, bytearray)
        while at < end and not self.complete:
            if chunk > 0:
                piece = data[at : at + chunk]
                parsed += piece
                at += len(piece)
                chunk = chunk - len(piece) or -1
            elif chunk:
                if not b"\r\n".startswith(data[at : at + 2]):
                    raise MalformedRequest(400, "Bad Request")
                if end - at < 2:
                    break
                at += 2
                self._framing += 2
                chunk = 0
            else:
                line_end = data.find(b"\n", at, at + _MAX_CHUNK_LINE)
                if line_end < 0:
                    if end - at >= _MAX_CHUNK_LINE:
                        raise MalformedRequest(400, "Bad Request")
                    break
                # A bare CR or LF ends a line for some parsers and not for others.
                if line_end == at or data.find(b"\r", at, line_end) != line_end - 1:
                    raise MalformedRequest(400, "Bad Request")
                self._framing += line_end + 1 - at
                chunk = self._parse_line(data[at : line_end - 1])
                at = line_end + 1
                if len(parsed) + chunk > self._limit or self._framing > self._limit:
                    self._exceeded = True
                    break
        self._at, self._chunk = at, chunk
        self.size = len(parsed)

    def _parse_line(self, line: bytes) -> int:
        """Parse a chunk line or trailer field without its line end, and return the chunk's size in bytes."""
        if self._in_trailer:
            if not line:
                self.complete = True
                return 0
            self._trailer += len(line) + 2
            if self._trailer > _MAX_TRAILER:
                raise MalformedRequest(400, "Bad Request")
            # Trailer fields are ignored, but not if they could be something else, or say how long the body was.
            name, _ = parse_field(line.decode("utf-8", "replace"))
            if name.lower() in _FRAMING_FIELDS:
                raise MalformedRequest(400, "Bad Request")
            return 0
        digits = line.rstrip(b" \t").partition(b";")[0]
        if not 0 < len(digits) <= _MAX_CHUNK_DIGITS or digits.strip(_HEX_DIGITS):
            raise MalformedRequest(400, "Bad Request")
        chunk = int(digits, 16)
        self._in_trailer = not chunk
        return chunk


NO_BODY = RequestBody(0, chunked=False)
"""The body of all requests without one."""


class HttpRequest:
    """One request. Its body is received only when a handler reads it."""

    __slots__ = ("_body", "_expect_continue", "headers", "method", "raw_path", "writer")

    def __init__(self, head: RequestHead, body: RequestBody, writer: ResponseWriter) -> None:
        self.method = head.method
        self.raw_path = head.target
        """Path and query, percent-encoded as sent."""
        self.headers: Headers = head.block.headers
        self.writer = writer
        self._expect_continue = head.expect_continue
        self._body = body

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport of the connection; None once the connection is lost."""
        return self.writer.transport

    @property
    def certificate(self) -> bytes | None:
        """The client certificate as DER, not yet verified; None if the client sent none."""
        return self.writer.peer_certificate

    async def read(self, limit: int) -> bytes | None:
        """Return the body, or None if it exceeds ``limit`` bytes.

        Raises `MalformedRequest` and `ConnectionResetError`; a handler lets both pass, and the connection answers.
        """
        body = self._body
        if not body.complete and not (body.has_length and body.size > limit):
            if self._expect_continue:
                self._expect_continue = False
                self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.writer.resume_reading()
        return await body.read(limit)

    @property
    def discardable(self) -> bool:
        """The rest of the body is short enough to read and discard, so that the connection can be kept.

        A client that was never told ``100 Continue`` may send its next request instead of the body: the two
        cannot be told apart.
        """
        body = self._body
        return not self._expect_continue and body.has_length and body.size <= MAX_DISCARDED
