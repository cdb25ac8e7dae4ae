"""Scheduling decisions: the node for a pod, or why there is none, and preemption. Pure decisions on `NodeInfos`.

Most pods depend on one node at a time. For those, nodes are ranked once for each shape of pod, and only changed nodes are
filtered and scored again: another pod of a known shape costs one node. Ties go to the node that was known first, so
decisions are deterministic.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated import core_v1 as v1
from steersman.sim.scheduler import filters, topology
from steersman.sim.scheduler.node_info import NodeInfo, NodeInfos, PodInfo, pod_info

if TYPE_CHECKING:
    from steersman.sim.scheduler.volumes import PodVolumes

VolumeFilter: TypeAlias = "Callable[[NodeInfo], PodVolumes | tuple[str, ...]]"
"""The bindings that the claims of a pod need on a node, or why the node does not fit."""
DeviceFilter: TypeAlias = Callable[[NodeInfo], tuple[str, ...]]
"""Why a node lacks the devices that a pod needs; empty where it has them."""
UNHELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_FOUND = "not found"
"""The text of 1.36 in place of preemption when a check before that of ResourceClaims has rejected a pod: there is no result of theirs."""
NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
"""The text of upstream for a pod without ResourceClaims that does not fit."""


class Scheduled(msgspec.Struct, frozen=True):
    """The node for a pod."""

    node: str
    volumes: PodVolumes | None = None
    """The bindings that its claims need; None where they need none."""


class Unschedulable(msgspec.Struct, frozen=True):
    """No node fits: the reasons of each node."""

    reasons: Mapping[str, tuple[str, ...]]
    rejection: str = ""
    """Why no node was considered, as for a claim that does not exist."""
    is_final: bool = False
    """Whether a check before that of ResourceClaims rejected it: upstream then considers no preemption."""

    @property
    def message(self) -> str:
        """Upstream's message, without the part about preemption."""
        if not self.reasons:
            return "no nodes available to schedule pods"
        why = self.rejection or _histogram(self.reasons.values())
        return f"0/{len(self.reasons)} nodes are available: {why}."

    @property
    def preemption_message(self) -> str:
        """Upstream's message where preemption found no victims."""
        reasons = [
            (UNHELPFUL,) if self.rejection or filters.is_unresolvable(each) else (NO_VICTIMS,)
            for each in self.reasons.values()
        ]
        return f"preemption: 0/{len(reasons)} nodes are available: {_histogram(reasons)}." if reasons else ""


class SchedulerError(msgspec.Struct, frozen=True):
    """A pod that had a node, but could not be bound to it, or whose claims make no sense."""

    message: str


def schedule(
    pod: v1.Pod, nodes: Iterable[v1.Node], pods_by_node: Mapping[str, Iterable[v1.Pod]]
) -> Scheduled | Unschedulable:
    """Schedule one pod in a cluster given in full."""
    node_infos = NodeInfos()
    for node in nodes:
        node_infos.put_node(node)
    for name, pods in pods_by_node.items():
        for each in pods:
            node_infos.put(pod_info(each), name)
    return Ranking(node_infos).schedule(pod_info(pod))


class _ShapeRanking:
    """The nodes that fit one shape of pod, the best first."""

    __slots__ = ("epoch", "heap", "position", "refused")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.position = 0
        self.heap: list[tuple[int, int, int, NodeInfo]] = []
        self.refused: tuple[int, Unschedulable] | None = None


class Ranking:
    """Schedules pods on nodes that change, with cached rankings."""

    def __init__(self, node_infos: NodeInfos) -> None:
        self.node_infos = node_infos
        self._ranks: BoundedCache[Hashable, _ShapeRanking] = BoundedCache(256)

    def schedule(
        self, new: PodInfo, volumes: VolumeFilter | None = None, devices: DeviceFilter | None = None
    ) -> Scheduled | Unschedulable:
        """The node for a pod now. ``volumes`` is for pods with PersistentVolumeClaims, ``devices`` for those with
        ResourceClaims."""
        filtered = volumes is not None or devices is not None
        if filtered or new.requirements.depends_on_pods or self.node_infos.with_anti_affinity:
            return self._schedule_on_any(new, volumes, devices)
        if new.requirements.names is not None:
            return self._schedule_on(new, new.requirements.names)
        rank = self._rank(new)
        heap = rank.heap
        while heap:
            _, _, version, node_info = heap[0]
            if node_info.version == version:
                return Scheduled(node_info.name)
            heapq.heappop(heap)
        position = len(self.node_infos.log)
        if rank.refused is None or rank.refused[0] != position:
            reasons = {
                node_info.name: filters.filter_reasons(new.requirements, node_info)
                for node_info in self.node_infos
            }
            rank.refused = (position, Unschedulable(reasons))
        return rank.refused[1]

    def _rank(self, new: PodInfo) -> _ShapeRanking:
        requirements, node_infos = new.requirements, self.node_infos
        rank = self._ranks.get(requirements.shape)
        changed: Iterable[NodeInfo]
        if rank is None or rank.epoch != node_infos.epoch:
            rank = _ShapeRanking(node_infos.epoch)
            self._ranks.put(requirements.shape, rank)
            changed = node_infos
        else:
            log = node_infos.log
            left = len(log) - rank.position
            if not left:
                return rank
            changed = (log[-1],) if left == 1 else dict.fromkeys(log[rank.position :])
        for node_info in changed:
            if node_info.version >= 0 and not filters.filter_reasons(requirements, node_info):
                entry = (
                    -filters.score(requirements, node_info),
                    node_info.index,
                    node_info.version,
                    node_info,
                )
                heapq.heappush(rank.heap, entry)
        rank.position = len(node_infos.log)
        return rank

    def _schedule_on(self, new: PodInfo, names: Iterable[str]) -> Scheduled | Unschedulable:
        """For pods that name their nodes: no other node is considered."""
        refused: dict[str, tuple[str, ...]] = {}
        fitting: list[NodeInfo] = []
        for node_info in filter(None, map(self.node_infos.get, names)):
            why = filters.filter_reasons(new.requirements, node_info)
            if why:
                refused[node_info.name] = why
            else:
                fitting.append(node_info)
        if fitting:
            return Scheduled(
                min(
                    fitting,
                    key=lambda node_info: (-filters.score(new.requirements, node_info), node_info.index),
                ).name
            )
        others = dict.fromkeys((node_info.name for node_info in self.node_infos), (filters.ELSEWHERE,))
        return Unschedulable(others | refused)

    def _schedule_on_any(
        self, new: PodInfo, volumes: VolumeFilter | None, devices: DeviceFilter | None
    ) -> Scheduled | Unschedulable:
        """For pods that depend on other pods, on volumes or on devices: all nodes, each time."""
        topology_view = topology.topology_of(new, self.node_infos)
        reasons: dict[str, tuple[str, ...]] = {}
        best: tuple[int, int, Scheduled] | None = None
        for node_info in self.node_infos:
            why = filters.filter_reasons(new.requirements, node_info)
            found = None
            if not why and volumes is not None:
                filtered = volumes(node_info)
                if isinstance(filtered, tuple):
                    why = filtered
                elif filtered.bindings or filtered.provisions:
                    found = filtered
            why = why or topology.filter_reasons(topology_view, node_info)
            if not why and devices is not None:
                why = devices(node_info)
            if why:
                reasons[node_info.name] = why
                continue
            points = filters.score(new.requirements, node_info) + topology.score(topology_view, node_info)
            rank = (-points, node_info.index)
            if best is None or rank < best[:2]:
                best = (*rank, Scheduled(node_info.name, found))
        return best[2] if best is not None else Unschedulable(reasons)


def _histogram(reasons: Iterable[tuple[str, ...]]) -> str:
    counted = Counter(reason for each in reasons for reason in each)
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counted.items()))


# -- preemption -------------------------------------------------------------------------------


def victims(new: PodInfo, node_infos: NodeInfos) -> tuple[str, tuple[PodInfo, ...]] | None:
    """The node where preemption helps, and its victims; None where it does not help.

    Of the nodes that fit without their pods of lower priority: the one whose victims have the lowest priority, then the
    fewest victims. differs: PodDisruptionBudgets and inter-pod topology are not considered.
    """
    best: tuple[tuple[int, int, int], str, tuple[PodInfo, ...]] | None = None
    for node_info in node_infos:
        found = _victims(new, node_info)
        if found:
            rank = (max(each.priority for each in found), len(found), node_info.index)
            if best is None or rank < best[0]:
                best = (rank, node_info.name, found)
    return best[1:] if best is not None else None


def _victims(new: PodInfo, node_info: NodeInfo) -> tuple[PodInfo, ...]:
    """The fewest victims on one node; empty where preemption does not help, or is in progress."""
    why = filters.filter_reasons(new.requirements, node_info)
    if not why or filters.is_unresolvable(why):
        return ()
    lower = [each for each in node_info.pods.values() if each.priority < new.priority]
    if not lower or any(each.terminating for each in lower):
        return ()
    trial = NodeInfo(node_info.node, node_info.index)
    for each in node_info.pods.values():
        if each.priority >= new.priority:
            trial.add(each)
    if filters.filter_reasons(new.requirements, trial):
        return ()
    chosen = []
    for each in sorted(lower, key=lambda one: (-one.priority, one.key)):
        trial.add(each)
        if filters.filter_reasons(new.requirements, trial):
            trial.add(each, -1)
            chosen.append(each)
    return tuple(chosen)
