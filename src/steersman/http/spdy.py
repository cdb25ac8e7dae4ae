"""SPDY/3.1 framing, as far as port forwarding uses it: a few kinds of frame, bounded. No I/O.

kubectl forwards ports over SPDY inside of a WebSocket. Flow control and priorities are not used there, so they are ignored here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec

MAX_FRAME = 1024 * 1024
"""Bytes of a frame. Clients send 32 KiB at once."""
MAX_HEADERS = 16 * 1024
"""Bytes of the headers of a stream."""
REFUSED_STREAM, CANCEL = 3, 5
"""Why a stream is reset."""

_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_FIN = 0x01
_CONTROL = 0x8003
"""The first 16 bits of a control frame: the bit that says so, and the version."""

_WORDS = (
    *("options", "head", "post", "put", "delete", "trace", "accept", "accept-charset", "accept-encoding"),
    *("accept-language", "accept-ranges", "age", "allow", "authorization", "cache-control", "connection"),
    *("content-base", "content-encoding", "content-language", "content-length", "content-location"),
    *("content-md5", "content-range", "content-type", "date", "etag", "expect", "expires", "from", "host"),
    *("if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "last-modified"),
    *("location", "max-forwards", "pragma", "proxy-authenticate", "proxy-authorization", "range", "referer"),
    *("retry-after", "server", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "vary", "via"),
    *("warning", "www-authenticate", "method", "get", "status", "200 OK", "version", "HTTP/1.1", "url"),
    *("public", "set-cookie", "keep-alive", "origin"),
)
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = b"".join(struct.pack("!I", len(word)) + word.encode() for word in _WORDS) + _TEXT.encode()
"""The zlib dictionary that the compression of headers begins with, as the specification has it."""


class SpdyError(Exception):
    """Bytes that are not SPDY, or more than is allowed. The connection must be closed."""


class NewStream(msgspec.Struct, frozen=True):
    """A client opens a stream."""

    stream: int
    headers: Mapping[str, str]
    fin: bool


class Data(msgspec.Struct, frozen=True):
    """Data of a stream; ``fin`` is whether it is the last of this side."""

    stream: int
    data: bytes
    fin: bool


class Reset(msgspec.Struct, frozen=True):
    """A client gives a stream up."""

    stream: int


class Ping(msgspec.Struct, frozen=True):
    """A ping, to be sent back."""

    number: int


class GoAway(msgspec.Struct, frozen=True):
    """A client opens no further streams."""


Frame: TypeAlias = NewStream | Data | Reset | Ping | GoAway


class FrameReader:
    """Parses the frames of a client. Its memory is bounded by one frame and the headers of one stream."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def receive(self, data: bytes) -> Iterator[Frame]:
        """Take received bytes; yields the frames that are complete. Raises `SpdyError`."""
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= 8:
            first, second = struct.unpack_from("!II", buffer, at)
            length = second & 0xFFFFFF
            if length > MAX_FRAME:
                raise SpdyError(f"a frame is larger than {MAX_FRAME} bytes")
            if len(buffer) - at < 8 + length:
                break
            body = bytes(buffer[at + 8 : at + 8 + length])
            at += 8 + length
            parsed = self._parse(first, second >> 24, body)
            if parsed is not None:
                yield parsed
        del buffer[:at]

    def _parse(self, first: int, flags: int, body: bytes) -> Frame | None:
        if not first & 0x80000000:
            if not first:
                raise SpdyError("data of no stream")
            return Data(first, body, bool(flags & _FIN))
        if first >> 16 != _CONTROL:
            raise SpdyError("not version 3 of SPDY")
        match first & 0xFFFF:
            case 1:  # a new stream
                stream = _number(body, 0) & 0x7FFFFFFF
                if not stream or len(body) < 10:
                    raise SpdyError("a stream without a number")
                return NewStream(stream, self._headers(body[10:]), bool(flags & _FIN))
            case 3:
                return Reset(_number(body, 0) & 0x7FFFFFFF)
            case 6:
                return Ping(_number(body, 0))
            case 7:
                return GoAway()
            case 8:
                # Later headers mean nothing here, but the compression goes on behind them.
                self._headers(body[4:])
        return None

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            text = self._inflate.decompress(block, MAX_HEADERS)
        except zlib.error as error:
            raise SpdyError("headers cannot be decompressed") from error
        if self._inflate.unconsumed_tail or self._inflate.eof:
            raise SpdyError(f"headers are larger than {MAX_HEADERS} bytes, or end")
        found: dict[str, str] = {}
        count, at = _number(text, 0), 4
        for _ in range(count):
            name, at = _text(text, at)
            value, at = _text(text, at)
            found[name.lower()] = value.partition("\0")[0]
        return found


def _number(data: bytes, at: int) -> int:
    if len(data) < at + 4:
        raise SpdyError("a frame is too short")
    found: int = struct.unpack_from("!I", data, at)[0]
    return found


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = at + 4 + _number(data, at)
    if end > len(data):
        raise SpdyError("a header is longer than its frame")
    return data[at + 4 : end].decode("utf-8", "replace"), end


class FrameWriter:
    """Makes the frames of a server."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """Accept a stream, without headers."""
        block = self._deflate.compress(struct.pack("!I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(_SYN_REPLY, struct.pack("!I", stream) + block)

    @staticmethod
    def data(stream: int, data: bytes, *, fin: bool = False) -> bytes:
        """Send data of a stream; ``fin`` ends this side of it."""
        return struct.pack("!II", stream, (_FIN if fin else 0) << 24 | len(data)) + data

    @staticmethod
    def reset(stream: int, status: int) -> bytes:
        """Refuse a stream, or give it up."""
        return _control(_RST_STREAM, struct.pack("!II", stream, status))

    @staticmethod
    def ping(number: int) -> bytes:
        """Answer a ping."""
        return _control(_PING, struct.pack("!I", number))


def _control(kind: int, body: bytes) -> bytes:
    return struct.pack("!HHI", _CONTROL, kind, len(body)) + body
