"""Health of nodes: which heartbeats were observed and when, and the conditions of a node whose heartbeats stopped.

A heartbeat is a renewal of the node's Lease, or a status with a new ``lastHeartbeatTime``. Its age is measured from the
moment this process observed it, on a clock that never jumps, so neither the clocks of the nodes nor the wall clock matter.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.conditions import find_condition
from steersman.api.kinds import Lease
from steersman.api.kinds.nodes import Node
from steersman.api.meta import format_time

NODE_LEASES = "kube-node-lease"
"""The namespace of the Leases of nodes."""
RESOLUTION = 0.001
"""Seconds that make no difference: a timer may be early by as much, and a `Wake` must never be for no time at all."""
UNKNOWN_TYPES = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that become Unknown. NetworkUnavailable is not the kubelet's."""


class Timing(msgspec.Struct, frozen=True):
    """The flags that say how long a node may be silent, in seconds."""

    grace: float
    startup_grace: float
    period: float
    """The time between two looks at all nodes."""


class Health(msgspec.Struct, frozen=True):
    """The heartbeats of a node, as far as this process has observed them."""

    probed: float
    """The monotonic time of the last heartbeat."""
    has_ready: bool
    """Whether the node had a Ready condition."""
    heartbeat: datetime | None
    """The ``lastHeartbeatTime`` of the Ready condition."""
    renewed: datetime | None
    """The ``renewTime`` of the Lease."""
    unconfirmed: bool = False
    """Whether the server could not be asked for heartbeats when they were last missed."""


def ready_status(node: Node) -> str:
    """The status of the Ready condition; empty where there is none."""
    ready = find_condition(node.status.conditions, "Ready")
    return ready.status if ready is not None else ""


def observe_heartbeats(
    health: Health | None, node: Node, lease: Lease | None, monotonic: float, now: datetime
) -> Health:
    """The health of a node as seen at the monotonic time, given its health when it was last seen.

    A node that never had a Ready condition has been silent since it was created, and any other that is seen for the
    first time is taken to be alive.
    """
    ready = find_condition(node.status.conditions, "Ready")
    heartbeat = ready.lastHeartbeatTime if ready is not None else None
    renewed = lease.spec.renewTime if lease is not None else None
    if health is None:
        created = node.metadata.creationTimestamp
        age = (now - created).total_seconds() if ready is None and created is not None else 0.0
        probed, unconfirmed = monotonic - age, False
        before = None
    else:
        probed, unconfirmed = health.probed, health.unconfirmed
        before = health.renewed
        if health.has_ready != (ready is not None) or health.heartbeat != heartbeat:
            probed, unconfirmed = monotonic, False
    if lease is not None and (health is None or is_renewed(before, renewed)):
        probed, unconfirmed = monotonic, False
    return Health(
        probed, ready is not None, heartbeat, renewed if is_renewed(before, renewed) else before, unconfirmed
    )


def is_renewed(before: datetime | None, renewed: datetime | None) -> bool:
    """Whether the ``renewTime`` of a Lease is later than the one known before."""
    return renewed is not None and (before is None or before < renewed)


def deadline(health: Health, timing: Timing, started: float) -> float:
    """The monotonic time from which a node counts as silent: the first look at all nodes after its grace period.

    Upstream looks every `Timing.period` from its start and notices a heartbeat at the first look after it, and a missing one
    at the first look after the grace period. Only the looks that find something happen here, at the same times.
    """
    grace = timing.grace if health.has_ready else timing.startup_grace
    return _next_look(_next_look(health.probed, timing, started) + grace, timing, started)


def _next_look(at: float, timing: Timing, started: float) -> float:
    if timing.period <= 0.0:
        return at
    # Floating-point noise must not turn "now" into the next look.
    return started + math.ceil((at - started) / timing.period - 1e-6) * timing.period


def unknown_conditions(node: Node, now: datetime) -> list[dict[str, Any]]:
    """The conditions to write for a silent node."""
    since = format_time(now)
    found: list[dict[str, Any]] = []
    for type_ in UNKNOWN_TYPES:
        known = find_condition(node.status.conditions, type_)
        if known is None:
            created = node.metadata.creationTimestamp
            found.append(
                {
                    "type": type_,
                    "status": "Unknown",
                    "reason": "NodeStatusNeverUpdated",
                    "message": "Kubelet never posted node status.",
                    "lastHeartbeatTime": format_time(created) if created is not None else None,
                    "lastTransitionTime": since,
                }
            )
        elif known.status != "Unknown":
            found.append(
                {
                    "type": type_,
                    "status": "Unknown",
                    "reason": "NodeStatusUnknown",
                    "message": "Kubelet stopped posting node status.",
                    "lastTransitionTime": since,
                }
            )
    return found
