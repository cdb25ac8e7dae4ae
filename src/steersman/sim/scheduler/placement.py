"""Where a pod goes, or why nowhere. Pure decisions on `Hosts`.

Most pods care about one node at a time. For those, nodes are ranked once for each shape of pod, and only
what changed since is looked at again: placing one more pod of a known shape costs a look at one node.
Ties go to the node that was known first, so the same cluster gives the same answer.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated import core_v1 as v1
from steersman.sim.scheduler import filters, topology
from steersman.sim.scheduler.node_info import Host, Hosts, Tenant, tenant

UNHELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"


class Placed(msgspec.Struct, frozen=True):
    """A pod goes to this node."""

    node: str


class Unplaced(msgspec.Struct, frozen=True):
    """A pod goes nowhere: each node's reasons."""

    reasons: Mapping[str, tuple[str, ...]]

    @property
    def message(self) -> str:
        """What upstream says, without what became of preemption."""
        if not self.reasons:
            return "no nodes available to schedule pods"
        return f"0/{len(self.reasons)} nodes are available: {_histogram(self.reasons.values())}."

    @property
    def unhelped(self) -> str:
        """What upstream says of preemption when it found no victims."""
        reasons = [
            (UNHELPFUL,) if filters.is_helpless(each) else (NO_VICTIMS,) for each in self.reasons.values()
        ]
        return f"preemption: 0/{len(reasons)} nodes are available: {_histogram(reasons)}." if reasons else ""


def place(
    pod: v1.Pod, nodes: Iterable[v1.Node], pods_by_node: Mapping[str, Iterable[v1.Pod]]
) -> Placed | Unplaced:
    """Where a pod goes in a cluster that is written down in full."""
    hosts = Hosts()
    for node in nodes:
        hosts.put_node(node)
    for name, pods in pods_by_node.items():
        for each in pods:
            hosts.put(tenant(each), name)
    return Ranks(hosts).place(tenant(pod))


class _Rank:
    """The nodes that will do for one shape of pod, the best first."""

    __slots__ = ("epoch", "heap", "position", "refused")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.position = 0
        self.heap: list[tuple[int, int, int, Host]] = []
        self.refused: tuple[int, Unplaced] | None = None


class Ranks:
    """Decides on hosts that change, remembering what has not."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self._ranks: BoundedCache[Hashable, _Rank] = BoundedCache(256)

    def place(self, new: Tenant) -> Placed | Unplaced:
        """Where a pod goes now."""
        if new.demand.wide or self.hosts.guarded:
            return self._widely(new)
        if new.demand.names is not None:
            return self._named(new, new.demand.names)
        rank = self._rank(new)
        heap = rank.heap
        while heap:
            _, _, version, host = heap[0]
            if host.version == version:
                return Placed(host.name)
            heapq.heappop(heap)
        position = len(self.hosts.log)
        if rank.refused is None or rank.refused[0] != position:
            reasons = {host.name: filters.refusals(new.demand, host) for host in self.hosts}
            rank.refused = (position, Unplaced(reasons))
        return rank.refused[1]

    def _rank(self, new: Tenant) -> _Rank:
        wants, hosts = new.demand, self.hosts
        rank = self._ranks.get(wants.shape)
        changed: Iterable[Host]
        if rank is None or rank.epoch != hosts.epoch:
            rank = _Rank(hosts.epoch)
            self._ranks.put(wants.shape, rank)
            changed = hosts
        else:
            log = hosts.log
            left = len(log) - rank.position
            if not left:
                return rank
            changed = (log[-1],) if left == 1 else dict.fromkeys(log[rank.position :])
        for host in changed:
            if host.version >= 0 and not filters.refusals(wants, host):
                entry = (-filters.score(wants, host), host.index, host.version, host)
                heapq.heappush(rank.heap, entry)
        rank.position = len(hosts.log)
        return rank

    def _named(self, new: Tenant, names: Iterable[str]) -> Placed | Unplaced:
        """For pods that name their nodes: no others are looked at."""
        refused: dict[str, tuple[str, ...]] = {}
        fitting: list[Host] = []
        for host in filter(None, map(self.hosts.get, names)):
            why = filters.refusals(new.demand, host)
            if why:
                refused[host.name] = why
            else:
                fitting.append(host)
        if fitting:
            return Placed(min(fitting, key=lambda host: (-filters.score(new.demand, host), host.index)).name)
        others = dict.fromkeys((host.name for host in self.hosts), (filters.ELSEWHERE,))
        return Unplaced(others | refused)

    def _widely(self, new: Tenant) -> Placed | Unplaced:
        """For pods to which it matters where others are: all nodes, each time."""
        around = topology.survey(new, self.hosts)
        reasons: dict[str, tuple[str, ...]] = {}
        best: tuple[int, int, str] | None = None
        for host in self.hosts:
            why = filters.refusals(new.demand, host) or topology.refusals(around, host)
            if why:
                reasons[host.name] = why
                continue
            points = filters.score(new.demand, host) + topology.score(around, host)
            found = (-points, host.index, host.name)
            best = found if best is None else min(best, found)
        return Placed(best[2]) if best is not None else Unplaced(reasons)


def _histogram(reasons: Iterable[tuple[str, ...]]) -> str:
    counted = Counter(reason for each in reasons for reason in each)
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counted.items()))
