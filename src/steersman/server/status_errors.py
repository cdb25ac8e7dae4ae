"""Refusals, in upstream's words: one function per kind of Status an API server answers with.

Clients match on reason and details, people on the message, so all three are the real server's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from steersman.api.errors import (
    AlreadyExists,
    BadRequest,
    Cause,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    ServerError,
    ServerTimeout,
    TooManyRequests,
)

LOCK = "the object has been modified; please apply your changes to the latest version and try again"
"""What an update with an outdated resourceVersion is told."""

IMMUTABLE = "field is immutable"


def quote(text: str) -> str:
    """A string as upstream prints it in messages."""
    return msgspec.json.encode(text).decode()


def named(group: str, word: str) -> str:
    """A resource or kind with its group: ``deployments.apps``, ``Deployment.apps``."""
    return f"{word}.{group}" if group else word


def _details(group: str, kind: str, name: str) -> dict[str, Any]:
    details = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return details


def not_found(group: str, plural: str, name: str) -> NotFound:
    return NotFound(
        f"{named(group, plural)} {quote(name)} not found",
        reason="NotFound",
        details=_details(group, plural, name),
    )


def already_exists(group: str, plural: str, name: str) -> AlreadyExists:
    return AlreadyExists(
        f"{named(group, plural)} {quote(name)} already exists",
        reason="AlreadyExists",
        details=_details(group, plural, name),
    )


def name_taken(group: str, plural: str, name: str) -> AlreadyExists:
    """Every name generated for the object was taken."""
    return AlreadyExists(
        f"{named(group, plural)} {quote(name)} already exists,"
        " the server was not able to generate a unique name for the object",
        reason="AlreadyExists",
        details=_details(group, plural, name),
        retry_after=1.0,
    )


def conflict(group: str, plural: str, name: str, why: str) -> Conflict:
    return Conflict(
        f"Operation cannot be fulfilled on {named(group, plural)} {quote(name)}: {why}",
        reason="Conflict",
        details=_details(group, plural, name),
    )


def other_uid(group: str, plural: str, namespace: str, name: str, asked: str, found: str) -> Conflict:
    """Another object of the same name than the one that was meant, in the words of upstream's storage."""
    key = f"/registry/{plural}/{namespace}/{name}" if namespace else f"/registry/{plural}/{name}"
    why = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {asked}, UID in object meta: {found}"
    )
    return conflict(group, plural, name, why)


def forbidden(group: str, plural: str, name: str, why: str, causes: tuple[Cause, ...] = ()) -> Forbidden:
    subject = named(group, plural) + (f" {quote(name)}" if name else "")
    return Forbidden(
        f"{subject} is forbidden: {why}",
        reason="Forbidden",
        causes=causes,
        details=_details(group, plural, name),
    )


def bad_request(message: str) -> BadRequest:
    return BadRequest(message, reason="BadRequest")


def internal(message: str) -> ServerError:
    return ServerError(
        f"Internal error occurred: {message}",
        reason="InternalError",
        causes=(Cause("", message, ""),),
    )


def expired(message: str) -> Expired:
    return Expired(message, reason="Expired")


def too_new(asked: int, current: int, *, wait: bool = True) -> ServerTimeout:
    """A resourceVersion nobody has been given yet; whoever waits may ask again."""
    return ServerTimeout(
        f"Timeout: Too large resource version: {asked}, current: {current}",
        reason="Timeout",
        causes=(Cause("ResourceVersionTooLarge", "Too large resource version", ""),),
        retry_after=1.0 if wait else None,
    )


def unsupported(group: str, plural: str, action: str) -> MethodNotAllowed:
    return MethodNotAllowed(
        f"{action} is not supported on resources of kind {quote(named(group, plural))}",
        reason="MethodNotAllowed",
        details=_details(group, plural, ""),
    )


def too_many(message: str, retry_after: float = 0.0, causes: tuple[Cause, ...] = ()) -> TooManyRequests:
    return TooManyRequests(message, reason="TooManyRequests", causes=causes, retry_after=retry_after or None)


def success() -> dict[str, Any]:
    """What a request is answered with that made no object."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


# -- fields -----------------------------------------------------------------------------------


class FieldError(msgspec.Struct, frozen=True):
    """A field's error: the cause's reason, the field's path, and the message without the path."""

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


def _shown(value: object) -> str:
    if isinstance(value, str):
        return quote(value)
    return msgspec.json.encode(value).decode()


def wrong(field: str, value: object, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", field, f"Invalid value: {_shown(value)}: {detail}")


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(
        "FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value"
    )


def banned(field: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, f"Forbidden: {detail}")


def unknown(field: str, value: object, supported: Sequence[str]) -> FieldError:
    choices = ", ".join(quote(choice) for choice in supported)
    return FieldError(
        "FieldValueNotSupported", field, f"Unsupported value: {_shown(value)}: supported values: {choices}"
    )


def together(problems: Sequence[FieldError]) -> str:
    """All that is wrong in one text; each only once."""
    lines = list(dict.fromkeys(str(problem) for problem in problems))
    return lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"


def invalid(group: str, kind: str, name: str, problems: Sequence[FieldError]) -> Invalid:
    """The object as a whole is refused, for each of these reasons."""
    if group == "events.k8s.io":
        # To the real server these are the core group's, by another name.
        group = ""
    return Invalid(
        f"{named(group, kind)} {quote(name)} is invalid: {together(problems)}",
        reason="Invalid",
        causes=tuple(Cause(problem.reason, problem.message, problem.field) for problem in problems),
        details=_details(group, kind, name),
    )
