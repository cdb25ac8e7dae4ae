"""Zones: their states of disruption, and the rate at which nodes get NoExecute taints in each.

A zone with too many nodes that are not ready is probably cut off from the control plane, and its pods still run: taints, which
evict pods, are then added more slowly or not at all. Where no zone has a ready node, the control plane itself is probably
cut off (master disruption), and NoExecute taints are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

import msgspec

from steersman.api.kinds.nodes import Node
from steersman.api.token_bucket import TokenBucket
from steersman.controllers.nodelifecycle.health import RESOLUTION, ready_status
from steersman.controllers.nodelifecycle.taints import needs_no_execute

EXCLUDED = "node.kubernetes.io/exclude-disruption"
"""A label of nodes that do not count for the state of their zone."""
SEPARATOR = ":\0:"
"""Between the region and the zone of a node."""


class ZoneState(Enum):
    """The state of a zone."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL_DISRUPTION = "PartialDisruption"
    FULL_DISRUPTION = "FullDisruption"


class Rates(msgspec.Struct, frozen=True):
    """The flags about zones. Rates are in nodes per second."""

    normal: float
    reduced: float
    large_zone: int
    """A zone with more nodes than this is large: in a partial disruption its nodes are tainted at the reduced rate, and
    those of a smaller zone are not."""
    unhealthy_threshold: float
    """The share of nodes that are not ready from which a zone is partially disrupted."""


class Count(msgspec.Struct, frozen=True):
    """The number of nodes in a zone."""

    ready: int = 0
    not_ready: int = 0

    @property
    def size(self) -> int:
        return self.ready + self.not_ready

    @property
    def health(self) -> float:
        """The percentage of nodes that are ready."""
        return 100.0 * self.ready / self.size if self.size else 100.0


def zone_of(node: Node) -> str:
    """The region and zone of a node as one string; empty where it has neither."""
    labels = node.metadata.labels
    zone = labels.get("failure-domain.beta.kubernetes.io/zone", labels.get("topology.kubernetes.io/zone", ""))
    region = labels.get(
        "failure-domain.beta.kubernetes.io/region", labels.get("topology.kubernetes.io/region", "")
    )
    return f"{region}{SEPARATOR}{zone}" if region or zone else ""


def zone_name(zone: str) -> str:
    """The name of a zone in a text."""
    return f"zone {zone.replace(SEPARATOR, '/').strip('/')}" if zone else "the only zone"


def is_excluded(node: Node) -> bool:
    """Whether a node does not count for the state of its zone."""
    return EXCLUDED in node.metadata.labels


def count_zones(nodes: Iterable[Node]) -> dict[str, Count]:
    """The nodes of each zone."""
    found: dict[str, Count] = {}
    for node in nodes:
        if is_excluded(node):
            continue
        zone, is_ready = zone_of(node), ready_status(node) == "True"
        count = found.get(zone, Count())
        found[zone] = Count(count.ready + is_ready, count.not_ready + (not is_ready))
    return found


def zone_state(count: Count, unhealthy_threshold: float) -> ZoneState:
    """The state of a zone with this many nodes."""
    if not count.ready and count.not_ready:
        return ZoneState.FULL_DISRUPTION
    if count.not_ready > 2 and count.not_ready / count.size >= unhealthy_threshold:
        return ZoneState.PARTIAL_DISRUPTION
    return ZoneState.NORMAL


def tainting_rate(state: ZoneState, size: int, rates: Rates) -> float:
    """The rate for a zone of this state, while some other zone is not fully disrupted."""
    if state is not ZoneState.PARTIAL_DISRUPTION:
        return rates.normal
    return rates.reduced if size > rates.large_zone else 0.0


def waiting_nodes(nodes: Iterable[Node]) -> dict[str, tuple[Node, ...]]:
    """The nodes that are to get a NoExecute taint, by zone, the ones that were not ready first in front."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        if needs_no_execute(node):
            found.setdefault(zone_of(node), []).append(node)
    return {zone: tuple(sorted(each, key=_since)) for zone, each in found.items()}


def _since(node: Node) -> tuple[float, str]:
    times = (each.lastTransitionTime for each in node.status.conditions if each.type == "Ready")
    return (next((at.timestamp() for at in times if at is not None), 0.0), node.metadata.name)


class RateLimiter:
    """Limits the rate of taints in a zone: one at once, then as many as the rate allows."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._bucket = TokenBucket(rate, 1)

    def wait(self, monotonic: float) -> float | None:
        """Seconds until the next node may be tainted; None where the rate is 0."""
        if self.rate <= 0.0:
            return None
        wait = self._bucket.wait(monotonic)
        return wait if wait >= RESOLUTION else 0.0

    def take(self, monotonic: float) -> None:
        """A node has been tainted."""
        self._bucket.reserve(monotonic)

    def change(self, rate: float, monotonic: float) -> None:
        """Set another rate. Where a node had to wait before, the next one waits a full interval of the new rate."""
        if rate == self.rate:
            return
        had_to_wait = self.wait(monotonic) != 0.0
        self.rate, self._bucket = rate, TokenBucket(rate, 1)
        if had_to_wait:
            self.take(monotonic)


class Zones:
    """The zones as this process last saw them."""

    def __init__(self) -> None:
        self.states: dict[str, ZoneState] = {}
        self.limiters: dict[str, RateLimiter] = {}

    @property
    def is_master_disruption(self) -> bool:
        """Whether no zone has a ready node."""
        return bool(self.states) and all(state is ZoneState.FULL_DISRUPTION for state in self.states.values())

    def limiter(self, zone: str, rates: Rates) -> RateLimiter:
        """The limiter of a zone; a zone that was not known begins with the normal rate."""
        return self.limiters.setdefault(zone, RateLimiter(rates.normal))

    def update(self, counts: Mapping[str, Count], rates: Rates, monotonic: float) -> bool:
        """Take in the nodes of each zone; returns whether a master disruption has ended."""
        for gone in [zone for zone in self.states if zone not in counts]:
            del self.states[gone]
            self.limiters.pop(gone, None)
        old = self.states
        were_all_full = bool(counts) and all(old.get(zone) is ZoneState.FULL_DISRUPTION for zone in counts)
        self.states = {zone: zone_state(count, rates.unhealthy_threshold) for zone, count in counts.items()}
        for zone, state in self.states.items():
            if self.is_master_disruption:
                self.limiter(zone, rates).change(0.0, monotonic)
            elif were_all_full or state is not old.get(zone):
                rate = tainting_rate(state, counts[zone].size, rates)
                self.limiter(zone, rates).change(rate, monotonic)
        return were_all_full and not self.is_master_disruption
