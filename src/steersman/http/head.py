"""Parses the head of an HTTP/1.1 request: request line, header fields and body framing.

The parser is strict wherever two parsers could read different requests from the same bytes (request smuggling):
such a head is refused. Invalid UTF-8 becomes replacement characters: other text could be neither stored nor sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec

_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
INVALID_IN_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]").search
"""Finds a character that no header value may have."""
_TARGET = re.compile(r"[^\x00-\x20\x7f]+").fullmatch
_METHOD = re.compile(r"[A-Z]+").fullmatch
_HOST = re.compile(r"[0-9A-Za-z!$%&()*+,.:;=\['\]_~-]*").fullmatch
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//[^/?]*)?").match
_INVALID_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})").search
_MAX_LENGTH_DIGITS = 19
"""Digits of a Content-Length. Go reads it as a 63-bit number."""


class MalformedRequest(Exception):
    """Bytes that are not a valid request, with the status code to answer. The connection must be closed."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code} {reason}")
        self.code = code


class Headers:
    """The header fields of one request, looked up by name in any case."""

    __slots__ = ("_first", "_items")

    def __init__(self, items: Iterable[tuple[str, str]] = ()) -> None:
        self._items = tuple(items)
        self._first: dict[str, str] = {}
        for name, value in self._items:
            self._first.setdefault(name.lower(), value)

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a field."""
        return self._first.get(name.lower(), default)

    def getall(self, name: str, default: Sequence[str] = ()) -> Sequence[str]:
        """Return all values of a field, in order."""
        wanted = name.lower()
        if wanted not in self._first:
            return default
        return [value for name, value in self._items if name.lower() == wanted]

    def items(self) -> tuple[tuple[str, str], ...]:
        """Return all fields in order, with their names as sent."""
        return self._items

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._first

    def __iter__(self) -> Iterator[str]:
        """Iterate over the distinct names, in lower case."""
        return iter(self._first)


class HeaderBlock(msgspec.Struct, frozen=True):
    """The parsed header fields, and the framing they declare."""

    headers: Headers
    content_length: int
    """Bytes of the body; 0 without a body, and with a chunked one."""
    chunked: bool
    """The body comes with ``Transfer-Encoding: chunked``."""
    expect_continue: bool
    """The ``Expect`` header has ``100-continue``."""
    keep_alive: bool | None
    """The ``Connection`` header: False for close, True for keep-alive, None for neither."""


class RequestHead(msgspec.Struct, frozen=True):
    """Request line and header fields: all that precedes the body."""

    method: str
    target: str
    block: HeaderBlock
    keep_alive: bool
    """The connection stays open after the response."""
    http11: bool
    """The request is HTTP/1.1, not HTTP/1.0."""
    expect_continue: bool
    """The client waits for ``100 Continue`` before it sends the body. A client of HTTP/1.0 does not know that response."""


def parse_request_line(line: bytes, block: HeaderBlock) -> RequestHead:
    """Parse the request line and join it with its header block. Raises `MalformedRequest`."""
    parts = line.decode("utf-8", "replace").split(" ")
    if len(parts) != 3 or not _METHOD(parts[0]) or not _TARGET(parts[1]):
        raise MalformedRequest(400, "Bad Request")
    method, target, version = parts
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise MalformedRequest(505, "HTTP Version Not Supported")
    http11 = version == "HTTP/1.1"
    if http11:
        if "host" not in block.headers:
            raise MalformedRequest(400, "Bad Request: missing required Host header")
    elif block.chunked:
        # HTTP/1.0 has no chunks, so that another parser may see no body here, and a request in its place.
        raise MalformedRequest(400, "Bad Request")
    if not target.startswith("/"):
        target = _origin_form(method, target)
    if "%" in target and _INVALID_ESCAPE(target.partition("?")[0]):
        raise MalformedRequest(400, "Bad Request")
    keep_alive = block.keep_alive if block.keep_alive is not None else http11
    return RequestHead(method, target, block, keep_alive, http11, block.expect_continue and http11)


def _origin_form(method: str, target: str) -> str:
    """Reduce a target in absolute form, as sent to proxies, to its path and query. Raises `MalformedRequest`.

    The host does not matter: the request has reached this server. A path that does not begin with a slash is none, as
    for Go: it could be authorised as one path and served as another.
    """
    absolute = _SCHEME(target)
    if absolute is None:
        if target != "*" and method != "CONNECT":
            raise MalformedRequest(400, "Bad Request")
        return f"/{target}"
    path = target[absolute.end() :]
    if path.startswith("/"):
        return path
    # Without a host, the rest is opaque: no path that is served.
    return f"/{path if absolute[1] else target}"


def parse_header_block(data: bytes) -> HeaderBlock:
    """Parse the lines between the request line and the empty line. Raises `MalformedRequest`."""
    items: list[tuple[str, str]] = []
    for line in data.decode("utf-8", "replace").split("\r\n") if data else ():
        items.append(parse_field(line))
    headers = Headers(items)
    hosts = headers.getall("host")
    if len(hosts) > 1:
        raise MalformedRequest(400, "Bad Request: too many Host headers")
    if hosts and not _HOST(hosts[0]):
        raise MalformedRequest(400, "Bad Request: malformed Host header")
    lengths = tuple(dict.fromkeys(headers.getall("content-length")))
    if len(lengths) > 1 or (lengths and not _is_length(lengths[0])):
        raise MalformedRequest(400, "Bad Request")
    codings = headers.getall("transfer-encoding")
    if codings and (len(codings) > 1 or codings[0].lower() != "chunked"):
        raise MalformedRequest(501, "Not Implemented")
    if codings and lengths:
        raise MalformedRequest(400, "Bad Request")
    keep_alive = None
    if "connection" in headers:
        options = _tokens(headers, "connection")
        keep_alive = False if "close" in options else True if "keep-alive" in options else None
    return HeaderBlock(
        headers,
        int(lengths[0]) if lengths else 0,
        bool(codings),
        "expect" in headers and "100-continue" in _tokens(headers, "expect"),
        keep_alive,
    )


def _tokens(headers: Headers, name: str) -> list[str]:
    """The comma-separated items of all fields with a name, in lower case."""
    return [token.strip(" \t") for token in ",".join(headers.getall(name)).lower().split(",")]


def parse_field(line: str) -> tuple[str, str]:
    """Parse one header or trailer field, without its line end. Raises `MalformedRequest`."""
    name, colon, value = line.partition(":")
    value = value.strip(" \t")
    # A continuation line (obs-fold) starts with a blank, which no field name may contain.
    if not colon or not _FIELD_NAME(name) or INVALID_IN_VALUE(value):
        raise MalformedRequest(400, "Bad Request")
    return name, value


def _is_length(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_LENGTH_DIGITS


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def http_date(now: datetime) -> str:
    """Format a time as HTTP dates are written (RFC 9110, IMF-fixdate), whatever the process's locale."""
    now = now.astimezone(UTC)
    return f"{_DAYS[now.weekday()]}, {now:%d} {_MONTHS[now.month - 1]} {now:%Y %H:%M:%S} GMT"
