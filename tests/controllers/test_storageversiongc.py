"""storageversion-garbage-collector, row by row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import NotFound, ServerError
from steersman.api.kinds import Condition, Lease, ObjectMeta
from steersman.api.kinds.storageversions import ServerStorageVersion, StorageVersion, StorageVersionStatus
from steersman.api.scheme import Key
from steersman.controllers.storageversiongc import controller, new_status
from steersman.intent.actions import Action, Delete, Read, UpdateStatus
from steersman.intent.controller import Change
from steersman.intent.verdict import Rest, Verdict
from steersman.testing.decision_driver import USUAL, StaticCaches, walk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BEFORE = NOW - timedelta(days=1)


def lease(name: str, identity: str = "kube-apiserver") -> Lease:
    labels = {"apiserver.kubernetes.io/identity": identity}
    return Lease(metadata=ObjectMeta(name=name, namespace="kube-system", labels=labels))


def version(common: str | None = None, **servers: str) -> StorageVersion:
    status = "True" if common else "False"
    return StorageVersion(
        metadata=ObjectMeta(name="apps.deployments", uid="u", generation=2),
        status=StorageVersionStatus(
            storageVersions=tuple(
                ServerStorageVersion(apiServerID=name, encodingVersion=encoding)
                for name, encoding in servers.items()
            ),
            commonEncodingVersion=common,
            conditions=(
                Condition(type="AllEncodingVersionsEqual", status=status, lastTransitionTime=BEFORE),
            ),
        ),
    )


def look(*objects: Any, live: Any = NotFound("none")) -> tuple[list[Action[Any]], Verdict]:
    seen = controller.see(StaticCaches(controller, *objects), Key("", "apps.deployments"))
    assert seen is not None
    actions, verdict = walk(
        controller.decide(seen, NOW),
        lambda action: live if isinstance(action, Read) else USUAL,
    )
    return [action for action in actions if not isinstance(action, Read)], verdict


def test_while_every_server_lives_nothing_is_written() -> None:
    assert look(version(a="v1"), lease("a")) == ([], Rest("all API servers have a lease"))


def test_a_server_that_is_gone_is_forgotten_and_the_others_may_agree_now() -> None:
    (update,), _ = look(version(a="v1", b="v2"), lease("a"))
    assert isinstance(update, UpdateStatus)
    status = update.status
    assert isinstance(status, StorageVersionStatus)
    assert [one.apiServerID for one in status.storageVersions] == ["a"]
    assert status.commonEncodingVersion == "v1"
    assert status.conditions == (
        Condition(
            type="AllEncodingVersionsEqual",
            status="True",
            observedGeneration=2,
            lastTransitionTime=NOW,
            reason="CommonEncodingVersionSet",
            message="Common encoding version set",
        ),
    )


@pytest.mark.parametrize(
    ("common", "since"),
    [("v1", BEFORE), ("v2", NOW)],
    ids=["the same version as before", "another version"],
)
def test_agreeing_on_the_same_again_is_no_transition(common: str, since: datetime) -> None:
    (update,), _ = look(version(common, a="v1", b="v1"), lease("a"))
    assert isinstance(update, UpdateStatus)
    assert isinstance(update.status, StorageVersionStatus)
    assert update.status.conditions[0].lastTransitionTime == since


def test_what_no_server_stores_any_more_is_deleted() -> None:
    gone = version(a="v1")
    assert look(gone) == ([Delete(gone)], Rest("no API server left: StorageVersion deleted"))


def test_a_lease_of_something_else_is_not_a_servers() -> None:
    gone = version(a="v1")
    assert look(gone, lease("a", "other"), live=lease("a", "other"))[0] == [Delete(gone)]


def test_a_cache_that_lags_behind_and_a_server_in_trouble_forget_nothing() -> None:
    assert look(version(a="v1"), live=lease("a"))[0] == []
    with pytest.raises(ServerError):
        look(version(a="v1"), live=ServerError("down"))


def test_a_servers_lease_that_goes_is_a_reason_to_look_at_what_it_stored() -> None:
    caches = StaticCaches(controller, version(a="v1"))
    to = controller.watches[1].to
    assert list(to(caches, Change(lease("a"), None))) == [Key("", "apps.deployments")]
    assert list(to(caches, Change(lease("a"), lease("a")))) == []
    assert list(to(caches, Change(lease("a", "other"), None))) == []


# -- upstream's tables ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("servers", "alive", "kept", "common"),
    [
        ({"a": "v1", "b": "v2", "c": "v2"}, "bc", "bc", "v2"),
        ({"a": "v1", "c": "v2"}, "abc", None, None),
        ({"a": "v1", "b": "v2", "c": "v2", "d": "v2"}, "abc", "abc", None),
        ({"a": "v1"}, "", "", None),
        ({"a": "v1", "b": "v1"}, "", "", None),
    ],
    ids=["the others agree", "none is gone", "the others differ", "the only one is gone", "all are gone"],
)
def test_servers_without_a_lease_are_removed(
    servers: dict[str, str], alive: str, kept: str | None, common: str | None
) -> None:
    stored = version("v1", **servers)
    actions, _ = look(stored, *map(lease, alive))
    if kept is None:
        assert actions == []
        return
    if not kept:
        assert actions == [Delete(stored)]
        return
    (update,) = actions
    assert isinstance(update, UpdateStatus)
    assert isinstance(update.status, StorageVersionStatus)
    assert [one.apiServerID for one in update.status.storageVersions] == list(kept)
    assert update.status.commonEncodingVersion == common
    (condition,) = update.status.conditions
    assert (condition.type, condition.status, condition.reason) == (
        "AllEncodingVersionsEqual",
        "True" if common else "False",
        "CommonEncodingVersionSet" if common else "CommonEncodingVersionUnset",
    )


def test_a_condition_keeps_its_place() -> None:
    stored = version("v1", a="v1", b="v2")
    other = Condition(type="Other", status="True")
    status = replace(stored.status, conditions=(*stored.status.conditions, other))
    (update,), _ = look(replace(stored, status=status), lease("a"))
    assert isinstance(update, UpdateStatus)
    assert isinstance(update.status, StorageVersionStatus)
    assert [one.type for one in update.status.conditions] == ["AllEncodingVersionsEqual", "Other"]


def test_a_lease_without_a_label_is_not_a_servers() -> None:
    bare = Lease(metadata=ObjectMeta(name="a", namespace="kube-system"))
    gone = version(a="v1")
    assert look(gone, bare, live=bare)[0] == [Delete(gone)]


TRUE = Condition(type="AllEncodingVersionsEqual", status="True", lastTransitionTime=BEFORE)
FALSE = Condition(type="AllEncodingVersionsEqual", status="False", lastTransitionTime=BEFORE)


@pytest.mark.parametrize(
    ("encodings", "old_common", "old_conditions", "common", "transition"),
    [
        (("v1", "v1", "v2"), None, (), None, True),
        (("v1", "v1", "v2"), "v1", (TRUE,), None, True),
        (("v1", "v1", "v2"), None, (FALSE,), None, False),
        (("v1", "v1"), None, (), "v1", True),
        (("v1", "v1"), "v1", (TRUE,), "v1", False),
        (("v1", "v1"), None, (FALSE,), "v1", True),
        (("v2", "v2"), "v1", (TRUE,), "v2", True),
    ],
    ids=[
        "differ at first",
        "differ now",
        "differ as before",
        "agree at first",
        "agree as before",
        "agree now",
        "agree on another",
    ],
)
def test_the_common_version_is_that_of_all_and_its_change_is_a_transition(
    encodings: tuple[str, ...],
    old_common: str | None,
    old_conditions: tuple[Condition, ...],
    common: str | None,
    transition: bool,
) -> None:
    servers = tuple(
        ServerStorageVersion(
            apiServerID=str(number),
            encodingVersion=encoding,
            decodableVersions=("v1", "v2"),
            servedVersions=("v1",),
        )
        for number, encoding in enumerate(encodings)
    )
    old = StorageVersionStatus(
        storageVersions=servers, commonEncodingVersion=old_common, conditions=old_conditions
    )
    made = new_status(StorageVersion(metadata=ObjectMeta(name="v"), status=old), servers, NOW)
    assert made.storageVersions == servers
    assert made.commonEncodingVersion == common
    (condition,) = made.conditions
    assert condition.status == ("True" if common else "False")
    assert condition.lastTransitionTime == (NOW if transition else BEFORE)
