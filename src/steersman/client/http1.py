"""Reads HTTP/1.1 responses from the bytes of a connection, with no knowledge of sockets.

`read_head` parses status line and headers. A body is one of three, by how its end is known: `SizedBody` (Content-Length),
`ChunkedBody` (Transfer-Encoding) or `EndlessBody` (the end of the connection). Each takes what arrives, in any pieces,
and returns the content; `gunzip` decompresses it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

MAX_HEAD = 256 * 1024
"""Bytes of status line and headers: warnings and audit annotations are headers, and can be long."""
_MAX_CHUNK_LINE = 4 * 1024
"""Bytes of the line before a chunk, and of the trailers after the last one."""

_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [^\x00-\x08\x0a-\x1f\x7f]*)?").fullmatch
_FIELDS = re.compile(r"(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*)*").fullmatch
_LENGTH = re.compile("[0-9]{1,18}").fullmatch
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?").fullmatch
_TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*").fullmatch


class MalformedResponse(ValueError):
    """The bytes are not an HTTP/1.1 response that this client can read."""


class Body(Protocol):
    """The body of one response."""

    done: bool
    """The body is complete."""
    rest: bytes
    """The bytes that arrived after its end."""

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the connection; return the content in them. Raises `MalformedResponse`."""
        ...

    def end(self) -> None:
        """Note the end of the connection, which completes an endless body only."""
        ...


class Head(msgspec.Struct, frozen=True):
    """Status and headers of a response."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case; the values of repeated headers are joined by commas."""
    persistent: bool
    """The server keeps the connection open for another request."""

    def body(self) -> Body:
        """Return the reader of the body. Raises `MalformedResponse`."""
        encoding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length")
        if encoding is not None and encoding.lower() != "chunked":
            raise MalformedResponse("unknown transfer encoding")
        if length is not None and not _LENGTH(length):
            raise MalformedResponse("invalid Content-Length")
        if self.status < 200 or self.status in (204, 304):
            return SizedBody(0)
        if encoding is not None:
            return ChunkedBody()
        return EndlessBody() if length is None else SizedBody(int(length))

    @property
    def compressed(self) -> bool:
        """The body is compressed with gzip. Raises `MalformedResponse` for another compression."""
        encoding = self.headers.get("content-encoding", "identity").lower()
        if encoding not in ("gzip", "identity"):
            raise MalformedResponse("unknown content encoding")
        return encoding == "gzip"


def read_head(data: bytes) -> Head:
    """Parse status line and headers, without the empty line after them. Raises `MalformedResponse`."""
    text = data.decode("latin-1")
    at = text.find("\r\n")
    status_line, fields = (text, "") if at < 0 else (text[:at], text[at:])
    status = _STATUS_LINE(status_line)
    if status is None or not _FIELDS(fields):
        raise MalformedResponse("invalid head")
    headers: dict[str, str] = {}
    for field in fields.split("\r\n")[1:]:
        name, _, value = field.partition(":")
        name, value = name.lower(), value.strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    connection = headers.get("connection", "").lower()
    persistent = "keep-alive" in connection if status[1] == "0" else "close" not in connection
    return Head(int(status[2]), headers, persistent)


class SizedBody:
    """A body of a known length."""

    __slots__ = ("_left", "done", "rest")

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = not length
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        content, self.rest = data[: self._left], data[self._left :]
        self._left -= len(content)
        self.done = not self._left
        return content

    def end(self) -> None:
        """The connection must not end before the body."""


class EndlessBody:
    """A body that ends with the connection."""

    __slots__ = ("done", "rest")

    def __init__(self) -> None:
        self.done = False
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        return data

    def end(self) -> None:
        self.done = True


class ChunkedBody:
    """A body in chunks, each after a line with its size. Trailers after the last chunk are discarded."""

    __slots__ = ("_held", "_left", "_next_line", "done", "rest")

    def __init__(self) -> None:
        self._left = 0
        """Bytes of the chunk that are still to come."""
        self._next_line: Literal["size", "break", "trailer"] = "size"
        """The meaning of the next line: the size of a chunk, the line break after a chunk, or a trailer."""
        self._held = b""
        """The beginning of a line."""
        self.done = False
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        if self._held:
            data, self._held = self._held + data, b""
        at = 0
        pieces: list[bytes] = []
        while not self.done:
            if self._left:
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if self._left:
                    break
            end = data.find(b"\r\n", at)
            if end < 0:
                self._hold(data[at:])
                break
            self._take_line(data[at:end])
            at = end + 2
        if self.done:
            self.rest = data[at:]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def end(self) -> None:
        """The connection must not end before the last chunk."""

    def _hold(self, start: bytes) -> None:
        if len(start) > _MAX_CHUNK_LINE or (self._next_line == "break" and start not in (b"", b"\r")):
            raise MalformedResponse("invalid chunk")
        self._held = start

    def _take_line(self, line: bytes) -> None:
        match self._next_line:
            case "size":
                size = _CHUNK_SIZE(line)
                if size is None:
                    raise MalformedResponse("invalid chunk")
                self._left = int(size[1], 16)
                self._next_line = "break" if self._left else "trailer"
            case "break":
                if line:
                    raise MalformedResponse("invalid chunk")
                self._next_line = "size"
            case "trailer":
                if line and not _TRAILER(line):
                    raise MalformedResponse("invalid trailer")
                self.done = not line


class Gunzip:
    """Decompresses a body."""

    __slots__ = ("_stream",)

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)

    def feed(self, data: bytes) -> bytes:
        try:
            return self._stream.decompress(data)
        except zlib.error:
            raise MalformedResponse("invalid gzip") from None

    @property
    def done(self) -> bool:
        """The content is complete."""
        return self._stream.eof
