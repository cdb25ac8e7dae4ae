"""Turns failed requests into `ApiError`: error responses of the server, and connections without a response."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from urllib.parse import unquote

import msgspec

from steersman.api.errors import ApiError, TLSFailed, Unreachable, from_status
from steersman.client.connection import ConnectionBroke, NotConnected, RequestFailed
from steersman.client.tls import explain_tls_error

NO_RESPONSE = (RequestFailed, TimeoutError)
"""The exceptions of a request that gets no response."""


_WITHOUT_STATUS: Mapping[int, tuple[str, str]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    403: ("Forbidden", "unknown"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "the server was unable to respond with a content type that the client supports"),
    409: ("Conflict", "the server reported a conflict"),
    415: ("UnsupportedMediaType", "unknown"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: (
        "TooManyRequests",
        "the server has received too many requests and has asked us to try again later",
    ),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}
"""The reason and message, in client-go's words, of a response that is not a Status."""


def error_from_response(
    method: str, path: str, code: int, headers: Mapping[str, str], body: bytes
) -> ApiError:
    """Return the error of a response. Its body is never part of the message, except for a Status's message."""
    try:
        status = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        status = None
    is_status = isinstance(status, dict) and status.get("kind") == "Status"
    if not is_status:
        status = _status_of(method, path, code)
    error = from_status(status, code=code, retry_after=retry_after(headers))
    # The server timed out on itself, or a proxy on the server: the write may still happen.
    error.uncertain = method != "GET" and (code == 504 or (code >= 500 and not is_status))
    return error


def _status_of(method: str, path: str, code: int) -> dict[str, str]:
    """Return the reason and message that client-go gives a response without a Status."""
    # differs: upstream quotes a body that is text; here each one is "unknown", as bodies of other types are upstream.
    reason, message = (
        "",
        f"the server responded with the status code {code} but did not return more information",
    )
    if code in _WITHOUT_STATUS:
        reason, message = _WITHOUT_STATUS[code]
    elif code >= 500:
        reason = "InternalError"
        message = 'an error on the server ("unknown") has prevented the request from succeeding'
    if code == 409 and method == "POST":
        reason = "AlreadyExists"
    about = _resource_and_name(path)
    return {
        "reason": reason,
        "message": f"{message} ({method.lower()} {about})" if about else message,
    }


def _resource_and_name(path: str) -> str:
    """Return the group-resource and name of a path: ``pods.metrics.k8s.io``, ``pods web-1``; empty for other paths."""
    group = ""
    match path.partition("?")[0].strip("/").split("/"):
        case ["api", _, *segments]:
            pass
        case ["apis", group, _, *segments]:
            pass
        case _:
            return ""
    match segments:
        case ["namespaces", _, subresource, *_] if not group and subresource in ("status", "finalize"):
            segments = segments[:2]
        case ["namespaces", _, _, *_]:
            segments = segments[2:]
        case []:
            return ""
    resource, *names = (unquote(segment) for segment in segments[:2])
    return " ".join((f"{resource}.{group}" if group else resource, *names))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in the Retry-After header; None without one. As upstream, dates are not supported.

    ``headers`` are by their names in lower case.
    """
    value = headers.get("retry-after", "")
    # Upstream reads 63 bits. Many more digits would be an infinite number.
    return float(value) if value.isascii() and value.isdigit() and len(value) < 19 else None


def connection_broke(error: BaseException) -> bool:
    """Report whether an established connection broke, as opposed to one that could not be established."""
    return isinstance(error, ConnectionBroke)


def unreachable(server: str, request: str, error: BaseException, *, is_write: bool) -> Unreachable:
    """Return the error of a request without a response. It is uncertain if a write may have been received."""
    sent = not isinstance(error, NotConnected)
    tls = error.__cause__
    if isinstance(tls, ssl.SSLError):
        return TLSFailed(f"{server}: {explain_tls_error(tls)}", uncertain=is_write and sent)
    reason = str(error) if isinstance(error, RequestFailed) else "timed out waiting for the response"
    return Unreachable(f"{server}: {request}: {reason}", uncertain=is_write and sent)
