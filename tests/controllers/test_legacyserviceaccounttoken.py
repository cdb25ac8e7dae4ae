"""legacy-serviceaccount-token-cleaner, row by row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.errors import Conflict, NotFound
from steersman.api.kinds import ObjectMeta, SecretReference, ServiceAccount
from steersman.api.kinds.config import ACCOUNT_NAME, ConfigMap, Secret
from steersman.controllers.legacyserviceaccounttoken import (
    INTERVAL,
    INVALID_SINCE,
    LAST_USED,
    ROUND,
    controller,
    secret_names,
)
from steersman.intent.actions import Action, Delete, List, Patch, Read
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
