"""The server's certificate authority for tests: by the machine's time, and for a week."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from steersman.api.signing_keys import KeySet
from steersman.server.auth import ca
from steersman.server.auth.ca import CertificatePair, write_private

__all__ = ["CertificateAuthority", "CertificatePair", "key_pair", "write_private"]

_LIFETIME = timedelta(days=7)


def _now() -> datetime:
    return datetime.now(UTC)


class CertificateAuthority(ca.CertificateAuthority):
    """A new authority of some name."""

    def __init__(self, name: str) -> None:
        super().__init__(ca.self_signed(name, _now(), _LIFETIME), _now, _LIFETIME)


def key_pair() -> tuple[bytes, bytes]:
    """A private key and its public key as PEM: what signs and checks ServiceAccount tokens."""
    keys = KeySet.generate()
    return keys.pem, keys.public_pem
