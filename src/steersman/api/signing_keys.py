"""Keys that sign and verify ServiceAccount tokens: RSA, or ECDSA on the NIST curves P-256, P-384 and P-521."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from steersman.api.pem import CERTIFICATE, PRIVATE_KEYS, blocks, parse_certificate

if TYPE_CHECKING:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    Public: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
    Private: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

Algorithm: TypeAlias = Literal["RS256", "ES256", "ES384", "ES512"]

_CURVES: dict[str, tuple[Algorithm, str, int]] = {
    "secp256r1": ("ES256", "P-256", 32),
    "secp384r1": ("ES384", "P-384", 48),
    "secp521r1": ("ES512", "P-521", 66),
}
_RSA_BITS = 2048


def base64url_encode(data: bytes) -> str:
    """Encode as base64url without padding, as JSON Web Tokens do."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def base64url_decode(text: str) -> bytes:
    """Decode base64url without padding. Raises `ValueError`."""
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        data = b""
    # Python ignores characters outside the alphabet, but a token must have exactly one encoding.
    if base64url_encode(data) != text:
        raise ValueError("not base64 for URLs")
    return data


class SigningKey(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A key pair, or a public key that can only verify."""

    public: Public
    private: Private | None = None

    @cached_property
    def id(self) -> str:
        """The ``kid``: a digest of the public key."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        der = self.public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return base64url_encode(hashlib.sha256(der).digest())

    @cached_property
    def algorithm(self) -> Algorithm:
        """The signature algorithm. Each type of key has exactly one, so that no token can select a weaker one."""
        return self._curve[0] if self._curve else "RS256"

    def sign(self, data: bytes) -> bytes:
        """Return the signature in the format of JSON Web Tokens."""
        from cryptography.hazmat.primitives.asymmetric import ec, padding
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        if self.private is None:
            raise ValueError("a public key cannot sign")
        if not isinstance(self.private, ec.EllipticCurvePrivateKey):
            return self.private.sign(data, padding.PKCS1v15(), _digest(self.algorithm))
        assert self._curve is not None
        r, s = decode_dss_signature(self.private.sign(data, _ecdsa(self.algorithm)))
        size = self._curve[2]
        return r.to_bytes(size) + s.to_bytes(size)

    def verifies(self, signature: bytes, data: bytes) -> bool:
        """Report whether a signature was made with this key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, padding
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

        try:
            if not isinstance(self.public, ec.EllipticCurvePublicKey):
                self.public.verify(signature, data, padding.PKCS1v15(), _digest(self.algorithm))
                return True
            assert self._curve is not None
            size = self._curve[2]
            if len(signature) != 2 * size:
                return False
            encoded = encode_dss_signature(int.from_bytes(signature[:size]), int.from_bytes(signature[size:]))
            self.public.verify(encoded, data, ec.ECDSA(_digest(self.algorithm)))
        except InvalidSignature:
            return False
        return True

    @property
    def jwk(self) -> dict[str, str]:
        """The public key as a JSON Web Key, with the fields in upstream's order."""
        numbers = self.public.public_numbers()
        if self._curve is not None:
            algorithm, curve, size = self._curve
            x, y = (base64url_encode(getattr(numbers, name).to_bytes(size)) for name in ("x", "y"))
            return {
                "use": "sig", "kty": "EC", "kid": self.id, "crv": curve, "alg": algorithm, "x": x, "y": y,
            }  # fmt: skip
        n, e = (
            base64url_encode(value.to_bytes((value.bit_length() + 7) // 8))
            for value in (getattr(numbers, name) for name in ("n", "e"))
        )
        return {"use": "sig", "kty": "RSA", "kid": self.id, "alg": "RS256", "n": n, "e": e}

    @cached_property
    def _curve(self) -> tuple[Algorithm, str, int] | None:
        from cryptography.hazmat.primitives.asymmetric import ec

        if not isinstance(self.public, ec.EllipticCurvePublicKey):
            return None
        try:
            return _CURVES[self.public.curve.name]
        except KeyError:
            raise ValueError("unknown private key curve, must be 256, 384, or 521") from None


class KeySet:
    """All keys that a server accepts. The first private key signs."""

    def __init__(self, keys: Iterable[SigningKey]) -> None:
        # The same key may be given twice, as private and as public key: the private one is kept.
        unique: dict[str, SigningKey] = {}
        for key in keys:
            if key.id not in unique or (unique[key.id].private is None and key.private is not None):
                unique[key.id] = key
        self.all = tuple(unique.values())
        if not self.all:
            raise ValueError("no keys")

    @classmethod
    def generate(cls, algorithm: Algorithm = "ES256") -> KeySet:
        """Generate a key. ES256 takes less than a millisecond, RS256 some tenths of a second."""
        from cryptography.hazmat.primitives.asymmetric import ec, rsa

        if algorithm == "RS256":
            return cls([_key_pair(rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS))])
        return cls([_key_pair(ec.generate_private_key(_curve_of(algorithm)))])

    @classmethod
    def seeded(cls, random: Random) -> KeySet:
        """Derive a key from a seeded random generator, for simulated worlds only: it is not secret."""
        from cryptography.hazmat.primitives.asymmetric import ec

        # A valid private value is from 1 to the curve's order, which is a little less than 2**256.
        return cls([_key_pair(ec.derive_private_key(random.getrandbits(255) + 1, ec.SECP256R1()))])

    @classmethod
    def load(cls, *pems: bytes) -> KeySet:
        """Load the private and public keys of PEM files. Raises `ValueError` if there are none."""
        return cls([key for pem in pems for key in _read(pem)])

    @property
    def signer(self) -> SigningKey:
        """The key that signs new tokens. Raises `ValueError` if there is no private key."""
        for key in self.all:
            if key.private is not None:
                return key
        raise ValueError("no private key to sign with")

    def find(self, id: str) -> tuple[SigningKey, ...]:
        """Return the keys with a ``kid``; all keys if the ``kid`` is empty."""
        return tuple(key for key in self.all if not id or key.id == id)

    @property
    def pem(self) -> bytes:
        """The private signing key as PEM."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        private = self.signer.private
        assert private is not None
        return private.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())

    @property
    def public_pem(self) -> bytes:
        """The public part of the signing key as PEM."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return self.signer.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _key_pair(private: Private) -> SigningKey:
    return SigningKey(private.public_key(), private)


def _curve_of(algorithm: Algorithm) -> ec.EllipticCurve:
    from cryptography.hazmat.primitives.asymmetric import ec

    match algorithm:
        case "ES384":
            return ec.SECP384R1()
        case "ES512":
            return ec.SECP521R1()
    return ec.SECP256R1()


def _digest(algorithm: Algorithm) -> hashes.HashAlgorithm:
    from cryptography.hazmat.primitives import hashes

    match algorithm:
        case "ES384":
            return hashes.SHA384()
        case "ES512":
            return hashes.SHA512()
    return hashes.SHA256()


def _ecdsa(algorithm: Algorithm) -> ec.ECDSA:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        # Deterministic signatures keep simulated worlds reproducible.
        return ec.ECDSA(_digest(algorithm), deterministic_signing=True)
    except UnsupportedAlgorithm:
        # An OpenSSL before 3.2.
        return ec.ECDSA(_digest(algorithm))


def _read(pem: bytes) -> list[SigningKey]:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_der_private_key, load_der_public_key

    found = []
    for block in blocks(pem):
        if block.type in PRIVATE_KEYS:
            private = load_der_private_key(block.content, None)
            if not isinstance(private, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
                raise ValueError(f"unknown private key type {type(private).__name__}")
            found.append(_key_pair(private))
        elif block.type.endswith("PUBLIC KEY") or block.type == CERTIFICATE:
            public = (
                parse_certificate(block.content).public_key()
                if block.type == CERTIFICATE
                else load_der_public_key(block.content)
            )
            if not isinstance(public, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
                raise ValueError(f"unknown public key type {type(public).__name__}")
            found.append(SigningKey(public))
    return found
