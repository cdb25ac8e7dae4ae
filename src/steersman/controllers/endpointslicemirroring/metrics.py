"""Metrics of the mirroring of Endpoints, under upstream's names; and the sizes that its gauges add up."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.scheme import Key
from steersman.controllers.endpointslicemirroring.reconciler import Changes, Desired, Size
from steersman.intent.metrics import Measure, Metric, exponential

_PREFIX = "endpoint_slice_mirroring_controller_"
_COUNTS = exponential(2, 2, 15)

ADDED = Metric(
    f"{_PREFIX}endpoints_added_per_sync", "Number of endpoints added in each round", buckets=_COUNTS
)
UPDATED = Metric(
    f"{_PREFIX}endpoints_updated_per_sync", "Number of endpoints updated in each round", buckets=_COUNTS
)
REMOVED = Metric(
    f"{_PREFIX}endpoints_removed_per_sync", "Number of endpoints removed in each round", buckets=_COUNTS
)
SKIPPED = Metric(
    f"{_PREFIX}addresses_skipped_per_sync",
    "Number of addresses that are not mirrored in each round: invalid ones, and those beyond the limit of a subset",
    buckets=_COUNTS,
)
DURATION = Metric(
    f"{_PREFIX}endpoints_sync_duration", "Seconds that each round took", buckets=exponential(0.001, 2, 15)
)
DESIRED = Metric(f"{_PREFIX}endpoints_desired", "Number of endpoints to mirror", gauge=True)
SLICES = Metric(f"{_PREFIX}num_endpoint_slices", "Number of mirrored EndpointSlices", gauge=True)
DESIRED_SLICES = Metric(
    f"{_PREFIX}desired_endpoint_slices",
    "Number of EndpointSlices that there would be if all of them were full",
    gauge=True,
)
CHANGES = Metric(f"{_PREFIX}changes", "Number of EndpointSlices written", ("operation",))
METRICS = (ADDED, UPDATED, REMOVED, SKIPPED, DURATION, DESIRED, SLICES, DESIRED_SLICES, CHANGES)


class Sizes:
    """The number of endpoints and slices of all mirrored Endpoints, for a controller's memory."""

    def __init__(self) -> None:
        self._sizes: dict[Key, Size] = {}
        self._total = Size()

    def __contains__(self, key: Key) -> bool:
        return key in self._sizes

    def put(self, key: Key, size: Size | None) -> Iterator[Measure]:
        """Records the size of some Endpoints, or drops it; answers with the gauges that change."""
        old = self._sizes.pop(key, Size())
        if size is not None:
            self._sizes[key] = size
        new = size or Size()
        self._total = Size(
            *(total - was + now for total, was, now in zip(self._total, old, new, strict=True))
        )
        yield Measure(DESIRED, self._total.endpoints)
        yield Measure(SLICES, self._total.slices)
        yield Measure(DESIRED_SLICES, self._total.desired_slices)


def of_round(desired: Desired, changes: Changes) -> Iterator[Measure]:
    """The measures of a round, taken before it writes."""
    yield Measure(SKIPPED, desired.skipped)
    yield Measure(ADDED, changes.added)
    yield Measure(UPDATED, changes.updated)
    yield Measure(REMOVED, changes.removed)
