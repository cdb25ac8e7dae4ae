"""h11 as the oracle of HTTP/1.1 requests, and where it may differ from the parser under test.

h11 is the more lenient of the two: it takes a bare LF for a line end, joins folded fields, and believes
Transfer-Encoding where there is a Content-Length, too. What it accepts may be refused; what it refuses may be accepted only
for the reasons given here:

- a target with bytes beyond ASCII: Go's net/http accepts it, and one byte has only one meaning in it;
- empty lines before a request, which RFC 9112 asks servers to ignore.
"""

from __future__ import annotations

from typing import NamedTuple

import h11

_LONGEST = 1024 * 1024
"""Bytes of a head that h11 holds; more than any input has."""


class OracleRequest(NamedTuple):
    """One request as h11 reads it."""

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    """Names as sent, values without the blanks around them."""
    http11: bool
    closes: bool
    """The connection ends after this request, by its Connection header."""
    keeps: bool
    """The Connection header has the option ``keep-alive``."""
    expects_continue: bool
    body: bytes | None
    """None while the body is not complete."""
    rest: bytes
    """The bytes after the request; empty while the body is not complete."""

    def field(self, name: bytes) -> list[bytes]:
        """Return the values of a header, in order."""
        return [value for found, value in self.headers if found.lower() == name]


class Refused(Exception):
    """h11 refuses the bytes."""


def without_empty_lines(data: bytes) -> bytes:
    """Return the bytes without the empty lines before a request."""
    while data.startswith(b"\r\n"):
        data = data[2:]
    return data


def has_target_beyond_ascii(data: bytes) -> bool:
    """Report whether the first line has bytes beyond ASCII, which h11 refuses."""
    return not data.partition(b"\r\n")[0].isascii()


def read_request(data: bytes) -> OracleRequest | None:
    """Return the first request; None while its head is not complete. Raises `Refused`."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST)
    connection.receive_data(data)
    try:
        request = connection.next_event()
        if not isinstance(request, h11.Request):
            return None
        expects = connection.they_are_waiting_for_100_continue
        body = b""
        complete = False
        while not complete:
            event = connection.next_event()
            if isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                complete = True
            else:
                break
    except h11.RemoteProtocolError as error:
        raise Refused(str(error)) from None
    options = _tokens(request, b"connection")
    return OracleRequest(
        request.method,
        request.target,
        tuple(request.headers.raw_items()),
        request.http_version == b"1.1",
        b"close" in options,
        b"keep-alive" in options,
        expects,
        body if complete else None,
        connection.trailing_data[0] if complete else b"",
    )


def _tokens(request: h11.Request, name: bytes) -> list[bytes]:
    return [
        token.strip().lower()
        for found, value in request.headers
        if found == name
        for token in value.split(b",")
    ]
