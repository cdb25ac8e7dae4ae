"""Whether one node will do for a pod, whatever the others are like, and how well. Pure functions.

Words of refusal are those of kube-scheduler 1.36, as people search for them.
"""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.scheduling import matches_node_selector_term, tolerates
from steersman.sim.scheduler.node_info import Host
from steersman.sim.scheduler.requirements import Demand

UNSCHEDULABLE = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
MISMATCHED = "node(s) didn't match Pod's node affinity/selector"
ELSEWHERE = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
"""What is said of nodes that were not looked at, as the pod names others."""
PORTS = "node(s) didn't have free ports for the requested pod ports"
FULL = "Too many pods"

_CORDON = v1.Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
SCALE = 10_000
"""Scores are whole numbers, in parts of upstream's points."""


def refusals(wants: Demand, host: Host) -> tuple[str, ...]:
    """Why a node will not do; nothing where it will."""
    spec = host.node.spec
    if spec.unschedulable and not tolerates(wants.tolerations, _CORDON):
        return (UNSCHEDULABLE,)
    for taint in spec.taints:
        if taint.effect != "PreferNoSchedule" and not tolerates(wants.tolerations, taint):
            return (TAINTED,)
    if not selected(wants, host):
        return (MISMATCHED,)
    if wants.ports and any(_taken(port, host.ports) for port in wants.ports):
        return (PORTS,)
    return _shortages(wants, host)


def is_helpless(reasons: tuple[str, ...]) -> bool:
    """Whether the node would not do even if it were empty."""
    return any(reason in (UNSCHEDULABLE, TAINTED, MISMATCHED, ELSEWHERE) for reason in reasons)


def _shortages(wants: Demand, host: Host) -> tuple[str, ...]:
    room, used = host.room, host.used
    short = [FULL] if len(host.tenants) >= room.get("pods", 0) else []
    for name, amount in wants.requests:
        if used.get(name, 0) + amount > room.get(name, 0):
            short.append(f"Insufficient {name}")
    return tuple(short)


def _taken(port: tuple[str, str, int], ports: Mapping[tuple[str, str, int], int]) -> bool:
    """An address of all zeros stands for every address."""
    ip, protocol, number = port
    for (other, spoken, taken), count in ports.items():
        if count and (spoken, taken) == (protocol, number) and (ip == other or "0.0.0.0" in (ip, other)):
            return True
    return False


def selected(wants: Demand, host: Host) -> bool:
    """Whether a node is one of those the pod may go to."""
    labels = host.labels
    for key, value in wants.selector:
        if labels.get(key) != value:
            return False
    required = wants.affinity and wants.affinity.requiredDuringSchedulingIgnoredDuringExecution
    return not required or any(
        matches_node_selector_term(term, host.name, labels) for term in required.nodeSelectorTerms
    )


def score(wants: Demand, host: Host) -> int:
    """How well a node would do: room left, evenly used, and what the pod prefers.

    differs: what a pod prefers counts by its weight, not relative to the best of all nodes, so that a
    node's score changes only when the node does.
    """
    room = host.room
    cpu_room, memory_room = room.get("cpu", 0), room.get("memory", 0)
    cpu = (host.cpu + wants.cpu) / cpu_room if cpu_room else 1.0
    memory = (host.memory + wants.memory) / memory_room if memory_room else 1.0
    least = 50.0 * (max(0.0, 1.0 - cpu) + max(0.0, 1.0 - memory))
    balanced = 100.0 * (1.0 - abs(min(cpu, 1.0) - min(memory, 1.0)) / 2.0)
    total = least + balanced
    if wants.affinity is not None:
        for each in wants.affinity.preferredDuringSchedulingIgnoredDuringExecution:
            if matches_node_selector_term(each.preference, host.name, host.labels):
                total += 2.0 * each.weight
    for taint in host.node.spec.taints:
        if taint.effect == "PreferNoSchedule" and not tolerates(wants.tolerations, taint):
            total -= 300.0
    return round(total * SCALE)
