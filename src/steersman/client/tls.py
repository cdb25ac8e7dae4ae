"""Certificates into an SSL context, and TLS failures into sentences."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from steersman.client.connection import ConfigError, Pem, Tls


@dataclass(frozen=True, slots=True)
class Material:
    """What a context is made of, as it is at this moment."""

    ca: bytes = field(default=b"", repr=False)
    cert: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)


def files(tls: Tls) -> tuple[str, ...]:
    """The files a context is made from."""
    return tuple(pem.path for pem in (tls.ca, tls.cert, tls.key) if pem.path)


def stamp(paths: tuple[str, ...]) -> tuple[tuple[int, int, int], ...]:
    """What changes when one of the files is written or replaced. A missing one is all zeros."""
    return tuple(_stamp(path) for path in paths)


def _stamp(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino


def gather(tls: Tls, cert: bytes = b"", key: bytes = b"") -> Material:
    """Read the files. A certificate from a plugin stands in for the configured one."""
    if cert:
        return Material(_content(tls.ca), cert, key)
    return Material(_content(tls.ca), _content(tls.cert), _content(tls.key))


def _content(pem: Pem) -> bytes:
    if not pem.path:
        return pem.data
    try:
        return Path(pem.path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{pem.path}: {(error.strerror or str(error)).lower()}") from None


def context(material: Material, tls: Tls) -> ssl.SSLContext:
    """An SSL context that trusts as Go does: whatever the configured authorities vouch for."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    # Authorities made by kubeadm and friends lack extensions that Python 3.13 insists on, and an
    # intermediate may be the anchor. Go asks for neither.
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if tls.insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    elif material.ca:
        try:
            made.load_verify_locations(cadata=material.ca.decode("ascii", "replace"))
        except (ssl.SSLError, ValueError):
            raise ConfigError(
                f"{tls.ca.path or 'certificate-authority-data'}: holds no PEM certificate"
            ) from None
    else:
        made.load_default_certs()
    if material.cert:
        where = tls.cert.path or "client-certificate-data"
        try:
            present(made, material.cert, material.key)
        except (ssl.SSLError, ValueError, OSError):
            raise ConfigError(
                f"{where}: not a PEM certificate with the unencrypted key that belongs to it"
            ) from None
    return made


def present(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    """Have a context show a certificate. Raises `ssl.SSLError`, `ValueError` or `OSError`."""
    with _as_file(cert + b"\n" + key) as path:
        context.load_cert_chain(path, password=_no_password)


def _no_password() -> str:
    """Asked for an encrypted key. Without this OpenSSL would ask on the terminal."""
    raise ValueError("the key is encrypted")


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path to read this from: the ssl module takes certificates from files only.

    Where the system can, the file is memory, so a key given inline never touches a disk.
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


def explain(error: ssl.SSLError) -> str:
    """What went wrong, with the way out."""
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
    return f"TLS failed: {reason.lower().replace('_', ' ') or 'the handshake broke off'}"
