"""bootstrap-signer and token-cleaner, row by row."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from steersman.api.errors import Conflict, NotFound
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.config import ConfigMap, Secret
from steersman.controllers.bootstrap import CLUSTER_INFO, delete_expired, signature, signer, signing_token
from steersman.intent.actions import Delete, Update
from steersman.intent.verdict import Rest, Wake
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ABC = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9"  # {"alg":"HS256","kid":"abcdef"}


def token(name: str = "bootstrap-token-abcdef", **data: str) -> Secret:
    values = {
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-signing": "true",
        **{key.replace("_", "-"): value for key, value in data.items()},
    }
    return Secret(
        metadata=ObjectMeta(name=name, namespace="kube-system", uid="t", resourceVersion="3"),
        type="bootstrap.kubernetes.io/token",
        data={key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    )


def info(**data: str) -> ConfigMap:
    meta = ObjectMeta(name=CLUSTER_INFO.name, namespace=CLUSTER_INFO.namespace, uid="i", resourceVersion="2")
    return ConfigMap(metadata=meta, data={key.replace("_", "-"): value for key, value in data.items()})


def sign(*objects: ConfigMap | Secret):  # type: ignore[no-untyped-def]
    seen = signer.see(StaticCaches(signer, *objects), CLUSTER_INFO)
    assert seen is not None
    return walk(signer.decide(seen, NOW))


def test_the_signature_is_the_one_that_kubeadm_checks() -> None:
    # Made with k8s.io/cluster-bootstrap/token/jws, as its own test has it.
    assert (
        signature(
            "Hello from the other side. I must have called a thousand times.",
            "joshua",
            b"my voice is my passcode",
        )
        == "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"
    )


def test_every_token_that_may_signs_and_what_others_signed_goes() -> None:
    actions, verdict = sign(info(kubeconfig="x", jws_kubeconfig_gone00="old", other="stays"), token())
    (update,) = actions
    assert isinstance(update, Update)
    data = update.target.data
    assert set(data) == {"kubeconfig", "other", "jws-kubeconfig-abcdef"}
    assert data["jws-kubeconfig-abcdef"].startswith(f"{ABC}..")
    assert update.target.metadata.resourceVersion == "2"
    assert verdict == Rest("cluster-info signed by all signing tokens")


def test_what_is_signed_is_left_alone() -> None:
    right = signature("x", "abcdef", b"0123456789abcdef")
    assert sign(info(kubeconfig="x", jws_kubeconfig_abcdef=right), token())[0] == []


@pytest.mark.parametrize(
    "secret",
    [
        token("bootstrap-token-ABCDEF"),
        token("bootstrap-token-fedcba"),
        token("other"),
        token(token_id=""),
        token(token_secret=""),
        token(usage_bootstrap_signing="yes"),
        token(expiration="2025-12-31T23:59:59Z"),
        token(expiration="2026-01-01T00:00:00Z"),
        token(expiration="tomorrow"),
    ],
    ids=["name", "other id", "no token", "no id", "no secret", "not for signing", "past", "now", "unclear"],
)
def test_a_token_that_may_not_sign_does_not(secret: Secret) -> None:
    assert sign(info(kubeconfig="x"), secret)[0] == []


def test_a_signature_ends_with_its_token() -> None:
    _, verdict = sign(info(kubeconfig="x"), token(expiration="2026-01-01T01:00:00+00:00"))
    assert verdict == Wake(timedelta(hours=1), "a signing token expires")


def test_without_a_kubeconfig_there_is_nothing_to_sign() -> None:
    assert sign(info(other="x"), token()) == ([], Rest("cluster-info has no kubeconfig"))


@pytest.mark.parametrize(
    ("expiration", "verdict", "deleted"),
    [
        ("", Rest("token has no expiration"), False),
        ("2026-01-01T00:30:00Z", Wake(timedelta(minutes=30), "token not expired"), False),
        ("2026-01-01T00:00:00Z", Rest("token expired: Secret deleted"), True),
        ("2025-01-01T00:00:00.5Z", Rest("token expired: Secret deleted"), True),
        ("someday", Rest("token expired: Secret deleted"), True),
    ],
)
def test_a_token_lives_until_it_expires(expiration: str, verdict: object, deleted: bool) -> None:
    secret = token(expiration=expiration)
    assert walk(delete_expired(secret, NOW)) == ([Delete(secret)] if deleted else [], verdict)


@pytest.mark.parametrize("error", [NotFound("gone"), Conflict("another")])
def test_a_token_that_somebody_else_removed_is_no_error(error: Exception) -> None:
    _, verdict = walk(delete_expired(token(expiration="2025-01-01T00:00:00Z"), NOW), {Delete: error})
    assert verdict == Rest("Secret already gone")


def test_a_secret_never_shows_what_is_in_it() -> None:
    assert "MDEy" not in repr(token())


# -- upstream's tables ----------------------------------------------------------------------------

CONTENT = "Hello from the other side. I must have called a thousand times."
HEADER = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9.."


@pytest.mark.parametrize(
    ("content", "secret", "digest"),
    [
        (CONTENT, b"my voice is my passcode", "VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"),
        ("", b"my voice is my passcode", "7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk"),
        (CONTENT, b"", "UfkqvDGiIFxrMnFseDj9LYJOLNrvjW8aHhF71mvvAs8"),
    ],
    ids=["content and secret", "no content", "no secret"],
)
def test_a_signature_is_that_of_upstream(content: str, secret: bytes, digest: str) -> None:
    assert signature(content, "joshua", secret) == HEADER + digest


SIGNATURE = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiYzEyMyJ9..QSxpUG7Q542CirTI2ECPSZjvBOJURUW5a7XqFpNI958"


def upstream_token(id_: str = "abc123", name: str = "bootstrap-token-abc123", **data: str) -> Secret:
    return token(name, token_id=id_, **{"token_secret": "tokenSecret", **data})


@pytest.mark.parametrize(
    ("signed", "tokens", "expected"),
    [
        ("", [upstream_token()], SIGNATURE),
        (SIGNATURE, [upstream_token()], None),
        ("old signature", [upstream_token()], SIGNATURE),
        ("old signature", [], ""),
        ("", [], None),
    ],
    ids=["signed", "already signed", "signed anew", "signature removed", "no token"],
)
def test_cluster_info_has_a_signature_for_each_token(
    signed: str, tokens: list[Secret], expected: str | None
) -> None:
    data = {"kubeconfig": "payload"}
    actions, _ = sign(info(**data, **({"jws_kubeconfig_abc123": signed} if signed else {})), *tokens)
    if expected is None:
        assert actions == []
        return
    (update,) = actions
    assert update.target.data == data | ({"jws-kubeconfig-abc123": expected} if expected else {})


def test_without_cluster_info_there_is_no_round() -> None:
    assert signer.see(StaticCaches(signer, upstream_token()), CLUSTER_INFO) is None


@pytest.mark.parametrize(
    ("secret", "valid"),
    [
        (upstream_token(), True),
        (upstream_token(expiration="2026-01-01T01:00:00Z"), True),
        (upstream_token(expiration="2025-12-31T23:00:00Z"), False),
        (upstream_token(expiration="garbage"), False),
        (upstream_token(usage_bootstrap_signing="", expiration="garbage"), False),
        (upstream_token(usage_bootstrap_signing=""), False),
        (upstream_token(""), False),
        (upstream_token(token_secret=""), False),
        (upstream_token(name="abc123"), False),
        (upstream_token(name="bootstrap-token-def456"), False),
        (upstream_token("", name=""), False),
        (upstream_token("", name="bootstrap-token-"), False),
        (upstream_token("abc", name="bootstrap-token-abc"), False),
        (upstream_token("abc123ghi", name="bootstrap-token-abc123ghi"), False),
        (upstream_token("ABC123", name="bootstrap-token-ABC123"), False),
        # Go reads an hour of one digit, and a comma before a fraction.
        (upstream_token(expiration="2026-01-01T1:00:00Z"), True),
        (upstream_token(expiration="2026-01-01T01:00:00,5Z"), True),
    ],
)
def test_a_token_signs_if_its_name_id_secret_usage_and_expiration_are_valid(
    secret: Secret, valid: bool
) -> None:
    assert signing_token(secret, NOW) == (("abc123", b"tokenSecret") if valid else None)


@pytest.mark.parametrize(
    ("expiration", "deleted"),
    [
        ("", False),
        ("2025-12-31T23:00:00Z", True),
        ("2026-01-01T01:00:00Z", False),
        ("2026-01-01T00:00:02Z", False),
        ("2026-01-01T1:00:00Z", False),
        ("2026-01-01T01:00:00,5Z", False),
        ("9999-12-31T23:59:59-14:00", False),
    ],
)
def test_a_token_is_deleted_when_it_has_expired(expiration: str, deleted: bool) -> None:
    secret = upstream_token(name="bootstrap-token-tokenID", expiration=expiration)
    assert walk(delete_expired(secret, NOW))[0] == ([Delete(secret)] if deleted else [])


def test_a_token_that_expires_later_is_looked_at_then() -> None:
    secret = upstream_token(expiration="2026-01-01T00:00:02Z")
    _, verdict = walk(delete_expired(secret, NOW))
    assert verdict == Wake(timedelta(seconds=2), "token not expired")
    assert walk(delete_expired(secret, NOW + timedelta(seconds=2)))[0] == [Delete(secret)]
