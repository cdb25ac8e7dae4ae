"""Certificate and keys of simulated clusters: always the same, so that everything derived from them is.

They protect nothing, and no listener uses them.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from steersman.intent.actions import FileUnreadable
from steersman.sim.world import START

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

FLAGS = {
    "root-ca-file": "ca.crt",
    "cluster-signing-cert-file": "ca.crt",
    "cluster-signing-key-file": "ca.key",
    "service-account-private-key-file": "sa.key",
}
"""The file flags of a manager, with the paths that `read` knows."""


@cache
def read(path: str) -> bytes:
    """The content of a file. It is generated when first read, since few tests need it."""
    match path:
        case "ca.crt":
            return _certificate()
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


def _certificate() -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import NameOID

    key = _key("ca.key")
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "steersman simulation")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(START.replace(year=2020))
        .not_valid_after(START.replace(year=2120))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    return builder.sign(key, SHA256(), ecdsa_deterministic=True).public_bytes(Encoding.PEM)
