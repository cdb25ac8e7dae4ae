"""Filters and scores of one node for a pod, regardless of other nodes. Pure functions.

The messages are those of kube-scheduler 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.scheduling import matches_node_selector_term, tolerates
from steersman.sim.scheduler.node_info import NodeInfo
from steersman.sim.scheduler.requirements import Requirements

UNSCHEDULABLE = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
MISMATCHED = "node(s) didn't match Pod's node affinity/selector"
ELSEWHERE = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
"""For nodes that were not considered because the pod names others."""
PORTS = "node(s) didn't have free ports for the requested pod ports"
FULL = "Too many pods"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
ZONE_CONFLICT = "node(s) had no available volume zone"
DEVICES = "cannot allocate all claims"
DEVICES_ELSEWHERE = "resourceclaim not available on the node"
_UNRESOLVABLE = (
    *(UNSCHEDULABLE, TAINTED, MISMATCHED, ELSEWHERE),
    *(BIND_CONFLICT, NODE_CONFLICT, ZONE_CONFLICT, DEVICES, DEVICES_ELSEWHERE),
)

_CORDON = v1.Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
SCALE = 10_000
"""Scores are integers, in fractions of upstream's points."""


def filter_reasons(requirements: Requirements, node_info: NodeInfo) -> tuple[str, ...]:
    """Why a node does not fit a pod; empty where it fits."""
    spec = node_info.node.spec
    if spec.unschedulable and not tolerates(requirements.tolerations, _CORDON):
        return (UNSCHEDULABLE,)
    for taint in spec.taints:
        if taint.effect != "PreferNoSchedule" and not tolerates(requirements.tolerations, taint):
            return (TAINTED,)
    if not selected(requirements, node_info):
        return (MISMATCHED,)
    if requirements.ports and any(_taken(port, node_info.ports) for port in requirements.ports):
        return (PORTS,)
    return _shortages(requirements, node_info)


def is_unresolvable(reasons: tuple[str, ...]) -> bool:
    """Whether the node would not fit even if it were empty."""
    return any(reason in _UNRESOLVABLE for reason in reasons)


def _shortages(requirements: Requirements, node_info: NodeInfo) -> tuple[str, ...]:
    allocatable, requested = node_info.allocatable, node_info.requested
    short = [FULL] if len(node_info.pods) >= allocatable.get("pods", 0) else []
    for name, amount in requirements.requests:
        if requested.get(name, 0) + amount > allocatable.get(name, 0):
            short.append(f"Insufficient {name}")
    return tuple(short)


def _taken(port: tuple[str, str, int], ports: Mapping[tuple[str, str, int], int]) -> bool:
    """Whether a host port is in use. 0.0.0.0 stands for every address."""
    ip, protocol, number = port
    for (other, spoken, taken), count in ports.items():
        if count and (spoken, taken) == (protocol, number) and (ip == other or "0.0.0.0" in (ip, other)):
            return True
    return False


def selected(requirements: Requirements, node_info: NodeInfo) -> bool:
    """Whether the node matches the pod's node selector and affinity."""
    labels = node_info.labels
    for key, value in requirements.selector:
        if labels.get(key) != value:
            return False
    required = requirements.affinity and requirements.affinity.requiredDuringSchedulingIgnoredDuringExecution
    return not required or any(
        matches_node_selector_term(term, node_info.name, labels) for term in required.nodeSelectorTerms
    )


def score(requirements: Requirements, node_info: NodeInfo) -> int:
    """The score of a node: least requested, balanced, and the pod's preferences.

    differs: preferences count by their weight, not relative to the best node, so that the score of a node changes only when
    the node does.
    """
    allocatable = node_info.allocatable
    cpu_room, memory_room = allocatable.get("cpu", 0), allocatable.get("memory", 0)
    cpu = (node_info.cpu + requirements.cpu) / cpu_room if cpu_room else 1.0
    memory = (node_info.memory + requirements.memory) / memory_room if memory_room else 1.0
    least = 50.0 * (max(0.0, 1.0 - cpu) + max(0.0, 1.0 - memory))
    balanced = 100.0 * (1.0 - abs(min(cpu, 1.0) - min(memory, 1.0)) / 2.0)
    total = least + balanced
    if requirements.affinity is not None:
        for each in requirements.affinity.preferredDuringSchedulingIgnoredDuringExecution:
            if matches_node_selector_term(each.preference, node_info.name, node_info.labels):
                total += 2.0 * each.weight
    for taint in node_info.node.spec.taints:
        if taint.effect == "PreferNoSchedule" and not tolerates(requirements.tolerations, taint):
            total -= 300.0
    return round(total * SCALE)
