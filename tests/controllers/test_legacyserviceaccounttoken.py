"""legacy-serviceaccount-token-cleaner, row by row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import Conflict, Forbidden, NotFound
from steersman.api.kinds import ObjectMeta, SecretReference, ServiceAccount
from steersman.api.kinds.config import ACCOUNT_NAME, ACCOUNT_UID, ConfigMap, Secret
from steersman.controllers.legacyserviceaccounttoken import (
    INTERVAL,
    INVALID_SINCE,
    LAST_USED,
    ROUND,
    controller,
    secret_names,
)
from steersman.intent.actions import Action, Delete, List, Patch, Read
from steersman.intent.settings import Misconfigured, Settings
from steersman.intent.verdict import InvalidSpec, Verdict, Wake
from steersman.testing.decision_driver import USUAL, StaticCaches, walk

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
OWNER = ServiceAccount(
    metadata=ObjectMeta(name="builder", namespace="d", uid="u"), secrets=(SecretReference(name="t"),)
)


def token(days: int = 1000, **labels: str) -> Secret:
    names = {"used": LAST_USED, "invalid": INVALID_SINCE}
    return Secret(
        metadata=ObjectMeta(
            name="t",
            namespace="d",
            uid="s",
            resourceVersion="9",
            creationTimestamp=NOW - timedelta(days=days),
            labels={names[key]: value for key, value in labels.items()},
            annotations={ACCOUNT_NAME: "builder"},
        )
    )


def look(
    *objects: Any, since: str | None = "2024-01-01", pods: Any = (), write: object = USUAL
) -> tuple[list[Action[Any]], Verdict]:
    seen = controller.see(StaticCaches(controller, *objects), ROUND)
    assert seen is not None

    def answer(action: Action[Any]) -> Any:
        if isinstance(action, Read):
            return ConfigMap(data={} if since is None else {"since": since})
        return list(pods) if isinstance(action, List) else write

    actions, verdict = walk(controller.decide(seen, NOW), answer)
    return [action for action in actions if isinstance(action, Patch | Delete)], verdict


def test_a_token_nobody_used_for_a_year_is_marked_invalid() -> None:
    unused = token()
    body = {"metadata": {"uid": "s", "labels": {INVALID_SINCE: "2026-06-15"}}}
    assert look(OWNER, unused) == ([Patch(unused, body)], Wake(INTERVAL, "tokens checked"))


def test_one_that_has_been_invalid_for_a_year_is_deleted_if_it_is_still_what_it_was() -> None:
    stale = token(invalid="2025-06-14")
    assert look(OWNER, stale)[0] == [Delete(stale, exact=True)]


@pytest.mark.parametrize(
    "kept",
    [
        token(invalid="2025-06-15"),
        token(used="2025-06-15"),
        token(used="sometime"),
        token(days=365),
        token(days=10),
    ],
    ids=["invalid for less", "used within the year", "nobody knows when", "a year old", "young"],
)
def test_a_token_that_may_still_be_wanted_is_kept(kept: Secret) -> None:
    assert look(OWNER, kept)[0] == []


def test_a_label_that_is_no_day_is_written_anew() -> None:
    (patch,), _ = look(OWNER, token(invalid="whenever"))
    assert isinstance(patch, Patch)


def test_a_token_somebody_made_by_hand_is_kept() -> None:
    assert look(ServiceAccount(metadata=OWNER.metadata), token())[0] == []
    assert look(token())[0] == []


def test_a_token_that_a_pod_mounts_is_kept() -> None:
    pod = {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "t"}}]}}
    assert look(OWNER, token(), pods=[pod])[0] == []


@pytest.mark.parametrize(
    ("since", "because"),
    [
        ("2025-06-14", None),
        ("2025-06-15", "token use is not tracked for long enough yet"),
    ],
)
def test_the_day_tracking_began_does_not_count(since: str, because: str | None) -> None:
    actions, verdict = look(OWNER, token(), since=since)
    assert bool(actions) == (because is None)
    assert verdict == Wake(INTERVAL, because or "tokens checked")


@pytest.mark.parametrize("since", [None, "yesterday"])
def test_where_nobody_can_tell_since_when_nothing_is_touched(since: str | None) -> None:
    with pytest.raises(InvalidSpec):
        look(OWNER, token(), since=since)


@pytest.mark.parametrize("error", [NotFound("gone"), Conflict("changed")])
def test_a_token_that_changed_meanwhile_is_left_for_another_day(error: Exception) -> None:
    assert look(OWNER, token(invalid="2025-01-01"), write=error)[1] == Wake(INTERVAL, "tokens checked")


@pytest.mark.parametrize(
    "spec",
    [
        {"imagePullSecrets": [{"name": "s"}]},
        {"containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]},
        {"initContainers": [{"envFrom": [{"secretRef": {"name": "s"}}]}]},
        {"volumes": [{"projected": {"sources": [{"secret": {"name": "s"}}]}}]},
        {"volumes": [{"azureFile": {"secretName": "s"}}]},
        {"volumes": [{"csi": {"nodePublishSecretRef": {"name": "s"}}}]},
        {"volumes": [{"cephfs": {"secretRef": {"name": "s"}}}]},
    ],
)
def test_every_way_to_mention_a_secret_is_known(spec: dict[str, Any]) -> None:
    assert "s" in set(secret_names(spec))


# -- upstream's table: days, and what becomes of the token ----------------------------------------

TODAY = datetime(2026, 6, 15, tzinfo=UTC)
MARK = {"metadata": {"uid": "s", "labels": {INVALID_SINCE: "2026-06-15"}}}
KEPT, MARKED, DELETED = "kept", "marked invalid", "deleted"


def dated(
    used: str = "",
    invalid: str = "",
    created: str = "2022-12-27",
    owner: str = "builder",
    uid: str = "u",
    deleted: bool = False,
) -> Secret:
    labels = {LAST_USED: used, INVALID_SINCE: invalid}
    return Secret(
        metadata=ObjectMeta(
            name="t",
            namespace="d",
            uid="s",
            resourceVersion="1",
            labels={name: day for name, day in labels.items() if day},
            creationTimestamp=datetime.fromisoformat(f"{created}T00:00:00+00:00"),
            deletionTimestamp=NOW if deleted else None,
            annotations={ACCOUNT_NAME: owner, ACCOUNT_UID: uid},
        ),
        type="kubernetes.io/service-account-token",
    )


def outcome(secret: Secret, *others: Any, since: str | None, before: str, pods: Any = ()) -> str:
    """What becomes of a token when the clean-up period began on a day."""
    days = (TODAY - datetime.fromisoformat(f"{before}T00:00:00+00:00")).days
    settings = Settings({"legacy-service-account-token-clean-up-period": days * 86_400.0})
    configured = controller.configured(settings)
    assert configured is not None
    seen = configured.see(StaticCaches(configured, secret, *others), ROUND)
    tracking: Any = NotFound("none") if since is None else ConfigMap(data={"since": since} if since else {})
    assert seen is not None
    answers: dict[type[Action[Any]], Any] = {Read: tracking, List: lambda action: list(pods)}
    recorded: list[Action[Any]] = []
    try:
        walk(configured.decide(seen, NOW), answers, recorded=recorded)
    except InvalidSpec:
        assert not [action for action in recorded if not isinstance(action, Read)]
    writes = [action for action in recorded if not isinstance(action, Read | List)]
    if not writes:
        return KEPT
    assert writes in ([Patch(secret, MARK)], [Delete(secret, exact=True)])
    return MARKED if isinstance(writes[0], Patch) else DELETED


MOUNTS = {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "t"}}]}}


@pytest.mark.parametrize(
    ("secret", "others", "since", "before", "pods", "expected"),
    [
        (dated("2022-12-27"), (OWNER,), None, "2022-12-28", (), KEPT),
        (dated("2022-12-27"), (OWNER,), "", "2022-12-28", (), KEPT),
        (dated("2022-12-27"), (OWNER,), "2022-12-29", "2022-12-29", (), KEPT),
        (dated("2022-12-27"), (OWNER,), "2022-12-27-1", "2022-12-29", (), KEPT),
        (
            dated("2022-12-27"),
            (ServiceAccount(metadata=OWNER.metadata),),
            "2022-12-27",
            "2022-12-29",
            (),
            KEPT,
        ),
        (dated("2022-12-27", created="2022-12-30"), (OWNER,), "2022-12-27", "2022-12-29", (), KEPT),
        (dated("2022-12-27", deleted=True), (OWNER,), "2022-12-27", "2022-12-30", (), KEPT),
        (dated("2022-12-30"), (OWNER,), "2022-12-27", "2022-12-29", (), KEPT),
        (dated("2022-12-27-1"), (OWNER,), "2022-12-27", "2022-12-29", (), KEPT),
        (dated("2022-12-27"), (), "2022-12-27", "2022-12-29", (), KEPT),
        (dated("2022-12-27", uid="other"), (OWNER,), "2022-12-27", "2022-12-29", (), KEPT),
        (dated("2022-12-27", owner=""), (OWNER,), "2022-12-27", "2022-12-29", (), KEPT),
        (dated(), (OWNER,), "2022-12-28", "2022-12-30", (), MARKED),
        (dated(invalid="2022-12-29-1"), (OWNER,), "2022-12-28", "2022-12-30", (), MARKED),
        (dated(invalid="2023-01-01"), (OWNER,), "2022-12-28", "2022-12-29", (), KEPT),
        (dated(invalid="2022-12-29"), (OWNER,), "2022-12-28", "2023-01-01", (), DELETED),
        (dated("2022-12-27"), (OWNER,), "2022-12-28", "2022-12-29", (MOUNTS,), KEPT),
        (dated("2022-12-27"), (OWNER,), "2022-12-28", "2022-12-30", (), MARKED),
        (dated("2022-12-27", "2023-05-01"), (OWNER,), "2022-12-28", "2022-12-30", (), KEPT),
        (dated("2022-12-27", "2023-01-05"), (OWNER,), "2022-12-28", "2023-05-01", (), DELETED),
        # Go reads days with two digits for month and day only.
        (dated("2022-1-5"), (OWNER,), "2022-12-27", "2022-12-29", (), KEPT),
        (dated(invalid="2022-1-5"), (OWNER,), "2022-12-28", "2023-01-01", (), MARKED),
        (dated("2022-12-27"), (OWNER,), "2022-1-5", "2022-12-29", (), KEPT),
    ],
    ids=[
        "no ConfigMap",
        "no 'since'",
        "not tracked for the period",
        "a 'since' that is no day",
        "not in secrets of its account",
        "created late",
        "terminating",
        "used late",
        "last use that is no day",
        "no account",
        "account of another uid",
        "names no account",
        "never used",
        "invalid since no day",
        "not invalid for the period",
        "invalid for the period",
        "mounted by a pod",
        "used before the period",
        "used before the period, not invalid for it",
        "used before the period, and invalid for it",
        "last use with one digit",
        "invalid with one digit",
        "'since' with one digit",
    ],
)
def test_a_token_is_kept_marked_or_deleted_by_its_days(
    secret: Secret, others: tuple[Any, ...], since: str | None, before: str, pods: Any, expected: str
) -> None:
    assert outcome(secret, *others, since=since, before=before, pods=pods) == expected


def test_a_token_that_cannot_be_marked_does_not_keep_others_from_it() -> None:
    other = replace(token(), metadata=replace(token().metadata, name="u", uid="s2"))
    owner = replace(OWNER, secrets=(SecretReference(name="t"), SecretReference(name="u")))
    recorded: list[Action[Any]] = []
    seen = controller.see(StaticCaches(controller, owner, token(), other), ROUND)
    assert seen is not None
    answers: dict[type[Action[Any]], Any] = {
        Read: ConfigMap(data={"since": "2024-01-01"}),
        List: lambda action: [],
        Patch: Forbidden("no"),
    }
    with pytest.raises(Forbidden):
        walk(controller.decide(seen, NOW), answers, recorded=recorded)
    assert [one.target.key.name for one in recorded if isinstance(one, Patch)] == ["t", "u"]


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_a_period_must_be_positive(seconds: float) -> None:
    with pytest.raises(Misconfigured, match="must be greater than 0"):
        controller.configured(Settings({"legacy-service-account-token-clean-up-period": seconds}))


@pytest.mark.parametrize(
    "selector",
    [{"secret": "name"}, {"example.com/secret": "secretName"}, {"imagePullSecrets": "s"}, {"secret": ""}],
)
def test_labels_that_a_pod_selects_nodes_by_name_no_secret(selector: dict[str, str]) -> None:
    spec = {"nodeSelector": selector, "imagePullSecrets": [{"name": "pull"}, {}]}
    assert set(secret_names(spec)) == {"pull"}
