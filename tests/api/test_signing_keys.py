"""Keys: every algorithm signs, checks, survives being written down, and is told from the others."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from steersman.api.signing_keys import Algorithm, KeySet, SigningKey, base64url_decode, base64url_encode
from steersman.server.auth.ca import self_signed

RSA = KeySet.generate("RS256")
ALGORITHMS: tuple[Algorithm, ...] = ("RS256", "ES256", "ES384", "ES512")


def keys_of(algorithm: Algorithm) -> KeySet:
    """RSA keys take long to make, so there is one for all tests."""
    return RSA if algorithm == "RS256" else KeySet.generate(algorithm)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_key_checks_its_own_signatures_and_no_others(algorithm: Algorithm) -> None:
    key = keys_of(algorithm).signer
    signature = key.sign(b"data")
    assert key.algorithm == algorithm
    assert key.verifies(signature, b"data")
    assert not key.verifies(signature, b"date")
    assert not key.verifies(signature[:-1] + bytes([signature[-1] ^ 1]), b"data")
    assert not key.verifies(signature[:-1], b"data")
    assert not key.verifies(b"", b"data")
    other = KeySet.generate().signer
    assert not other.verifies(signature, b"data")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_data_is_signed_the_same_way_every_time(algorithm: Algorithm) -> None:
    key = keys_of(algorithm).signer
    assert key.sign(b"data") == key.sign(b"data")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_key_comes_back_from_its_file(algorithm: Algorithm) -> None:
    keys = keys_of(algorithm)
    again = KeySet.load(keys.pem)
    assert again.signer.id == keys.signer.id
    assert again.signer.verifies(keys.signer.sign(b"data"), b"data")
    public = KeySet.load(keys.public_pem)
    assert public.all[0].id == keys.signer.id
    with pytest.raises(ValueError, match="no private key"):
        _ = public.signer


@pytest.mark.parametrize(
    ("algorithm", "fields"),
    [
        ("RS256", {"kty": "RSA", "e": "AQAB"}),
        ("ES256", {"kty": "EC", "crv": "P-256"}),
        ("ES384", {"kty": "EC", "crv": "P-384"}),
        ("ES512", {"kty": "EC", "crv": "P-521"}),
    ],
)
def test_a_public_key_is_told_as_a_json_web_key(algorithm: Algorithm, fields: dict[str, str]) -> None:
    key = keys_of(algorithm).signer
    jwk = key.jwk
    assert jwk.items() >= {"use": "sig", "alg": algorithm, "kid": key.id, **fields}.items()
    if algorithm.startswith("ES"):
        size = {"P-256": 32, "P-384": 48, "P-521": 66}[jwk["crv"]]
        assert [len(base64url_decode(jwk[part])) for part in ("x", "y")] == [size, size]


def test_several_keys_are_read_from_one_file_and_the_first_private_one_signs() -> None:
    old, new = KeySet.generate(), KeySet.generate()
    keys = KeySet.load(old.public_pem + new.pem, new.public_pem)
    assert [key.id for key in keys.all] == [old.signer.id, new.signer.id]
    assert keys.signer.id == new.signer.id
    assert [key.id for key in keys.find(old.signer.id)] == [old.signer.id]
    assert keys.find("") == keys.all
    assert keys.find("unknown") == ()


def test_a_certificate_counts_as_the_key_in_it() -> None:
    pair = self_signed("ca", datetime(2026, 1, 1, tzinfo=UTC))
    assert KeySet.load(pair.cert).all[0].id == KeySet.load(pair.key).signer.id


def test_a_key_of_one_seed_is_always_the_same() -> None:
    assert KeySet.seeded(Random(7)).pem == KeySet.seeded(Random(7)).pem
    assert KeySet.seeded(Random(7)).signer.id != KeySet.seeded(Random(8)).signer.id


def test_a_file_without_keys_is_an_error() -> None:
    with pytest.raises(ValueError, match="no keys"):
        KeySet.load(b"nothing here")


def test_a_curve_nobody_signs_tokens_with_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown private key curve"):
        _ = SigningKey(ec.generate_private_key(ec.SECP256K1()).public_key()).algorithm


@pytest.mark.parametrize("text", ["YQ==", "YR", "Y Q", "a+b/", "ä", "Y"])
def test_base64_of_tokens_has_one_spelling(text: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        base64url_decode(text)


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"\xff\xfe\xfd"])
def test_base64_of_tokens_goes_both_ways(data: bytes) -> None:
    assert base64url_decode(base64url_encode(data)) == data
