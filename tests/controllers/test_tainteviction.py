"""taint-eviction-controller: rows, and tainted nodes in a cluster."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from steersman.api.errors import NotFound, ServerError
from steersman.api.kinds import PODS, Condition, Object, ObjectMeta, Pod, PodSpec, PodStatus, Toleration
from steersman.api.kinds.nodes import Node, NodeSpec, Taint
from steersman.api.scheme import Key
from steersman.controllers.tainteviction import (
    DELETIONS,
    LATENCY,
    controller,
    no_execute_taints,
    toleration_time,
    used_tolerations,
)
from steersman.intent.actions import Address, Delete, Emit, Patch, Read
from steersman.intent.metrics import Measure
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Wake
from steersman.manager.controller_selection import select
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import StaticCaches, walk
from tests.harness.rounds import NOW
from tests.harness.rounds import Rounds as ControllerRounds

FOREVER = -1
"""The number by which upstream's rows mean a toleration without tolerationSeconds."""
MARKING, CANCELLING = "Marking for deletion Pod", "Cancelling deletion of Pod"


def tolerating(number: int, seconds: int) -> Toleration:
    limit = None if seconds == FOREVER else seconds
    return Toleration(key=f"taint{number}", value=f"v{number}", effect="NoExecute", tolerationSeconds=limit)


def pod(name: str = "p", node: str = "n", *tolerations: Toleration, uid: str = "") -> Pod:
    meta = ObjectMeta(name=name, namespace="d", uid=uid or name, generation=1)
    spec = PodSpec(nodeName=node, tolerations=tolerations)
    return Pod(metadata=meta, spec=spec, status=PodStatus(phase="Running"))


def node(*taints: int, name: str = "n") -> Node:
    made = tuple(Taint(key=f"taint{each}", value=f"v{each}", effect="NoExecute") for each in taints)
    return Node(metadata=ObjectMeta(name=name), spec=NodeSpec(taints=made))


class Rounds(ControllerRounds):
    """The rounds of the controller; deleted pods stay, as if they terminated."""

    def __init__(self, *objects: Object) -> None:
        super().__init__(controller, *objects)


EVICTED = ["patch p", "delete p"]


# -- tolerations ----------------------------------------------------------------------------------


def test_only_taints_with_the_effect_no_execute_count() -> None:
    one = Taint(key="one", value="one", effect="NoExecute")
    found = Node(spec=NodeSpec(taints=(one, Taint(key="two", value="two", effect="NoSchedule"))))
    assert no_execute_taints(found) == (one,)


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [((None,), None), ((1, 2), 1), ((1, None), 1), ((None, 1), 1), ((5, 0), 0), ((5, -3), 0)],
)
def test_the_shortest_toleration_counts(limits: tuple[int | None, ...], seconds: int | None) -> None:
    used = [Toleration(tolerationSeconds=limit) for limit in limits]
    assert toleration_time(used) == (None if seconds is None else timedelta(seconds=seconds))


def test_a_toleration_of_ages_is_no_time_that_could_not_be_written() -> None:
    limit = toleration_time([Toleration(tolerationSeconds=2**63 - 1)])
    assert limit is not None
    assert NOW + limit > NOW


def test_the_first_toleration_of_each_taint_is_used() -> None:
    tolerations = (tolerating(1, 100), tolerating(1, 5), tolerating(2, FOREVER), tolerating(3, 1))
    assert used_tolerations(tolerations, node(1, 2).spec.taints) == (tolerations[0], tolerations[2])
    assert used_tolerations(tolerations, node(1, 4).spec.taints) is None


@pytest.mark.parametrize("on", [True, False])
def test_numbers_are_compared_where_the_gate_is_on(on: bool) -> None:
    configured = controller.configured(Settings(gates={"TaintTolerationComparisonOperators": on}))
    assert configured is not None
    tainted = Node(
        metadata=ObjectMeta(name="n"),
        spec=NodeSpec(taints=(Taint(key="sla", value="7", effect="NoExecute"),)),
    )
    above = Toleration(key="sla", operator="Gt", value="5", effect="NoExecute")
    caches = StaticCaches(configured, pod("p", "n", above), tainted)
    seen = configured.see(caches, Key("d", "p"))
    assert seen is not None
    actions, _ = walk(configured.decide(seen, NOW))
    assert any(isinstance(action, Delete) for action in actions) is not on


# -- pods -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "taints", "tolerations", "writes"),
    [
        ("", (), (), []),
        ("n", (), (), []),
        ("n", (1,), (), EVICTED),
        ("n", (1,), (tolerating(1, 100),), []),
        ("n", (1,), (tolerating(1, FOREVER),), []),
        ("n", (1,), (tolerating(2, FOREVER),), EVICTED),
    ],
    ids=[
        "not scheduled",
        "on a node without taints",
        "on a tainted node",
        "tolerated for some time",
        "tolerated for ever",
        "another taint tolerated",
    ],
)
def test_a_new_pod_is_deleted_if_it_does_not_tolerate_its_node(
    where: str, taints: tuple[int, ...], tolerations: tuple[Toleration, ...], writes: list[str]
) -> None:
    rounds = Rounds(node(*taints), pod("p", where, *tolerations))
    assert rounds.writes == writes


@pytest.mark.parametrize(
    ("before", "after", "later", "writes"),
    [
        (pod("p", ""), pod("p", "n"), 0, EVICTED),
        (pod("p", "", tolerating(1, FOREVER)), pod("p", "n", tolerating(1, FOREVER)), 1000, []),
        (pod("p", "n", tolerating(1, 100)), pod(), 0, EVICTED),
        (pod("p", "n", tolerating(1, 1)), pod("p", "n", tolerating(1, 100)), 1, EVICTED),
        (pod("p", "n", tolerating(1, 100)), pod("p", "n", tolerating(1, 1)), 99, []),
        (pod("p", "n", tolerating(1, 100)), pod("p", "n", tolerating(1, 1)), 100, EVICTED),
        (pod("p", "n", tolerating(1, 100)), pod("p", "n", tolerating(1, FOREVER)), 1000, []),
    ],
    ids=[
        "scheduled to a tainted node",
        "scheduled to a tolerated node",
        "toleration removed",
        "toleration made longer",
        "toleration made shorter",
        "toleration made shorter, in the end",
        "toleration made unlimited",
    ],
)
def test_a_changed_pod_is_deleted_when_it_first_would_have_been(
    before: Pod, after: Pod, later: float, writes: list[str]
) -> None:
    """As upstream: neither a longer nor a shorter toleration changes the time of a scheduled deletion."""
    rounds = Rounds(node(1), before)
    rounds.put(after)
    rounds.advance(later)
    assert rounds.writes == writes


def test_a_pod_that_changes_otherwise_is_not_looked_at() -> None:
    rounds = Rounds(node(1), pod("p", "n", tolerating(1, 9)))
    rounds.verdicts.clear()
    rounds.put(replace(pod("p", "n", tolerating(1, 9)), status=PodStatus(phase="Failed")))
    assert rounds.verdicts == {}


def test_a_deleted_pod_is_forgotten() -> None:
    rounds = Rounds(node(1), pod())
    rounds.actions.clear()
    rounds.remove(pod())
    assert rounds.actions == []


def test_the_deletion_of_a_pod_cancels_its_scheduled_deletion() -> None:
    rounds = Rounds(node(1), pod("p", "n", tolerating(1, 60)))
    rounds.remove(pod("p", "n", tolerating(1, 60)))
    rounds.advance(100)
    assert rounds.events == [f"{CANCELLING} d/p"]
    assert rounds.writes == []


def test_a_pod_created_again_has_its_own_time() -> None:
    rounds = Rounds(node(1), pod("p", "n", tolerating(1, 60)))
    rounds.advance(50)
    rounds.put(pod("p", "n", tolerating(1, 60), uid="another"))
    rounds.advance(59)
    assert rounds.writes == []
    rounds.advance(1)
    assert rounds.writes == EVICTED
    assert rounds.events == [f"{CANCELLING} d/p", f"{MARKING} d/p"]


# -- nodes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("taints", "tolerations", "writes"),
    [((), (), []), ((1,), (), EVICTED), ((1,), (tolerating(1, FOREVER),), [])],
    ids=["no taint", "tainted", "tolerated"],
)
def test_a_node_that_comes_after_its_pods_is_looked_at(
    taints: tuple[int, ...], tolerations: tuple[Toleration, ...], writes: list[str]
) -> None:
    assert Rounds(pod("p", "n", *tolerations), node(*taints)).writes == writes


@pytest.mark.parametrize(
    ("before", "after", "tolerations", "later", "writes"),
    [
        ((), (1,), (), 0, EVICTED),
        ((), (1,), (tolerating(1, 100),), 99, []),
        ((), (1, 2), (tolerating(1, 100),), 0, EVICTED),
        ((1,), (), (tolerating(1, 1),), 1.5, []),
        ((), (1, 2), (tolerating(1, 1), tolerating(2, 100)), 1, EVICTED),
        ((1,), (1, 2), (tolerating(1, 100), tolerating(2, 1)), 99, []),
        ((1,), (1, 2), (tolerating(1, 100), tolerating(2, 1)), 100, EVICTED),
        ((1,), (2,), (tolerating(1, 5), tolerating(2, 100)), 5, EVICTED),
    ],
    ids=[
        "tainted",
        "tolerated for some time",
        "one of two taints tolerated",
        "taint removed",
        "several tolerations",
        "another taint, tolerated for less time",
        "another taint, tolerated for less time, in the end",
        "taint replaced",
    ],
)
def test_a_changed_node_deletes_the_pods_that_do_not_tolerate_it(
    before: tuple[int, ...],
    after: tuple[int, ...],
    tolerations: tuple[Toleration, ...],
    later: float,
    writes: list[str],
) -> None:
    rounds = Rounds(node(*before), pod("p", "n", *tolerations))
    rounds.put(node(*after))
    rounds.advance(later)
    assert rounds.writes == writes


def test_taints_that_come_and_go_schedule_and_cancel() -> None:
    rounds = Rounds(node(), pod("p", "n", tolerating(1, FOREVER), tolerating(2, 60)))
    key = Key("d", "p")
    assert key not in rounds.verdicts
    rounds.put(node(1))
    assert isinstance(rounds.verdicts[key], Rest)
    rounds.put(node(1, 2))
    assert rounds.verdicts[key] == Wake(
        timedelta(seconds=60), "pod tolerates the taints of its node for a limited time"
    )
    rounds.put(node(1))
    assert isinstance(rounds.verdicts[key], Rest)
    rounds.advance(1000)
    assert rounds.writes == []
    assert rounds.events == [f"{CANCELLING} d/p"]


@pytest.mark.parametrize(
    ("taints", "at_once", "after_a_second"),
    [((1,), ["pod1"], ["pod1", "pod2"]), ((1, 2), ["pod1", "pod2", "pod3"], ["pod1", "pod2", "pod3"])],
    ids=["each for its time", "no pod tolerates all taints"],
)
def test_the_pods_of_a_node_are_deleted_each_at_its_time(
    taints: tuple[int, ...], at_once: list[str], after_a_second: list[str]
) -> None:
    pods = pod("pod1"), pod("pod2", "n", tolerating(1, 1)), pod("pod3", "n", tolerating(1, FOREVER))
    rounds = Rounds(node(), *pods)
    rounds.put(node(*taints))
    assert rounds.deleted == at_once
    rounds.advance(100)
    assert rounds.deleted == after_a_second


@pytest.mark.parametrize("tolerations", [(), (tolerating(1, 100),)])
@pytest.mark.parametrize("known", [True, False])
def test_a_pod_that_the_caches_show_late_is_looked_at_then(
    tolerations: tuple[Toleration, ...], known: bool
) -> None:
    rounds = Rounds(node(), pod("first"), *([pod("late", "", *tolerations)] if known else []))
    rounds.put(node(1))
    assert rounds.deleted == ["first"]
    rounds.put(pod("late", "n", *tolerations))
    rounds.advance(100)
    assert rounds.deleted == ["first", "late"]


def test_the_deletion_of_a_node_cancels_nothing() -> None:
    """As upstream; its pods are deleted either way."""
    rounds = Rounds(node(1), pod("p", "n", tolerating(1, 10)))
    rounds.remove(node(1))
    rounds.advance(10)
    assert rounds.writes == EVICTED


def test_a_node_that_comes_back_without_its_taint_cancels() -> None:
    rounds = Rounds(node(1), pod("p", "n", tolerating(1, 10)))
    rounds.remove(node(1))
    rounds.put(node())
    rounds.advance(100)
    assert rounds.writes == []
    assert rounds.events == [f"{CANCELLING} d/p"]


def test_a_cancelled_deletion_can_be_scheduled_again() -> None:
    rounds = Rounds(node(1), pod("p", "n", tolerating(1, 10)))
    rounds.advance(9)
    rounds.put(node())
    rounds.put(node(1))
    rounds.advance(9)
    assert rounds.writes == []
    rounds.advance(1)
    assert rounds.writes == EVICTED


# -- the deletion ---------------------------------------------------------------------------------


def test_a_pod_is_announced_marked_and_deleted() -> None:
    rounds = Rounds(node(1), pod("p", "n", tolerating(1, 5)))
    rounds.advance(5)
    announced, read, patch, delete, counted, took = rounds.actions[:4] + [
        each for each in rounds.actions if isinstance(each, Measure)
    ]
    where = Address(PODS, "d", "p")
    assert announced == Emit(where, "Normal", "TaintManagerEviction", f"{MARKING} d/p")
    assert isinstance(read, Read)
    assert isinstance(patch, Patch)
    assert patch.subresource == "status"
    assert patch.body == {
        "metadata": {"uid": "p"},
        "status": {
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "lastTransitionTime": "2026-01-01T12:00:05Z",
                    "reason": "DeletionByTaintManager",
                    "message": "Taint manager: deleting due to NoExecute taint",
                    "observedGeneration": 1,
                }
            ]
        },
    }
    assert isinstance(delete, Delete)
    assert (delete.grace, delete.exact, delete.propagation) == (None, False, None)
    assert (counted, took) == (Measure(DELETIONS), Measure(LATENCY, 0.0))


def marked(terminating: bool) -> Pod:
    condition = Condition(
        type="DisruptionTarget",
        status="True",
        reason="DeletionByTaintManager",
        message="Taint manager: deleting due to NoExecute taint",
        observedGeneration=1,
    )
    found = pod()
    meta = replace(found.metadata, deletionTimestamp=NOW if terminating else None)
    return replace(found, metadata=meta, status=PodStatus(phase="Running", conditions=(condition,)))


def test_a_marked_pod_is_deleted_without_another_patch() -> None:
    assert Rounds(node(1), marked(False)).writes == ["delete p"]


def test_a_pod_that_terminates_because_of_a_taint_is_left_alone() -> None:
    rounds = Rounds(node(1), marked(True))
    rounds.put(node(1, 2))
    assert rounds.actions == []


def test_a_failed_deletion_is_tried_again_and_announced_once() -> None:
    rounds = Rounds(node())
    rounds.answers = {Delete: [ServerError("busy")]}
    rounds.put(pod())
    with pytest.raises(ServerError):
        rounds.put(node(1))
    rounds.answers = None
    rounds.round(Key("d", "p"))
    assert rounds.events == [f"{MARKING} d/p"]
    assert rounds.deleted == ["p", "p"]


def test_no_deletion_is_tried_again_once_the_taint_is_gone() -> None:
    rounds = Rounds(node(), pod())
    rounds.answers = {Delete: ServerError("busy")}
    with pytest.raises(ServerError):
        rounds.put(node(1))
    rounds.actions.clear()
    rounds.put(node())
    rounds.round(Key("d", "p"))
    assert rounds.writes == []
    assert rounds.events == [f"{CANCELLING} d/p"]


@pytest.mark.parametrize("live", [NotFound("gone"), pod(uid="another")], ids=["gone", "replaced"])
def test_a_pod_that_the_server_no_longer_has_is_not_deleted(live: object) -> None:
    rounds = Rounds(node())
    rounds.put(pod())
    rounds.answers = {Read: live}
    rounds.put(node(1))
    assert rounds.writes == []
    assert isinstance(rounds.verdicts[Key("d", "p")], Rest)


# -- declaration ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "separate", "runs"),
    [
        (["taint-eviction-controller"], True, True),
        (["node-lifecycle-controller"], True, False),
        (["taint-eviction-controller"], False, False),
        (["node-lifecycle-controller"], False, True),
        (["*", "-taint-eviction-controller"], False, True),
        (["*", "-nodelifecycle"], False, False),
    ],
)
def test_it_is_part_of_node_lifecycle_while_the_gate_is_off(
    words: list[str], separate: bool, runs: bool
) -> None:
    settings = Settings(gates={"SeparateTaintEvictionController": separate})
    assert (controller in select(words, settings)) is runs


# -- clusters -------------------------------------------------------------------------------------

WEB = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "app:1"}]}
"""
UNREACHABLE = tuple(
    {"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")
)
"""As node-lifecycle-controller taints a node. Pods tolerate the second for 300 seconds by default."""


ALONE = ("replicaset-controller", "taint-eviction-controller")
"""Without node-lifecycle-controller, which takes such taints from nodes that are well."""


def taint(cluster: Cluster, name: str, *taints: dict[str, str]) -> None:
    cluster.patch("Node", name, {"spec": {"taints": list(taints) or None}})


def placed(cluster: Cluster) -> dict[str, str]:
    return {each.metadata.name: each.spec.nodeName for each in cluster.list("pods")}


def test_in_a_cluster_pods_leave_an_unreachable_node_after_five_minutes() -> None:
    with Cluster(seed=11, nodes=2, controllers=ALONE) as cluster:
        cluster.apply(WEB)
        cluster.advance(seconds=10)
        there = [name for name, where in placed(cluster).items() if where == "node-1"]
        assert there
        taint(cluster, "node-1", *UNREACHABLE)
        cluster.advance(seconds=299)
        assert set(there) <= set(placed(cluster))
        cluster.advance(seconds=60)
        left = placed(cluster)
        assert set(left.values()) == {"node-2"}
        assert len(left) == 4
        assert not set(there) & set(left)
        told = [each for each in cluster.list("events") if each.reason == "TaintManagerEviction"]
        assert sorted(each.message for each in told) == sorted(f"{MARKING} default/{name}" for name in there)
        assert {each.source.component for each in told} == {"taint-eviction-controller"}


def test_in_a_cluster_no_pod_leaves_a_node_whose_taint_is_gone() -> None:
    with Cluster(seed=12, nodes=2, controllers=ALONE) as cluster:
        cluster.apply(WEB)
        cluster.advance(seconds=10)
        before = placed(cluster)
        there = [name for name, where in before.items() if where == "node-1"]
        taint(cluster, "node-1", *UNREACHABLE)
        cluster.advance(seconds=299)
        taint(cluster, "node-1")
        cluster.advance(minutes=30)
        assert placed(cluster) == before
        messages = [each.message for each in cluster.list("events") if each.reason == "TaintManagerEviction"]
        assert sorted(messages) == sorted(f"{CANCELLING} default/{name}" for name in there)


def test_in_a_cluster_the_time_runs_anew_after_a_restart() -> None:
    with Cluster(seed=13, nodes=1, controllers=ALONE) as cluster:
        cluster.apply(WEB)
        cluster.advance(seconds=10)
        before = placed(cluster)
        taint(cluster, "node-1", *UNREACHABLE)
        cluster.advance(seconds=200)
        cluster.restart_manager()
        cluster.advance(seconds=299)
        assert placed(cluster) == before
        cluster.advance(seconds=40)
        assert not set(before) & set(placed(cluster))
