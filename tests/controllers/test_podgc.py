"""pod-garbage-collector: rows, and nodes that go in a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.errors import Conflict, NotFound, ServerError
from steersman.api.kinds import ObjectMeta, Pod, PodSpec, PodStatus
from steersman.api.kinds.nodes import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from steersman.api.scheme import Key
from steersman.controllers.podgc import DELETED, ERRORS, NODE_PREFIX, TERMINATED, controller
from steersman.intent.actions import Action, Delete, Patch, Read
from steersman.intent.controller import Change
from steersman.intent.metrics import Measure
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Verdict
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import USUAL, StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def pod(
    name: str = "p", node: str = "n", phase: str = "Running", *, going: bool = False, **status: Any
) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="d",
            uid=name,
            generation=2,
            creationTimestamp=NOW - timedelta(minutes=int(status.pop("age", 1))),
            deletionTimestamp=NOW if going else None,
        ),
        spec=PodSpec(nodeName=node),
        status=PodStatus(phase=phase, **status),
    )


def node(*, ready: bool = False, lost: bool = True) -> Node:
    taints = (Taint(key="node.kubernetes.io/out-of-service", effect="NoExecute"),) if lost else ()
    ready_ = NodeCondition(type="Ready", status="True" if ready else "Unknown")
    return Node(
        metadata=ObjectMeta(name="n"), spec=NodeSpec(taints=taints), status=NodeStatus(conditions=(ready_,))
    )


def look(
    key: Key, *objects: Any, live: Any = NotFound("no node"), keep: int = 12500, refuse: Any = None
) -> tuple[list[Action[Any]], Verdict]:
    configured = controller.configured(Settings({"terminated-pod-gc-threshold": keep}))
    assert configured is not None
    seen = configured.see(StaticCaches(configured, *objects), key)
    if seen is None:
        return [], Rest("nothing to see")

    def answer(action: Action[Any]) -> Any:
        if isinstance(action, Read):
            return live
        return refuse if refuse is not None and isinstance(action, Delete) else USUAL

    actions, verdict = walk(configured.decide(seen, NOW), answer)
    return [action for action in actions if not isinstance(action, Read)], verdict


def names(actions: list[Action[Any]]) -> list[str]:
    return [action.target.metadata.name for action in actions if isinstance(action, Delete)]


def test_a_pod_that_was_never_scheduled_is_marked_failed_and_removed_at_once() -> None:
    lost = pod(node="", phase="Pending", going=True)
    (patch, delete, measure), _ = look(Key("d", "p"), lost)
    assert isinstance(patch, Patch)
    assert patch.body == {"metadata": {"uid": "p"}, "status": {"phase": "Failed", "observedGeneration": 2}}
    assert patch.subresource == "status"
    assert delete == Delete(lost, grace=0)
    assert measure == Measure(DELETED, labels=("d", "unscheduled"))


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_not_marked_again(phase: str) -> None:
    actions, _ = look(Key("d", "p"), pod(node="", phase=phase, going=True))
    assert [type(action) for action in actions] == [Delete, Measure]


@pytest.mark.parametrize(
    ("where", "goes"),
    [
        (node(), True),
        (node(ready=True), False),
        (node(lost=False), False),
        (None, False),
    ],
    ids=["out of service", "ready again", "only silent", "unknown"],
)
def test_a_pod_that_is_going_is_removed_where_its_node_is_out_of_service(
    where: Node | None, goes: bool
) -> None:
    actions, _ = look(Key("d", "p"), pod(going=True), *([where] if where else []))
    assert bool(actions) == goes


def test_the_pods_of_a_node_that_is_gone_go_and_say_why() -> None:
    actions, verdict = look(
        Key("", NODE_PREFIX + "n"), pod("a"), pod("b", phase="Succeeded"), pod("c", node="other")
    )
    assert names(actions) == ["a", "b"]
    patch = actions[0]
    assert isinstance(patch, Patch)
    assert patch.body["status"]["conditions"] == [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "lastTransitionTime": "2026-01-01T12:00:00Z",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "observedGeneration": 2,
        }
    ]
    assert verdict == Rest("node is gone: deleted 2 orphaned pods")


def test_a_node_that_the_cache_does_not_show_yet_loses_no_pods() -> None:
    assert look(Key("", NODE_PREFIX + "n"), pod(), live=node())[0] == []
    with pytest.raises(ServerError):
        look(Key("", NODE_PREFIX + "n"), pod(), live=ServerError("who knows"))


def test_of_ended_pods_the_evicted_and_the_oldest_go_first() -> None:
    pods = (
        pod("running"),
        pod("young", phase="Succeeded", age=1),
        pod("old", phase="Failed", age=9),
        pod("evicted", phase="Failed", reason="Evicted", age=1),
        pod("older", phase="Succeeded", age=10),
    )
    assert names(look(TERMINATED, *pods, keep=2)[0]) == ["evicted", "older"]
    assert look(TERMINATED, *pods, keep=4)[0] == []
    assert look(TERMINATED, *pods, keep=0)[0] == []


def test_a_pod_that_somebody_else_removed_is_no_error() -> None:
    actions, _ = look(Key("d", "p"), pod(node="", going=True), refuse=NotFound("gone"))
    assert actions[-1] == Measure(ERRORS, labels=("d", "unscheduled"))


@pytest.mark.parametrize("error", [ServerError("down"), Conflict("changed")])
def test_a_refusal_fails_the_round(error: Exception) -> None:
    with pytest.raises(type(error)):
        look(Key("d", "p"), pod(node="", going=True), refuse=error)


@pytest.mark.parametrize(
    ("number", "change", "keys"),
    [
        (0, Change(pod(), pod(going=True)), []),
        (0, Change(None, pod(node="", going=True)), [Key("d", "p")]),
        (1, Change(None, pod(node="gone")), [Key("", "node/gone")]),
        (1, Change(None, pod()), []),
        (2, Change(pod(), pod(phase="Failed")), [TERMINATED]),
        (2, Change(pod(phase="Failed"), pod(phase="Failed")), []),
        (3, Change(node(), None), [Key("", "node/n")]),
        (4, Change(node(lost=False), node()), []),
    ],
)
def test_what_is_a_reason_to_look(number: int, change: Any, keys: list[Key]) -> None:
    caches = StaticCaches(controller, node(lost=False))
    assert list(controller.watches[number].to(caches, change)) == keys


# -- upstream's rows ------------------------------------------------------------------------------


def patched(actions: list[Action[Any]]) -> list[str]:
    return [action.target.metadata.name for action in actions if isinstance(action, Patch)]


FAILED, SUCCEEDED, RUNNING, EVICTED = "Failed", "Succeeded", "Running", "Evicted"


@pytest.mark.parametrize(
    ("pods", "threshold", "deleted"),
    [
        ((FAILED, SUCCEEDED, FAILED), 1, "ab"),
        ((FAILED, SUCCEEDED), 0, ""),
        ((FAILED, SUCCEEDED), -1, ""),
        ((RUNNING, SUCCEEDED, FAILED), 1, "b"),
        ((FAILED, SUCCEEDED), 1, "a"),
        ((FAILED, SUCCEEDED), 2, ""),
        ((FAILED, SUCCEEDED), 5, ""),
        ((FAILED, SUCCEEDED, EVICTED), 1, "ca"),
        ((RUNNING, SUCCEEDED, EVICTED), 1, "c"),
        (("Pending", "Unknown", FAILED, SUCCEEDED), 1, "c"),
        (("", FAILED), 1, "a"),
    ],
)
def test_terminated_pods_beyond_the_threshold_are_deleted(
    pods: tuple[str, ...], threshold: int, deleted: str
) -> None:
    """Each pod is younger than the one before it. As upstream: a pod without a phase counts as terminated."""
    made = [
        pod(name, phase=FAILED, reason=EVICTED, age=60 - number)
        if phase == EVICTED
        else pod(name, phase=phase, age=60 - number)
        for number, (name, phase) in enumerate(zip("abcd", pods, strict=False))
    ]
    actions, _ = look(TERMINATED, *made, keep=threshold)
    assert names(actions) == list(deleted)
    counted = [action for action in actions if isinstance(action, Measure)]
    assert counted == [Measure(DELETED, labels=("d", "terminated"))] * len(deleted)


def test_terminated_pods_of_one_age_are_deleted_by_name() -> None:
    made = [pod(name, phase=FAILED) for name in "cab"]
    assert names(look(TERMINATED, *made, keep=1)[0]) == ["a", "b"]


HERE, GONE = "n", "deleted"


@pytest.mark.parametrize(
    ("pods", "cached", "live", "deleted", "marked"),
    [
        ((("a", HERE, RUNNING), ("b", HERE, FAILED), ("c", HERE, SUCCEEDED)), True, True, "", ""),
        ((("a", HERE, RUNNING), ("b", HERE, FAILED), ("c", HERE, SUCCEEDED)), False, True, "", ""),
        ((("a", GONE, FAILED), ("b", GONE, SUCCEEDED)), False, False, "ab", ""),
        ((("a", GONE, FAILED), ("b", GONE, SUCCEEDED), ("c", GONE, RUNNING)), False, False, "abc", "c"),
        ((("a", GONE, RUNNING),), True, False, "a", "a"),
        (
            (("a", GONE, FAILED), ("b", HERE, FAILED), ("c", GONE, SUCCEEDED), ("d", GONE, RUNNING)),
            True,
            False,
            "acd",
            "d",
        ),
        ((("a", HERE, RUNNING),), False, True, "", ""),
        ((("a", HERE, FAILED),), True, False, "", ""),
        ((("a", HERE, FAILED),), False, False, "a", ""),
    ],
    ids=[
        "nodes in the cache",
        "nodes on the server only",
        "no nodes",
        "no nodes, one pod runs",
        "other nodes",
        "some nodes missing",
        "node added during the quarantine, not in the cache yet",
        "node added to the cache during the quarantine",
        "node deleted during the quarantine",
    ],
)
def test_pods_of_missing_nodes_are_deleted_after_the_quarantine(
    pods: tuple[tuple[str, str, str], ...], cached: bool, live: bool, deleted: str, marked: str
) -> None:
    made = [pod(name, node=where, phase=phase) for name, where, phase in pods]
    known = [node()] if cached else []
    actions: list[Action[Any]] = []
    for where in dict.fromkeys(where for _, where, _ in pods):
        found = node() if live and where == HERE else NotFound("no node")
        actions += look(Key("", NODE_PREFIX + where), *made, *known, live=found)[0]
    assert names(actions) == list(deleted)
    assert patched(actions) == list(marked)
    counted = [action for action in actions if isinstance(action, Measure)]
    assert counted == [Measure(DELETED, labels=("d", "orphaned"))] * len(deleted)


@pytest.mark.parametrize(
    ("where", "phase", "terminating", "deleted", "marked"),
    [
        ("", FAILED, True, True, False),
        ("", SUCCEEDED, True, True, False),
        ("", RUNNING, True, True, True),
        ("", FAILED, False, False, False),
        ("node", SUCCEEDED, False, False, False),
        ("node", RUNNING, True, False, False),
    ],
)
def test_a_terminating_pod_without_a_node_is_deleted_in_any_phase(
    where: str, phase: str, terminating: bool, deleted: bool, marked: bool
) -> None:
    actions, _ = look(Key("d", "p"), pod(node=where, phase=phase, going=terminating))
    assert (names(actions), patched(actions)) == (["p"] * deleted, ["p"] * marked)


def worker(ready: str, *taints: tuple[str, str, str]) -> Node:
    return Node(
        metadata=ObjectMeta(name="n"),
        spec=NodeSpec(
            taints=tuple(Taint(key=key, value=value, effect=effect) for key, value, effect in taints)
        ),
        status=NodeStatus(conditions=(NodeCondition(type="Ready", status=ready),)),
    )


OUT = "node.kubernetes.io/out-of-service"
OUT_OF_SERVICE = {
    "NoExecute": worker("False", (OUT, "", "NoExecute")),
    "NoSchedule": worker("False", (OUT, "", "NoSchedule")),
    "PreferNoSchedule": worker("False", (OUT, "", "PreferNoSchedule")),
    "with a value": worker("False", (OUT, "any-value", "NoExecute")),
    "Ready unknown": worker("Unknown", (OUT, "", "NoExecute")),
}
IN_SERVICE = {
    "not ready, no taint": worker("False"),
    "ready, no taint": worker("True"),
    "ready, tainted": worker("True", (OUT, "", "NoExecute")),
    "another taint": worker("False", ("node.kubernetes.io/unreachable", "", "NoExecute")),
}


@pytest.mark.parametrize("where", [*OUT_OF_SERVICE, *IN_SERVICE])
@pytest.mark.parametrize(
    ("phase", "terminating"),
    [("", False), ("", True), ("Pending", False), (RUNNING, False), ("Unknown", False)],
)
def test_a_terminating_pod_on_a_node_out_of_service_is_marked_failed_and_deleted(
    where: str, phase: str, terminating: bool
) -> None:
    on = {**OUT_OF_SERVICE, **IN_SERVICE}[where]
    actions, _ = look(Key("d", "p"), pod(phase=phase, going=terminating), on)
    gone = terminating and where in OUT_OF_SERVICE
    assert (names(actions), patched(actions)) == (["p"] * gone, ["p"] * gone)
    assert [each for each in actions if isinstance(each, Measure)] == (
        [Measure(DELETED, labels=("d", "out-of-service"))] * gone
    )


@pytest.mark.parametrize(("phase", "marked"), [(RUNNING, True), (FAILED, False), (SUCCEEDED, False)])
def test_a_pod_that_has_ended_on_a_node_out_of_service_is_deleted_as_it_is(phase: str, marked: bool) -> None:
    actions, _ = look(Key("d", "p"), pod(phase=phase, going=True), OUT_OF_SERVICE["NoExecute"])
    assert (names(actions), patched(actions)) == (["p"], ["p"] * marked)


def test_a_deletion_that_fails_is_counted_as_a_deletion_and_as_an_error() -> None:
    """As upstream, which counts attempts."""
    actions, _ = look(Key("d", "p"), pod(node="", going=True), refuse=NotFound("gone"))
    counted = {action for action in actions if isinstance(action, Measure)}
    labels = ("d", "unscheduled")
    assert counted == {Measure(DELETED, labels=labels), Measure(ERRORS, labels=labels)}


def test_in_a_cluster_the_pods_of_a_node_that_is_gone_are_replaced_after_the_quarantine() -> None:
    with Cluster(seed=3, nodes=2) as cluster:
        cluster.apply(
            """
            apiVersion: v1
            kind: Pod
            metadata: {name: lonely}
            spec: {nodeName: nowhere, containers: [{name: c, image: app:1}]}
            """
        )
        cluster.advance(seconds=30)
        assert cluster.list("Pod")
        cluster.advance(seconds=20)
        assert not cluster.list("Pod")
