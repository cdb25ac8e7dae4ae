"""Answers, and refusals in upstream's words."""

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


class Answer(NamedTuple):
    """An answer, but for the socket."""

    body: bytes
    status: int = 200
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()


def text(body: str, *, headers: tuple[tuple[str, str], ...] = (NOSNIFF,)) -> Answer:
    """Words for people."""
    return Answer(body.encode(), 200, TEXT, headers)


def problem(code: int, why: str) -> Answer:
    """What is wrong, as Go's own server says it."""
    return Answer(f"{why}\n".encode(), code, TEXT, (NOSNIFF,))


NOT_FOUND = problem(404, "404 page not found")


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
        # As Go writes them, so that no browser takes them for markup.
        written = written.replace(bytes([mark]), f"\\u{mark:04x}".encode())
    return written + b"\n"


UNAUTHORIZED = Answer(_status(401, "Unauthorized", "Unauthorized"), 401, JSON)


def denied(user: User, verb: str, path: str, why: str) -> Answer:
    """For who may not ask that."""
    message = forbidden(Attributes(user, verb, path=path), why).message
    return Answer(_status(403, "Forbidden", message, details=True), 403, JSON, (NOSNIFF,))


def undecided(target: str, why: str) -> Answer:
    """For whom nobody could say whether they may."""
    told = f'Internal Server Error: "{target}": {why}'
    for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        told = told.replace(mark, entity)
    return problem(500, told)


def unacceptable(message: str) -> Answer:
    """For who takes none of the forms there are."""
    return Answer(_status(406, "NotAcceptable", message), 406, JSON)


def formed(answer: Answer, accept: str, pretty: bool) -> Answer:
    """A refusal in the form that a client takes; indented for people, and for who takes none that there is."""
    if answer.content_type != JSON or answer.status < 400:
        return answer
    try:
        choice = negotiate(accept)
    except NotAcceptable:
        pretty = True
    else:
        if choice.media_type == YAML:
            import yaml

            document = msgspec.json.decode(answer.body)
            return answer._replace(body=yaml.safe_dump(document).encode(), content_type=YAML)
        pretty = pretty or choice.pretty
    return answer._replace(body=msgspec.json.format(answer.body.rstrip(), indent=2)) if pretty else answer
