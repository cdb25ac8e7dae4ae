"""Whose token is this, and who am I."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec
import pytest

from steersman.api.errors import BadRequest
from steersman.api.generated.authentication_v1 import TokenRequest, TokenReview, TokenReviewSpec
from steersman.api.generated.core_v1 import ServiceAccount
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.signing_keys import KeySet
from steersman.server.auth.authentication import Authenticator
from steersman.server.auth.lookup import ObjectLookup
from steersman.server.auth.reviews import self_subject_review, token_review
from steersman.server.auth.tokens import TokenIssuer
from steersman.server.auth.users import User

NOW = datetime(2026, 11, 15, 20, 50, 38, 123456, tzinfo=UTC)
ISSUER = "https://kubernetes.default.svc"
KEYS = KeySet.generate()
BOT = ServiceAccount(metadata=ObjectMeta(namespace="ns", name="bot", uid="u-bot"))
LOOKUP = ObjectLookup(lambda *key: BOT if key == ("serviceaccounts", "ns", "bot") else None)
AUTHENTICATOR = Authenticator(LOOKUP, keys=KEYS, issuers=[ISSUER])
TOKEN = (
    TokenIssuer(KEYS, ISSUER, (ISSUER,))
    .request(TokenRequest(), "ns", "bot", LOOKUP, NOW, Random(1))
    .answer.status.token
)


def written(obj: object) -> Any:
    """As it is on the wire."""
    return msgspec.json.decode(msgspec.json.encode(obj))


def review(token: str, *audiences: str) -> dict[str, Any]:
    body = TokenReview(spec=TokenReviewSpec(token=token, audiences=audiences))
    answer = token_review(body, AUTHENTICATOR, NOW)
    assert answer.spec == body.spec
    status: dict[str, Any] = written(answer.status)
    return status


def test_a_token_is_told_by_its_bearer_and_for_whom_it_is_meant() -> None:
    status = review(TOKEN)
    (credential,) = status["user"].pop("extra").values()
    assert credential[0].startswith("JTI=")
    assert status == {
        "authenticated": True,
        "user": {
            "username": "system:serviceaccount:ns:bot",
            "uid": "u-bot",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
        },
        "audiences": [ISSUER],
    }


@pytest.mark.parametrize(
    ("token", "audiences", "error"),
    [
        ("x", (), "invalid bearer token"),
        (
            TOKEN,
            ("x",),
            f'[invalid bearer token, token audiences ["{ISSUER}"] is invalid for the target audiences ["x"]]',
        ),
        (
            TOKEN[:-6] + "AAAAAA",
            (),
            "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]",
        ),
    ],
    # Tokens are drawn anew in each process, and tests must be called the same in all of them.
    ids=("nonsense", "for others", "forged"),
)
def test_a_token_that_does_not_hold_is_told_with_the_reason(
    token: str, audiences: tuple[str, ...], error: str
) -> None:
    assert review(token, *audiences) == {"user": {}, "error": error}


def test_a_token_of_white_space_has_no_user() -> None:
    # An oddity of upstream: no token at all is left of the header, and that is no crime.
    assert review(" ") == {
        "authenticated": True,
        "user": {"username": "system:anonymous", "groups": ["system:unauthenticated"]},
        "audiences": [ISSUER],
    }


def test_a_review_needs_a_token() -> None:
    with pytest.raises(BadRequest) as refused:
        review("")
    assert refused.value.message == "token is required for TokenReview in authentication"


def test_one_may_ask_who_one_is() -> None:
    user = User("ann", "7", ("dev",), {"acme.io/a": ("b",)})
    assert written(self_subject_review(user, NOW)) == {
        "metadata": {"creationTimestamp": "2026-11-15T20:50:38Z"},
        "status": {
            "userInfo": {"username": "ann", "uid": "7", "groups": ["dev"], "extra": {"acme.io/a": ["b"]}}
        },
    }
