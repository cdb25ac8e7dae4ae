"""What may befall the nodes of a cluster: failing, recovering, rebooting, being drained. Over any `Api`.

The kubelets of simulated nodes do what an annotation of their Node says; draining works on real nodes, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from steersman.api.errors import NotFound, TooManyRequests
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load
from steersman.api.scheme import Kind
from steersman.client.api import Api, EventType
from steersman.sim.kubelet.node import STATE, is_ready

NODES: Kind[v1.Node] = load("", "v1", "Node")
PODS: Kind[v1.Pod] = load("", "v1", "Pod")
PAUSE = 1.0
"""Seconds between two looks at what is still there."""
_MIRROR = "kubernetes.io/config.mirror"

Say: TypeAlias = Callable[[str], None]


class Refusal(Exception):
    """What was asked for cannot be done, and why."""


# -- looking ----------------------------------------------------------------------------------


async def show(api: Api, say: Say = print) -> None:
    """All nodes as a table."""
    nodes = [each for each in (await api.list(NODES)).items if isinstance(each, v1.Node)]
    pods = [each for each in (await api.list(PODS)).items if isinstance(each, v1.Pod)]
    rows = [("NAME", "STATUS", "SIMULATED", "PODS")]
    for node in nodes:
        name = node.metadata.name
        status = "Ready" if is_ready(node) else "NotReady"
        status += ",SchedulingDisabled" if node.spec.unschedulable else ""
        state = node.metadata.annotations.get(STATE) or "up"
        here = sum(pod.spec.nodeName == name and _lives(pod) for pod in pods)
        rows.append((name, status, state if simulated(node) else "no", str(here)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        say("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def simulated(node: v1.Node) -> bool:
    """Whether a node's kubelet is one of ours, and does what annotations say."""
    return node.spec.providerID.startswith("sim://")


def _lives(pod: v1.Pod) -> bool:
    return pod.status.phase not in ("Succeeded", "Failed")


async def find(api: Api, name: str) -> v1.Node:
    """A node. Raises `Refusal` where there is none of that name."""
    try:
        return await api.get(NODES, "", name)
    except NotFound:
        nodes = (await api.list(NODES)).items
        there = ", ".join(each.metadata.name for each in nodes) or "none"
        raise Refusal(f"there is no node {name!r}; there are: {there}") from None


# -- fate -------------------------------------------------------------------------------------


async def fail(api: Api, name: str, say: Say = print) -> None:
    """Let a node fall silent."""
    await _annotate(api, await find(api, name), "failed")
    say(f"{name} has fallen silent; `steersman node recover {name}` brings it back")


async def recover(api: Api, name: str, say: Say = print) -> None:
    """Let a node be heard of again, and take pods again."""
    node = await find(api, name)
    if simulated(node):
        await _annotate(api, node, None)
    if node.spec.unschedulable:
        await api.patch(NODES, "", name, {"spec": {"unschedulable": None}})
    say(f"{name} is heard of again and takes pods")


async def reboot(api: Api, name: str, say: Say = print) -> None:
    """Let a node go down and come back; ends when it is back."""
    node = await find(api, name)
    before = node.status.nodeInfo.bootID
    if node.metadata.annotations.get(STATE):
        # Only a change is a wish.
        await _annotate(api, node, None)
    await _annotate(api, node, "rebooting")
    say(f"{name} goes down with all that runs on it")
    while node.status.nodeInfo.bootID == before:
        node = await _changed(api, node)
    await _annotate(api, node, None)
    say(f"{name} is back")


async def _annotate(api: Api, node: v1.Node, state: str | None) -> None:
    name = node.metadata.name
    if not simulated(node):
        raise Refusal(f"{name} is not simulated: only its own kubelet can make it fail, recover or reboot")
    await api.patch(NODES, "", name, {"metadata": {"annotations": {STATE: state}}})


async def _changed(api: Api, node: v1.Node) -> v1.Node:
    """The node when it has changed since. Raises `Refusal` where it is gone."""
    meta = node.metadata
    selector = f"metadata.name={meta.name}"
    while True:
        watch = api.watch(NODES, field_selector=selector, resource_version=meta.resourceVersion)
        async for event in watch:
            if isinstance(event.obj, v1.Node):
                if event.type is EventType.DELETED:
                    raise Refusal(f"{meta.name} was deleted")
                return event.obj


# -- draining ---------------------------------------------------------------------------------


async def drain(
    api: Api, name: str, *, force: bool = False, timeout: float = 0.0, pause: float = PAUSE, say: Say = print
) -> None:
    """Let a node take no more pods, and evict those it has. Budgets are asked again until they allow it."""
    node = await find(api, name)
    if not node.spec.unschedulable:
        await api.patch(NODES, "", name, {"spec": {"unschedulable": True}})
        say(f"{name} takes no more pods (cordoned)")
    there = await _pods(api, name)
    stay = [pod for pod in there if _stays(pod)]
    go = {pod.metadata.uid: pod for pod in there if not _stays(pod)}
    alone = [str(pod.key) for pod in go.values() if _lives(pod) and _controller(pod) is None]
    if alone and not force:
        raise Refusal(
            f"nobody would bring these pods back: {', '.join(alone)} (no controller manages them); "
            "--force evicts them all the same"
        )
    try:
        async with asyncio.timeout(timeout or None):
            await _empty(api, name, dict(go), pause, say)
    except TimeoutError:
        left = [str(pod.key) for pod in await _pods(api, name) if pod.metadata.uid in go]
        raise Refusal(f"after {timeout:g} s these are still on {name}: {', '.join(left)}") from None
    kept = f", {len(stay)} of DaemonSets or of the node itself stay" if stay else ""
    went = "1 pod" if len(go) == 1 else f"{len(go)} pods"
    say(f"{name} is drained: {went} went{kept}; `steersman node recover {name}` lets it take pods again")


async def _empty(api: Api, name: str, go: dict[str, v1.Pod], pause: float, say: Say) -> None:
    asked: dict[str, None] = {}
    told: dict[str, str] = {}
    while go:
        for uid, pod in go.items():
            if uid in asked:
                continue
            if uid not in told:
                say(f"evicting {pod.key}")
            try:
                await _evict(api, pod)
            except TooManyRequests as error:
                if told.get(uid) != error.message:
                    say(f"  {pod.key} has to wait: {error.message}")
                told[uid] = error.message
                continue
            except NotFound:
                pass
            asked[uid] = None
        here = {pod.metadata.uid for pod in await _pods(api, name)}
        for uid in [uid for uid in go if uid not in here]:
            say(f"  {go.pop(uid).key} is gone")
        if go:
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


def _stays(pod: v1.Pod) -> bool:
    """Pods of DaemonSets would be back at once; those of the node itself cannot be deleted."""
    return _controller(pod) == "DaemonSet" or _MIRROR in pod.metadata.annotations
