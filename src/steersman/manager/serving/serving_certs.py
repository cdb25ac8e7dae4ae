"""Serving certificates: from files that may change, or self-signed."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Protocol

from steersman.api.pem import blocks, is_certificate, parse_certificates
from steersman.client.certificates import load_certificate
from steersman.client.tls import file_versions
from steersman.manager.flags import UsageError
from steersman.server.auth.ca import (
    YEAR,
    CertificateAuthority,
    CertificatePair,
    self_signed,
    write_private,
    write_public,
)

log = logging.getLogger(__name__)

NAME = "kube-controller-manager"
"""Base name of the files in ``--cert-dir``."""


class CertSource(Protocol):
    """Source of a serving certificate."""

    def current(self) -> CertificatePair:
        """The certificate and key as they are now; the same object while they have not changed."""
        ...


class StaticCert:
    """A certificate that never changes."""

    def __init__(self, pair: CertificatePair) -> None:
        self._pair = pair

    def current(self) -> CertificatePair:
        return self._pair


class CertFiles:
    """A certificate and its key in files, reloaded when they change.

    Invalid files are ignored: the last valid pair stays in use, and the error is logged once.
    """

    def __init__(self, cert: str, key: str) -> None:
        """Raises `UsageError` where the files are invalid."""
        self._paths = (cert, key)
        self._stamp = file_versions(self._paths)
        self._pair = load(cert, key)

    def current(self) -> CertificatePair:
        now = file_versions(self._paths)
        if now != self._stamp:
            self._stamp = now
            try:
                self._pair = load(*self._paths)
                log.info("reloaded the certificate %s", self._paths[0])
            except UsageError as error:
                log.error("the certificate is not reloaded: %s", error)
        return self._pair


def load(cert: str, key: str) -> CertificatePair:
    """Load a certificate and its key. Raises `UsageError`, which names the files but not their contents."""
    if not cert or not key:
        missing = "--tls-private-key-file" if cert else "--tls-cert-file"
        raise UsageError(f"a certificate and its key must be set together: {missing} is missing")
    pair = CertificatePair(_read(cert), _read(key))
    try:
        load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), pair.cert, pair.key)
        # OpenSSL reads some files that Go does not; such a certificate could be served but not looked at.
        if not any(map(is_certificate, blocks(pair.cert))):
            raise ValueError("no certificate")
    except (ssl.SSLError, ValueError, OSError):
        raise UsageError(f"{cert} and {key}: not a PEM certificate with its unencrypted key") from None
    return pair


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or str(error)).lower()}") from None


# -- self-signed ------------------------------------------------------------------------------


def generate(address: str, now: datetime) -> CertificatePair:
    """Generate a certificate for an address, with the CA that signed it. The CA's key is discarded."""
    authority = CertificateAuthority(
        self_signed(f"localhost-ca@{now.timestamp():.0f}", now, YEAR), lambda: now
    )
    listening = ip_address(address)
    addresses = ["127.0.0.1"] if listening.is_unspecified else ["127.0.0.1", str(listening)]
    pair = authority.serving(
        ("localhost",), dict.fromkeys(addresses), name=f"localhost@{now.timestamp():.0f}"
    )
    return CertificatePair(pair.cert + authority.pair.cert, pair.key)


def from_cert_dir(directory: str, address: str, now: Callable[[], datetime]) -> CertFiles:
    """The certificate in ``--cert-dir``, generated there where no valid one exists."""
    cert, key = (Path(directory, f"{NAME}.{kind}") for kind in ("crt", "key"))
    if not (_usable(cert, key, now())):
        pair = generate(address, now())
        try:
            cert.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            write_private(key, pair.key)
            write_public(cert, pair.cert)
        except OSError as error:
            raise UsageError(f"--cert-dir={directory}: {(error.strerror or str(error)).lower()}") from None
        log.info("Generated self-signed cert (%s, %s)", cert, key)
    return CertFiles(str(cert), str(key))


def _usable(cert: Path, key: Path, now: datetime) -> bool:
    exist = [path.is_file() for path in (cert, key)]
    if not any(exist):
        return False
    if not all(exist):
        missing = key if exist[0] else cert
        raise UsageError(
            f"{missing}: a certificate and its key must be supplied as a pair; this one is missing"
        )
    pair = load(str(cert), str(key))
    # differs: upstream keeps using an expired one, so that no client can connect.
    return parse_certificates(pair.cert)[0].not_valid_after_utc > now
