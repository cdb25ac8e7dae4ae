"""Exceptions for error responses (Status) of the API, and for requests without a response.

::

    ApiError
    ├── BadRequest (400)
    ├── Unauthorized (401)
    ├── Forbidden (403)
    ├── NotFound (404)
    ├── MethodNotAllowed (405)
    ├── NotAcceptable (406)
    ├── Conflict (409)
    │   └── AlreadyExists (409, reason AlreadyExists)
    ├── Expired (410)          the resourceVersion or continue token is too old
    ├── TooLarge (413)
    ├── UnsupportedMediaType (415)
    ├── Invalid (422)
    ├── TooManyRequests (429)
    ├── ServerError (5xx)
    │   ├── ServiceUnavailable (503)
    │   └── ServerTimeout (504)
    └── Unreachable            no response: refused, reset, timed out
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Cause(msgspec.Struct, frozen=True):
    """One cause of an error, as StatusCause."""

    reason: str
    message: str
    field: str


class ApiError(Exception):
    """A request that failed or got no response.

    ``uncertain`` is true if the server may have processed the request nevertheless: the connection broke or timed
    out after it was sent.
    """

    code = 0

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        reason: str = "",
        causes: tuple[Cause, ...] = (),
        retry_after: float | None = None,
        uncertain: bool = False,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.code if code is None else code
        self.reason = reason
        self.causes = causes
        self.retry_after = retry_after
        self.uncertain = uncertain
        self.details = dict(details or {})

    def caused_by(self, reason: str) -> bool:
        """Report whether one of the causes has a reason, such as ``NamespaceTerminating``."""
        return any(cause.reason == reason for cause in self.causes)


class BadRequest(ApiError):
    code = 400


class Unauthorized(ApiError):
    code = 401


class Forbidden(ApiError):
    code = 403


class NotFound(ApiError):
    code = 404


class MethodNotAllowed(ApiError):
    code = 405


class NotAcceptable(ApiError):
    code = 406


class Conflict(ApiError):
    code = 409


class AlreadyExists(Conflict):
    pass


class Expired(ApiError):
    code = 410


class TooLarge(ApiError):
    code = 413


class UnsupportedMediaType(ApiError):
    code = 415


class Invalid(ApiError):
    code = 422


class TooManyRequests(ApiError):
    code = 429


class ServerError(ApiError):
    code = 500


class ServiceUnavailable(ServerError):
    code = 503


class ServerTimeout(ServerError):
    code = 504


class Unreachable(ApiError):
    """No response: connection refused, reset, or timed out."""


class TLSFailed(Unreachable):
    """No response, because one side does not accept the certificate of the other. Trying again does not help."""


_INT32 = 2**31
"""Upstream's retryAfterSeconds is less than this."""

_BY_CODE: dict[int, type[ApiError]] = {
    cls.code: cls
    for cls in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        NotAcceptable,
        Conflict,
        Expired,
        TooLarge,
        UnsupportedMediaType,
        Invalid,
        TooManyRequests,
        ServerError,
        ServiceUnavailable,
        ServerTimeout,
    )
}


def resource_version_unavailable(error: Exception) -> bool:
    """Report whether the server does not have the requested resourceVersion.

    It no longer has one that has expired, and not yet one from before it was restored from a backup.
    """
    return isinstance(error, Expired) or (
        isinstance(error, ApiError) and error.caused_by("ResourceVersionTooLarge")
    )


def from_status(status: Mapping[str, Any], *, code: int = 0, retry_after: float | None = None) -> ApiError:
    """Return the exception for a Status document.

    Malformed documents, of a proxy for instance, are accepted too. ``code`` is the HTTP status, used if the document
    has no valid one.
    """
    status_code = status.get("code")
    code = status_code if isinstance(status_code, int) and 100 <= status_code <= 999 else code or 500
    reason = status.get("reason")
    message = status.get("message")
    details = status.get("details")
    details = details if isinstance(details, Mapping) else {}
    listed = details.get("causes")
    causes = tuple(
        Cause(str(c.get("reason", "")), str(c.get("message", "")), str(c.get("field", "")))
        for c in (listed if isinstance(listed, list | tuple) else ())
        if isinstance(c, Mapping)
    )
    wait = details.get("retryAfterSeconds")
    if retry_after is None and isinstance(wait, int | float) and 0 < wait < _INT32:
        retry_after = float(wait)
    cls = _BY_CODE.get(code, ServerError if code >= 500 else ApiError)
    if cls is Conflict and reason == "AlreadyExists":
        cls = AlreadyExists
    return cls(
        message if isinstance(message, str) and message else f"the server answered {code}",
        code=code,
        reason=reason if isinstance(reason, str) else "",
        causes=causes,
        retry_after=retry_after,
        details=details,
    )


def to_status(error: ApiError) -> dict[str, Any]:
    """Return the Status document of an error, for responses of the embedded server."""
    details = dict(error.details)
    if error.causes:
        details["causes"] = [
            {"reason": c.reason, "message": c.message, "field": c.field} for c in error.causes
        ]
    if error.retry_after:
        details["retryAfterSeconds"] = int(error.retry_after)
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "code": error.code,
    }
    if details:
        status["details"] = details
    return status
