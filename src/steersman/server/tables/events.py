"""Events, of both groups: the newer one is the older with other names."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from steersman.server.tables.age import since
from steersman.server.tables.printer import Cell, Printer, Printers, columns, wide

if TYPE_CHECKING:
    from steersman.api.generated import core_v1, events_v1


class _Told(NamedTuple):
    """What is shown of an event, whichever group it came from."""

    name: str
    type: str
    reason: str
    message: str
    about: core_v1.ObjectReference
    component: str
    instance: str
    first: datetime | None
    last: datetime | None
    at: datetime | None
    times: int
    series: core_v1.EventSeries | events_v1.EventSeries | None


def core_event(event: core_v1.Event, now: datetime) -> tuple[Cell, ...]:
    return _cells(
        _Told(
            event.metadata.name,
            event.type,
            event.reason,
            event.message,
            event.involvedObject,
            event.source.component or event.reportingComponent,
            event.source.host or event.reportingInstance,
            event.firstTimestamp,
            event.lastTimestamp,
            event.eventTime,
            event.count,
            event.series,
        ),
        now,
    )


def new_event(event: events_v1.Event, now: datetime) -> tuple[Cell, ...]:
    return _cells(
        _Told(
            event.metadata.name,
            event.type,
            event.reason,
            event.note,
            event.regarding,
            event.deprecatedSource.component or event.reportingController,
            event.deprecatedSource.host or event.reportingInstance,
            event.deprecatedFirstTimestamp,
            event.deprecatedLastTimestamp,
            event.eventTime,
            event.deprecatedCount,
            event.series,
        ),
        now,
    )


def _cells(told: _Told, now: datetime) -> tuple[Cell, ...]:
    first = told.first or told.at
    # A single event of the newer sort has no count.
    last, count = told.last or first, told.times or 1
    if told.series is not None:
        last, count = told.series.lastObservedTime, told.series.count
    kind = told.about.kind.lower()
    return (
        since(last, now),
        told.type,
        told.reason,
        f"{kind}/{told.about.name}" if told.about.name else kind,
        told.about.fieldPath,
        f"{told.component}, {told.instance}" if told.instance else told.component,
        told.message.strip(),
        since(first, now),
        count,
        told.name,
    )


_COLUMNS = columns(
    "Last Seen",
    "Type",
    "Reason",
    "Object",
    wide("Subobject"),
    wide("Source"),
    "Message",
    wide("First Seen"),
    wide("Count"),
    wide("Name", format="name"),
)

PRINTERS: Printers = {
    "events": Printer(_COLUMNS, core_event),
    "events.events.k8s.io": Printer(_COLUMNS, new_event),
}
