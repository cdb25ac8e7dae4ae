"""The range allocator: which node holds which CIDRs of the cluster's, and the metrics of that.

It follows from the nodes alone: a new process reads it from their ``podCIDRs``. CIDRs that are reserved for a node stay
reserved until the node shows them or is gone, so a write without an answer cannot give them to two nodes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from steersman.api.ip_addresses import Network, parse_cidr
from steersman.api.kinds.nodes import Node
from steersman.api.scheme import Key
from steersman.controllers.nodeipam.cidr_set import CidrSet, NoCIDRsLeft, OutOfRange
from steersman.intent.metrics import Measure, Metric, exponential

_LABELS = ("clusterCIDR",)
ALLOCATIONS = Metric(
    "node_ipam_controller_cidrset_cidrs_allocations_total", "Number of node CIDRs allocated", _LABELS
)
RELEASES = Metric(
    "node_ipam_controller_cidrset_cidrs_releases_total", "Number of node CIDRs released", _LABELS
)
# Upstream's name of the metric is misspelled.
MAX = Metric(
    "node_ipam_controller_cirdset_max_cidrs", "Number of node CIDRs in the cluster CIDR", _LABELS, gauge=True
)
USAGE = Metric(
    "node_ipam_controller_cidrset_usage_cidrs", "Share of the node CIDRs that are used", _LABELS, gauge=True
)
TRIES = Metric(
    "node_ipam_controller_cidrset_allocation_tries_per_request",
    "Number of used node CIDRs skipped for an allocation",
    _LABELS,
    buckets=exponential(1, 5, 5),
)
METRICS = (ALLOCATIONS, RELEASES, MAX, USAGE, TRIES)


class Config(msgspec.Struct, frozen=True):
    """The ranges of the cluster."""

    clusters: tuple[tuple[Network, int], ...] = ()
    """Each cluster CIDR and the mask size of its node CIDRs."""
    services: tuple[Network, ...] = ()
    """The ranges of Services, which no node gets."""


class Exhausted(Exception):
    """A cluster CIDR has no node CIDR left."""


class Holding(msgspec.Struct, frozen=True):
    """The CIDRs of a node, or those that are reserved for it."""

    uid: str
    cidrs: tuple[str, ...]
    indexes: tuple[tuple[int, range], ...] = ()
    """For each CIDR the number of its set, and the indexes it occupies there."""
    problem: str = ""
    """Why not all of its CIDRs could be marked as used."""


class RangeAllocator:
    """The CIDRs of all nodes."""

    def __init__(self, config: Config) -> None:
        self.sets = tuple(CidrSet(cluster, size) for cluster, size in config.clusters)
        self.waiting: dict[Key, None] = {}
        """Nodes for which there was no CIDR."""
        self._holdings: dict[str, Holding] = {}
        self._services: list[tuple[int, range]] = []
        self._overlapping = False
        """Whether two nodes, or a node and the Services, have ever overlapped."""
        self._measures: list[Measure] = []
        for number, cidrs in enumerate(self.sets):
            self._measures.append(Measure(MAX, float(cidrs.max_cidrs), (str(cidrs.cluster),)))
            for service in config.services:
                if cidrs.cluster.overlaps(service):
                    indexes = cidrs.indexes(service)
                    self._services.append((number, indexes))
                    self._occupy(number, indexes)

    def account(self, node: Node) -> str:
        """Marks the CIDRs of a node as used; returns why that is impossible, or an empty string.

        A node without CIDRs keeps what is reserved for it, unless it is another node of the name.
        """
        name, uid, cidrs = node.metadata.name, node.metadata.uid, node.spec.podCIDRs
        known = self._holdings.get(name)
        if known is not None and known.uid == uid and (not cidrs or known.cidrs == cidrs):
            return known.problem
        self.forget(name)
        if not cidrs:
            return ""
        indexes: list[tuple[int, range]] = []
        problem = ""
        for number, text in enumerate(cidrs):
            cidr = parse_cidr(text)
            if cidr is None:
                problem = f"failed to parse node {name}, CIDR {node.spec.podCIDR}"
            elif number >= len(self.sets):
                problem = (
                    f"node:{name} has an allocated cidr: {text} at index:{number} that does not exist in "
                    "cluster cidrs configuration"
                )
            else:
                try:
                    indexes.append((number, self.sets[number].indexes(cidr)))
                except OutOfRange as error:
                    problem = (
                        f"failed to mark cidr[{cidr}] at idx [{number}] as occupied for node: {name}: {error}"
                    )
            if problem:
                break
        for number, found in indexes:
            self._overlapping |= self.sets[number].is_used(found)
            self._occupy(number, found)
        self._holdings[name] = Holding(uid, cidrs, tuple(indexes), problem)
        self.waiting.pop(node.key, None)
        return problem

    def account_for_known(self, node: Node) -> None:
        """Marks the CIDRs of a node as used, unless they are: a node that cannot be decoded keeps what it had."""
        known = self._holdings.get(node.metadata.name)
        if known is None or known.uid != node.metadata.uid:
            self.account(node)

    def reserve(self, node: Node) -> tuple[str, ...]:
        """The CIDRs for a node that has none: one of each set. Raises `Exhausted`."""
        name, uid = node.metadata.name, node.metadata.uid
        known = self._holdings.get(name)
        if known is not None and known.uid == uid:
            return known.cidrs
        self.forget(name)
        for number, cidrs in enumerate(self.sets):
            # differs: upstream uses up CIDRs of the sets before the one that is full.
            if cidrs.allocated == cidrs.max_cidrs:
                self.waiting[node.key] = None
                raise Exhausted(f"failed to allocate cidr from cluster cidr at idx:{number}: {NoCIDRsLeft()}")
        self.waiting.pop(node.key, None)
        texts, indexes = [], []
        for number, cidrs in enumerate(self.sets):
            index, tries = cidrs.allocate_next()
            texts.append(str(cidrs.block(index)))
            indexes.append((number, range(index, index + 1)))
            self._measures.append(Measure(TRIES, float(tries), (str(cidrs.cluster),)))
            self._count(number, ALLOCATIONS, 1)
        self._holdings[name] = Holding(uid, tuple(texts), tuple(indexes))
        return tuple(texts)

    def forget(self, name: str) -> bool:
        """Releases the CIDRs of a node that is gone; returns whether it had any."""
        self.waiting.pop(Key("", name), None)
        known = self._holdings.pop(name, None)
        if known is None:
            return False
        for number, indexes in known.indexes:
            # differs: upstream frees what another node, or a Service, still has.
            keep = self._held(number, indexes) if self._overlapping else ()
            self._count(number, RELEASES, self.sets[number].release(indexes, *keep))
        return bool(known.indexes)

    def take_measures(self) -> list[Measure]:
        """The updates of metrics since the last call."""
        taken, self._measures = self._measures, []
        return taken

    def _held(self, number: int, indexes: range) -> Iterable[range]:
        """The indexes that overlap the given ones, of other nodes and of Services."""
        holders = [self._services, *(holding.indexes for holding in self._holdings.values())]
        return [
            other
            for held in holders
            for at, other in held
            if at == number and other.start < indexes.stop and indexes.start < other.stop
        ]

    def _occupy(self, number: int, indexes: range) -> None:
        self._count(number, ALLOCATIONS, self.sets[number].occupy(indexes))

    def _count(self, number: int, metric: Metric, changed: int) -> None:
        cidrs = self.sets[number]
        label = (str(cidrs.cluster),)
        if changed:
            self._measures.append(Measure(metric, float(changed), label))
        self._measures.append(Measure(USAGE, cidrs.allocated / cidrs.max_cidrs, label))
