"""Creates a client's SSL context from certificates, and explains TLS errors."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from steersman.client.certificates import load_certificate
from steersman.client.config import ConfigError, Pem, TlsConfig


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """The PEM data that an SSL context is created from."""

    ca: bytes = field(default=b"", repr=False)
    cert: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)


def pem_files(tls: TlsConfig) -> tuple[str, ...]:
    """Return the files that a context is created from."""
    return tuple(pem.path for pem in (tls.ca, tls.cert, tls.key) if pem.path)


def file_versions(paths: tuple[str, ...]) -> tuple[tuple[int, int, int], ...]:
    """Return a value that changes when one of the files is written or replaced. A missing file is all zeros."""
    return tuple(_file_version(path) for path in paths)


def _file_version(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino


def load_material(tls: TlsConfig, cert: bytes = b"", key: bytes = b"") -> TlsMaterial:
    """Read the certificate files. ``cert`` and ``key``, from an exec plugin, replace the configured ones."""
    if cert:
        return TlsMaterial(_content(tls.ca), cert, key)
    return TlsMaterial(_content(tls.ca), _content(tls.cert), _content(tls.key))


def _content(pem: Pem) -> bytes:
    if not pem.path:
        return pem.data
    try:
        return Path(pem.path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{pem.path}: {(error.strerror or str(error)).lower()}") from None


def client_context(material: TlsMaterial, tls: TlsConfig) -> ssl.SSLContext:
    """Create an SSL context that verifies certificates as Go does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # CAs created by kubeadm lack extensions that Python 3.13 requires, and an intermediate CA may be the
    # trust anchor. Go accepts both.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif material.ca:
        try:
            context.load_verify_locations(cadata=material.ca.decode("ascii", "replace"))
        except (ssl.SSLError, ValueError):
            raise ConfigError(
                f"{tls.ca.path or 'certificate-authority-data'}: holds no PEM certificate"
            ) from None
    else:
        context.load_default_certs()
    if material.cert:
        where = tls.cert.path or "client-certificate-data"
        try:
            load_certificate(context, material.cert, material.key)
        except (ssl.SSLError, ValueError, OSError):
            raise ConfigError(
                f"{where}: not a PEM certificate with the unencrypted key that belongs to it"
            ) from None
    return context


_CLOCK = "renew it on the server, or set the clock of this machine"
_AUTHORITY = "certificate-authority in the kubeconfig must hold the authority that signed it"
_NAME = "use a name that it holds as server in the kubeconfig, or as tls-server-name"
_VERIFY = {
    9: ("is not valid yet", _CLOCK),
    10: ("has expired", _CLOCK),
    18: ("is signed by an unknown authority (itself)", _AUTHORITY),
    19: ("is signed by an unknown authority", _AUTHORITY),
    20: ("is signed by an unknown authority", _AUTHORITY),
    21: ("is signed by an unknown authority", _AUTHORITY),
    62: ("is for another host name", _NAME),
    64: ("is for another address", _NAME),
}
"""The faults of a server's certificate, each with its remedy, by OpenSSL's code."""
_CHECK = "check client-certificate in the kubeconfig"
_RENEW = "renew it, or use another kubeconfig"
_ALERTS = {
    "CERTIFICATE_EXPIRED": (": it has expired", _RENEW),
    "CERTIFICATE_REVOKED": (": it is revoked", _RENEW),
    "UNKNOWN_CA": (": the server does not know the authority that signed it", _CHECK),
    "CERTIFICATE_REQUIRED": (": there is none, and one is needed", _CHECK),
    "CERTIFICATE": ("", _CHECK),
    "ACCESS_DENIED": ("", _CHECK),
}
"""Why a server refuses a client's certificate, and the way out, by words of OpenSSL's reason. The first match counts."""


def explain_tls_error(error: ssl.SSLError) -> str:
    """Say which side refuses the other's certificate, why, and the way out."""
    if isinstance(error, ssl.SSLCertVerificationError):
        what, way = _VERIFY.get(error.verify_code, (f"is refused: {error.verify_message}", _AUTHORITY))
        return f"the server's certificate {what}; {way}"
    reason = error.reason or ""
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "the server does not speak TLS; is it an http:// server?"
    for word, (why, way) in _ALERTS.items():
        if word in reason:
            return f"the server refuses our client certificate{why}; {way}"
    return f"TLS failed: {reason.lower().replace('_', ' ') or 'the handshake was cut off'}"
