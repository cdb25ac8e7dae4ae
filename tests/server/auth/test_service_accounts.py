"""ServiceAccounts' tokens: they hold as long as the things they name, and not a minute longer."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from steersman.api.generated.core_v1 import Node, ObjectReference, Pod, Secret, ServiceAccount
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.jwt import BoundObjectRef, Claims, InvalidCredential, KubernetesClaim
from steersman.server.auth.lookup import ObjectLookup
from steersman.server.auth.service_accounts import (
    INVALID_SINCE,
    LAST_USED,
    LegacyUse,
    legacy_token_user,
    token_user,
)

NOW = datetime(2026, 11, 15, 20, 50, 38, tzinfo=UTC)
AT = int(NOW.timestamp())
BOT = ServiceAccount(metadata=ObjectMeta(namespace="ns", name="bot", uid="u-bot"))
SECRET = Secret(metadata=ObjectMeta(namespace="ns", name="s", uid="u-s"))
POD = Pod(metadata=ObjectMeta(namespace="ns", name="p", uid="u-p"))
NODE = Node(metadata=ObjectMeta(name="n", uid="u-n"))


def lookup(*objects: Any) -> ObjectLookup:
    there = {(f"{type(obj).__name__.lower()}s", *obj.key): obj for obj in objects}
    return ObjectLookup(lambda *key: there.get(key))


ALL = lookup(BOT, SECRET, POD, NODE)


def deleted(obj: Any, ago: float) -> Any:
    meta = msgspec.structs.replace(obj.metadata, deletionTimestamp=NOW - timedelta(seconds=ago))
    return msgspec.structs.replace(obj, metadata=meta)


def claims(**bound: Any) -> Claims:
    return Claims(
        exp=AT + 3600,
        iat=AT,
        nbf=AT,
        jti="j1",
        bound=KubernetesClaim(
            namespace="ns",
            serviceaccount=bound.pop("serviceaccount", BoundObjectRef("bot", "u-bot")),
            **bound,
        ),
        sub="system:serviceaccount:ns:bot",
    )


PRE = "authentication.kubernetes.io/"


@pytest.mark.parametrize(
    ("told", "extra"),
    [
        (claims(), {}),
        (claims(secret=BoundObjectRef("s", "u-s")), {}),
        (claims(pod=BoundObjectRef("p", "u-p")), {"pod-name": "p", "pod-uid": "u-p"}),
        (
            claims(pod=BoundObjectRef("p", "u-p"), node=BoundObjectRef("n", "u-n")),
            {"pod-name": "p", "pod-uid": "u-p", "node-name": "n", "node-uid": "u-n"},
        ),
        # A pod's node is only told: it need not be there.
        (
            claims(pod=BoundObjectRef("p", "u-p"), node=BoundObjectRef("gone")),
            {"pod-name": "p", "pod-uid": "u-p", "node-name": "gone"},
        ),
        (claims(node=BoundObjectRef("n", "u-n")), {"node-name": "n", "node-uid": "u-n"}),
    ],
)
def test_a_bearer_is_the_account_with_what_its_token_is_bound_to(told: Claims, extra: dict[str, str]) -> None:
    user = token_user(told, ALL, NOW)
    assert (user.name, user.uid) == ("system:serviceaccount:ns:bot", "u-bot")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns")
    expected = {f"{PRE}credential-id": ("JTI=j1",)} | {PRE + key: (value,) for key, value in extra.items()}
    assert user.extra == expected


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (3600 + 60, None),
        (3600 + 61, "service account token has expired"),
        (-60, None),
        (-61, "service account token is not valid yet"),
    ],
)
def test_a_token_holds_for_its_time_and_a_minute_of_leeway(seconds: float, error: str | None) -> None:
    now = NOW + timedelta(seconds=seconds)
    if error is None:
        assert token_user(claims(), ALL, now).uid == "u-bot"
        return
    with pytest.raises(InvalidCredential) as refused:
        token_user(claims(), ALL, now)
    assert refused.value.errors == (error,)


def test_a_token_issued_in_the_future_is_refused() -> None:
    told = msgspec.structs.replace(claims(), nbf=None, iat=AT + 61)
    with pytest.raises(InvalidCredential, match="service account token is issued in the future"):
        token_user(told, ALL, NOW)


INVALIDATED = "service account token has been invalidated"


@pytest.mark.parametrize(
    ("told", "objects", "error"),
    [
        (claims(), lookup(), 'serviceaccounts "bot" not found'),
        (
            claims(serviceaccount=BoundObjectRef("bot", "old")),
            ALL,
            "service account UID (u-bot) does not match claim (old)",
        ),
        (claims(), lookup(deleted(BOT, 61)), "service account ns/bot has been deleted"),
        (claims(secret=BoundObjectRef("s", "u-s")), lookup(BOT), INVALIDATED),
        (
            claims(secret=BoundObjectRef("s", "old")),
            ALL,
            "secret UID (u-s) does not match service account secret ref claim (old)",
        ),
        (claims(secret=BoundObjectRef("s", "u-s")), lookup(BOT, deleted(SECRET, 61)), INVALIDATED),
        (claims(pod=BoundObjectRef("p", "u-p")), lookup(BOT), INVALIDATED),
        (
            claims(pod=BoundObjectRef("p", "old")),
            ALL,
            "pod UID (u-p) does not match service account pod ref claim (old)",
        ),
        (claims(pod=BoundObjectRef("p", "u-p")), lookup(BOT, deleted(POD, 61)), INVALIDATED),
        (claims(node=BoundObjectRef("n", "u-n")), lookup(BOT), INVALIDATED),
        (
            claims(node=BoundObjectRef("n", "old")),
            ALL,
            "node UID (u-n) does not match service account node ref claim (old)",
        ),
        (claims(node=BoundObjectRef("n", "u-n")), lookup(BOT, deleted(NODE, 61)), INVALIDATED),
        (Claims(), ALL, 'serviceaccounts "" not found'),
    ],
)
def test_a_token_dies_with_what_it_names(told: Claims, objects: ObjectLookup, error: str) -> None:
    with pytest.raises(InvalidCredential) as refused:
        token_user(told, objects, NOW)
    assert refused.value.errors == (error,)


@pytest.mark.parametrize(
    ("told", "objects"),
    [
        (claims(), lookup(deleted(BOT, 59))),
        (claims(pod=BoundObjectRef("p", "u-p")), lookup(BOT, deleted(POD, 59))),
        (claims(node=BoundObjectRef("n", "u-n")), lookup(BOT, deleted(NODE, 59))),
    ],
)
def test_what_is_being_deleted_may_be_used_a_minute_longer(told: Claims, objects: ObjectLookup) -> None:
    assert token_user(told, objects, NOW).uid == "u-bot"


# -- legacy tokens ----------------------------------------------------------------------------

TOKEN = "header.payload.signature"
LEGACY = Claims(
    sub="system:serviceaccount:ns:bot",
    legacy_namespace="ns",
    legacy_secret="s",
    legacy_account="bot",
    legacy_uid="u-bot",
)


def holding(token: str = TOKEN, **labels: str) -> Secret:
    meta = msgspec.structs.replace(SECRET.metadata, labels=labels)
    return Secret(metadata=meta, data={"token": b64encode(token.encode()).decode()})


def test_a_legacy_token_holds_while_its_secret_has_it_and_its_use_is_noted() -> None:
    used: list[LegacyUse] = []
    user, warnings = legacy_token_user(LEGACY, TOKEN, lookup(BOT, holding()), NOW, used.append)
    assert (user.name, user.uid, user.extra, warnings) == ("system:serviceaccount:ns:bot", "u-bot", {}, ())
    assert [(use.secret.metadata.name, use.day) for use in used] == [("s", "2026-11-15")]


@pytest.mark.parametrize(("day", "noted"), [("2026-11-14", 1), ("2026-11-15", 0), ("2026-11-16", 0)])
def test_its_use_is_noted_once_a_day(day: str, noted: int) -> None:
    used: list[LegacyUse] = []
    legacy_token_user(LEGACY, TOKEN, lookup(BOT, holding(**{LAST_USED: day})), NOW, used.append)
    assert len(used) == noted


def test_a_token_that_was_generated_unasked_is_warned_about() -> None:
    listed = msgspec.structs.replace(BOT, secrets=(ObjectReference(name="s"),))
    _, warnings = legacy_token_user(LEGACY, TOKEN, lookup(listed, holding()), NOW, lambda use: None)
    assert warnings == (
        "Use tokens from the TokenRequest API or manually created secret-based tokens"
        " instead of auto-generated secret-based tokens.",
    )


@pytest.mark.parametrize(
    ("changes", "objects", "error"),
    [
        ({"sub": ""}, ALL, "sub claim is missing"),
        ({"legacy_namespace": ""}, ALL, "namespace claim is missing"),
        ({"legacy_secret": ""}, ALL, "secretName claim is missing"),
        ({"legacy_account": ""}, ALL, "serviceAccountName claim is missing"),
        ({"legacy_uid": ""}, ALL, "serviceAccountUID claim is missing"),
        ({"sub": "system:serviceaccount:ns:other"}, ALL, "sub claim is invalid"),
        ({"sub": "bot"}, ALL, "sub claim is invalid"),
        ({}, lookup(BOT), "Token has been invalidated"),
        ({}, lookup(BOT, deleted(holding(), 0)), "Token has been invalidated"),
        ({}, lookup(BOT, SECRET), "Token does not match server's copy"),
        ({}, lookup(BOT, holding("other")), "Token does not match server's copy"),
        (
            {},
            lookup(BOT, Secret(metadata=SECRET.metadata, data={"token": "%%%"})),
            "Token does not match server's copy",
        ),
        ({}, lookup(holding()), 'serviceaccounts "bot" not found'),
        ({}, lookup(deleted(BOT, 0), holding()), "ServiceAccount ns/bot has been deleted"),
        (
            {"legacy_uid": "old"},
            lookup(BOT, holding()),
            "ServiceAccount UID (u-bot) does not match claim (old)",
        ),
        (
            {},
            lookup(BOT, holding(**{INVALID_SINCE: "2026-01-01"})),
            "the token in secret ns/s for service account ns/bot has been marked invalid. Use tokens from the"
            " TokenRequest API or manually created secret-based tokens, or remove the"
            " 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this"
            " token",
        ),
    ],
)
def test_a_legacy_token_is_refused_in_upstreams_words(
    changes: dict[str, str], objects: ObjectLookup, error: str
) -> None:
    told = msgspec.structs.replace(LEGACY, **changes)
    with pytest.raises(InvalidCredential) as refused:
        legacy_token_user(told, TOKEN, objects, NOW, lambda use: None)
    assert refused.value.errors == (error,)


def test_the_use_of_a_token_marked_invalid_is_noted_too() -> None:
    used: list[LegacyUse] = []
    with pytest.raises(InvalidCredential):
        legacy_token_user(LEGACY, TOKEN, lookup(BOT, holding(**{INVALID_SINCE: "x"})), NOW, used.append)
    assert len(used) == 1
