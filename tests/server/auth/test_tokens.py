"""TokenRequest: what is minted, and what is refused in a real server's words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import msgspec
import pytest

from steersman.api.errors import ApiError
from steersman.api.generated.authentication_v1 import BoundObjectReference, TokenRequest, TokenRequestSpec
from steersman.api.generated.core_v1 import Node, Pod, PodSpec, Secret, ServiceAccount
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.jwt import Claims, Verifier
from steersman.api.signing_keys import KeySet, base64url_decode
from steersman.server.auth.lookup import ObjectLookup
from steersman.server.auth.service_accounts import token_user
from steersman.server.auth.tokens import IssuedToken, TokenIssuer

NOW = datetime(2026, 11, 15, 20, 50, 38, 123456, tzinfo=UTC)
AT = 1794775838
ISSUER = "https://kubernetes.default.svc"
KEYS = KeySet.generate()
OBJECTS: tuple[Any, ...] = (
    ServiceAccount(metadata=ObjectMeta(namespace="default", name="bot", uid="u-bot")),
    ServiceAccount(metadata=ObjectMeta(namespace="default", name="other", uid="u-other")),
    Secret(metadata=ObjectMeta(namespace="default", name="s", uid="u-s")),
    Node(metadata=ObjectMeta(name="n", uid="u-n")),
    Pod(
        metadata=ObjectMeta(namespace="default", name="p", uid="u-p"),
        spec=PodSpec(serviceAccountName="bot", nodeName="n"),
    ),
    Pod(
        metadata=ObjectMeta(namespace="default", name="lost", uid="u-l"),
        spec=PodSpec(serviceAccountName="bot", nodeName="gone"),
    ),
    Pod(
        metadata=ObjectMeta(namespace="default", name="waiting", uid="u-w"),
        spec=PodSpec(serviceAccountName="bot"),
    ),
)
THERE = {(f"{type(obj).__name__.lower()}s", *obj.key): obj for obj in OBJECTS}
LOOKUP = ObjectLookup(lambda *key: THERE.get(key))


def request(spec: TokenRequestSpec, *, name: str = "bot", **options: Any) -> IssuedToken:
    metadata = options.pop("metadata", ObjectMeta())
    mint = TokenIssuer(KEYS, ISSUER, (ISSUER,), **options)
    return mint.request(TokenRequest(metadata=metadata, spec=spec), "default", name, LOOKUP, NOW, Random(7))


def claims(minted: IssuedToken) -> Claims:
    found = Verifier(KEYS, [ISSUER]).read(minted.answer.status.token)
    assert found is not None
    return found


def ref(kind: str, name: str, uid: str = "", version: str = "v1") -> TokenRequestSpec:
    return TokenRequestSpec(
        boundObjectRef=BoundObjectReference(apiVersion=version, kind=kind, name=name, uid=uid)
    )


def test_a_plain_request_is_for_this_server_and_an_hour() -> None:
    answer = request(TokenRequestSpec()).answer
    meta = answer.metadata
    assert (meta.namespace, meta.name, meta.uid) == ("default", "bot", "u-bot")
    assert meta.creationTimestamp == NOW.replace(microsecond=0)
    assert (answer.spec.audiences, answer.spec.expirationSeconds) == ((ISSUER,), 3600)
    assert answer.status.expirationTimestamp == NOW.replace(microsecond=0) + timedelta(hours=1)
    _, payload, _ = answer.status.token.split(".")
    told = msgspec.json.decode(base64url_decode(payload))
    jti = told.pop("jti")
    assert jti[14] == "4"
    assert told == {
        "aud": [ISSUER],
        "exp": AT + 3600,
        "iat": AT,
        "iss": ISSUER,
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "bot", "uid": "u-bot"}},
        "nbf": AT,
        "sub": "system:serviceaccount:default:bot",
    }


def test_what_is_asked_for_is_given() -> None:
    minted = request(TokenRequestSpec(audiences=("vault", "x"), expirationSeconds=600))
    assert claims(minted).audiences == ("vault", "x")
    assert claims(minted).exp == AT + 600


@pytest.mark.parametrize(
    ("spec", "bound"),
    [
        (ref("Secret", "s"), {"secret": {"name": "s", "uid": "u-s"}}),
        (ref("Secret", "s", "u-s"), {"secret": {"name": "s", "uid": "u-s"}}),
        (ref("Node", "n"), {"node": {"name": "n", "uid": "u-n"}}),
        (ref("Pod", "p"), {"node": {"name": "n", "uid": "u-n"}, "pod": {"name": "p", "uid": "u-p"}}),
        (ref("Pod", "lost"), {"node": {"name": "gone"}, "pod": {"name": "lost", "uid": "u-l"}}),
        (ref("Pod", "waiting"), {"pod": {"name": "waiting", "uid": "u-w"}}),
    ],
)
def test_a_token_is_bound_to_the_object_it_refers_to(spec: TokenRequestSpec, bound: dict[str, Any]) -> None:
    minted = request(spec)
    told = msgspec.to_builtins(claims(minted).bound)
    account = {"namespace": "default", "serviceaccount": {"name": "bot", "uid": "u-bot"}}
    assert told == account | bound
    assert token_user(claims(minted), LOOKUP, NOW).uid == "u-bot"


@pytest.mark.parametrize(
    ("spec", "options", "lives", "warns"),
    [
        (ref("Pod", "p"), {}, 365 * 24 * 3600, 3607),
        (ref("Pod", "p"), {"extend_expiration": False}, 3607, None),
        (ref("Secret", "s"), {}, 3607, None),
        (msgspec.structs.replace(ref("Pod", "p"), audiences=("vault",)), {}, 3607, None),
    ],
)
def test_what_pods_are_given_lives_for_a_year_and_warns_after_an_hour(
    spec: TokenRequestSpec, options: dict[str, Any], lives: int, warns: int | None
) -> None:
    minted = request(msgspec.structs.replace(spec, expirationSeconds=3607), **options)
    told = claims(minted)
    assert told.bound is not None
    assert told.exp == AT + lives
    assert told.bound.warnafter == (None if warns is None else AT + warns)
    # Whoever asked is told what they asked for.
    assert minted.answer.status.expirationTimestamp == NOW.replace(microsecond=0) + timedelta(seconds=3607)


def test_a_server_may_shorten_what_is_asked_for() -> None:
    minted = request(TokenRequestSpec(expirationSeconds=90000), max_seconds=7200)
    assert minted.warnings == ("requested expiration of 90000 seconds shortened to 7200 seconds",)
    assert minted.answer.spec.expirationSeconds == 7200
    assert claims(minted).exp == AT + 7200
    assert request(TokenRequestSpec(expirationSeconds=7200), max_seconds=7200).warnings == ()


def test_the_same_seed_mints_the_same_token() -> None:
    assert request(ref("Pod", "p")) == request(ref("Pod", "p"))


@pytest.mark.parametrize(
    ("spec", "options", "code", "message"),
    [
        (
            TokenRequestSpec(expirationSeconds=599),
            {},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599:'
            " may not specify a duration less than 10 minutes",
        ),
        (
            TokenRequestSpec(expirationSeconds=2**32 + 1),
            {},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297:'
            " may not specify a duration larger than 2^32 seconds",
        ),
        (TokenRequestSpec(), {"name": "nope"}, 404, 'serviceaccounts "nope" not found'),
        (
            TokenRequestSpec(),
            {"metadata": ObjectMeta(name="other")},
            422,
            'TokenRequest.authentication.k8s.io "bot" is invalid: metadata.name: Invalid value: "other":'
            " must match the service account name if specified",
        ),
        (
            TokenRequestSpec(),
            {"metadata": ObjectMeta(namespace="other")},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            TokenRequestSpec(),
            {"metadata": ObjectMeta(uid="other")},
            409,
            'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "bot": the UID in the token'
            " request (other) does not match the UID of the service account (u-bot)",
        ),
        (ref("Pod", "nope"), {}, 404, 'pods "nope" not found'),
        (ref("Node", "nope"), {}, 404, 'nodes "nope" not found'),
        (ref("Secret", "nope"), {}, 404, 'secrets "nope" not found'),
        (ref("ConfigMap", "x"), {}, 400, "cannot bind token to object of type /v1, Kind=ConfigMap"),
        (
            ref("Deployment", "x", version="apps/v1"),
            {},
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
        ),
        (
            ref("Secret", "s", "u"),
            {},
            409,
            'Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (u) does not match'
            " the UID in record. The object might have been deleted and then recreated",
        ),
        (
            ref("Pod", "p"),
            {"name": "other"},
            400,
            'cannot bind token for serviceaccount "other" to pod running with different serviceaccount name.',
        ),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_in_upstreams_words(
    spec: TokenRequestSpec, options: dict[str, Any], code: int, message: str
) -> None:
    with pytest.raises(ApiError) as refused:
        request(spec, **options)
    assert (refused.value.code, refused.value.message) == (code, message)
