"""What is logged of requests, as client-go's debugging round-trippers have it: ``-v=6`` and up.

Never bodies. Of headers, only the names of those that may prove who somebody is.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from steersman.api.verbosity import V, told_as

log = logging.getLogger(__name__)

PLAIN = frozenset(
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
"""The headers whose values may be told."""


def asking(method: str, server: str, path: str, headers: Mapping[str, str]) -> None:
    """A request is about to be sent."""
    if log.isEnabledFor(V[7]):
        values = {"verb": method, "url": _url(server, path), "headers": _headers(headers)}
        log.log(V[7], "%s %s", method, values["url"], extra=told_as("Request", **values))


def answered(
    method: str, server: str, path: str, code: int, headers: Mapping[str, str] | None, seconds: float
) -> None:
    """A request was answered; or was not, with the code 0."""
    if not log.isEnabledFor(V[6]):
        return
    values: dict[str, Any] = {"verb": method, "url": _url(server, path), "status": _status(code)}
    if headers and log.isEnabledFor(V[8]):
        values["headers"] = _headers(headers)
    values["milliseconds"] = int(seconds * 1000)
    log.log(V[6], "%s %s: %s", method, values["url"], values["status"], extra=told_as("Response", **values))


def _status(code: int) -> str:
    try:
        return f"{code} {HTTPStatus(code).phrase}" if code else ""
    except ValueError:
        return str(code)


def _url(server: str, path: str) -> str:
    """The address, without the name and the password that one may carry."""
    parts = urlsplit(server)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) + path


def _headers(headers: Mapping[str, str]) -> str:
    return "".join(
        f"{name}: {value if name.lower() in PLAIN else '<masked>'}\n" for name, value in headers.items()
    )
