"""Errors of verbs that talk to an API server: one line that says which side failed, why, and the way out."""

from __future__ import annotations

from datetime import UTC, datetime

from steersman.api.errors import ApiError, Forbidden, TLSFailed, Unauthorized, Unreachable
from steersman.api.pem import parse_certificates
from steersman.client.config import ClientConfig, ConfigError
from steersman.client.tls import load_material


def explain(error: ApiError, connection: ClientConfig, now: datetime | None = None) -> str:
    """A failed request, explained to the user of a verb. An error that is not the connection's is shown by its message."""
    origin = f" (from {connection.origin})" if connection.origin else ""
    match error:
        case TLSFailed():
            expired = _expired(connection, now) if "client certificate" in error.message else ""
            return f"no TLS connection{origin}: {error.message}{expired}"
        case Unreachable():
            return f"no answer from {connection.server}{origin}: {error.message}"
        case Unauthorized():
            why = _expired(connection, now) or ": are they expired?"
            return f"{connection.server} does not accept the credentials{origin}{why}"
        case Forbidden():
            return f"{connection.server} refuses this user{origin}: {error.message}"
        case _:
            return error.message


def _expired(connection: ClientConfig, now: datetime | None) -> str:
    """Why our own client certificate is not accepted, if its time is the reason; otherwise empty.

    kube-apiserver does not say: a client whose certificate has expired is anonymous to it.
    """
    try:
        pem = load_material(connection.tls).cert
    except ConfigError:
        return ""
    try:
        certificate = parse_certificates(pem)[0]
    except ValueError:
        return ""
    now = now or datetime.now(UTC)
    if certificate.not_valid_after_utc < now:
        when = f"expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC"
        return f": the client certificate {when}; renew it, or use another kubeconfig"
    if certificate.not_valid_before_utc > now:
        when = f"is valid from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M:%S} UTC"
        return f": the client certificate {when}; is the clock of this machine right?"
    return ""
