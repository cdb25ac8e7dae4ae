"""Simulated nodes: running them, and operating on them over any `Api`.

::

    with World(seed=7) as world:
        world.spawn(Nodes(world.api("nodes"), world, ("n1", "n2"), start_delay=1.0).run())

The kubelets of simulated nodes obey an annotation of their Node (`fail`, `recover`, `reboot`). `drain` works on real nodes, too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from steersman.api.clock import Clock
from steersman.api.errors import NotFound, TooManyRequests
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load, resource_v1
from steersman.api.scheme import Kind
from steersman.client.api import Api, EventType
from steersman.sim.dynamicresources import DRIVER, UNHEALTHY
from steersman.sim.dynamicresources.driver import SLICES
from steersman.sim.kubelet import Kubelets, KubeletSettings, Shape
from steersman.sim.kubelet.node import STATE, is_ready, is_simulated
from steersman.sim.scheduler import Scheduler

NODES: Kind[v1.Node] = load("", "v1", "Node")
PODS: Kind[v1.Pod] = load("", "v1", "Pod")
PAUSE = 1.0
"""Seconds between two lists of the remaining pods."""
_MIRROR = "kubernetes.io/config.mirror"

Output: TypeAlias = Callable[[str], None]


class Nodes:
    """Simulated nodes with their kubelets, and the scheduler that binds pods to them."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        names: Iterable[str] = ("node-1",),
        *,
        shape: Shape = Shape(),
        parallel: int = 16,
        **settings: Any,
    ) -> None:
        """``settings`` are the fields of `steersman.sim.kubelet.KubeletSettings`. The kubelets and the scheduler have at
        most ``parallel`` requests each in flight."""
        self.kubelets = Kubelets(
            api, clock, names, settings=KubeletSettings(**settings), shape=shape, parallel=parallel
        )
        self.scheduler = Scheduler(api, clock, parallel=parallel)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.kubelets.run(), name="kubelets")
            group.create_task(self.scheduler.run(), name="scheduler")


class NodeError(Exception):
    """A node operation that cannot be done. The message says why."""


# -- listing ----------------------------------------------------------------------------------


class NodeRow(msgspec.Struct, frozen=True):
    """A node in a list."""

    name: str
    status: str
    """As kubectl shows it: ``Ready,SchedulingDisabled``."""
    simulated: str
    """The state that its kubelet was told to be in: ``up``, ``failed`` or ``rebooting``; ``no`` for a real node."""
    pods: int
    """Number of pods that have not ended."""


async def list_nodes(api: Api) -> tuple[NodeRow, ...]:
    """All nodes."""
    nodes = [each for each in (await api.list(NODES)).items if isinstance(each, v1.Node)]
    pods = [each for each in (await api.list(PODS)).items if isinstance(each, v1.Pod)]
    active = Counter(pod.spec.nodeName for pod in pods if _is_active(pod))
    return tuple(
        NodeRow(
            node.metadata.name,
            ("Ready" if is_ready(node) else "NotReady")
            + (",SchedulingDisabled" if node.spec.unschedulable else ""),
            (node.metadata.annotations.get(STATE) or "up") if is_simulated(node) else "no",
            active[node.metadata.name],
        )
        for node in nodes
    )


def _is_active(pod: v1.Pod) -> bool:
    return pod.status.phase not in ("Succeeded", "Failed")


async def find(api: Api, name: str) -> v1.Node:
    """Get a node. Raises `NodeError` where it does not exist."""
    try:
        return await api.get(NODES, "", name)
    except NotFound:
        nodes = (await api.list(NODES)).items
        names = ", ".join(each.metadata.name for each in nodes) or "none"
        raise NodeError(f"node {name!r} not found; available: {names}") from None


# -- failing, recovering, rebooting -----------------------------------------------------------


async def fail(api: Api, name: str, output: Output = print) -> None:
    """Stop the kubelet of a node: no heartbeats, no pod status updates."""
    await _annotate(api, await find(api, name), "failed")
    output(f"{name} failed: its kubelet is stopped; `steersman node recover {name}` starts it again")


async def recover(api: Api, name: str, output: Output = print) -> None:
    """Start the kubelet of a failed node again, and uncordon the node."""
    node = await find(api, name)
    if is_simulated(node):
        await _annotate(api, node, None)
    if node.spec.unschedulable:
        await api.patch(NODES, "", name, {"spec": {"unschedulable": None}})
    output(f"{name} recovered and is schedulable")


async def reboot(api: Api, name: str, output: Output = print) -> None:
    """Restart a node with all its pods; returns when it is back."""
    node = await find(api, name)
    before = node.status.nodeInfo.bootID
    if node.metadata.annotations.get(STATE):
        # The kubelet acts on a change of the annotation.
        await _annotate(api, node, None)
    await _annotate(api, node, "rebooting")
    output(f"{name} is rebooting")
    while node.status.nodeInfo.bootID == before:
        node = await _changed(api, node)
    await _annotate(api, node, None)
    output(f"{name} is back")


async def _annotate(api: Api, node: v1.Node, value: str | None, annotation: str = STATE) -> None:
    name = node.metadata.name
    if not is_simulated(node):
        raise NodeError(f"{name} is not a simulated node: it cannot fail, recover or reboot on request")
    await api.patch(NODES, "", name, {"metadata": {"annotations": {annotation: value}}})


async def _changed(api: Api, node: v1.Node) -> v1.Node:
    """Wait for the next change of a node. Raises `NodeError` where it is deleted."""
    meta = node.metadata
    selector = f"metadata.name={meta.name}"
    while True:
        watch = api.watch(NODES, field_selector=selector, resource_version=meta.resourceVersion)
        async for event in watch:
            if isinstance(event.obj, v1.Node):
                if event.type is EventType.DELETED:
                    raise NodeError(f"{meta.name} was deleted")
                return event.obj


# -- devices ----------------------------------------------------------------------------------


async def fail_devices(api: Api, name: str, devices: Iterable[str], output: Output = print) -> None:
    """Make simulated devices of a node unhealthy: they get a taint with the effect NoExecute."""
    node, named = await find(api, name), tuple(devices)
    _check_devices(name, named, await _devices(api, name))
    failed = dict.fromkeys((*_unhealthy(node), *named))
    await _annotate(api, node, ",".join(failed), UNHEALTHY)
    output(f"{name}: {', '.join(failed)} unhealthy; `steersman node recover-device {name} …` undoes it")


async def recover_devices(api: Api, name: str, devices: Iterable[str], output: Output = print) -> None:
    """Make simulated devices of a node healthy again."""
    node = await find(api, name)
    recovered = tuple(devices)
    # One that failed can recover even where the node has fewer devices by now.
    _check_devices(name, recovered, (*await _devices(api, name), *_unhealthy(node)))
    left = [each for each in _unhealthy(node) if each not in recovered]
    await _annotate(api, node, ",".join(left) or None, UNHEALTHY)
    output(f"{name}: {', '.join(recovered)} healthy")


async def _devices(api: Api, name: str) -> list[str]:
    """The names of the simulated devices of a node."""
    slices = await api.list(SLICES, field_selector=f"spec.driver={DRIVER},spec.nodeName={name}")
    return [
        device.name
        for each in slices.items
        if isinstance(each, resource_v1.ResourceSlice)
        for device in each.spec.devices
    ]


def _check_devices(name: str, devices: Iterable[str], known: Iterable[str]) -> None:
    """Raises `NodeError` for a device that the node does not have."""
    known = tuple(dict.fromkeys(known))
    for device in devices:
        if device not in known:
            available = ", ".join(known) or "none"
            raise NodeError(f"{name} has no simulated device {device!r}; available: {available}")


def _unhealthy(node: v1.Node) -> list[str]:
    return [each for each in node.metadata.annotations.get(UNHEALTHY, "").split(",") if each]


# -- draining ---------------------------------------------------------------------------------


async def drain(
    api: Api,
    name: str,
    *,
    force: bool = False,
    timeout: float = 0.0,
    pause: float = PAUSE,
    output: Output = print,
) -> None:
    """Cordon a node and evict its pods; returns when they are gone.

    As ``kubectl drain``: pods of DaemonSets and static pods stay, and an eviction that a PodDisruptionBudget refuses is
    retried after ``pause`` seconds. Raises `NodeError` where pods have no controller and ``force`` is not set, or after
    ``timeout`` seconds; 0 is no limit.
    """
    node = await find(api, name)
    if not node.spec.unschedulable:
        await api.patch(NODES, "", name, {"spec": {"unschedulable": True}})
        output(f"{name} cordoned")
    pods = await _pods(api, name)
    kept = [pod for pod in pods if stays_in_drain(pod)]
    evicted = {pod.metadata.uid: pod for pod in pods if not stays_in_drain(pod)}
    unmanaged = [str(pod.key) for pod in evicted.values() if _is_active(pod) and _controller(pod) is None]
    if unmanaged and not force:
        raise NodeError(
            f"no controller would recreate these pods: {', '.join(unmanaged)}; --force evicts them anyway"
        )
    try:
        async with asyncio.timeout(timeout or None):
            await _evict_all(api, name, dict(evicted), pause, output)
    except TimeoutError:
        left = [str(pod.key) for pod in await _pods(api, name) if pod.metadata.uid in evicted]
        raise NodeError(f"{name}: pods left after {timeout:g} s: {', '.join(left)}") from None
    count = "1 pod" if len(evicted) == 1 else f"{len(evicted)} pods"
    note = f", {len(kept)} of DaemonSets or static pods kept" if kept else ""
    output(f"{name} drained: {count} evicted{note}; `steersman node recover {name}` uncordons it")


async def _evict_all(api: Api, name: str, left: dict[str, v1.Pod], pause: float, output: Output) -> None:
    accepted: dict[str, None] = {}
    refused: dict[str, str] = {}
    while left:
        for uid, pod in left.items():
            if uid in accepted:
                continue
            if uid not in refused:
                output(f"evicting {pod.key}")
            try:
                await _evict(api, pod)
            except TooManyRequests as error:
                if refused.get(uid) != error.message:
                    output(f"  {pod.key} not evicted yet: {error.message}")
                refused[uid] = error.message
                continue
            except NotFound:
                pass
            accepted[uid] = None
        present = {pod.metadata.uid for pod in await _pods(api, name)}
        for uid in [uid for uid in left if uid not in present]:
            output(f"  {left.pop(uid).key} evicted")
        if left:
            await asyncio.sleep(pause)


async def _pods(api: Api, name: str) -> list[v1.Pod]:
    found = await api.list(PODS, field_selector=f"spec.nodeName={name}")
    return [each for each in found.items if isinstance(each, v1.Pod)]


async def _evict(api: Api, pod: v1.Pod) -> None:
    meta = pod.metadata
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta.name, "namespace": meta.namespace},
        "deleteOptions": {"preconditions": {"uid": meta.uid}},
    }
    await api.subresource(PODS, meta.namespace, meta.name, "eviction", body)


def _controller(pod: v1.Pod) -> str | None:
    return next((owner.kind for owner in pod.metadata.ownerReferences if owner.controller), None)


def stays_in_drain(pod: v1.Pod) -> bool:
    """Whether a drain keeps a pod: one of a DaemonSet would be recreated at once, a static pod cannot be evicted."""
    return _controller(pod) == "DaemonSet" or _MIRROR in pod.metadata.annotations
