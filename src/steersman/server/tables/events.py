"""Printers of Events of the core group and of ``events.k8s.io``."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from steersman.server.tables.cells import age
from steersman.server.tables.printer import Cell, Printer, Printers, columns, wide

if TYPE_CHECKING:
    from steersman.api.generated import core_v1, events_v1


class _EventRow(msgspec.Struct, frozen=True):
    """The fields of an Event that its row shows, for both groups."""

    name: str
    type: str
    reason: str
    message: str
    regarding: core_v1.ObjectReference
    component: str
    instance: str
    first_timestamp: datetime | None
    last_timestamp: datetime | None
    event_time: datetime | None
    occurrences: int
    series: core_v1.EventSeries | events_v1.EventSeries | None


def core_event_cells(event: core_v1.Event, now: datetime) -> tuple[Cell, ...]:
    return _event_cells(
        _EventRow(
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


def event_cells(event: events_v1.Event, now: datetime) -> tuple[Cell, ...]:
    return _event_cells(
        _EventRow(
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


def _event_cells(row: _EventRow, now: datetime) -> tuple[Cell, ...]:
    first = row.first_timestamp or row.event_time
    # A single Event of events.k8s.io has no count.
    last, count = row.last_timestamp or first, row.occurrences or 1
    if row.series is not None:
        last, count = row.series.lastObservedTime, row.series.count
    kind = row.regarding.kind.lower()
    return (
        age(last, now),
        row.type,
        row.reason,
        f"{kind}/{row.regarding.name}" if row.regarding.name else kind,
        row.regarding.fieldPath,
        f"{row.component}, {row.instance}" if row.instance else row.component,
        row.message.strip(),
        age(first, now),
        count,
        row.name,
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
    "events": Printer(_COLUMNS, core_event_cells),
    "events.events.k8s.io": Printer(_COLUMNS, event_cells),
}
