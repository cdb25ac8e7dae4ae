"""Event correlation: events are counted, combined, or dropped as spam before they are sent. No I/O.

`Correlator` keeps the rules of core/v1 events, `SeriesCorrelator` those of events.k8s.io/v1. Both
take an event and the time, and return the event as it should be on the server, with a key that names that event
object.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.token_bucket import TokenBucket
from steersman.runtime.events import Event, EventSeries, SeriesEvent

REMEMBERED = 4096
"""Entries in each cache of a correlator; the least recently used is dropped first."""
SIMILAR = 10
"""The number of different messages at which otherwise equal events are combined into one."""
SIMILAR_BUSY = 5
"""The same while many events wait to be written.

differs: upstream combines from the tenth on however busy the server is.
"""
SIMILAR_WITHIN = 600.0
"""Seconds without a similar event, after which the next one counts as new."""
BURST = 25
"""Events that one source may send about one object at once."""
REFILL = 300.0
"""Seconds until it may send one more."""
COMBINED = "(combined from similar events): "
SERIES_ENDS = 360.0
"""Seconds without a further event, after which a series is over."""

Identity: TypeAlias = tuple[str, ...]


class Correlated(msgspec.Struct, frozen=True):
    """An event as it should be on the server, and the key of that event object."""

    key: Identity
    event: Event | SeriesEvent


# -- core/v1 ------------------------------------------------------------------------------------


class Counted(msgspec.Struct, frozen=True):
    """An event that was written: its count, first timestamp and name."""

    times: int
    first: str
    name: str


class Similar:
    """Events that differ only in their message."""

    __slots__ = ("last", "messages")

    def __init__(self) -> None:
        self.messages: dict[str, None] = {}
        self.last = 0.0


class Correlator:
    """The rules of upstream's EventCorrelator, for the events of one source.

    Many similar events become one with a count (aggregation), equal events become one with a
    count (deduplication), and events about one object are limited by a token bucket.
    """

    def __init__(self, capacity: int = REMEMBERED) -> None:
        self._similar: BoundedCache[Identity, Similar] = BoundedCache(capacity)
        self._counted: BoundedCache[Identity, Counted] = BoundedCache(capacity)
        self._buckets: BoundedCache[Identity, TokenBucket] = BoundedCache(capacity)

    def take(self, event: Event, now: float, *, busy: bool = False) -> Correlated | None:
        """The event to write for this one; None if the rate limit of its source and object is exceeded.

        ``busy`` combines similar events sooner: many already wait to be written.
        """
        about = event.involvedObject
        who = (about.kind, about.namespace, about.name, about.uid, about.apiVersion, event.type)
        key: Identity = (*who, event.reason, event.message, about.fieldPath)
        group = (*who, event.reason)
        if self._too_similar(group, event.message, now, SIMILAR_BUSY if busy else SIMILAR):
            # Upstream's combined events leave out the reporting component; the source stays.
            event = msgspec.structs.replace(
                event, message=COMBINED + event.message, reportingComponent="", reportingInstance=""
            )
            key = group
        event = self._count(event, key)
        # Counted even if it is not sent: the next event that is sent has the full count.
        return None if self._is_spam(who, now) else Correlated(key, event)

    def forget(self, key: Identity) -> None:
        """Start a new event object for this key: the old one cannot be written any more."""
        self._counted.discard(key)

    def sweep(self, now: float, refresh: bool) -> list[Correlated]:
        """The events to write because time has passed: none for core events."""
        return []

    def unwritten(self) -> list[Correlated]:
        """Events whose counts were not written yet: none for core events."""
        return []

    def _too_similar(self, group: Identity, message: str, now: float, most: int) -> bool:
        similar = self._similar.use(group)
        if similar is None or now - similar.last > SIMILAR_WITHIN:
            similar = Similar()
            self._similar.put(group, similar)
        similar.last = now
        known = message in similar.messages
        similar.messages[message] = None
        if len(similar.messages) < most or (known and most < SIMILAR):
            return False
        # differs: upstream forgets any one of the messages. Forgetting the newest is repeatable,
        # and lets the messages that have an event of their own keep it.
        del similar.messages[message]
        return True

    def _count(self, event: Event, key: Identity) -> Event:
        before = self._counted.use(key)
        if before is not None:
            event = msgspec.structs.replace(
                event,
                metadata=msgspec.structs.replace(event.metadata, name=before.name),
                firstTimestamp=before.first,
                count=before.times + 1,
            )
        self._counted.put(key, Counted(event.count, event.firstTimestamp, event.metadata.name))
        return event

    def _is_spam(self, who: Identity, now: float) -> bool:
        bucket = self._buckets.use(who)
        if bucket is None:
            bucket = TokenBucket(1 / REFILL, BURST)
            self._buckets.put(who, bucket)
        return not bucket.try_take(now)


# -- events.k8s.io/v1 ---------------------------------------------------------------------------


class Series:
    """An event and how often it has been repeated."""

    __slots__ = ("event", "seen", "written")

    def __init__(self, event: SeriesEvent, seen: float) -> None:
        self.event = event
        self.seen = seen
        self.written = event
        """The event as it was last returned to be written."""


class SeriesCorrelator:
    """The rules of upstream's events broadcaster.

    The first event is written, the second makes it a series; further ones are only counted, and
    written when the series is refreshed or over.
    """

    def __init__(self, capacity: int = REMEMBERED) -> None:
        self._series: BoundedCache[Identity, Series] = BoundedCache(capacity)

    def take(self, event: SeriesEvent, now: float) -> Correlated | None:
        """The event to write for this one; None if nothing is to be written yet."""
        about = event.regarding
        key: Identity = (
            event.type,
            event.action,
            event.reason,
            about.kind,
            about.namespace,
            about.name,
            about.uid,
            about.apiVersion,
            about.resourceVersion,
            about.fieldPath,
        )
        known = self._series.use(key)
        if known is None:
            self._series.put(key, Series(event, now))
            return Correlated(key, event)
        first = known.event.series is None
        count = 2 if known.event.series is None else known.event.series.count + 1
        series = EventSeries(count=count, lastObservedTime=event.eventTime)
        known.event = msgspec.structs.replace(known.event, series=series)
        known.seen = now
        return self._tell(key, known) if first else None

    def forget(self, key: Identity) -> None:
        """Start a new event object for this key: the old one cannot be written any more."""
        self._series.discard(key)

    def __len__(self) -> int:
        """The number of events that are or may become series."""
        return len(self._series)

    def sweep(self, now: float, refresh: bool) -> list[Correlated]:
        """The events to write because time has passed: series that are over, and on a refresh all others."""
        due: list[Correlated] = []
        for key, known in self._series.items():
            over = now - known.seen > SERIES_ENDS
            if known.event.series is not None and (over or refresh):
                due.append(self._tell(key, known))
            if over:
                self._series.discard(key)
        return due

    def unwritten(self) -> list[Correlated]:
        """Events whose counts were not written yet: for the end, when no further sweep will come."""
        return [
            self._tell(key, known) for key, known in self._series.items() if known.event is not known.written
        ]

    def _tell(self, key: Identity, known: Series) -> Correlated:
        known.written = known.event
        return Correlated(key, known.event)
