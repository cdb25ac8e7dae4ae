"""Forwarding: the target and the headers with which a request is passed on to another API server, as a front proxy does it."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, quote_plus, unquote_to_bytes

from steersman.api.go_query import query_pairs
from steersman.http.head import INVALID_IN_VALUE, Headers
from steersman.http.websocket import subprotocols
from steersman.server.auth.authentication import TOKEN_PROTOCOL
from steersman.server.auth.users import User
from steersman.server.http.context import Context

HOP_BY_HOP = frozenset(
    {
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers about a connection, not about a request or a response."""
_PROTOCOLS = "Sec-WebSocket-Protocol"
_HEADER_NAME_CHARS = "!#$&'*+-.^_`|~"
"""Characters, besides letters and digits, that need no escape in a header name (``%`` is the escape)."""


class InvalidHeader(ValueError):
    """A header that cannot be sent."""


def is_upgrade(headers: Headers) -> bool:
    """Whether a client asks for another protocol than HTTP."""
    return "Upgrade" in headers and any(
        token.strip().lower() == "upgrade"
        for value in headers.getall("Connection")
        for token in value.split(",")
    )


def end_to_end(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers that are not about a connection: neither `HOP_BY_HOP` nor named in ``Connection``."""
    lines = [*headers]
    hop_by_hop = HOP_BY_HOP.union(
        token.strip().lower()
        for name, value in lines
        if name.lower() == "connection"
        for token in value.split(",")
    )
    return [line for line in lines if line[0].lower() not in hop_by_hop]


def passed_on(ctx: Context, address: str) -> tuple[str, list[tuple[str, str]]]:
    """The target and the headers with which a request is passed on: not those by which the client says who it is.

    Raises `InvalidHeader`.
    """
    target = _normalized(ctx.http.raw_path)
    own = [
        (name, value)
        for name, value in end_to_end(ctx.http.headers.items())
        if name.lower() not in ("authorization", _PROTOCOLS.lower())
        and not name.lower().startswith(("x-remote-", "impersonate-", "x-forwarded-"))
    ]
    # A browser's token is among the subprotocols of its WebSocket.
    protocols = [one for one in subprotocols(ctx.http.headers) if not one.startswith(TOKEN_PROTOCOL)]
    if protocols:
        own.append((_PROTOCOLS, ",".join(protocols)))
    forwarded = _forwarded_headers(ctx, address, target)
    made = [*own, *forwarded, *user_headers(ctx.user)]
    for name, value in made:
        # The name of a user can be any text of a certificate. A line break in it would begin another header: other groups.
        if INVALID_IN_VALUE(value):
            raise InvalidHeader(f'net/http: invalid header field value for "{name}"')
    return target, made


def _normalized(target: str) -> str:
    """A path and a query as upstream passes them on: decoded and encoded again, the query sorted by name."""
    path, _, query = target.partition("?")
    path = quote(unquote_to_bytes(path), safe="/$&+,:;=@~")
    encoded = [
        (unquote_to_bytes(name.replace("+", " ")), unquote_to_bytes(value.replace("+", " ")))
        for name, value in query_pairs(query)
    ]
    sorted_query = "&".join(
        f"{quote_plus(name)}={quote_plus(value)}" for name, value in sorted(encoded, key=lambda pair: pair[0])
    )
    return f"{path}?{sorted_query}" if sorted_query else path


def _forwarded_headers(ctx: Context, address: str, target: str) -> list[tuple[str, str]]:
    """The headers by which a reverse proxy tells whom a request came from, and how."""
    transport = ctx.http.transport
    peer = transport.get_extra_info("peername") if transport is not None else None
    before = ctx.http.headers.get("X-Forwarded-For", "")
    return [
        ("X-Forwarded-For", ", ".join(filter(None, (before, str(peer[0]) if peer else "")))),
        ("X-Forwarded-Host", address),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Uri", target.partition("?")[0]),
    ]


def user_headers(user: User) -> list[tuple[str, str]]:
    """The headers by which a front proxy tells who the user is."""
    headers = [("X-Remote-User", user.name)]
    if user.uid:
        headers.append(("X-Remote-Uid", user.uid))
    headers += (("X-Remote-Group", group) for group in user.groups)
    for key, values in user.extra.items():
        # Keys are percent-encoded as Go does it: header names are case-insensitive and have few characters.
        escaped = quote(key, safe=_HEADER_NAME_CHARS)
        headers += ((f"X-Remote-Extra-{escaped}", value) for value in values)
    return headers
