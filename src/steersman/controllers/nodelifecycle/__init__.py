"""node-lifecycle-controller (a dialogue): watches the heartbeats of nodes, and taints nodes by their conditions.

A node whose heartbeats stop gets the conditions Unknown and its pods become not ready. NoSchedule taints follow the conditions of a
node at once. NoExecute taints, which evict pods, are added at a limited rate in each zone (`zones`), and removed as soon as the
node is ready. A new node loses its not-ready taint here: without this controller no pod could be scheduled to it.

Upstream looks at all nodes every 5 seconds; here each change is handled when it happens, and a look that would find
nothing new is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

import msgspec

from steersman.api.errors import ApiError
from steersman.api.kinds import LEASES, PODS, Lease, Pod
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.scheme import Key
from steersman.controllers.nodelifecycle.disruption import TAINTING_PERIOD, ZonesSeen, sync_zones
from steersman.controllers.nodelifecycle.health import (
    NODE_LEASES,
    RESOLUTION,
    Health,
    Timing,
    deadline,
    is_renewed,
    ready_status,
    unknown_conditions,
)
from steersman.controllers.nodelifecycle.memory import Memory
from steersman.controllers.nodelifecycle.metrics import (
    ALL_NODES_SECONDS,
    METRICS,
    NODE_SECONDS,
)
from steersman.controllers.nodelifecycle.pods import mark_pods_not_ready
from steersman.controllers.nodelifecycle.taints import (
    has_no_execute,
    patch_node,
    reconciled_labels,
    reconciled_taints,
)
from steersman.controllers.nodelifecycle.zones import (
    Rates,
    is_excluded,
    zone_of,
)
from steersman.controllers.shared.flags import NODE_MONITOR_PERIOD
from steersman.controllers.shared.indexes import by_node
from steersman.intent.actions import Address, Emit, List, Patch, PatchType
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.metrics import Elapsed, Measure
from steersman.intent.settings import DEFAULTS
from steersman.intent.undecodable import is_decodable
from steersman.intent.verdict import Rest, Verdict, Wake, heartbeat_of

MONITOR_GRACE = Flag(
    "node-monitor-grace-period", 50.0, "Seconds that a node may be silent before its conditions are Unknown."
)
STARTUP_GRACE = Flag(
    "node-startup-grace-period",
    60.0,
    "Seconds that a new node may be silent before its conditions are Unknown.",
)
EVICTION_RATE = Flag(
    "node-eviction-rate", 0.1, "Nodes per second that get a NoExecute taint in a zone that is not disrupted."
)
SECONDARY_EVICTION_RATE = Flag(
    "secondary-node-eviction-rate",
    0.01,
    "Nodes per second that get a NoExecute taint in a large zone that is partially disrupted.",
)
LARGE_CLUSTER = Flag("large-cluster-size-threshold", 50, "The number of nodes above which a zone is large.")
UNHEALTHY_THRESHOLD = Flag(
    "unhealthy-zone-threshold", 0.55, "The share of nodes not ready from which a zone is partially disrupted."
)
FLAGS = (
    NODE_MONITOR_PERIOD,
    MONITOR_GRACE,
    STARTUP_GRACE,
    EVICTION_RATE,
    SECONDARY_EVICTION_RATE,
    LARGE_CLUSTER,
    UNHEALTHY_THRESHOLD,
)
WORKERS = 8
BUSY = Wake(timedelta(seconds=TAINTING_PERIOD), "another round writes to the node or its pods")
ZONES = Key("", "zones/")
"""The key of the round that looks at all zones; no node's name has a slash."""


class Config(msgspec.Struct, frozen=True):
    """The controller's flags."""

    timing: Timing = Timing(MONITOR_GRACE.default, STARTUP_GRACE.default, NODE_MONITOR_PERIOD.default)
    rates: Rates = Rates(
        EVICTION_RATE.default,
        SECONDARY_EVICTION_RATE.default,
        LARGE_CLUSTER.default,
        UNHEALTHY_THRESHOLD.default,
    )


class NodeSeen(msgspec.Struct, frozen=True):
    """A node with its Lease, and its pods where they may have to be made not ready."""

    node: Node
    lease: Lease | None
    pods: tuple[Pod, ...]
    memory: Memory
    monotonic: float
    timing: Timing


class NodeGone(msgspec.Struct, frozen=True):
    """A node that was deleted."""

    name: str
    memory: Memory


class PodSeen(msgspec.Struct, frozen=True):
    """A pod that was assigned to a node."""

    pod: Pod
    node: Node
    memory: Memory


Seen = NodeSeen | NodeGone | PodSeen | ZonesSeen


def observe(caches: Caches, key: Key, config: Config = Config()) -> Seen | None:
    memory, monotonic = memory_of(caches, Memory), caches.monotonic()
    memory.start(monotonic)
    if key == ZONES:
        nodes = tuple(filter(is_decodable, caches[NODES].list()))
        return ZonesSeen(nodes, memory, monotonic, config.rates)
    if key.namespace:
        pod = caches[PODS].get(key)
        if pod is None or pod.spec.nodeName not in memory.healths:
            return None
        node = caches[NODES].get(Key("", pod.spec.nodeName))
        return PodSeen(pod, node, memory) if node is not None else None
    node = caches[NODES].get(key)
    if node is None:
        return NodeGone(key.name, memory) if key.name in memory.uids else None
    health = memory.healths.get(key.name)
    may_be_silent = (
        health is None
        or ready_status(node) != "True"
        or monotonic + RESOLUTION > deadline(health, config.timing, memory.start(monotonic))
    )
    pods = tuple(caches[PODS].by("node", key.name)) if may_be_silent else ()
    lease = caches[LEASES].get(Key(NODE_LEASES, key.name))
    return NodeSeen(node, lease, pods, memory, monotonic, config.timing)


async def decide(seen: Seen, now: datetime) -> Verdict:
    match seen:
        case NodeSeen():
            verdict = await _sync_node(seen, now)
            await Measure(NODE_SECONDS, await Elapsed())
            return verdict
        case NodeGone(name, memory):
            uid = memory.forget(name)
            await _emit(name, uid, "RemovingNode", f"event: Removing Node {name} from Controller")
            return Rest("node is gone")
        case PodSeen(pod, node, memory):
            if ready_status(node) in ("", "True"):
                return Rest("node is ready")
            if node.metadata.name in memory.unmarked:
                return BUSY
            return Rest(f"node is not ready: made {await mark_pods_not_ready((pod,), now)} pods not ready")
        case ZonesSeen():
            verdict = await sync_zones(seen, now)
            await Measure(ALL_NODES_SECONDS, await Elapsed())
            return verdict


async def _emit(node: str, uid: str, reason: str, message: str) -> None:
    await Emit(Address(NODES, "", node, uid), "Normal", reason, f"Node {node} {message}")


# -- one node -------------------------------------------------------------------------------------


async def _sync_node(seen: NodeSeen, now: datetime) -> Verdict:
    node, memory = seen.node, seen.memory
    name, uid = node.metadata.name, node.metadata.uid
    if (before := memory.uids.get(name, uid)) != uid:
        await _emit(name, before, "RemovingNode", f"event: Removing Node {name} from Controller")
    is_new = memory.register(node)
    health = memory.observe(node, seen.lease, seen.monotonic, now)
    if is_new:
        await _emit(name, uid, "RegisteredNode", f"event: Registered Node {name} in Controller")
    status = ready_status(node)
    if status != "Unknown" and (health.unconfirmed or _remaining(seen, health) < RESOLUTION):
        newer = await _newer_heartbeat(seen, health)
        if newer is not None:
            return newer
        if name in memory.writing:
            return BUSY
        preconditions = {"uid": uid, "resourceVersion": node.metadata.resourceVersion}
        body = {"metadata": preconditions, "status": {"conditions": unknown_conditions(node, now)}}
        with memory.write((name,)):
            await Patch(node, body, PatchType.STRATEGIC, subresource="status")
        if status == "True":
            memory.unmarked[name] = None
            await _emit(name, uid, "NodeNotReady", "status is now: NodeNotReady")
            await _mark_pods(seen, now)
        return Rest("heartbeats stopped: conditions set to Unknown")
    if status == "True":
        memory.unmarked.pop(name, None)
    elif name in memory.unmarked:
        await _mark_pods(seen, now)
    taints = reconciled_taints(node, now, is_new=is_new)
    patch = patch_node(node, taints, reconciled_labels(node.metadata.labels))
    if patch is not None:
        if name in memory.writing:
            return BUSY
        with memory.write((name,)):
            await patch
    if status == "Unknown":
        return Rest("heartbeats stopped")
    return _wait(
        seen, health, "heartbeats go on" if status == "True" else "heartbeats go on; node is not ready"
    )


async def _mark_pods(seen: NodeSeen, now: datetime) -> None:
    await mark_pods_not_ready(seen.pods, now)
    seen.memory.unmarked.pop(seen.node.metadata.name, None)


def _remaining(seen: NodeSeen, health: Health) -> float:
    """Seconds until the node counts as silent."""
    return deadline(health, seen.timing, seen.memory.start(seen.monotonic)) - seen.monotonic


def _wait(seen: NodeSeen, health: Health, because: str) -> Wake:
    remaining = timedelta(seconds=max(RESOLUTION, _remaining(seen, health)))
    lease = heartbeat_of(LEASES, Key(NODE_LEASES, seen.node.metadata.name))
    return Wake(remaining, because, renewed_by=lease)


async def _newer_heartbeat(seen: NodeSeen, health: Health) -> Verdict | None:
    """Asks the server for a heartbeat that the cache does not show; None where the node is silent indeed.

    While the server cannot be reached neither nodes nor this process can say anything, so the grace period begins anew when it
    can. A node that lives must not be tainted because the server was away, or a watch was.

    differs: upstream trusts its cache. It ends with its leader lease when the server is away, and forgets all heartbeats.
    """
    name, memory = seen.node.metadata.name, seen.memory
    period = max(seen.timing.period, 1.0)
    away = Wake(timedelta(seconds=period), "the server cannot be asked for heartbeats")
    if memory.away_at is not None and seen.monotonic < memory.away_at + period:
        # One node asks for all.
        memory.probe(name, seen.monotonic, unconfirmed=True)
        return away
    try:
        # The role of this controller has no rights to Leases: its informer has the manager's.
        leases = await List(
            LEASES, NODE_LEASES, limit=1, field_selector=f"metadata.name={name}", as_manager=True
        )
    except ApiError:
        memory.away_at = seen.monotonic
        memory.probe(name, seen.monotonic, unconfirmed=True)
        return away
    memory.away_at = None
    renewed = leases[0].spec.renewTime if leases else None
    if not health.unconfirmed and not is_renewed(health.renewed, renewed):
        return None
    return _wait(seen, memory.probe(name, seen.monotonic), "the cache lags behind the heartbeats")


# -- enqueue --------------------------------------------------------------------------------------


def _node_of_lease(caches: Caches, change: Change[Lease]) -> Iterable[Key]:
    """The node of a Lease, unless the Lease says just that a ready node lives on: that is recorded without a round."""
    key = Key("", change.obj.metadata.name)
    if change.new is None or change.old is None:
        return (key,)
    node = caches[NODES].get(key)
    if node is None or ready_status(node) != "True":
        return (key,)
    renewed = change.new.spec.renewTime
    return () if memory_of(caches, Memory).renew(key.name, renewed, caches.monotonic()) else (key,)


def _is_node_lease(lease: Lease) -> bool:
    return lease.metadata.namespace == NODE_LEASES


def _newly_assigned(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """A pod that was assigned to a node that is not ready."""
    pod, old = change.new, change.old
    if pod is None or not pod.spec.nodeName or (old is not None and old.spec.nodeName == pod.spec.nodeName):
        return ()
    node = caches[NODES].get(Key("", pod.spec.nodeName))
    return () if node is None or ready_status(node) in ("", "True") else (pod.key,)


def _zones_changed(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    """The zones, where a change of a node is one that they depend on."""
    old, new = change.old, change.new
    if old is not None and new is not None and _of_zone(old) == _of_zone(new):
        return ()
    return (ZONES,)


def _zones_delay(change: Change[Node], now: datetime) -> float:
    """Nodes that fall silent together are looked at together; a node that is well changes no zone for the worse."""
    return 0.0 if change.new is None or ready_status(change.new) == "True" else TAINTING_PERIOD


def _of_zone(node: Node) -> tuple[str, str, bool, bool]:
    return ready_status(node), zone_of(node), is_excluded(node), has_no_execute(node)


def configure(settings: Settings) -> Controller[Seen]:
    config = Config(
        Timing(settings[MONITOR_GRACE], settings[STARTUP_GRACE], settings[NODE_MONITOR_PERIOD]),
        Rates(
            settings[EVICTION_RATE],
            settings[SECONDARY_EVICTION_RATE],
            settings[LARGE_CLUSTER],
            settings[UNHEALTHY_THRESHOLD],
        ),
    )
    return Controller(
        name="node-lifecycle-controller",
        aliases=("nodelifecycle",),
        service_account="node-controller",
        watches=(
            Watch(NODES),
            Watch(NODES, to=_zones_changed, delay=_zones_delay),
            Watch(LEASES, to=_node_of_lease, when=_is_node_lease),
            Watch(PODS, to=_newly_assigned, indexes={"node": by_node}),
        ),
        workers=WORKERS,
        flags=FLAGS,
        configure=configure,
        observe=partial(observe, config=config),
        decide=decide,
        memory=Memory,
        max_backoff=max(config.timing.period, 1.0),
        metrics=METRICS,
    )


controller = configure(DEFAULTS)
