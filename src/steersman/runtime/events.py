"""Events of both API groups (core/v1 and events.k8s.io/v1), as this program writes them.

Their times are text: the server refuses a MicroTime without its six digits, which an encoder of datetimes leaves out
when they are zero.
"""

from __future__ import annotations

import random
import re
import uuid
import zlib
from datetime import UTC, datetime, timedelta

import msgspec

from steersman.api.kinds import Object, ObjectMeta, ObjectReference, Struct
from steersman.api.meta import format_micro_time, format_time
from steersman.api.scheme import Kind, kind_of, register

NOTE = 1024
"""The longest note of an events.k8s.io event, in bytes."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class EventSource(Struct, frozen=True):
    component: str = ""
    host: str = ""


class Event(Object, frozen=True):
    """A core/v1 event as this program writes it."""

    involvedObject: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    firstTimestamp: str = ""
    lastTimestamp: str = ""
    count: int = 0
    type: str = ""
    reportingComponent: str = ""
    reportingInstance: str = ""

    @property
    def repeated(self) -> bool:
        """Whether this repeats an event that should be on the server already."""
        return self.count > 1

    def change(self) -> dict[str, object]:
        """The patch that updates the event on the server to this one."""
        return {"count": self.count, "lastTimestamp": self.lastTimestamp, "message": self.message}


class EventSeries(Struct, frozen=True):
    count: int
    lastObservedTime: str


class SeriesEvent(Object, frozen=True):
    """An events.k8s.io/v1 event as this program writes it."""

    eventTime: str = ""
    series: EventSeries | None = None
    reportingController: str = ""
    reportingInstance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()
    note: str = ""
    type: str = ""

    @property
    def repeated(self) -> bool:
        return self.series is not None

    def change(self) -> dict[str, object]:
        """A patch of the series: nothing else of such an event may change."""
        return {"series": msgspec.to_builtins(self.series)}


EVENTS = register(Kind("", "v1", "Event", "events", True, Event))
SERIES_EVENTS = register(Kind("events.k8s.io", "v1", "Event", "events", True, SeriesEvent))


def reference(about: Object) -> ObjectReference:
    """The reference to an object in an event."""
    kind = kind_of(about)
    meta = about.metadata
    return ObjectReference(
        kind=kind.name,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        apiVersion=kind.api_version,
        resourceVersion=meta.resourceVersion,
    )


class Scribe:
    """Makes the events of one component, each with a unique name."""

    def __init__(self, component: str, host: str, chance: random.Random) -> None:
        self._component = component
        self._host = host
        self._chance = chance
        self._source = EventSource(component=component, host=host)
        self._stamp = 0
        # A datetime has no nanoseconds, so the component fills them in: two components that write about one object
        # in the same microsecond (the rule under virtual time) choose different names.
        self._offset = zlib.crc32(component.encode()) % 1000

    def event(
        self, about: ObjectReference, type: str, reason: str, message: str, now: datetime, host: str = ""
    ) -> Event:
        """A first core/v1 event, of a host of the component."""
        at = format_time(now)
        source = EventSource(component=self._component, host=host) if host else self._source
        return Event(
            metadata=self._metadata(about, now),
            involvedObject=about,
            reason=reason,
            message=message,
            source=source,
            firstTimestamp=at,
            lastTimestamp=at,
            count=1,
            type=type,
            reportingComponent=self._component,
            reportingInstance=source.host,
        )

    def series_event(
        self, about: ObjectReference, type: str, reason: str, message: str, now: datetime, action: str
    ) -> SeriesEvent:
        """A first events.k8s.io/v1 event."""
        return SeriesEvent(
            metadata=self._metadata(about, now),
            eventTime=format_micro_time(now),
            reportingController=self._component,
            reportingInstance=f"{self._component}-{self._host}",
            # differs: the server refuses an event without an action, and notes that are too long.
            action=action or reason,
            reason=reason,
            regarding=about,
            note=message.encode()[:NOTE].decode(errors="ignore"),
            type=type,
        )

    def _metadata(self, about: ObjectReference, now: datetime) -> ObjectMeta:
        nanoseconds = (now - _EPOCH) // timedelta(microseconds=1) * 1000 + self._offset
        self._stamp = max(nanoseconds, self._stamp + 1)
        name = f"{about.name}.{self._stamp:x}"
        if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
            # Names of Roles, for example, may be invalid as names of events.
            name = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
        return ObjectMeta(name=name, namespace=about.namespace or "default")
