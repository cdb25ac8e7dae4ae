"""Bootstrap tokens: what a secret must say for its token to let a machine in."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.api.generated.core_v1 import Secret
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.auth.bootstrap_tokens import bootstrap_token_user
from steersman.server.auth.lookup import ObjectLookup

NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)
TOKEN = "foobar.0123456789abcdef"
DATA = {
    "token-id": "foobar",
    "token-secret": "0123456789abcdef",
    "usage-bootstrap-authentication": "true",
}


def secret(data: dict[str, str], *, type: str = "bootstrap.kubernetes.io/token", **meta: Any) -> Secret:
    fields = {"namespace": "kube-system", "name": "bootstrap-token-foobar"} | meta
    encoded = {key: b64encode(value.encode()).decode() for key, value in data.items()}
    return Secret(metadata=ObjectMeta(**fields), type=type, data=encoded)


def lookup(one: Secret) -> ObjectLookup:
    return ObjectLookup(lambda *key: one if key == ("secrets", *one.key) else None)


@pytest.mark.parametrize(
    ("extra", "groups"),
    [
        ("", ("system:bootstrappers",)),
        (
            "system:bootstrappers:foo,system:bootstrappers:bar,system:bootstrappers:foo",
            ("system:bootstrappers", "system:bootstrappers:bar", "system:bootstrappers:foo"),
        ),
    ],
)
def test_a_token_names_its_bearer_by_its_id_and_adds_groups(extra: str, groups: tuple[str, ...]) -> None:
    user = bootstrap_token_user(TOKEN, lookup(secret(DATA | {"auth-extra-groups": extra})), NOW)
    assert user is not None
    assert (user.name, user.groups) == ("system:bootstrap:foobar", groups)


@pytest.mark.parametrize(
    "expiration",
    ["2026-11-15T12:00:01Z", "2026-11-15T13:00:01+01:00", "2026-11-15T12:00:00.5Z", ""],
)
def test_a_token_holds_until_it_expires(expiration: str) -> None:
    assert bootstrap_token_user(TOKEN, lookup(secret(DATA | {"expiration": expiration})), NOW) is not None


@pytest.mark.parametrize(
    "one",
    [
        secret(DATA | {"token-secret": "fedcba9876543210"}),
        secret(DATA | {"token-id": "barfoo"}),
        secret(DATA | {"usage-bootstrap-authentication": "false"}),
        secret({key: value for key, value in DATA.items() if not key.startswith("usage")}),
        secret(DATA | {"expiration": "2026-11-15T12:00:00Z"}),
        secret(DATA | {"expiration": "2026-11-15T12:59:59+01:00"}),
        secret(DATA | {"expiration": "tomorrow"}),
        secret(DATA | {"expiration": "2026-11-16"}),
        secret(DATA | {"auth-extra-groups": "system:masters"}),
        secret(DATA | {"auth-extra-groups": "system:bootstrappers:foo,"}),
        secret(DATA, type="Opaque"),
        secret(DATA, deletionTimestamp=NOW),
        secret(DATA, namespace="default"),
        secret(DATA, name="bootstrap-token-barfoo"),
        secret({}),
    ],
)
def test_an_incomplete_secret_authenticates_no_user(one: Secret) -> None:
    assert bootstrap_token_user(TOKEN, lookup(one), NOW) is None


@pytest.mark.parametrize(
    "token",
    [
        "",
        "foobar",
        "foobar.",
        "FOOBAR.0123456789abcdef",
        "foobar.0123456789abcde",
        f"{TOKEN}\n",
        f"{TOKEN}.x",
    ],
)
def test_what_is_not_of_the_form_is_no_bootstrap_token(token: str) -> None:
    assert bootstrap_token_user(token, lookup(secret(DATA)), NOW) is None
