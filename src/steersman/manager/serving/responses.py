"""HTTP responses, and errors with upstream's messages."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from steersman.api.errors import NotAcceptable
from steersman.server.auth.attributes import Attributes, forbidden
from steersman.server.auth.users import User
from steersman.server.codec.negotiation import YAML, negotiate

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
NOSNIFF = ("X-Content-Type-Options", "nosniff")


class Response(NamedTuple):
    """A response, independent of the connection."""

    body: bytes
    status: int = 200
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()


def text_response(body: str, *, headers: tuple[tuple[str, str], ...] = (NOSNIFF,)) -> Response:
    """A text response."""
    return Response(body.encode(), 200, TEXT, headers)


def error_response(code: int, why: str) -> Response:
    """An error as Go's net/http writes it."""
    return Response(f"{why}\n".encode(), code, TEXT, (NOSNIFF,))


NOT_FOUND = error_response(404, "404 page not found")


def _status(code: int, reason: str, message: str, *, details: bool = False) -> bytes:
    status: dict[str, object] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details:
        status["details"] = {}
    written = msgspec.json.encode(status | {"code": code})
    for mark in b"&<>":
        # As Go escapes them, so that no browser takes them for markup.
        written = written.replace(bytes([mark]), f"\\u{mark:04x}".encode())
    return written + b"\n"


UNAUTHORIZED = Response(_status(401, "Unauthorized", "Unauthorized"), 401, JSON)


def forbidden_response(user: User, verb: str, path: str, why: str) -> Response:
    """403: the user may not access the path."""
    message = forbidden(Attributes(user, verb, path=path), why).message
    return Response(_status(403, "Forbidden", message, details=True), 403, JSON, (NOSNIFF,))


def review_failed(target: str, why: str) -> Response:
    """500: the authorization review failed."""
    message = f'Internal Server Error: "{target}": {why}'
    for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        message = message.replace(mark, entity)
    return error_response(500, message)


def not_acceptable(message: str) -> Response:
    """406: the client accepts none of the media types."""
    return Response(_status(406, "NotAcceptable", message), 406, JSON)


def negotiated(answer: Response, accept: str, pretty: bool) -> Response:
    """An error in a media type that the client accepts; indented where asked for, or where it accepts none."""
    if answer.content_type != JSON or answer.status < 400:
        return answer
    try:
        choice = negotiate(accept, served=(JSON, YAML))
    except NotAcceptable:
        pretty = True
    else:
        if choice.media_type == YAML:
            import yaml

            document = msgspec.json.decode(answer.body)
            return answer._replace(body=yaml.safe_dump(document).encode(), content_type=YAML)
        pretty = pretty or choice.pretty
    return answer._replace(body=msgspec.json.format(answer.body.rstrip(), indent=2)) if pretty else answer
