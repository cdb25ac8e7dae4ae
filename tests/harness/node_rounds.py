"""A cluster of rows: caches, a clock, and the rounds of the controller for all nodes at one instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from steersman.api.kinds import Condition, Lease, LeaseSpec, ObjectMeta, Pod, PodSpec, PodStatus
from steersman.api.kinds.nodes import NODES, Node, NodeCondition, NodeSpec, NodeStatus, Taint
from steersman.api.scheme import Key
from steersman.controllers.nodelifecycle import ZONES, controller
from steersman.controllers.nodelifecycle.memory import Memory
from steersman.intent.actions import Action, Emit, Patch
from steersman.intent.controller import memory_of
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Verdict
from steersman.runtime.action_table import interpretation_of
from steersman.testing.decision_driver import Answers, StaticCaches, WillingServer, walk

NOW = datetime(2015, 1, 1, 12, tzinfo=UTC)
LONG_AGO = datetime(2012, 1, 1, tzinfo=UTC)
FAST = {
    "node-eviction-rate": 100000.0,
    "secondary-node-eviction-rate": 100000.0,
    "large-cluster-size-threshold": 20,
}
"""The rates of upstream's tests."""


def condition(
    type_: str, status: str, heartbeat: datetime | None = None, since: datetime | None = None, **fields: Any
) -> NodeCondition:
    return NodeCondition(
        type=type_,
        status=status,
        lastHeartbeatTime=heartbeat,
        lastTransitionTime=since or heartbeat,
        **fields,
    )


def node(
    name: str = "node0",
    ready: str | None = "True",
    *,
    heartbeat: datetime = NOW,
    created: datetime = LONG_AGO,
    zone: str = "",
    region: str = "region1",
    taints: tuple[Taint, ...] = (),
    labels: dict[str, str] | None = None,
    conditions: tuple[NodeCondition, ...] = (),
    unschedulable: bool = False,
    uid: str = "",
) -> Node:
    """A node; ``ready`` is the status of its Ready condition, None for a node without one."""
    where = {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": region} if zone else {}
    found = (condition("Ready", ready, heartbeat),) if ready is not None else ()
    return Node(
        metadata=ObjectMeta(
            name=name,
            uid=uid or name,
            creationTimestamp=created,
            labels={**where, **(labels or {})},
            resourceVersion="1",
        ),
        spec=NodeSpec(taints=taints, unschedulable=unschedulable),
        status=NodeStatus(conditions=(*found, *conditions)),
    )


def pod(name: str = "pod0", on: str = "node0", ready: str | None = "True") -> Pod:
    conditions = (Condition(type="Ready", status=ready),) if ready is not None else ()
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=name, resourceVersion="1"),
        spec=PodSpec(nodeName=on),
        status=PodStatus(phase="Running", conditions=conditions),
    )


def lease(renewed: datetime, name: str = "node0") -> Lease:
    return Lease(
        metadata=ObjectMeta(name=name, namespace="kube-node-lease"), spec=LeaseSpec(renewTime=renewed)
    )


def keys_of(taints: tuple[Taint, ...]) -> list[str]:
    """Taints in short: ``unreachable:NoExecute``."""
    return [f"{taint.key.removeprefix('node.kubernetes.io/')}:{taint.effect}" for taint in taints]


class Rounds:
    """Caches, and the rounds that the controller runs on them. What it patches is seen in the next round."""

    def __init__(self, *objects: Any, **flags: Any) -> None:
        configured = controller.configured(Settings(flags))
        assert configured is not None
        self.controller = configured
        self.caches = StaticCaches(configured, *objects)
        self.actions: list[Action[Any]] = []
        self._server = WillingServer()

    @property
    def memory(self) -> Memory:
        return memory_of(self.caches, Memory)

    @property
    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.caches.elapsed)

    def later(self, seconds: float) -> None:
        self.caches.elapsed += seconds

    def put(self, *objects: Any) -> None:
        self.caches.put(*objects)

    def status(self, name: str, ready: str | None, heartbeat: datetime | None = None) -> None:
        """The kubelet of a node posts its status."""
        found = self.node(name)
        conditions = (condition("Ready", ready, heartbeat or self.now),) if ready is not None else ()
        self.put(replace(found, status=NodeStatus(conditions=conditions)))

    def node(self, name: str = "node0") -> Node:
        found = self.caches[NODES].get(Key("", name))
        assert found is not None
        return found

    def round(self, key: Key, answers: Answers | None = None) -> Verdict:
        """One round; its patches are applied to the caches."""
        seen = self.controller.see(self.caches, key)
        if seen is None:
            return Rest("gone")
        actions: list[Action[Any]] = []
        try:
            _, verdict = walk(self.controller.decide(seen, self.now), answers, recorded=actions)
        finally:
            self.actions += actions
            failed = answers is not None
            for action in actions:
                if isinstance(action, Patch) and not failed:
                    self.put(interpretation_of(action).simulate(self._server, action))
        return verdict

    def health(self, name: str = "node0", answers: Answers | None = None) -> Verdict:
        return self.round(Key("", name), answers)

    def zones(self, answers: Answers | None = None) -> Verdict:
        return self.round(ZONES, answers)

    def monitor(self) -> None:
        """A look at all nodes and zones, as upstream's monitorNodeHealth."""
        for each in list(self.caches[NODES].list()):
            self.health(each.metadata.name)
        self.zones()

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(action.reason, action.message) for action in self.actions if isinstance(action, Emit)]

    def patches(self, subresource: str | None = None) -> list[Patch[Any]]:
        return [
            action
            for action in self.actions
            if isinstance(action, Patch) and (subresource is None or action.subresource == subresource)
        ]

    @property
    def pod_updates(self) -> int:
        return sum(isinstance(patch.target, Pod) for patch in self.patches("status"))
