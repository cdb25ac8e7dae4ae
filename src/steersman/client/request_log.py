"""Logs requests and responses from ``-v=6`` on, as client-go's debugging round trippers do.

Bodies are never logged. Values of headers that may carry credentials are masked.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from steersman.api.verbosity import V, structured

log = logging.getLogger(__name__)

UNMASKED_HEADERS = frozenset(
    [
        "accept",
        "accept-encoding",
        "content-encoding",
        "content-length",
        "content-type",
        "date",
        "user-agent",
        "retry-after",
        "audit-id",
        "cache-control",
        "x-kubernetes-pf-flowschema-uid",
        "x-kubernetes-pf-prioritylevel-uid",
        "impersonate-user",
        "impersonate-group",
    ]
)
"""Headers whose values are logged."""


def log_request(method: str, server: str, path: str, headers: Iterable[tuple[str, str]]) -> None:
    """Log a request that is about to be sent."""
    if log.isEnabledFor(V[7]):
        values = {"verb": method, "url": _url(server, path), "headers": _headers(headers)}
        log.log(V[7], "%s %s", method, values["url"], extra=structured("Request", **values))


def log_response(
    method: str, server: str, path: str, code: int, headers: Mapping[str, str] | None, seconds: float
) -> None:
    """Log a response; code 0 stands for no response."""
    if not log.isEnabledFor(V[6]):
        return
    values: dict[str, Any] = {"verb": method, "url": _url(server, path), "status": _status(code)}
    if headers and log.isEnabledFor(V[8]):
        values["headers"] = _headers(headers.items())
    values["milliseconds"] = int(seconds * 1000)
    log.log(
        V[6], "%s %s: %s", method, values["url"], values["status"], extra=structured("Response", **values)
    )


def _status(code: int) -> str:
    try:
        return f"{code} {HTTPStatus(code).phrase}" if code else ""
    except ValueError:
        return str(code)


def _url(server: str, path: str) -> str:
    """Return the URL without user name and password."""
    parts = urlsplit(server)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) + path


def _headers(headers: Iterable[tuple[str, str]]) -> str:
    return "".join(
        f"{name}: {value if name.lower() in UNMASKED_HEADERS else '<masked>'}\n" for name, value in headers
    )
