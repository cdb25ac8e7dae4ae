"""Disruption of zones: one round looks at all nodes, and adds or removes their NoExecute taints."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from steersman.api.errors import ApiError, Forbidden, Invalid, NotFound
from steersman.api.kinds.nodes import Node
from steersman.controllers.nodelifecycle.memory import Memory
from steersman.controllers.nodelifecycle.metrics import EVICTIONS, zone_measures
from steersman.controllers.nodelifecycle.taints import (
    has_no_execute,
    patch_node,
    with_no_execute,
    without_no_execute,
)
from steersman.controllers.nodelifecycle.zones import (
    Count,
    Rates,
    ZoneState,
    count_zones,
    waiting_nodes,
    zone_name,
)
from steersman.intent.actions import Batch, Failed
from steersman.intent.metrics import Measure
from steersman.intent.verdict import Rest, Verdict, Wake

TAINTING_PERIOD = 0.1
"""Seconds between two of upstream's passes that add NoExecute taints."""


class ZonesSeen(msgspec.Struct, frozen=True):
    """All nodes."""

    nodes: tuple[Node, ...]
    memory: Memory
    monotonic: float
    rates: Rates


async def sync_zones(seen: ZonesSeen, now: datetime) -> Verdict:
    zones, counts = seen.memory.zones, count_zones(seen.nodes)
    for measure in zone_measures({**{zone: Count() for zone in zones.states}, **counts}):
        await measure
    if zones.update(counts, seen.rates, seen.monotonic):
        # Heartbeats could not arrive while the control plane was cut off.
        seen.memory.probe_all(seen.monotonic)
    if zones.is_master_disruption:
        because = "no zone has a ready node: no node is tainted"
        tainted = [node for node in seen.nodes if has_no_execute(node)]
        if await _untaint(tainted, seen.memory) < len(tainted):
            return Wake(timedelta(seconds=TAINTING_PERIOD), because)
        return Rest(because)
    disrupted = [
        f"{zone_name(zone)} is in {state.value}"
        for zone, state in zones.states.items()
        if state is not ZoneState.NORMAL
    ]
    waits: list[float] = []
    refused: list[ApiError] = []
    for zone, nodes in waiting_nodes(seen.nodes).items():
        wait = await _taint_one(seen, zone, nodes, now, refused)
        if wait is not None:
            waits.append(wait)
    if refused:
        raise refused[0]
    because = ", ".join(disrupted) or "no zone is disrupted"
    if waits:
        return Wake(timedelta(seconds=min(waits)), f"{because}; nodes wait for their NoExecute taint")
    return Rest(because)


async def _untaint(tainted: Iterable[Node], memory: Memory) -> int:
    """Removes the NoExecute taints of nodes that no other round writes to; returns their number."""
    nodes = [node for node in tainted if node.metadata.name not in memory.writing]
    patches = [patch for node in nodes if (patch := patch_node(node, without_no_execute(node))) is not None]
    with memory.write(node.metadata.name for node in nodes):
        outcomes = await Batch(tuple(patches), slow_start=False)
    for outcome in outcomes:
        if isinstance(outcome, Failed) and not isinstance(outcome.error, NotFound):
            raise outcome.error
    return len(nodes)


async def _taint_one(
    seen: ZonesSeen, zone: str, nodes: tuple[Node, ...], now: datetime, refused: list[ApiError]
) -> float | None:
    """Taints the first of the waiting nodes of a zone, if the rate allows it; returns the seconds until the next may be
    tainted, or None where there is none, or no rate."""
    limiter = seen.memory.zones.limiter(zone, seen.rates)
    wait = limiter.wait(seen.monotonic)
    if wait is None or wait > 0.0:
        return wait
    busy = False
    for number, node in enumerate(nodes, 1):
        name, patch = node.metadata.name, patch_node(node, with_no_execute(node, now))
        assert patch is not None
        if name in seen.memory.writing:
            busy = True
            continue
        try:
            with seen.memory.write((name,)):
                await patch
        except NotFound:
            continue
        except (Forbidden, Invalid) as error:
            # A node that cannot be tainted does not keep the others of its zone from it.
            refused.append(error)
            continue
        limiter.take(seen.monotonic)
        await Measure(EVICTIONS, labels=(zone,))
        return limiter.wait(seen.monotonic) if busy or number < len(nodes) else None
    return TAINTING_PERIOD if busy else None
