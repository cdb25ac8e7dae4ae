"""The documents others check tokens with."""

from __future__ import annotations

import json

import pytest

from steersman.api.signing_keys import KeySet
from steersman.server.auth.tokens import openid_documents

ISSUER = "https://kubernetes.default.svc"
KEYSET = "https://127.0.0.1:6443/openid/v1/jwks"
KEYS = KeySet([*KeySet.generate("ES384").all, *KeySet.generate("ES256").all])


def test_the_configuration_is_upstreams_byte_for_byte() -> None:
    document = openid_documents(KEYS, ISSUER, KEYSET)["/.well-known/openid-configuration"]
    assert document.body.decode() == (
        '{"issuer":"https://kubernetes.default.svc","jwks_uri":"https://127.0.0.1:6443/openid/v1/jwks",'
        '"response_types_supported":["id_token"],"subject_types_supported":["public"],'
        '"id_token_signing_alg_values_supported":["ES256","ES384"]}'
    )
    assert (document.content_type, document.cache_control) == ("application/json", "public, max-age=3600")


def test_the_key_set_has_every_public_key_and_nothing_else() -> None:
    document = openid_documents(KEYS, ISSUER, KEYSET)["/openid/v1/jwks"]
    assert document.content_type == "application/jwk-set+json"
    keys = json.loads(document.body)["keys"]
    assert [key["kid"] for key in keys] == [key.id for key in KEYS.all]
    assert [list(key) for key in keys] == [["use", "kty", "kid", "crv", "alg", "x", "y"]] * 2


@pytest.mark.parametrize(
    ("issuer", "keyset", "error"),
    [
        ("http://x", KEYSET, "issuer URL must use https scheme, got: http://x"),
        ("https://x?q", KEYSET, "issuer URL may not include a query, got: https://x"),
        ("https://x#f", KEYSET, "issuer URL may not include a fragment, got: https://x#f"),
        (ISSUER, "http://x", "jwksURI requires https scheme, parsed as: http://x"),
    ],
)
def test_an_issuer_that_openid_does_not_allow_is_an_error(issuer: str, keyset: str, error: str) -> None:
    with pytest.raises(ValueError, match=error.split("?")[0]):
        openid_documents(KEYS, issuer, keyset)
