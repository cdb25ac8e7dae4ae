"""What went wrong with a request, as one `ApiError`: refusals of the server, and no answer at all."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

import aiohttp
import msgspec

from steersman.api.errors import ApiError, Unreachable, from_status
from steersman.client.tls import explain

# The request never left: no connection came about.
_NOT_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
)

# The connection broke, as it does when a server restarts: a read may just be sent again.
_BROKE = (
    aiohttp.ServerDisconnectedError,
    aiohttp.ClientOSError,
    aiohttp.ClientPayloadError,
    aiohttp.ClientConnectionResetError,
)

FAILURES = (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError)
"""All that a request can raise when it is not answered."""


def refusal(
    request: str, code: int, headers: Mapping[str, str], body: bytes, *, write: bool = False
) -> ApiError:
    """The error of an answer. Of its text only the Status's own message is told."""
    try:
        status = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        status = None
    said = isinstance(status, dict) and status.get("kind") == "Status"
    if not said:
        status = {"message": f"{request}: the server answered {code} without a Status"}
    error = from_status(status, code=code, retry_after=retry_after(headers))
    # The server gave up waiting for itself, or a proxy for the server: the write may yet happen.
    error.uncertain = write and (code == 504 or (code >= 500 and not said))
    return error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds the server asks to wait. As upstream, dates are not understood."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else None


def broke(error: BaseException) -> bool:
    """Whether a connection that had been there broke, rather than never came about."""
    return isinstance(error, _BROKE) and not isinstance(error, _NOT_SENT)


def unreachable(server: str, request: str, error: BaseException, *, write: bool) -> Unreachable:
    """No answer came: one line that names the server, and whether a write may have happened."""
    sent = not isinstance(error, _NOT_SENT)
    return Unreachable(f"{server}: {request}: {_reason(error)}", uncertain=write and sent)


def _reason(error: BaseException) -> str:
    tls = _tls(error)
    if tls is not None:
        return explain(tls)
    match error:
        case aiohttp.ConnectionTimeoutError():
            return "connecting took too long"
        case TimeoutError():
            return "no answer in time"
        case aiohttp.ClientConnectorDNSError():
            return "the host name cannot be resolved"
        case aiohttp.ClientProxyConnectionError():
            return "the proxy cannot be reached"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answered {error.status}"
        case aiohttp.ClientConnectorError():
            return _system(error.os_error, "cannot connect")
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection"
        case aiohttp.ClientPayloadError():
            return "the answer broke off"
        case OSError():
            return _system(error, "the connection broke")
        case _:
            return "the answer is not HTTP"


def _system(error: OSError, otherwise: str) -> str:
    """The system's word for it: asyncio's own texts carry addresses."""
    return os.strerror(error.errno).lower() if error.errno else otherwise


def _tls(error: BaseException) -> ssl.SSLError | None:
    """The TLS failure behind an error, if that is what it is."""
    inner: object = error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        inner = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorError):
        inner = error.os_error
    elif isinstance(error, aiohttp.ClientOSError):
        # With TLS 1.3 the server refuses our certificate only after its own handshake is done.
        inner = error.__cause__
    return inner if isinstance(inner, ssl.SSLError) else None
