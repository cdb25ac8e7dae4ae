"""The head of an HTTP/1.1 request: its first line, its headers, and how its body comes.

Strict where two readers of the same bytes could come to see different requests in them: such a head is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_UNFIT = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]").search
_TARGET = re.compile(r"[\x21-\x7e\x80-\U0010ffff]+").fullmatch
_METHOD = re.compile(r"[A-Z]+").fullmatch


class Malformed(Exception):
    """Bytes that are no request, and what to answer: what follows them cannot be understood either."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code} {reason}")
        self.code = code


class Headers:
    """The headers of one request, by names in any case."""

    __slots__ = ("_first", "_items")

    def __init__(self, items: Iterable[tuple[str, str]] = ()) -> None:
        self._items = tuple(items)
        self._first: dict[str, str] = {}
        for name, value in self._items:
            self._first.setdefault(name.lower(), value)

    def get(self, name: str, default: str = "") -> str:
        """The first of a name."""
        return self._first.get(name.lower(), default)

    def getall(self, name: str, default: Sequence[str] = ()) -> Sequence[str]:
        """All of a name."""
        wanted = name.lower()
        if wanted not in self._first:
            return default
        return [value for name, value in self._items if name.lower() == wanted]

    def items(self) -> tuple[tuple[str, str], ...]:
        """All of them, in order, as they were sent."""
        return self._items

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._first

    def __iter__(self) -> Iterator[str]:
        """Each name once, in lower case."""
        return iter(self._first)


class Fields(NamedTuple):
    """The headers, and what they say of the message."""

    headers: Headers
    length: int
    """Of the body; 0 where there is none."""
    chunked: bool
    """Whether the body says itself where it ends."""
    waits: bool
    """Whether the client wants to be told before it sends the body."""
    keeps: bool | None
    """Whether the connection is to be kept; None where that is not said."""


class Head(NamedTuple):
    """All that comes before a body."""

    method: str
    target: str
    fields: Fields
    keeps: bool
    """Whether the client has more to ask on the same connection."""
    modern: bool
    """Whether it is of HTTP/1.1."""


def parse(line: bytes, fields: Fields) -> Head:
    """A head by its first line, given the rest of it. Raises `Malformed`."""
    words = line.decode("utf-8", "surrogateescape").split(" ")
    if len(words) != 3 or not _METHOD(words[0]) or not _TARGET(words[1]):
        raise Malformed(400, "Bad Request")
    method, target, version = words
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise Malformed(505, "HTTP Version Not Supported")
    modern = version == "HTTP/1.1"
    if modern and "host" not in fields.headers:
        raise Malformed(400, "Bad Request: missing required Host header")
    if not target.startswith("/"):
        # As proxies are asked; whatever host is meant, it has come to us.
        target = "/" + target.partition("://")[2].partition("/")[2] if "://" in target else f"/{target}"
    keeps = fields.keeps if fields.keeps is not None else modern
    return Head(method, target, fields, keeps, modern)


def read(block: bytes) -> Fields:
    """The lines behind the first. Raises `Malformed`."""
    items: list[tuple[str, str]] = []
    for line in block.decode("utf-8", "surrogateescape").split("\r\n") if block else ():
        name, colon, value = line.partition(":")
        value = value.strip(" \t")
        # A name with a blank in it covers lines that go on from the one before.
        if not colon or not _NAME(name) or _UNFIT(value):
            raise Malformed(400, "Bad Request")
        items.append((name, value))
    headers = Headers(items)
    lengths = tuple(dict.fromkeys(headers.getall("content-length")))
    if len(lengths) > 1 or (lengths and not (lengths[0].isascii() and lengths[0].isdigit())):
        raise Malformed(400, "Bad Request")
    coding = headers.getall("transfer-encoding")
    if coding and (len(coding) > 1 or coding[0].lower() != "chunked"):
        raise Malformed(501, "Not Implemented")
    if coding and lengths:
        raise Malformed(400, "Bad Request")
    said = headers.get("connection").lower()
    keeps = False if "close" in said else True if "keep-alive" in said else None
    return Fields(
        headers,
        int(lengths[0]) if lengths else 0,
        bool(coding),
        headers.get("expect").lower() == "100-continue",
        keeps,
    )


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def dated(now: datetime) -> str:
    """A time as HTTP writes it, whatever language the machine speaks."""
    now = now.astimezone(UTC)
    return f"{_DAYS[now.weekday()]}, {now:%d} {_MONTHS[now.month - 1]} {now:%Y %H:%M:%S} GMT"
