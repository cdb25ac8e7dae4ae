"""ServiceAccount tokens: accepted exactly when PyJWT accepts them with the same keys, and with the same claims.

An input is either a token, or a recipe for one: the header on the first line, the payload on the next ones, and the key that
signs on the last one, since mutation would never find a signature. PyJWT is the more lenient of the two: `reason_to_refuse`
lists what only it accepts.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from functools import cache
from random import Random
from typing import Any

import jwt as pyjwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import strategies as st

from steersman.api.jwt import Claims, InvalidCredential, Verifier
from steersman.api.signing_keys import KeySet, SigningKey, base64url_decode, base64url_encode
from tests.fuzz.target import Target

ISSUER = "https://kubernetes.default.svc"
UNCHECKED = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
"""Claims that the verifier leaves to its callers."""


def derived(curve: ec.EllipticCurve) -> SigningKey:
    """A key that is the same in every process, so that tokens of the corpus keep their signatures."""
    private = ec.derive_private_key(Random(curve.name).getrandbits(250) + 1, curve)
    return SigningKey(private.public_key(), private)


@cache
def keys() -> dict[bytes, SigningKey]:
    """The keys that the server accepts, by the letter that selects them in a recipe."""
    return {
        b"2": derived(ec.SECP256R1()),
        b"3": derived(ec.SECP384R1()),
        b"5": derived(ec.SECP521R1()),
        b"r": KeySet.generate("RS256").signer,
    }


@cache
def verifier() -> Verifier:
    return Verifier(KeySet(keys().values()), [ISSUER])


def token_of(data: bytes) -> str:
    """The token of an input; what follows the letter on the last line of a recipe is appended to the token."""
    header, newline, rest = data.partition(b"\n")
    if not newline:
        return data.decode("utf-8", "surrogateescape")
    payload, _, how = rest.rpartition(b"\n")
    text = f"{base64url_encode(header)}.{base64url_encode(payload)}"
    letter = how[:1]
    if letter in keys():
        signature = keys()[letter].sign(text.encode())
    elif letter == b"h":
        # The public key is no secret: it must not serve as one.
        secret = KeySet([keys()[b"2"]]).public_pem
        signature = hmac.new(secret, text.encode(), hashlib.sha256).digest()
    else:
        signature = b""
    return f"{text}.{base64url_encode(signature)}{how[1:].decode('utf-8', 'surrogateescape')}"


def oracle_claims(token: str) -> dict[str, Any] | None:
    """The claims of a token that PyJWT accepts."""
    try:
        kid = pyjwt.get_unverified_header(token).get("kid", "")
    except (pyjwt.PyJWTError, UnicodeError, RecursionError):
        return None
    for key in KeySet(keys().values()).find(kid):
        options: Any = {f"verify_{name}": False for name in UNCHECKED}
        try:
            claims: dict[str, Any] = pyjwt.decode(token, key.public, [key.algorithm], options)
        except (pyjwt.PyJWTError, UnicodeError, RecursionError):
            continue
        return claims
    return None


def reason_to_refuse(token: str, claims: dict[str, Any]) -> str:
    """Why a token that PyJWT accepts is refused; empty if there is no reason."""
    segments = token.split(".")
    try:
        header, payload, _ = map(base64url_decode, segments)
    except ValueError:
        return "base64 that is not canonical"
    if not (is_utf8_json(header) and is_utf8_json(payload)):
        return "JSON in another encoding, or with NaN"
    if json.loads(header).get("crit") is not None:
        return "critical extensions"
    if claims.get("iss") != ISSUER:
        return "another issuer"
    if repeats_a_member(header) or repeats_a_member(payload):
        return "a member twice, which each reader may take from another place"
    try:
        msgspec.convert(claims, Claims)
    except msgspec.ValidationError:
        return "a claim of another type"
    return ""


def repeats_a_member(raw: bytes) -> bool:
    found = []

    def members(pairs: list[tuple[str, Any]]) -> None:
        found.append(len(dict(pairs)) < len(pairs))

    json.loads(raw, object_pairs_hook=members)
    return any(found)


def is_utf8(segment: str) -> bool:
    try:
        base64url_decode(segment).decode()
    except UnicodeDecodeError:
        return False
    return True


def is_utf8_json(raw: bytes) -> bool:
    try:
        document = json.loads(raw.decode(), parse_constant=float)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def check(data: bytes) -> None:
    token = token_of(data)
    try:
        ours = Verifier(KeySet(keys().values()), [ISSUER]).read(token)
    except InvalidCredential as error:
        assert all(len(text) < 500 for text in error.errors)
        ours = None
    theirs = oracle_claims(token)
    if ours is None:
        assert theirs is None or reason_to_refuse(token, theirs), "refused, but PyJWT accepts it"
        return
    if theirs is None:
        # Members that are not read may hold anything, as in Go.
        assert not all(map(is_utf8, token.split(".")[:2])), "accepted, but PyJWT refuses it"
        return
    assert ours.iss == theirs["iss"] == ISSUER
    assert ours.sub == theirs.get("sub", "")
    assert ours.exp == theirs.get("exp")
    assert ours.jti == theirs.get("jti", "")
    assert list(ours.audiences) == (
        [theirs["aud"]] if isinstance(theirs.get("aud"), str) else theirs.get("aud") or []
    )


HEADERS = st.sampled_from(
    [
        b'{"alg":"ES256"}', b'{"alg":"ES384"}', b'{"alg":"ES512"}', b'{"alg":"RS256"}', b'{"alg":"none"}', b'{"alg":"HS256"}', b"{}", b"[]",
        b'{"alg":"es256"}', b'{"alg":"ES256","alg":"none"}', b'{"alg":"none","alg":"ES256"}', b'{"alg":["ES256"]}', b'{"alg":null}',
        b'{"alg":"ES256","crit":["b64"],"b64":false}', b'{"alg":"ES256","b64":false}', b'{"alg":"ES256","crit":[]}', b'{"Alg":"ES256"}',
        b'{"alg":"ES256","kid":""}', b'{"alg":"ES256","kid":null}', b'{"alg":"ES256","kid":"other"}', b'{"alg":"ES256","typ":"at+jwt"}',
        b'{"alg":"ES256","jwk":{"kty":"EC"}}', b'\xef\xbb\xbf{"alg":"ES256"}', b'{"alg":"PS256"}', b'{"alg":"ES256","x":"\xff"}',
    ]
)  # fmt: skip
CLAIMS = st.lists(
    st.sampled_from(
        [
            b'"iss":"%b"' % ISSUER.encode(), b'"iss":"%b"' % ISSUER.encode(), b'"iss":"other"', b'"iss":null', b'"sub":"a"', b'"sub":7',
            b'"sub":"\xff"', b'"sub":"\\ud800"', b'"aud":"a"', b'"aud":["a","b"]', b'"aud":[1]', b'"exp":1e300', b'"exp":-1', b'"exp":"soon"',
            b'"exp":' + b"9" * 30, b'"exp":1e999', b'"exp":NaN', b'"kubernetes.io":{"namespace":"a"}', b'"kubernetes.io":[]', b'"nbf":true',
            b'"x":' + b"[" * 1200 + b"]" * 1200,
        ]
    ),
    max_size=4,
).map(lambda members: b"{" + b",".join(members) + b"}")  # fmt: skip
KEYS = st.sampled_from([b"2", b"2", b"3", b"5", b"r", b"h", b"n", b"2=", b"2==", b"2A", b"2.", b"2\n", b"2 "])
GOOD = b'{"alg":"ES256"}\n{"iss":"https://kubernetes.default.svc","sub":"a","aud":["b"],"exp":1794779438}\n2'


TARGET = Target(
    name="jwt",
    check=check,
    seeds=(
        GOOD,
        GOOD.replace(b"ES256", b"ES384")[:-1] + b"3",
        GOOD.replace(b"ES256", b"RS256")[:-1] + b"r",
        b"eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMifQ.",
    ),
    strategy=st.tuples(HEADERS, CLAIMS, KEYS).map(b"\n".join),
    dictionary=(
        b'"alg":', b'"ES256"', b'"ES384"', b'"RS256"', b'"HS256"', b'"none"', b'"kid":', b'"crit":', b'"b64":', b'"iss":', b'"sub":', b'"exp":',
        b'"aud":', b'"kubernetes.io":', b"{", b"}", b"[", b"]", b",", b"=", b"==", b".", b"\n2", b"\n3", b"\nr", b"\nh", b"\nn", b"\xff", b"\\ud800",
    ),
    seconds_per_byte=100e-6,
)  # fmt: skip
