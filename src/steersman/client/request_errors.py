"""Turns failed requests into `ApiError`: error responses of the server, and connections without a response."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

import aiohttp
import msgspec

from steersman.api.errors import ApiError, Unreachable, from_status
from steersman.client.tls import explain_tls_error

# No connection was established, so the request was not sent.
_NOT_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
)

# An established connection broke, as happens when a server restarts. A read may be retried at once.
_BROKE = (
    aiohttp.ServerDisconnectedError,
    aiohttp.ClientOSError,
    aiohttp.ClientPayloadError,
    aiohttp.ClientConnectionResetError,
)

NO_RESPONSE = (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError)
"""The exceptions of a request that gets no response."""


def error_from_response(
    request: str, code: int, headers: Mapping[str, str], body: bytes, *, is_write: bool = False
) -> ApiError:
    """Return the error of a response. Its body is never part of the message, except for a Status's message."""
    try:
        status = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        status = None
    is_status = isinstance(status, dict) and status.get("kind") == "Status"
    if not is_status:
        status = {"message": f"{request}: the server answered {code} without a Status"}
    error = from_status(status, code=code, retry_after=retry_after(headers))
    # The server timed out on itself, or a proxy on the server: the write may still happen.
    error.uncertain = is_write and (code == 504 or (code >= 500 and not is_status))
    return error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in the Retry-After header; None without one. As upstream, dates are not supported."""
    value = headers.get("Retry-After", "")
    # Upstream reads 63 bits. Many more digits would be an infinite number.
    return float(value) if value.isascii() and value.isdigit() and len(value) < 19 else None


def connection_broke(error: BaseException) -> bool:
    """Report whether an established connection broke, as opposed to one that could not be established."""
    return isinstance(error, _BROKE) and not isinstance(error, _NOT_SENT)


def unreachable(server: str, request: str, error: BaseException, *, is_write: bool) -> Unreachable:
    """Return the error of a request without a response. It is uncertain if a write may have been received."""
    sent = not isinstance(error, _NOT_SENT)
    return Unreachable(f"{server}: {request}: {_reason(error)}", uncertain=is_write and sent)


def _reason(error: BaseException) -> str:
    tls = _tls(error)
    if tls is not None:
        return explain_tls_error(tls)
    match error:
        case aiohttp.ConnectionTimeoutError():
            return "timed out while connecting"
        case TimeoutError():
            return "timed out waiting for the response"
        case aiohttp.ClientConnectorDNSError():
            return "the host name cannot be resolved"
        case aiohttp.ClientProxyConnectionError():
            return "the proxy cannot be reached"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answered with status {error.status}"
        case aiohttp.ClientConnectorError():
            return _system(error.os_error, "cannot connect")
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection"
        case aiohttp.ClientPayloadError():
            return "the response was cut off"
        case OSError():
            return _system(error, "the connection broke")
        case _:
            return "the response is not HTTP"


def _system(error: OSError, otherwise: str) -> str:
    """Return the system's error message: asyncio's own messages contain addresses."""
    return os.strerror(error.errno).lower() if error.errno else otherwise


def _tls(error: BaseException) -> ssl.SSLError | None:
    """Return the TLS error that caused a failure, if there is one."""
    inner: object = error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        inner = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorError):
        inner = error.os_error
    elif isinstance(error, aiohttp.ClientOSError):
        # With TLS 1.3 a server refuses the client certificate only after the client has completed its handshake.
        inner = error.__cause__
    return inner if isinstance(inner, ssl.SSLError) else None
