"""API errors as kube-apiserver's Status objects: one function per reason, with upstream's texts.

Clients match on reason and details, and people on the message, so all three are upstream's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from steersman.api import go_quote
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
    UnsupportedMediaType,
)

OPTIMISTIC_LOCK_ERROR = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
"""The message for an update with an outdated resourceVersion."""

IMMUTABLE = "field is immutable"

quote = go_quote.quote
"""A string as upstream quotes it in messages."""


def qualified(group: str, word: str) -> str:
    """A resource or kind qualified by its group: ``deployments.apps``, ``Deployment.apps``."""
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
        f"{qualified(group, plural)} {quote(name)} not found",
        reason="NotFound",
        details=_details(group, plural, name),
    )


def already_exists(group: str, plural: str, name: str) -> AlreadyExists:
    return AlreadyExists(
        f"{qualified(group, plural)} {quote(name)} already exists",
        reason="AlreadyExists",
        details=_details(group, plural, name),
    )


def generated_name_taken(group: str, plural: str, name: str) -> AlreadyExists:
    """The error if every name generated for an object was taken."""
    return AlreadyExists(
        f"{qualified(group, plural)} {quote(name)} already exists,"
        " the server was not able to generate a unique name for the object",
        reason="AlreadyExists",
        details=_details(group, plural, name),
        retry_after=1.0,
    )


def conflict(group: str, plural: str, name: str, detail: str) -> Conflict:
    return Conflict(
        f"Operation cannot be fulfilled on {qualified(group, plural)} {quote(name)}: {detail}",
        reason="Conflict",
        details=_details(group, plural, name),
    )


def uid_mismatch(group: str, plural: str, namespace: str, name: str, requested: str, found: str) -> Conflict:
    """The conflict of a uid precondition, with the text of upstream's storage."""
    key = f"/registry/{plural}/{namespace}/{name}" if namespace else f"/registry/{plural}/{name}"
    detail = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {requested}, UID in object meta: {found}"
    )
    return conflict(group, plural, name, detail)


def forbidden(group: str, plural: str, name: str, detail: str, causes: tuple[Cause, ...] = ()) -> Forbidden:
    subject = qualified(group, plural) + (f" {quote(name)}" if name else "")
    return Forbidden(
        f"{subject} is forbidden: {detail}",
        reason="Forbidden",
        causes=causes,
        details=_details(group, plural, name),
    )


def bad_request(message: str) -> BadRequest:
    return BadRequest(message, reason="BadRequest")


class MalformedObject(BadRequest):
    """The refusal of an object with a value that its type cannot decode. Patches and applies have other words for it."""

    def __init__(self, kind: str, version: str, why: str) -> None:
        super().__init__(
            f'{kind} in version "{version}" cannot be handled as a {kind}: {why}', reason="BadRequest"
        )
        self.why = why


def internal(message: str) -> ServerError:
    return ServerError(
        f"Internal error occurred: {message}",
        reason="InternalError",
        causes=(Cause("", message, ""),),
    )


def expired(message: str) -> Expired:
    return Expired(message, reason="Expired")


def resource_version_too_large(requested: int, current: int, *, wait: bool = True) -> ServerTimeout:
    """The error for a resourceVersion that does not exist yet; ``wait`` asks the client to retry after a second."""
    return ServerTimeout(
        f"Timeout: Too large resource version: {requested}, current: {current}",
        reason="Timeout",
        causes=(Cause("ResourceVersionTooLarge", "Too large resource version", ""),),
        retry_after=1.0 if wait else None,
    )


def unsupported(group: str, plural: str, action: str) -> MethodNotAllowed:
    return MethodNotAllowed(
        f"{action} is not supported on resources of kind {quote(qualified(group, plural))}",
        reason="MethodNotAllowed",
        details=_details(group, plural, ""),
    )


def unsupported_media_type(*accepted: str) -> UnsupportedMediaType:
    """The refusal of a body or patch in a media type that is not accepted."""
    return UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted),
        reason="UnsupportedMediaType",
    )


def too_many_requests(
    message: str, retry_after: float = 0.0, causes: tuple[Cause, ...] = ()
) -> TooManyRequests:
    return TooManyRequests(message, reason="TooManyRequests", causes=causes, retry_after=retry_after or None)


def success_status() -> dict[str, Any]:
    """The Status that answers a request which created no object, such as an eviction."""
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


def field_invalid(field: str, value: object, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", field, f"Invalid value: {_shown(value)}: {detail}")


def field_required(field: str, detail: str = "") -> FieldError:
    return FieldError(
        "FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value"
    )


def field_forbidden(field: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, f"Forbidden: {detail}")


def field_not_supported(field: str, value: object, supported: Sequence[str]) -> FieldError:
    choices = ", ".join(quote(choice) for choice in supported)
    return FieldError(
        "FieldValueNotSupported", field, f"Unsupported value: {_shown(value)}: supported values: {choices}"
    )


def aggregate(errors: Sequence[FieldError]) -> str:
    """All errors in one text, without duplicates."""
    lines = list(dict.fromkeys(str(error) for error in errors))
    return lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> Invalid:
    """The error for an invalid object, with a cause for every field error."""
    if group == "events.k8s.io":
        # Upstream validates these as core/v1 Events.
        group = ""
    return Invalid(
        f"{qualified(group, kind)} {quote(name)} is invalid: {aggregate(errors)}",
        reason="Invalid",
        causes=tuple(Cause(error.reason, error.message, error.field) for error in errors),
        details=_details(group, kind, name),
    )
