"""The two documents by which anybody can check this server's tokens: OpenID discovery, and the keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from steersman.api.signing_keys import Keys

CONFIGURATION = "/.well-known/openid-configuration"
KEYSET = "/openid/v1/jwks"

_CACHE = "public, max-age=3600"


class Document(NamedTuple):
    """An answer that is always the same."""

    body: bytes
    content_type: str
    cache_control: str = _CACHE


def documents(keys: Keys, issuer: str, keyset: str) -> Mapping[str, Document]:
    """What to serve at which path. ``keyset`` is the URL under which others reach `KEYSET`.

    Raises `ValueError` for an issuer that OpenID does not allow.
    """
    if not issuer.startswith("https://"):
        raise ValueError(f"issuer URL must use https scheme, got: {issuer}")
    for mark, part in (("?", "query"), ("#", "fragment")):
        if mark in issuer:
            raise ValueError(f"issuer URL may not include a {part}, got: {issuer}")
    if not keyset.startswith("https://"):
        raise ValueError(f"jwksURI requires https scheme, parsed as: {keyset}")
    configuration = {
        "issuer": issuer,
        "jwks_uri": keyset,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted(dict.fromkeys(key.algorithm for key in keys.all)),
    }
    return {
        CONFIGURATION: Document(msgspec.json.encode(configuration), "application/json"),
        KEYSET: Document(
            msgspec.json.encode({"keys": [key.jwk for key in keys.all]}), "application/jwk-set+json"
        ),
    }
