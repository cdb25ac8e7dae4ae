"""Loads certificates that are held in memory into SSL contexts."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager


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
    import tempfile

    handle, path = tempfile.mkstemp()
    try:
        os.write(handle, content)
        os.close(handle)
        yield path
    finally:
        os.unlink(path)
