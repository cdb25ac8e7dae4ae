"""Creates a client's SSL context from certificates, and explains TLS errors."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

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


def load_certificate(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    """Load a certificate and its key into a context. Raises `ssl.SSLError`, `ValueError` or `OSError`."""
    with _as_file(cert + b"\n" + key) as path:
        context.load_cert_chain(path, password=_no_password)


def _no_password() -> str:
    """Refuse an encrypted key. Without this callback OpenSSL would prompt on the terminal."""
    raise ValueError("the key is encrypted")


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Provide a path to read the content from: the ssl module loads certificates from files only.

    Where the system supports it, the file is in memory, so that an inline key is never written to disk.
    """
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("pem")
        try:
            os.write(handle, content)
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
        return
    handle, path = tempfile.mkstemp()
    try:
        os.write(handle, content)
        os.close(handle)
        yield path
    finally:
        os.unlink(path)


_VERIFY = {
    9: "the server's certificate is not valid yet",
    10: "the server's certificate has expired",
    18: "the server's certificate is signed by an unknown authority (itself)",
    19: "the server's certificate is signed by an unknown authority",
    20: "the server's certificate is signed by an unknown authority",
    21: "the server's certificate is signed by an unknown authority",
    62: "the server's certificate is for another host name",
    64: "the server's certificate is for another address",
}


def explain_tls_error(error: ssl.SSLError) -> str:
    """Describe a TLS error, and which setting to check."""
    if isinstance(error, ssl.SSLCertVerificationError):
        code = error.verify_code
        what = _VERIFY.get(code, f"the server's certificate is refused: {error.verify_message}")
        way = "tls-server-name" if code in (62, 64) else "certificate-authority"
        return f"{what}; check {way} in the kubeconfig"
    reason = error.reason or ""
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "the server does not speak TLS; is it an http:// server?"
    if "CERTIFICATE_REQUIRED" in reason or "BAD_CERTIFICATE" in reason or "UNKNOWN_CA" in reason:
        return "the server refuses our client certificate; check client-certificate in the kubeconfig"
    return f"TLS failed: {reason.lower().replace('_', ' ') or 'the handshake was cut off'}"
