"""Signs and verifies JSON Web Tokens of ServiceAccounts, in compact form.

Verified claims are cached by the token's digest, because verifying a signature costs more than the rest of a
request. Expiry and the existence of the account are not cached; they are checked for each request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.signing_keys import KeySet, SigningKey, base64url_decode, base64url_encode


class InvalidCredential(Exception):
    """A credential that was presented is invalid. The reasons are for the log, not for the client."""

    def __init__(self, *errors: str) -> None:
        super().__init__(*errors)
        self.errors = errors


class BoundObjectRef(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reference to an object that a token is bound to."""

    name: str = ""
    uid: str = ""


class KubernetesClaim(msgspec.Struct, frozen=True, omit_defaults=True):
    """The ``kubernetes.io`` claim: the ServiceAccount, and the objects the token is bound to."""

    namespace: str = ""
    node: BoundObjectRef | None = None
    pod: BoundObjectRef | None = None
    secret: BoundObjectRef | None = None
    serviceaccount: BoundObjectRef | None = None
    warnafter: int | float | None = None


class Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The claims of a token. Fields are in upstream's order."""

    aud: str | tuple[str, ...] | None = None
    exp: int | float | None = None
    iat: int | float | None = None
    iss: str = ""
    jti: str = ""
    bound: KubernetesClaim | None = msgspec.field(default=None, name="kubernetes.io")
    legacy_namespace: str = msgspec.field(default="", name="kubernetes.io/serviceaccount/namespace")
    legacy_secret: str = msgspec.field(default="", name="kubernetes.io/serviceaccount/secret.name")
    legacy_account: str = msgspec.field(default="", name="kubernetes.io/serviceaccount/service-account.name")
    legacy_uid: str = msgspec.field(default="", name="kubernetes.io/serviceaccount/service-account.uid")
    nbf: int | float | None = None
    sub: str = ""

    @property
    def audiences(self) -> tuple[str, ...]:
        return (self.aud,) if isinstance(self.aud, str) else self.aud or ()


class _Header(msgspec.Struct):
    alg: str = ""
    kid: str = ""
    crit: Any = None
    b64: Any = True


class _Issued(msgspec.Struct):
    iss: str = ""


# Malformed JSON or UTF-8, an unexpected type, nested too deeply.
_DECODE_ERRORS = (msgspec.DecodeError, ValueError, RecursionError)

_header = msgspec.json.Decoder(_Header)
_issued = msgspec.json.Decoder(_Issued)
_claims = msgspec.json.Decoder(Claims)


def token_digest(token: str) -> bytes:
    """Return the digest that identifies a token in caches, which must not hold the token itself."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def encode(claims: Claims, key: SigningKey) -> str:
    """Return a signed token."""
    head = msgspec.json.encode({"alg": key.algorithm, "kid": key.id})
    text = f"{base64url_encode(head)}.{base64url_encode(msgspec.json.encode(claims))}"
    return f"{text}.{base64url_encode(key.sign(text.encode()))}"


class Verifier:
    """Verifies tokens that one of its keys signed for one of its issuers."""

    def __init__(self, keys: KeySet, issuers: Sequence[str]) -> None:
        self._keys = keys
        self._issuers = tuple(issuers)
        self._verified: BoundedCache[bytes, Claims] = BoundedCache(4096)

    def read(self, token: str, key: bytes = b"") -> Claims | None:
        """Return the claims of a token; None if it is not from these issuers. Raises `InvalidCredential`.

        ``key`` is the token's `token_digest`, if the caller has it already.
        """
        key = key or token_digest(token)
        claims = self._verified.get(key)
        if claims is None:
            claims = self._verify(token)
            if claims is not None:
                self._verified.put(key, claims)
        return claims

    def _verify(self, token: str) -> Claims | None:
        parts = token.split(".")
        if len(parts) != 3:
            return None
        try:
            payload, signature = base64url_decode(parts[1]), base64url_decode(parts[2])
            # The signature is not verified yet: this only recognizes tokens of other issuers.
            if _issued.decode(payload).iss not in self._issuers:
                return None
            header = _header.decode(base64url_decode(parts[0]))
        except _DECODE_ERRORS:
            return None
        candidates = self._keys.find(header.kid)
        if not candidates:
            raise InvalidCredential("invalid signature, no keys found")
        signed = f"{parts[0]}.{parts[1]}".encode()
        # A token with critical extensions ("crit") must be refused, as none is supported, and so must a payload that
        # is signed as it is ("b64" is false): this one is signed in base64.
        understood = header.crit is None and header.b64 is True
        for key in candidates:
            if understood and header.alg == key.algorithm and key.verifies(signature, signed):
                break
        else:
            raise InvalidCredential("go-jose/go-jose: error in cryptographic primitive")
        try:
            return _claims.decode(payload)
        except _DECODE_ERRORS as error:
            raise InvalidCredential(f"claims cannot be read: {error}") from None
