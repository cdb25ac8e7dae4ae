"""Tokens: only what one of our keys signed in its own way is believed."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import msgspec
import pytest

from steersman.api.jwt import BoundObjectRef, Claims, InvalidCredential, KubernetesClaim, Verifier, encode
from steersman.api.signing_keys import KeySet, SigningKey, base64url_decode, base64url_encode

ISSUER = "https://kubernetes.default.svc"
KEYS = KeySet.generate()
CLAIMS = Claims(
    aud=(ISSUER,),
    exp=1794779438,
    iat=1794775838,
    iss=ISSUER,
    jti="2889f068-7704-4a59-8299-2d930ac68d6f",
    bound=KubernetesClaim(namespace="default", serviceaccount=BoundObjectRef("bot", "u1")),
    nbf=1794775838,
    sub="system:serviceaccount:default:bot",
)

DEEP = b'{"a":' + b"[" * 5000


def part(document: Any) -> str:
    return base64url_encode(json.dumps(document, separators=(",", ":")).encode())


def signed(header: dict[str, Any], payload: Any) -> str:
    text = f"{part(header)}.{part(payload)}"
    return f"{text}.{base64url_encode(KEYS.signer.sign(text.encode()))}"


def test_a_token_has_exactly_the_shape_of_upstreams() -> None:
    header, payload, _ = encode(CLAIMS, KEYS.signer).split(".")
    assert base64url_decode(header).decode() == f'{{"alg":"ES256","kid":"{KEYS.signer.id}"}}'
    assert base64url_decode(payload).decode() == (
        '{"aud":["https://kubernetes.default.svc"],"exp":1794779438,"iat":1794775838,'
        '"iss":"https://kubernetes.default.svc","jti":"2889f068-7704-4a59-8299-2d930ac68d6f",'
        '"kubernetes.io":{"namespace":"default","serviceaccount":{"name":"bot","uid":"u1"}},'
        '"nbf":1794775838,"sub":"system:serviceaccount:default:bot"}'
    )


def test_a_token_is_read_back() -> None:
    verifier = Verifier(KEYS, ["other", ISSUER])
    assert verifier.read(encode(CLAIMS, KEYS.signer)) == CLAIMS


def test_a_token_without_a_key_id_is_tried_with_every_key() -> None:
    both = KeySet.load(KeySet.generate().public_pem, KEYS.public_pem)
    token = signed({"alg": "ES256"}, {"iss": ISSUER, "sub": "x"})
    claims = Verifier(both, [ISSUER]).read(token)
    assert claims is not None
    assert claims.sub == "x"


@pytest.mark.parametrize(
    "token",
    [
        "",
        "abc",
        "a.b",
        "a.b.c.d",
        "!.!.!",
        f"{part({'alg': 'ES256'})}.{part(['iss'])}.x",
        f"{part({'alg': 'ES256'})}.{part({'iss': 'https://elsewhere'})}.AAAA",
        f"{part({'alg': 'ES256', 'kid': 7})}.{part({'iss': ISSUER})}.AAAA",
        "ä.ö.ü",
        # Too deep to parse, before any signature is verified.
        f"{part({'alg': 'ES256'})}.{base64url_encode(DEEP)}.AAAA",
    ],
)
def test_what_is_no_token_of_ours_is_left_to_others(token: str) -> None:
    assert Verifier(KEYS, [ISSUER]).read(token) is None


def test_a_signature_by_an_unknown_key_is_refused() -> None:
    token = encode(CLAIMS, KeySet.generate().signer)
    with pytest.raises(InvalidCredential) as refused:
        Verifier(KEYS, [ISSUER]).read(token)
    assert refused.value.errors == ("invalid signature, no keys found",)


def tampered() -> list[str]:
    header, payload, signature = encode(CLAIMS, KEYS.signer).split(".")
    more = json.loads(base64url_decode(payload)) | {"sub": "system:serviceaccount:kube-system:root"}
    # The public key is no secret: it must not serve as one.
    mac = hmac.new(KEYS.public_pem, f"{part({'alg': 'HS256'})}.{payload}".encode(), hashlib.sha256).digest()
    return [
        f"{header}.{part(more)}.{signature}",
        f"{header}.{payload}.{base64url_encode(bytes(64))}",
        f"{header}.{payload}.",
        f"{part({'alg': 'none'})}.{payload}.",
        f"{part({'alg': 'HS256'})}.{payload}.{base64url_encode(mac)}",
        f"{part({'alg': 'ES384'})}.{payload}.{signature}",
        signed({"alg": "none"}, {"iss": ISSUER}),
        signed({"alg": "ES256", "crit": ["exp"], "exp": 1}, {"iss": ISSUER}),
        signed({"alg": "ES256", "b64": False}, {"iss": ISSUER}),
    ]


@pytest.mark.parametrize("token", tampered())
def test_what_was_tampered_with_is_refused(token: str) -> None:
    with pytest.raises(InvalidCredential, match="cryptographic"):
        Verifier(KEYS, [ISSUER]).read(token)


def test_claims_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidCredential, match="claims cannot be read"):
        Verifier(KEYS, [ISSUER]).read(signed({"alg": "ES256"}, {"iss": ISSUER, "exp": "soon"}))


def test_claims_that_are_not_utf_8_are_refused() -> None:
    payload = b'{"iss":"%b","sub":"\xff"}' % ISSUER.encode()
    text = f"{part({'alg': 'ES256'})}.{base64url_encode(payload)}"
    with pytest.raises(InvalidCredential, match="claims cannot be read"):
        Verifier(KEYS, [ISSUER]).read(f"{text}.{base64url_encode(KEYS.signer.sign(text.encode()))}")


@pytest.mark.parametrize(
    ("aud", "audiences"), [("a", ("a",)), (["a", "b"], ("a", "b")), (None, ()), ([], ())]
)
def test_audiences_may_be_one_or_many(aud: Any, audiences: tuple[str, ...]) -> None:
    claims = Verifier(KEYS, [ISSUER]).read(signed({"alg": "ES256"}, {"iss": ISSUER, "aud": aud}))
    assert claims is not None
    assert claims.audiences == audiences


class Counted(SigningKey, frozen=True, eq=False, dict=True, kw_only=True):
    """A key that remembers what it was asked to check."""

    checked: list[bytes] = msgspec.field(default_factory=list)

    def verifies(self, signature: bytes, data: bytes) -> bool:
        self.checked.append(signature)
        return super().verifies(signature, data)


def test_a_good_signature_is_checked_once_and_a_bad_one_each_time() -> None:
    key = Counted(KEYS.signer.public, KEYS.signer.private)
    verifier = Verifier(KeySet([key]), [ISSUER])
    good, bad = encode(CLAIMS, KEYS.signer), tampered()[0]
    for _ in range(3):
        assert verifier.read(good) == CLAIMS
    assert len(key.checked) == 1
    for _ in range(2):
        with pytest.raises(InvalidCredential):
            verifier.read(bad)
    assert len(key.checked) == 3
