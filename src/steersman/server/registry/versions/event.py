"""Events of the group ``events.k8s.io`` and those of the core: the same events, in other words."""

from __future__ import annotations

from typing import Any

from steersman.api.generated import core_v1, events_v1

_SAME = ("metadata", "eventTime", "reportingInstance", "action", "reason", "related", "type")
_CALLED = {
    "reportingComponent": "reportingController",
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""The names in the core, and the others'."""


def newer(event: core_v1.Event) -> events_v1.Event:
    """An event of the core as ``events.k8s.io`` shows it."""
    fields: dict[str, Any] = {name: getattr(event, name) for name in _SAME}
    fields |= {there: getattr(event, here) for here, there in _CALLED.items()}
    series = event.series
    if series is not None:
        fields["series"] = events_v1.EventSeries(count=series.count, lastObservedTime=series.lastObservedTime)
    return events_v1.Event(**fields)


def older(event: events_v1.Event) -> core_v1.Event:
    """An event of ``events.k8s.io`` as the core shows it."""
    fields: dict[str, Any] = {name: getattr(event, name) for name in _SAME}
    fields |= {here: getattr(event, there) for here, there in _CALLED.items()}
    series = event.series
    if series is not None:
        fields["series"] = core_v1.EventSeries(count=series.count, lastObservedTime=series.lastObservedTime)
    return core_v1.Event(**fields)
