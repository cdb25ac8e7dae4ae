"""Certificate and keys of simulated clusters: always the same, so that everything derived from them is.

They protect nothing, and no listener uses them.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from steersman.intent.actions import FileUnreadable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

FLAGS = {
    "root-ca-file": "ca.crt",
    "cluster-signing-cert-file": "ca.crt",
    "cluster-signing-key-file": "ca.key",
    "service-account-private-key-file": "sa.key",
}
"""The file flags of a manager, with the paths that `read` knows."""
CERTIFICATE = Path(__file__).with_name("ca.crt")
"""The certificate of the authority whose key is ``ca.key``. Every cluster publishes it; signing one would load `cryptography`."""


@cache
def read(path: str) -> bytes:
    """The content of a file. A key is generated when first read, since few tests need one."""
    match path:
        case "ca.crt":
            return CERTIFICATE.read_bytes()
        case "ca.key" | "sa.key":
            return _pem(_key(path))
    raise FileUnreadable(f"a simulated cluster has no file {path!r}")


def _key(name: str) -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    secret = int.from_bytes(sha256(f"steersman simulation {name}".encode()).digest()[:31])
    return ec.derive_private_key(secret, ec.SECP256R1())


def _pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
