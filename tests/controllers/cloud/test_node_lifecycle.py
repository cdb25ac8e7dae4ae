"""cloud-node-lifecycle-controller: rows of upstream's controller tests, and nodes that go in a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.cloud import CloudError, NotSupported
from steersman.api.errors import Forbidden, NotFound
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.nodes import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from steersman.cloud.local import LocalProvider
from steersman.controllers.cloud.node_lifecycle import SHUTDOWN, controller, ready_status
from steersman.intent.actions import Action, Delete, Emit, Patch
from steersman.intent.cloud import InstanceExists, InstanceShutDown
from steersman.intent.controller import Change
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Verdict, Wake
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OTHER = Taint(key="other", effect="NoExecute")


def node(ready: str = "False", *taints: Taint, provider: str = "fake://12345") -> Node:
    return Node(
        metadata=ObjectMeta(name="node0", uid="u", resourceVersion="7"),
        spec=NodeSpec(providerID=provider, taints=taints),
        status=NodeStatus(conditions=(NodeCondition(type="Ready", status=ready),) if ready else ()),
    )


def look(given: Node, answers: Any = None) -> tuple[list[Action[Any]], Verdict]:
    return walk(controller.decide(given, NOW), answers)


ERROR = CloudError("err!")


@pytest.mark.parametrize(
    ("given", "exists", "shut_down", "expected"),
    [
        (node(), False, False, "deleted"),
        (node(), ERROR, False, "error"),
        (node(), True, False, ""),
        (node("Unknown"), False, False, "deleted"),
        (node("Unknown"), True, False, ""),
        (node(""), False, False, "deleted"),
        (node("True"), False, False, ""),
        (node(), True, True, "tainted"),
        (node(provider=""), True, True, "tainted"),
        (node(provider=""), False, True, "deleted"),
        (node(provider=""), ERROR, True, "error"),
        (node(), True, ERROR, "error"),
        (node("True"), True, True, ""),
        (node(), False, True, "deleted"),
        # Not in upstream's table:
        (node(), True, NotSupported("unimplemented"), ""),
        (node("False", SHUTDOWN), True, True, ""),
        (node("False", SHUTDOWN), True, False, ""),
        (node("True", SHUTDOWN), True, True, "untainted"),
    ],
)
def test_a_node_is_deleted_tainted_or_left_alone(
    given: Node, exists: Any, shut_down: Any, expected: str
) -> None:
    recorded: list[Action[Any]] = []
    answers: Any = {InstanceExists: exists, InstanceShutDown: shut_down}
    if expected == "error":
        with pytest.raises(CloudError, match="err!"):
            walk(controller.decide(given, NOW), answers, recorded=recorded)
    else:
        walk(controller.decide(given, NOW), answers, recorded=recorded)
    deleted = [one for one in recorded if isinstance(one, Delete)]
    taints = [one.body["spec"]["taints"] for one in recorded if isinstance(one, Patch)]
    assert deleted == ([Delete(given)] if expected == "deleted" else [])
    assert taints == {
        "tainted": [[{"key": SHUTDOWN.key, "effect": "NoSchedule"}]],
        "untainted": [None],
    }.get(expected, [])


def test_a_deletion_is_told_and_so_is_its_failure() -> None:
    actions, verdict = look(node(), {InstanceExists: False, Delete: Forbidden("no")})
    events = [(one.type, one.reason, one.message) for one in actions if isinstance(one, Emit)]
    assert events == [
        ("Normal", "DeletingNode", "Deleting node node0 because it does not exist in the cloud provider"),
        ("Warning", "DeletingNodeFailed", "Failed deleting node node0: no"),
    ]
    assert isinstance(verdict, Wake)
    _, verdict = look(node(), {InstanceExists: False, Delete: NotFound("gone")})
    assert verdict == Rest("node is gone already")


def test_other_taints_stay_and_a_change_meanwhile_is_noticed() -> None:
    former = Taint(key=SHUTDOWN.key, effect="NoSchedule", value="old")
    actions, _ = look(node("False", OTHER, former), {InstanceShutDown: True})
    (patch,) = (one for one in actions if isinstance(one, Patch))
    assert patch.body == {
        "metadata": {"uid": "u", "resourceVersion": "7"},
        "spec": {
            "taints": [
                {"key": "other", "effect": "NoExecute"},
                {"key": SHUTDOWN.key, "effect": "NoSchedule"},
            ]
        },
    }
    actions, _ = look(node("True", OTHER, SHUTDOWN))
    (patch,) = (one for one in actions if isinstance(one, Patch))
    assert patch.body["spec"]["taints"] == [{"key": "other", "effect": "NoExecute"}]


def test_a_node_that_is_not_ready_is_asked_about_once_a_period() -> None:
    configured = controller.configured(Settings({"node-monitor-period": 3.0}))
    assert configured is not None
    _, verdict = walk(configured.decide(node(), NOW))
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta(seconds=3)
    assert (configured.min_backoff, configured.max_backoff) == (3.0, 3.0)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, node("True"), True),
        (node("True"), node("True", OTHER), False),
        (node("True"), node("False"), True),
        (node("False"), node("True"), True),
        (node("True"), node("True", SHUTDOWN), True),
        (node("True"), None, False),
    ],
)
def test_which_changes_of_a_node_are_looked_at(old: Node | None, new: Node | None, expected: bool) -> None:
    (watch,) = controller.watches
    assert bool(list(watch.to(StaticCaches(controller), Change(old, new)))) is expected


def test_readiness_is_unknown_without_a_condition() -> None:
    assert ready_status(node("")) == "Unknown"


# -- in a cluster -------------------------------------------------------------------------------


class _Clouds:
    def __init__(self) -> None:
        self.provider = LocalProvider()
        assert self.provider.instances is not None
        self.instances = self.provider.instances


@pytest.fixture
def cloud() -> _Clouds:
    return _Clouds()


@pytest.fixture
def cluster(cloud: _Clouds) -> Iterator[Cluster]:
    names = ("cloud-node-lifecycle-controller",)
    with Cluster(seed=3, cloud=cloud.provider, controllers=names) as made:
        yield made


def not_ready(cluster: Cluster, name: str, status: str = "Unknown") -> None:
    cluster.node(name).fail()
    condition = {"type": "Ready", "status": status, "reason": "Test"}
    cluster.patch("Node", name, {"status": {"conditions": [condition]}}, subresource="status")


def test_a_node_whose_instance_is_terminated_goes(cluster: Cluster, cloud: _Clouds) -> None:
    not_ready(cluster, "node-1")
    cluster.advance(minutes=1)
    assert len(cluster.list("Node")) == 3, "its instance exists"
    cloud.instances.terminated.add("node-1")
    cluster.advance(seconds=6)
    assert [one.metadata.name for one in cluster.list("Node")] == ["node-2", "node-3"]
    (event,) = cluster.list("Event", "default")
    assert (event.reason, event.source.component) == ("DeletingNode", "cloud-node-lifecycle-controller")


def test_a_node_that_is_shut_down_is_tainted_until_it_is_ready_again(
    cluster: Cluster, cloud: _Clouds
) -> None:
    cloud.instances.stopped.add("node-2")
    not_ready(cluster, "node-2")
    cluster.advance(seconds=6)
    keys = [taint.key for taint in cluster.get("Node", "node-2").spec.taints]
    assert SHUTDOWN.key in keys
    version = cluster.get("Node", "node-2").metadata.resourceVersion
    cluster.advance(minutes=2)
    assert cluster.get("Node", "node-2").metadata.resourceVersion == version, "tainted once"
    condition = {"type": "Ready", "status": "True", "reason": "Test"}
    cluster.patch("Node", "node-2", {"status": {"conditions": [condition]}}, subresource="status")
    cluster.advance(seconds=1)
    assert SHUTDOWN.key not in [taint.key for taint in cluster.get("Node", "node-2").spec.taints]


def test_a_ready_node_costs_nothing(cluster: Cluster) -> None:
    trace = cluster.manager.fleet.trace
    before = len(trace.rounds("cloud-node-lifecycle-controller"))
    cluster.advance(days=30)
    assert len(trace.rounds("cloud-node-lifecycle-controller")) == before
