"""Nodes that join, fall silent and return, on a real API server: both managers taint them alike.

The story is the kubelet: it posts statuses and renews leases, and stops doing so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.api.conditions import find_condition
from steersman.api.errors import NotFound
from steersman.api.kinds import LEASES, PODS, Pod
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.scheme import Kind
from steersman.explore.normalize import Names, events

Document = dict[str, Any]
EVENTS: Kind[Document] = Kind("", "v1", "Event", "events", True, dict)
GRACE, STARTUP, PERIOD, BEAT = 6, 8, 1, 1.0
FLAGS = (
    f"--node-monitor-grace-period={GRACE}s",
    f"--node-startup-grace-period={STARTUP}s",
    f"--node-monitor-period={PERIOD}s",
    "--node-eviction-rate=0.5",
)
NEVER = "never"
LABELS = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "beta.kubernetes.io/arch": "arm"}


def node(name: str, posted: Document | None = None) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": LABELS},
        **(posted or {}),
    }


def status(ready: str, **others: str) -> Document:
    """The status that a kubelet posts."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kinds = {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        **others,
        "Ready": ready,
    }
    conditions = [
        {
            "type": type_,
            "status": value,
            "reason": "Test",
            "message": "posted",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for type_, value in kinds.items()
    ]
    return {"status": {"conditions": conditions}}


def pod(name: str, on: str) -> Document:
    spec = {"nodeName": on, "containers": [{"name": "main", "image": "example/app:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def taints(found: Node) -> list[str]:
    return sorted(
        f"{each.key.removeprefix('node.kubernetes.io/')}:{each.effect}" for each in found.spec.taints
    )


def has(*wanted: str) -> Callable[[Node], bool]:
    return lambda found: taints(found) == sorted(wanted)


def ready(value: str) -> Callable[[Node], bool]:
    def look(found: Node) -> bool:
        condition = find_condition(found.status.conditions, "Ready")
        return condition is not None and condition.status == value

    return look


def not_ready(found: Pod) -> bool:
    condition = find_condition(found.status.conditions, "Ready")
    return condition is not None and condition.status == "False"


class Heartbeats:
    """Renews the leases of nodes until they are to die."""

    def __init__(self, stage: Any) -> None:
        self.alive: dict[str, None] = {}
        self._stage = stage

    async def beat(self, name: str) -> None:
        api, now = self._stage.api, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now}
        try:
            await api.patch(LEASES.untyped, "kube-node-lease", name, {"spec": spec})
        except NotFound:
            body = {"metadata": {"name": name}, "spec": spec}
            await api.create(LEASES.untyped, "kube-node-lease", body)

    async def run(self) -> None:
        while True:
            for name in tuple(self.alive):
                await self.beat(name)
            await asyncio.sleep(BEAT)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Heartbeats]:
        task = asyncio.create_task(self.run())
        try:
            yield self
        finally:
            task.cancel()


async def seen(stage: Any, names: Iterable[str]) -> Document:
    """Nodes, but for times and what the story itself has posted."""
    found: Document = {}
    for name in names:
        one: Node = await stage.api.get(NODES, "", name)
        found[name] = {
            "taints": taints(one),
            "timed": all(taint.timeAdded is not None for taint in one.spec.taints),
            "labels": dict(one.metadata.labels),
            "conditions": sorted(
                (each.type, each.status, each.reason, each.message) for each in one.status.conditions
            ),
        }
    return found


async def conditions_of(stage: Any, name: str) -> list[Document]:
    document = await stage.api.get(PODS.untyped, stage.namespace, name)
    return [
        {key: value for key, value in each.items() if not key.endswith("Time")}
        for each in document["status"]["conditions"]
    ]


async def tell(stage: Any) -> Document:
    told: Document = {}
    async with Heartbeats(stage).running() as heartbeats:
        # They join, with the taint of new nodes, and lose it when they are ready.
        for name in ("a", "b", "c"):
            heartbeats.alive[name] = None
            await stage.create(NODES, node(name, status("False")))
            # Where no node is ready, none is tainted NoExecute.
            execute = () if name == "a" else ("not-ready:NoExecute",)
            await stage.until(NODES, name, has("not-ready:NoSchedule", *execute))
            await stage.patch(NODES, name, status("True"), subresource="status")
            await stage.until(NODES, name, has())
            await stage.until(
                NODES, name, lambda one: one.metadata.labels["beta.kubernetes.io/arch"] == "amd64"
            )
        await stage.create(NODES, node(NEVER))
        for name in ("running", "starting"):
            await stage.create(PODS, pod(name, "c"))
        was_ready = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}],
        }
        await stage.patch(PODS, "running", {"status": was_ready}, subresource="status")
        told["joined"] = await seen(stage, ("a", "b", "c"))
        # One falls silent, and one never says a word.
        del heartbeats.alive["c"]
        await stage.until(NODES, "c", has("unreachable:NoSchedule", "unreachable:NoExecute"))
        await stage.until(PODS, "running", not_ready)
        await stage.until(NODES, NEVER, has("unreachable:NoSchedule", "unreachable:NoExecute"))
        told["silent"] = await seen(stage, ("a", "b", "c", NEVER))
        told["pods"] = [await conditions_of(stage, "running")]
        # One is gone, the other is back.
        await stage.api.delete(NODES, "", NEVER)
        heartbeats.alive["c"] = None
        await stage.patch(NODES, "c", status("True"), subresource="status")
        await stage.until(NODES, "c", has())
        # The kubelet of one says that it is not well.
        await stage.patch(NODES, "b", status("True", MemoryPressure="True", DiskPressure="True"), "status")
        await stage.until(NODES, "b", has("memory-pressure:NoSchedule", "disk-pressure:NoSchedule"))
        await stage.patch(NODES, "b", {"spec": {"unschedulable": True}})
        await stage.patch(
            NODES, "b", status("False", PIDPressure="True", NetworkUnavailable="True"), "status"
        )
        unwell = (
            "not-ready:NoSchedule",
            "not-ready:NoExecute",
            "pid-pressure:NoSchedule",
            "network-unavailable:NoSchedule",
            "unschedulable:NoSchedule",
        )
        await stage.until(NODES, "b", has(*unwell))
        told["unwell"] = await seen(stage, ("a", "b", "c"))
        # And then it is silent: its taint is swapped.
        del heartbeats.alive["b"]
        await stage.until(
            NODES,
            "b",
            has(
                *(one.replace("not-ready", "unreachable") for one in unwell[:2]),
                "network-unavailable:NoSchedule",
                "unschedulable:NoSchedule",
            ),
        )
        told["swapped"] = await seen(stage, ("a", "b", "c"))
        # All are silent: no pod is evicted for that.
        heartbeats.alive.clear()
        for name in ("a", "b", "c"):
            await stage.until(NODES, name, ready("Unknown"))
            await stage.until(NODES, name, lambda one: "unreachable:NoSchedule" in taints(one))
        await stage.quiet()
        told["dark"] = await seen(stage, ("a", "b", "c"))
        # And all return.
        for name in ("a", "b", "c"):
            heartbeats.alive[name] = None
            await stage.patch(NODES, name, status("True", NetworkUnavailable="False"), subresource="status")
        await stage.patch(NODES, "b", {"spec": {"unschedulable": False}})
        for name in ("a", "b", "c"):
            await stage.until(NODES, name, has())
        await stage.quiet()
        told["back"] = await seen(stage, ("a", "b", "c"))
    page = await stage.api.list(EVENTS, "default")
    # The API server writes events of its Services there, too.
    about_nodes = [event for event in page.items if event["involvedObject"]["kind"] == "Node"]
    told["node events"] = events(about_nodes, Names({}))
    return told


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell, "nodes", controllers=("node-lifecycle-controller",), kinds=(), flags=FLAGS
    )
    return found


def test_a_node_that_is_silent_is_unknown_and_its_pods_are_not_ready(ends: dict[str, dict[str, Any]]) -> None:
    silent = ends["steersman"]["silent"]
    assert ("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.") in silent["c"][
        "conditions"
    ]
    assert {reason for _, _, reason, _ in silent[NEVER]["conditions"]} == {"NodeStatusNeverUpdated"}
    assert silent["a"]["taints"] == []


def test_no_node_is_tainted_no_execute_where_none_is_ready(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None]
) -> None:
    assert not any(
        "NoExecute" in taint for one in ends["steersman"]["dark"].values() for taint in one["taints"]
    )

    def dark(end: dict[str, Any]) -> Document:
        # The reference may leave a taint that it added in the same moment: it removes those in its cache.
        return {
            name: {**one, "taints": [taint for taint in one["taints"] if "NoExecute" not in taint]}
            for name, one in end["dark"].items()
        }

    alike(ends, dark)


@pytest.mark.parametrize(
    "what", ["joined", "silent", "pods", "unwell", "swapped", "back", "node events", "events"]
)
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)


def test_both_managers_count_the_same(ends: dict[str, dict[str, Any]], alike: Callable[..., None]) -> None:
    names = (
        "node_collector_zone_size",
        "node_collector_zone_health",
        "node_collector_unhealthy_nodes_in_zone",
    )
    alike(ends, lambda end: {name: end["counters"].get(name) for name in names})
