"""Rounds of nodes and pods: events, pods of silent nodes, and a server that is away."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from steersman.api.errors import Conflict, NotFound, ServerError, Unreachable
from steersman.api.kinds import LEASES, PODS
from steersman.api.kinds.nodes import NODES, Node, Taint
from steersman.api.scheme import Key
from steersman.controllers.nodelifecycle import BUSY, ZONES, controller
from steersman.controllers.nodelifecycle.health import ready_status
from steersman.intent.actions import Address, Emit, List, Patch
from steersman.intent.controller import Change
from steersman.intent.verdict import Rest, Wake
from tests.harness.node_rounds import FAST, LONG_AGO, NOW, Rounds, keys_of, lease, node, pod

SECOND = timedelta(seconds=1)
HEARTBEAT = "leases.coordination.k8s.io kube-node-lease/node0"
UNREACHABLE = Taint(key="node.kubernetes.io/unreachable", effect="NoExecute", timeAdded=LONG_AGO)
NEW_NODE = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")


# -- events ---------------------------------------------------------------------------------------


def test_a_node_is_registered_once() -> None:
    rounds = Rounds(node("node0", "Unknown", uid="1234567890"))
    rounds.health()
    rounds.health()
    (event,) = [action for action in rounds.actions if isinstance(action, Emit)]
    assert event.about == Address(NODES, "", "node0", "1234567890")
    assert (event.type, event.reason) == ("Normal", "RegisteredNode")
    assert event.message == "Node node0 event: Registered Node node0 in Controller"


def test_a_node_that_is_deleted_is_told_once() -> None:
    rounds = Rounds(node())
    rounds.health()
    rounds.caches.remove(rounds.node())
    assert rounds.health() == Rest("node is gone")
    assert rounds.health() == Rest("gone")
    assert rounds.events[1:] == [("RemovingNode", "Node node0 event: Removing Node node0 from Controller")]
    assert rounds.memory.healths == {}


def test_another_node_of_the_same_name_is_another_node() -> None:
    rounds = Rounds(node(uid="1"))
    rounds.health()
    rounds.put(node(uid="2"))
    rounds.health()
    assert [reason for reason, _ in rounds.events] == ["RegisteredNode", "RemovingNode", "RegisteredNode"]


def test_a_silent_node_is_told_once_with_its_pods() -> None:
    rounds = Rounds(node(), pod("a"), pod("b"), pod("c", ready="False"), pod("d", on="node1"))
    rounds.health()
    rounds.later(50)
    assert rounds.health() == Rest("heartbeats stopped: conditions set to Unknown")
    assert rounds.health() == Rest("heartbeats stopped")
    assert rounds.events[1:] == [
        ("NodeNotReady", "Node node0 status is now: NodeNotReady"),
        ("NodeNotReady", "Node is not ready"),
        ("NodeNotReady", "Node is not ready"),
    ]


# -- a node comes, goes and returns ---------------------------------------------------------------


def test_a_new_node_loses_its_taint_when_it_is_ready() -> None:
    rounds = Rounds(node(ready="False", created=NOW, taints=(NEW_NODE,)))
    rounds.monitor()
    assert "not-ready:NoSchedule" in keys_of(rounds.node().spec.taints)
    rounds.status("node0", "True")
    rounds.monitor()
    assert rounds.node().spec.taints == ()


def test_a_node_that_returns_loses_its_taints() -> None:
    rounds = Rounds(node("node0"), node("node1"), **FAST)
    rounds.monitor()
    assert keys_of(rounds.node().spec.taints) == []
    rounds.later(51)
    rounds.status("node1", "True")
    rounds.later(4)
    rounds.monitor()
    rounds.monitor()
    assert keys_of(rounds.node().spec.taints) == ["unreachable:NoExecute", "unreachable:NoSchedule"]
    assert keys_of(rounds.node("node1").spec.taints) == []
    rounds.status("node0", "True")
    rounds.monitor()
    assert keys_of(rounds.node().spec.taints) == []


def test_unreachable_is_swapped_for_not_ready_at_once() -> None:
    rounds = Rounds(node("node0", "Unknown", heartbeat=LONG_AGO), node("node1"))
    rounds.monitor()
    assert "unreachable:NoExecute" in keys_of(rounds.node().spec.taints)
    rounds.status("node0", "False")
    rounds.health()
    assert keys_of(rounds.node().spec.taints) == ["not-ready:NoSchedule", "not-ready:NoExecute"]


def test_a_node_whose_ready_condition_was_removed_is_not_tainted() -> None:
    rounds = Rounds(node("node0"), node("node1"), **FAST)
    rounds.monitor()
    rounds.status("node0", None)
    rounds.monitor()
    assert rounds.node().spec.taints == ()


def test_every_node_that_is_not_ready_is_tainted_in_the_end() -> None:
    rounds = Rounds(node("node0", "Unknown"), node("node1"), node("node2", "False"), node("node4"), **FAST)
    rounds.monitor()
    rounds.status("node0", "True")
    rounds.put(node("node3", "Unknown"), node("node5", "False"))
    for _ in range(4):
        rounds.later(1)
        rounds.monitor()
    executes = {
        name: [key for key in keys_of(rounds.node(name).spec.taints) if key.endswith("NoExecute")]
        for name in ("node0", "node2", "node3", "node5")
    }
    assert executes == {
        "node0": [],
        "node2": ["not-ready:NoExecute"],
        "node3": ["unreachable:NoExecute"],
        "node5": ["not-ready:NoExecute"],
    }


def test_a_process_begins_by_removing_no_execute_taints() -> None:
    rounds = Rounds(node("node0", "Unknown", taints=(UNREACHABLE,)), node("node1"))
    rounds.health()
    assert keys_of(rounds.node().spec.taints) == ["unreachable:NoSchedule"]
    rounds.health()
    rounds.zones()
    assert keys_of(rounds.node().spec.taints) == ["unreachable:NoSchedule", "unreachable:NoExecute"]


def test_labels_and_taints_are_written_in_one_patch() -> None:
    rounds = Rounds(node(taints=(NEW_NODE,), labels={"kubernetes.io/os": "linux"}))
    rounds.health()
    (patch,) = rounds.patches()
    assert patch.body["spec"] == {"taints": []}
    assert patch.body["metadata"]["labels"] == {"beta.kubernetes.io/os": "linux"}


def test_a_healthy_node_waits_for_the_end_of_its_grace_period_and_writes_nothing() -> None:
    rounds = Rounds(node(), lease(NOW))
    assert rounds.health() == Wake(50 * SECOND, "heartbeats go on", renewed_by=HEARTBEAT)
    rounds.later(10)
    rounds.put(lease(NOW + 10 * SECOND))
    assert rounds.health() == Wake(50 * SECOND, "heartbeats go on", renewed_by=HEARTBEAT)
    rounds.later(20)
    assert rounds.health() == Wake(30 * SECOND, "heartbeats go on", renewed_by=HEARTBEAT)
    assert rounds.patches() == []


def test_the_wall_clock_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds(node(), lease(NOW))
    rounds.health()
    monkeypatch.setattr(Rounds, "now", NOW + timedelta(days=1))
    assert isinstance(rounds.health(), Wake)
    monkeypatch.setattr(Rounds, "now", NOW - timedelta(days=1))
    assert isinstance(rounds.health(), Wake)
    assert rounds.patches() == []


# -- pods -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pods", [1, 100])
def test_all_pods_of_a_silent_node_become_not_ready(pods: int) -> None:
    rounds = Rounds(node(), *(pod(f"p{n}") for n in range(pods)))
    rounds.health()
    rounds.later(60)
    rounds.health()
    assert rounds.pod_updates == pods
    conditions = {
        (each.type, each.status, each.lastTransitionTime)
        for found in rounds.caches[PODS].list()
        for each in found.status.conditions
    }
    assert conditions == {("Ready", "False", rounds.now)}


@pytest.mark.parametrize("status", ["Unknown", "False"])
def test_pods_that_could_not_be_made_not_ready_are_tried_again(status: str) -> None:
    rounds = Rounds(node(), pod())
    rounds.health()
    rounds.later(60)

    def refuse(action: Any) -> Any:
        return (
            ServerError("fake")
            if action.target.metadata.namespace
            else Rounds()._server.update(action.target)
        )

    with pytest.raises(ServerError):
        rounds.health(answers={Patch: refuse})
    rounds.status("node0", status)
    rounds.health()
    rounds.health()
    assert rounds.pod_updates == 2


def test_a_node_that_is_back_does_not_make_its_pods_not_ready() -> None:
    rounds = Rounds(node(), pod())
    rounds.health()
    rounds.memory.unmarked["node0"] = None
    rounds.health()
    rounds.status("node0", "False")
    rounds.health()
    assert rounds.pod_updates == 0


def test_a_pod_that_is_gone_needs_nothing_more() -> None:
    rounds = Rounds(node("node0", "Unknown"), pod("a"), pod("b"))
    rounds.health(answers={Patch: [NotFound("gone")]})
    assert [reason for reason, _ in rounds.events] == ["RegisteredNode", "NodeNotReady"]
    assert rounds.memory.unmarked == {}


@pytest.mark.parametrize(
    ("status", "known", "updated"),
    [
        ("False", False, False),
        ("True", True, False),
        ("False", True, True),
        ("Unknown", True, True),
        (None, True, False),
    ],
)
def test_a_pod_assigned_to_a_node_that_is_not_ready_is_not_ready(
    status: str | None, known: bool, updated: bool
) -> None:
    rounds = Rounds(node(ready=status, created=NOW))
    if known:
        rounds.health()
    rounds.put(pod())
    rounds.round(Key("default", "pod0"))
    assert rounds.pod_updates == updated


@pytest.mark.parametrize("ready", [None, "False"])
def test_a_pod_that_is_not_ready_is_left_alone(ready: str | None) -> None:
    rounds = Rounds(node(ready="False"), pod(ready=ready))
    rounds.health()
    rounds.round(Key("default", "pod0"))
    assert rounds.pod_updates == 0


# -- a server that is away ------------------------------------------------------------------------


def test_a_heartbeat_that_the_cache_does_not_show_is_read_from_the_server() -> None:
    rounds = Rounds(node(), lease(NOW))
    rounds.health()
    rounds.later(50)
    verdict = rounds.health(answers={List: [[lease(NOW + SECOND)]]})
    assert verdict == Wake(50 * SECOND, "the cache lags behind the heartbeats", renewed_by=HEARTBEAT)
    asked = [action for action in rounds.actions if isinstance(action, List)]
    assert asked == [
        List(LEASES, "kube-node-lease", limit=1, field_selector="metadata.name=node0", as_manager=True)
    ]
    assert rounds.patches() == []


@pytest.mark.parametrize("error", [Unreachable("refused"), ServerError("500")])
def test_while_the_server_is_away_no_time_passes_for_nodes(error: Exception) -> None:
    rounds = Rounds(node(), lease(NOW))
    rounds.health()
    rounds.later(50)
    for _ in range(120):
        assert rounds.health(answers={List: error}) == Wake(
            5 * SECOND, "the server cannot be asked for heartbeats"
        )
        rounds.later(5)
    again = rounds.health(answers={List: [[lease(NOW)]]})
    assert isinstance(again, Wake)
    assert again.after == 50 * SECOND, "the node may be silent for a whole grace period"
    assert rounds.patches() == []
    rounds.later(50)
    rounds.health()
    assert ready_status(rounds.node()) == "Unknown"


def test_a_node_that_changed_meanwhile_is_not_overwritten() -> None:
    rounds = Rounds(node())
    rounds.health()
    rounds.later(50)
    with pytest.raises(Conflict):
        rounds.health(answers={Patch: Conflict("changed")})
    assert [reason for reason, _ in rounds.events] == ["RegisteredNode"]


# -- rounds take turns ----------------------------------------------------------------------------


def test_the_round_of_a_node_waits_while_that_of_all_zones_writes_to_it() -> None:
    rounds = Rounds(node(taints=(NEW_NODE,)))
    with rounds.memory.write(("node0",)):
        assert rounds.health() == BUSY
    assert rounds.patches() == []
    assert isinstance(rounds.health(), Wake)
    assert len(rounds.patches()) == 1
    rounds.later(60)
    with rounds.memory.write(("node0",)):
        assert rounds.health() == BUSY
    assert ready_status(rounds.node()) == "True"


def test_a_node_is_free_again_when_a_write_to_it_failed() -> None:
    rounds = Rounds(node(taints=(NEW_NODE,)))
    with pytest.raises(Conflict):
        rounds.health(answers={Patch: Conflict("changed")})
    assert rounds.memory.writing == {}


def test_a_pod_waits_while_the_pods_of_its_node_are_made_not_ready() -> None:
    rounds = Rounds(node(ready="Unknown"), pod())
    rounds.health()
    rounds.memory.unmarked["node0"] = None
    assert rounds.round(Key("default", "pod0")) == BUSY


# -- enqueue --------------------------------------------------------------------------------------


def keys(watch: int, change: Change[Any], *objects: Any) -> list[Key]:
    rounds = Rounds(*objects)
    found = rounds.controller.watches[watch]
    if found.when is not None and not found.when(change.obj):
        return []
    return list(found.to(rounds.caches, change))


@pytest.mark.parametrize(
    ("old", "new", "matters"),
    [
        (None, node(), True),
        (node(), None, True),
        (node(), node(), False),
        (node(), node(heartbeat=NOW + SECOND), False),
        (node(), node(ready="False"), True),
        (node(), node(ready=None), True),
        (node(), node(zone="a"), True),
        (node(), node(labels={"node.kubernetes.io/exclude-disruption": ""}), True),
        (node(ready="Unknown"), node(ready="Unknown", taints=(UNREACHABLE,)), True),
        (node(), node(taints=(NEW_NODE,)), False),
        (node(), node(unschedulable=True), False),
    ],
)
def test_zones_are_looked_at_when_a_node_changes_that_they_depend_on(
    old: Node | None, new: Node | None, matters: bool
) -> None:
    assert keys(1, Change(old, new)) == ([ZONES] if matters else [])


def test_a_lease_of_a_node_concerns_the_node() -> None:
    assert keys(2, Change(None, lease(NOW))) == [Key("", "node0")]
    other = lease(NOW)
    assert keys(2, Change(None, type(other)(metadata=pod().metadata))) == []


@pytest.mark.parametrize(
    ("ready", "old", "new", "concerned"),
    [
        ("True", NOW, NOW + SECOND, False),
        ("False", NOW, NOW + SECOND, True),
        ("Unknown", NOW, NOW + SECOND, True),
        ("True", NOW, NOW, True),
        ("True", NOW, NOW - SECOND, True),
        ("True", NOW, None, True),
        ("True", None, NOW + SECOND, True),
    ],
)
def test_a_ready_node_whose_lease_is_renewed_needs_no_round(
    ready: str, old: datetime | None, new: datetime | None, concerned: bool
) -> None:
    rounds = Rounds(node(ready=ready), lease(NOW))
    rounds.health()
    before, after = (lease(at) if at is not None else None for at in (old, new))
    found = rounds.controller.watches[2].to(rounds.caches, Change(before, after))
    assert list(found) == ([Key("", "node0")] if concerned else [])


def test_a_renewal_without_a_round_begins_the_grace_period_anew() -> None:
    rounds = Rounds(node(), lease(NOW))
    rounds.health()
    rounds.later(30)
    renewed = lease(NOW + 30 * SECOND)
    assert not list(rounds.controller.watches[2].to(rounds.caches, Change(lease(NOW), renewed)))
    rounds.put(renewed)
    rounds.later(30)
    assert rounds.health() == Wake(20 * SECOND, "heartbeats go on", renewed_by=HEARTBEAT)
    assert rounds.patches() == []


@pytest.mark.parametrize(
    ("old", "new", "found", "concerned"),
    [
        (None, pod(), node(ready="False"), True),
        (pod(on=""), pod(), node(ready="Unknown"), True),
        (pod(), pod(), node(ready="False"), False),
        (None, pod(), node(), False),
        (None, pod(), node(ready=None), False),
        (None, pod(), node("other", "False"), False),
        (None, pod(on=""), node(ready="False"), False),
        (pod(), None, node(ready="False"), False),
    ],
)
def test_pods_are_looked_at_when_they_are_assigned_to_a_node_that_is_not_ready(
    old: Any, new: Any, found: Node, concerned: bool
) -> None:
    assert keys(3, Change(old, new), found) == ([Key("default", "pod0")] if concerned else [])


def test_the_declaration_is_upstreams() -> None:
    assert controller.name == "node-lifecycle-controller"
    assert controller.service_account == "node-controller"
    assert {flag.name: flag.default for flag in controller.flags} == {
        "node-monitor-period": 5.0,
        "node-monitor-grace-period": 50.0,
        "node-startup-grace-period": 60.0,
        "node-eviction-rate": 0.1,
        "secondary-node-eviction-rate": 0.01,
        "large-cluster-size-threshold": 50,
        "unhealthy-zone-threshold": 0.55,
    }
