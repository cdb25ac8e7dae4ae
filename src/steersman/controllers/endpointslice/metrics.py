"""Metrics of EndpointSlices: what a sync changes, and how well the endpoints of all Services are packed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec

from steersman.api.scheme import Key
from steersman.intent.metrics import Measure, Metric, exponential

_PREFIX = "endpoint_slice_controller"
DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

ADDED = Metric(
    f"{_PREFIX}_endpoints_added_per_sync",
    "Number of endpoints added on each Service sync",
    buckets=exponential(2, 2, 15),
    stability="BETA",
)
REMOVED = Metric(
    f"{_PREFIX}_endpoints_removed_per_sync",
    "Number of endpoints removed on each Service sync",
    buckets=exponential(2, 2, 15),
    stability="BETA",
)
ENDPOINTS = Metric(
    f"{_PREFIX}_endpoints_desired", "Number of endpoints desired", gauge=True, stability="BETA"
)
SLICES = Metric(f"{_PREFIX}_num_endpoint_slices", "Number of EndpointSlices", gauge=True, stability="BETA")
DESIRED_SLICES = Metric(
    f"{_PREFIX}_desired_endpoint_slices",
    "Number of EndpointSlices that would exist with perfect endpoint allocation",
    gauge=True,
    stability="BETA",
)
CHANGES = Metric(f"{_PREFIX}_changes", "Number of EndpointSlice changes", ("operation",))
CHANGED_PER_SYNC = Metric(
    f"{_PREFIX}_endpointslices_changed_per_sync",
    "Number of EndpointSlices changed on each Service sync",
    ("topology", "traffic_distribution"),
    buckets=DEFAULT_BUCKETS,
)
SYNCS = Metric(f"{_PREFIX}_syncs", "Number of EndpointSlice syncs", ("result",))
BY_TRAFFIC_DISTRIBUTION = Metric(
    f"{_PREFIX}_services_count_by_traffic_distribution",
    "Number of Services using some specific trafficDistribution",
    ("traffic_distribution",),
    gauge=True,
    stability="BETA",
)
METRICS = (
    ADDED,
    REMOVED,
    ENDPOINTS,
    SLICES,
    DESIRED_SLICES,
    CHANGES,
    CHANGED_PER_SYNC,
    SYNCS,
    BY_TRAFFIC_DISTRIBUTION,
)


class ServiceCounts(msgspec.Struct, frozen=True):
    """The endpoints and slices of one Service."""

    endpoints: int = 0
    slices: int = 0
    desired_slices: int = 0
    traffic_distribution: str = ""


def count(efficiency: Iterable[tuple[int, int]], limit: int, traffic_distribution: str) -> ServiceCounts:
    """Counts the endpoints and slices of a Service, given those of each set of ports."""
    pairs = tuple(efficiency)
    desired = sum(math.ceil(endpoints / limit) for endpoints, _ in pairs)
    return ServiceCounts(
        sum(endpoints for endpoints, _ in pairs),
        sum(slices for _, slices in pairs),
        max(desired, 1),  # There is always a placeholder.
        traffic_distribution,
    )


class Totals:
    """The counts of all Services, for the gauges."""

    def __init__(self) -> None:
        self._services: dict[Key, ServiceCounts] = {}
        self._sum = ServiceCounts()
        self._distributions: dict[str, int] = {}

    def set(self, key: Key, counts: ServiceCounts | None) -> Iterator[Measure]:
        """Replaces the counts of a Service (None: it is gone), and returns what the gauges are to show then."""
        old = self._services.get(key)
        if counts == old:
            return iter(())
        if counts is None:
            del self._services[key]
        else:
            self._services[key] = counts
        for change, counted in ((-1, old), (1, counts)):
            if counted is None:
                continue
            self._sum = ServiceCounts(
                self._sum.endpoints + change * counted.endpoints,
                self._sum.slices + change * counted.slices,
                self._sum.desired_slices + change * counted.desired_slices,
            )
            if counted.traffic_distribution:
                known = self._distributions.get(counted.traffic_distribution, 0)
                self._distributions[counted.traffic_distribution] = known + change
        return self._measures()

    def _measures(self) -> Iterator[Measure]:
        yield Measure(SLICES, self._sum.slices)
        yield Measure(DESIRED_SLICES, self._sum.desired_slices)
        yield Measure(ENDPOINTS, self._sum.endpoints)
        for distribution, services in self._distributions.items():
            yield Measure(BY_TRAFFIC_DISTRIBUTION, services, (distribution,))

    def __len__(self) -> int:
        return len(self._services)
