"""Metrics of the node lifecycle controller, under upstream's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from steersman.controllers.nodelifecycle.zones import Count
from steersman.intent.metrics import Measure, Metric, exponential

_PREFIX = "node_collector_"
_LABELS = ("zone",)
ZONE_HEALTH = Metric(
    _PREFIX + "zone_health", "Percentage of nodes of a zone that are ready", _LABELS, gauge=True
)
ZONE_SIZE = Metric(_PREFIX + "zone_size", "Number of nodes of a zone", _LABELS, gauge=True)
UNHEALTHY_NODES = Metric(
    _PREFIX + "unhealthy_nodes_in_zone", "Number of nodes of a zone that are not ready", _LABELS, gauge=True
)
EVICTIONS = Metric(
    _PREFIX + "evictions_total",
    "Number of nodes that got a NoExecute taint because they were not ready",
    _LABELS,
    stability="STABLE",
)
NODE_SECONDS = Metric(
    _PREFIX + "update_node_health_duration_seconds",
    "Time in seconds that a look at the health of one node took",
    buckets=exponential(0.001, 4, 8),
)
ALL_NODES_SECONDS = Metric(
    _PREFIX + "update_all_nodes_health_duration_seconds",
    "Time in seconds that a look at the health of all zones took",
    buckets=exponential(0.01, 4, 8),
)
METRICS = (ZONE_HEALTH, ZONE_SIZE, UNHEALTHY_NODES, EVICTIONS, NODE_SECONDS, ALL_NODES_SECONDS)


def zone_measures(counts: Mapping[str, Count]) -> Iterator[Measure]:
    """The gauges of each zone."""
    for zone, count in counts.items():
        yield Measure(ZONE_SIZE, count.size, (zone,))
        yield Measure(ZONE_HEALTH, count.health, (zone,))
        yield Measure(UNHEALTHY_NODES, count.not_ready, (zone,))
        # A zone has its counter from the beginning.
        yield Measure(EVICTIONS, 0.0, (zone,))
