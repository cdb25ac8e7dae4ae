"""podgroup-protection-controller: upstream's rows, and PodGroups that are deleted while their pods run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import Conflict, NotFound, ServerError
from steersman.api.kinds import PODS, ObjectMeta, Pod, PodSchedulingGroup, PodSpec, PodStatus
from steersman.api.kinds.podgroups import PODGROUPS, PodGroup
from steersman.api.scheme import Key
from steersman.controllers.podgroupprotection import (
    FINALIZER,
    FinalizerRemoval,
    by_group,
    controller,
    decide,
    enqueue_groups,
)
from steersman.intent.actions import Action, ReadModifyWrite
from steersman.intent.controller import Change
from steersman.intent.settings import DEFAULTS, Settings
from steersman.intent.verdict import Rest, Verdict
from steersman.testing import Cluster
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = Key("default", "my-podgroup")


def group(*finalizers: str, deleted: bool = False) -> PodGroup:
    meta = ObjectMeta(name=KEY.name, namespace=KEY.namespace, uid="pg-uid-1", finalizers=finalizers)
    return PodGroup(metadata=replace(meta, deletionTimestamp=NOW) if deleted else meta)


def pod(name: str = "pod-1", named: str | None = KEY.name, phase: str = "Running", uid: str = "") -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace=KEY.namespace, uid=uid or f"{name}-uid"),
        spec=PodSpec(nodeName="node-1", schedulingGroup=PodSchedulingGroup(podGroupName=named)),
        status=PodStatus(phase=phase),
    )


def unscheduled(found: Pod) -> Pod:
    return replace(found, spec=replace(found.spec, nodeName=""), status=PodStatus(phase="Pending"))


LONE = Pod(
    metadata=ObjectMeta(name="pod-1", namespace=KEY.namespace, uid="pod-1-uid"),
    status=PodStatus(phase="Running"),
)
"""A pod without a PodGroup."""
DONE, FAILED = pod(phase="Succeeded"), pod(phase="Failed")
PROTECTED, DELETED = group(FINALIZER), group(FINALIZER, deleted=True)
CACHES = StaticCaches(controller)


def look(*objects: Any, answers: Any = None) -> tuple[list[Action[Any]], Verdict]:
    seen = controller.see(StaticCaches(controller, *objects), KEY)
    if seen is None:
        return [], Rest("gone")
    return walk(decide(seen, NOW), answers)


# -- upstream's rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "active"),
    [("Running", True), ("Pending", True), ("Succeeded", False), ("Failed", False), ("", True)],
)
def test_a_pod_uses_its_group_until_it_has_ended(phase: str, active: bool) -> None:
    assert bool(by_group(pod(phase=phase))) is active


@pytest.mark.parametrize(
    ("found", "keys"),
    [
        (pod("pod-1", "pg-a"), [Key("default", "pg-a")]),
        (LONE, []),
        (pod("pod-3", None), []),
        (pod("pod-4", "pg-a", "Succeeded"), []),
    ],
    ids=["a pod of a group", "without a group", "without a name", "ended"],
)
def test_active_pods_are_found_by_their_group(found: Pod, keys: list[Key]) -> None:
    assert list(by_group(found)) == keys


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        (pod(), None, [KEY.name]),
        (pod(), DONE, [KEY.name]),
        (None, unscheduled(pod()), []),
        (None, pod(), []),
        (LONE, None, []),
        (pod(named=None), None, []),
        (pod(uid="old"), replace(DONE, metadata=replace(DONE.metadata, uid="new")), [KEY.name]),
        (pod(uid="old"), pod(named="other-pg", phase="Failed", uid="new"), ["other-pg", KEY.name]),
        (pod(uid="old"), unscheduled(pod(uid="new")), [KEY.name]),
        (pod(phase="Pending"), pod(), []),
        (None, FAILED, [KEY.name]),
    ],
    ids=[
        "deleted",
        "ended",
        "new and unscheduled",
        "new and running",
        "deleted, without a group",
        "deleted, without a name",
        "replaced by one that has ended",
        "replaced by one of another group that has ended",
        "replaced by an unscheduled one",
        "started",
        "found ended at start",
    ],
)
def test_a_change_of_a_pod_enqueues_the_groups_it_may_free(
    old: Pod | None, new: Pod | None, names: list[str]
) -> None:
    assert [key.name for key in enqueue_groups(CACHES, Change(old, new))] == names


@pytest.mark.parametrize(
    ("found", "enqueued"),
    [(group(), False), (DELETED, True), (PROTECTED, False), (group(deleted=True), False)],
    ids=["neither", "deleted and protected", "protected", "deleted"],
)
def test_only_a_group_that_is_deleted_with_its_finalizer_is_looked_at(
    found: PodGroup, enqueued: bool
) -> None:
    when = controller.watches[0].when
    assert when is not None
    assert when(found) is enqueued


@pytest.mark.parametrize(
    ("pods", "used"),
    [
        ((), False),
        ((pod(),), True),
        ((DONE, pod("pod-2", phase="Failed")), False),
        ((pod("active"), pod("done", phase="Succeeded")), True),
        ((pod(named="other-pg"),), False),
    ],
    ids=["no pods", "one", "ended ones", "an active and an ended one", "of another group"],
)
def test_a_group_is_used_by_its_active_pods(pods: tuple[Pod, ...], used: bool) -> None:
    seen = controller.see(StaticCaches(controller, group(), *pods), KEY)
    assert seen is not None
    assert (seen.active is not None) is used


REMOVED = Rest("no active pod left: finalizer removed")
IGNORED = Rest("not being deleted, or without the finalizer")


@pytest.mark.parametrize(
    ("objects", "verdict"),
    [
        ((group(),), IGNORED),
        ((group(), pod()), IGNORED),
        ((PROTECTED,), IGNORED),
        ((DELETED,), REMOVED),
        ((DELETED, pod()), Rest("pod pod-1 of the group has not ended")),
        ((DELETED, DONE), REMOVED),
        ((DELETED, pod("active"), pod("done", phase="Succeeded")), Rest("pod active of the group has not ended")),
        ((group(deleted=True),), IGNORED),
        ((group(deleted=True), pod()), IGNORED),
        ((DELETED, FAILED), REMOVED),
        ((group(), unscheduled(pod())), IGNORED),
        ((DELETED, unscheduled(pod())), Rest("pod pod-1 of the group has not ended")),
        ((PROTECTED, LONE), IGNORED),
        ((DELETED, LONE), REMOVED),
        ((DONE,), Rest("gone")),
    ],
    ids=[
        "new",
        "new, with a pod",
        "protected",
        "deleted",
        "deleted, with a pod",
        "deleted, its pod succeeded",
        "deleted, one of its pods succeeded",
        "deleted without the finalizer",
        "deleted without the finalizer, with a pod",
        "deleted, its pod failed",
        "new, with an unscheduled pod",
        "deleted, with an unscheduled pod",
        "protected, and a pod without a group",
        "deleted, and a pod without a group",
        "no group",
    ],
)  # fmt: skip
def test_the_finalizer_goes_with_the_last_active_pod(objects: tuple[Any, ...], verdict: Verdict) -> None:
    actions, ending = look(*objects)
    assert ending == verdict
    expected = [ReadModifyWrite(DELETED, FinalizerRemoval(FINALIZER))] if verdict == REMOVED else []
    assert actions == expected


# -- other rows -----------------------------------------------------------------------------------


def test_other_finalizers_stay() -> None:
    document = {"metadata": {"finalizers": ["a.example.com/x", FINALIZER, "b.example.com/y"]}}
    FinalizerRemoval(FINALIZER)(document)
    assert document == {"metadata": {"finalizers": ["a.example.com/x", "b.example.com/y"]}}


def test_a_group_that_is_gone_already_is_no_error() -> None:
    assert look(DELETED, answers={ReadModifyWrite: NotFound("gone")})[1] == Rest("PodGroup already deleted")


@pytest.mark.parametrize("error", [Conflict("replaced by another"), ServerError("try again")])
def test_a_refused_update_fails_the_round(error: Exception) -> None:
    with pytest.raises(type(error)):
        look(DELETED, answers={ReadModifyWrite: error})


def test_it_runs_behind_its_gate() -> None:
    assert controller.configured(DEFAULTS) is None
    assert controller.configured(Settings(gates={"GenericWorkload": True})) is not None


# -- worlds ---------------------------------------------------------------------------------------

GATES = {"GenericWorkload": True}


def train(name: str = "train") -> dict[str, Any]:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    return {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
    }


def worker(name: str, ends: str = "") -> dict[str, Any]:
    spec = {
        "restartPolicy": "Never",
        "schedulingGroup": {"podGroupName": "train"},
        "containers": [{"name": "main", "image": "app:1"}],
    }
    annotations = {"sim.steersman.dev/runs": ends} if ends else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }


def test_a_deleted_group_stays_until_its_pods_are_gone() -> None:
    with Cluster(gates=GATES) as cluster:
        cluster.apply([train(), worker("one"), worker("two")])
        cluster.settle()
        assert cluster.get("podgroup", "train").metadata.finalizers == (FINALIZER,)
        cluster.delete("podgroup", "train")
        cluster.settle()
        for name in ("one", "two"):
            assert cluster.get("podgroup", "train").metadata.deletionTimestamp is not None
            cluster.delete("pod", name)
            cluster.settle()
        with pytest.raises(NotFound):
            cluster.get("podgroup", "train")


def test_a_deleted_group_goes_with_the_end_of_its_last_pod() -> None:
    with Cluster(gates=GATES) as cluster:
        cluster.apply([train(), worker("one", ends="60s"), worker("two", ends="3600s")])
        cluster.advance(minutes=5)
        cluster.delete("podgroup", "train")
        cluster.advance(minutes=50)
        assert cluster.get("podgroup", "train").metadata.finalizers == (FINALIZER,)
        cluster.advance(minutes=10)
        assert list(cluster.list("podgroups")) == []
        assert [found.status.phase for found in cluster.list("pods")] == ["Succeeded", "Succeeded"]


def test_a_group_without_pods_goes_at_once() -> None:
    with Cluster(gates=GATES) as cluster:
        cluster.apply([train(), train("idle")])
        cluster.delete("podgroup", "idle")
        cluster.settle()
        assert [found.metadata.name for found in cluster.list("podgroups")] == ["train"]


def test_a_manager_that_starts_later_removes_the_finalizer_of_what_was_deleted_before() -> None:
    with Cluster(gates=GATES) as cluster:
        cluster.apply([train(), worker("one")])
        cluster.settle()
        cluster.crash_manager()
        cluster.delete("podgroup", "train")
        cluster.run(cluster.client.delete(PODS, "default", "one", grace=0))
        cluster.start_manager()
        cluster.settle()
        assert list(cluster.list("podgroups")) == []
        assert cluster.run(cluster.client.list(PODS, "default")).items == []
