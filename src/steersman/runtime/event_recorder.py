"""The event recorder: writes events about objects in the background.

`Recorder.emit` only queues the event; a few workers send it. No caller waits for an event or fails because of one: while
the server cannot be reached events are held for a while, and when there are too many they are dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, NamedTuple

from steersman.api.clock import Clock
from steersman.api.errors import (
    AlreadyExists,
    ApiError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from steersman.api.kinds import Object, ObjectReference
from steersman.api.scheme import Kind
from steersman.api.token_bucket import TokenBucket
from steersman.api.verbosity import V, structured
from steersman.client.api import Api
from steersman.runtime.event_correlator import SERIES_ENDS, Correlated, Correlator, Identity, SeriesCorrelator
from steersman.runtime.events import EVENTS, SERIES_EVENTS, Scribe, reference

log = logging.getLogger(__name__)

TRIES = 12
HOLD = 10.0
"""Seconds between two tries of an event while the server cannot be reached."""
QUEUED = 1000
"""Event objects that may wait to be written; further ones are dropped."""
BUSY = 20
"""Event objects that wait to be written, from which on similar ones are combined sooner."""
BACKLOG_PAUSE = 0.1
"""Seconds between two looks at the events of a host that are above its rate limit."""
PACE = 1.0
"""The shortest time between two writes of one event object, in seconds."""
REFRESH = 5
"""Every how many sweeps all running series are written again, so they outlive the server's TTL."""
STRATEGIC = "application/strategic-merge-patch+json"


class _Emitted(NamedTuple):
    """An event as it was emitted."""

    about: ObjectReference
    type: str
    reason: str
    message: str
    action: str
    host: str
    at: datetime


class _Backlog:
    """The events of a host above its rate limit, in order."""

    __slots__ = ("bucket", "events", "timer")

    def __init__(self, bucket: TokenBucket) -> None:
        self.bucket = bucket
        self.events: deque[_Emitted] = deque()
        self.timer: asyncio.TimerHandle | None = None

    def clear(self) -> int:
        """Drop the events; returns how many there were."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        count = len(self.events)
        self.events.clear()
        return count


class _Entry:
    """One event object on its way to the server."""

    __slots__ = ("at", "event", "key", "more", "present", "timer", "unsure")

    def __init__(self, found: Correlated) -> None:
        self.key: Identity = found.key
        self.event = found.event
        """As it should be on the server."""
        self.present = found.event.repeated
        """Whether the server should have the event already, so that it is patched."""
        self.more = False
        """Whether it has changed since the last try to write it began."""
        self.unsure = False
        """Whether the answer of a create was lost."""
        self.at = -math.inf
        """When it was last written."""
        self.timer: asyncio.TimerHandle | None = None


class Recorder:
    """Sends the events of one component.

    An event object is always in one of three places: `_pending` until it is written, `_resting` for
    a moment afterwards, or nowhere.
    """

    def __init__(
        self,
        api: Api,
        clock: Clock,
        *,
        component: str,
        host: str = "",
        sink: Literal["core", "events.k8s.io"] = "core",
        fence: Callable[[], bool] = lambda: True,
        parallel: int = 2,
        qps: float = 0.0,
        burst: int = 1,
        queued: int = QUEUED,
    ) -> None:
        """``fence`` returning False drops pending events: a process that no longer leads writes nothing, not even events.

        ``qps`` and ``burst`` limit the events of each host; 0 is no limit. Those above it wait, `QUEUED` of each host at most.
        At most ``queued`` event objects of all hosts are on their way to the server.
        """
        self.dropped = 0
        """Events that were lost: too many, or not accepted by the server."""
        self.filtered = 0
        """Events that led to no write of their own: too many about one object, or a running series."""
        self._api = api
        self._clock = clock
        self._component = component
        self._host = host
        self._fence = fence
        self._parallel = parallel
        self._rate = qps, burst
        self._backlogs: dict[str, _Backlog] = {}
        """The events of each host above its rate limit."""
        self._queued = queued
        self._kind: Kind[Any] = EVENTS if sink == "core" else SERIES_EVENTS
        self._pending: dict[Identity, _Entry] = {}
        self._resting: dict[Identity, _Entry] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._context: Context | None = None
        """The context of the task that opened the recorder; None if it is not open."""
        self._overflowing = False

    # -- made with the first event, which most recorders never have

    @cached_property
    def _scribe(self) -> Scribe:
        return Scribe(self._component, self._host, self._clock.random)

    @cached_property
    def _correlator(self) -> Correlator | SeriesCorrelator:
        return Correlator() if self._kind is EVENTS else SeriesCorrelator()

    @cached_property
    def _queue(self) -> asyncio.Queue[_Entry]:
        return asyncio.Queue()

    @cached_property
    def _taken(self) -> asyncio.Event:
        """Whether there may be series."""
        return asyncio.Event()

    @cached_property
    def _closing(self) -> asyncio.Event:
        return asyncio.Event()

    @cached_property
    def _closed(self) -> asyncio.Event:
        return asyncio.Event()

    # -- taking -------------------------------------------------------------------------------

    def emit(
        self,
        about: Object | ObjectReference,
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        host: str = "",
    ) -> None:
        """Record an event about an object, of this host of the component. Never blocks, never raises."""
        try:
            ref = about if isinstance(about, ObjectReference) else reference(about)
            emitted = _Emitted(ref, type, reason, message, action, host, self._clock.now())
            if self._rate[0] <= 0.0 or self._may_pass(emitted):
                self._emit(emitted)
        except Exception:
            self.dropped += 1
            log.exception("Unable to record event %s (will not retry!)", reason)

    def is_full(self, host: str) -> bool:
        """Whether further events of a host are dropped: too many are above its rate limit."""
        backlog = self._backlogs.get(host)
        return backlog is not None and len(backlog.events) >= QUEUED

    def _may_pass(self, emitted: _Emitted) -> bool:
        """Whether an event is within the rate limit of its host. If not, it waits."""
        backlog = self._backlogs.get(emitted.host)
        if backlog is None:
            backlog = self._backlogs[emitted.host] = _Backlog(TokenBucket(*self._rate))
        if not backlog.events and backlog.bucket.try_take(self._clock.monotonic()):
            return True
        if len(backlog.events) >= QUEUED or self._closing.is_set():
            self.dropped += 1
        else:
            backlog.events.append(emitted)
            if backlog.timer is None:
                self._set_timer(backlog)
        return False

    def _set_timer(self, backlog: _Backlog) -> None:
        # In the context of the recorder: whether a world waits for it is not up to the caller that emits.
        backlog.timer = asyncio.get_running_loop().call_later(
            BACKLOG_PAUSE, self._drain, backlog, context=self._context
        )

    def _drain(self, backlog: _Backlog) -> None:
        """Let the events of a host pass that are within its rate limit by now."""
        backlog.timer, now = None, self._clock.monotonic()
        while backlog.events and backlog.bucket.try_take(now):
            self._emit(backlog.events.popleft())
        if backlog.events:
            self._set_timer(backlog)

    def _emit(self, emitted: _Emitted) -> None:
        ref, type, reason, message, action, host, wall = emitted
        if type not in ("Normal", "Warning"):
            log.error("Unsupported event type %r", type)
            return
        if log.isEnabledFor(V[3]):
            logged = structured(
                "Event occurred",
                object=f"{ref.namespace}/{ref.name}",
                kind=ref.kind,
                apiVersion=ref.apiVersion,
                type=type,
                reason=reason,
                message=message,
            )
            log.log(V[3], "%s %s/%s: %s %s", ref.kind, ref.namespace, ref.name, type, reason, extra=logged)
        now = self._clock.monotonic()
        found: Correlated | None
        if isinstance(self._correlator, Correlator):
            busy = len(self._pending) > BUSY
            event = self._scribe.event(ref, type, reason, message, wall, host)
            found = self._correlator.take(event, now, busy=busy)
        else:
            series = self._scribe.series_event(ref, type, reason, message, wall, action)
            found = self._correlator.take(series, now)
            self._taken.set()
        if found is None:
            self.filtered += 1
        else:
            self._hold(found, now)

    def _hold(self, found: Correlated, now: float) -> None:
        """Let an event wait to be written, together with what already waits for the same object.

        differs: upstream sends a request for every count. Here an event that is being written, or
        was a moment ago, gathers its further counts for one later patch.
        """
        entry = self._pending.get(found.key)
        if entry is not None:
            entry.event = found.event
            entry.more = True
            return
        if self._closing.is_set() or len(self._pending) >= self._queued:
            self.dropped += 1
            if not self._overflowing and not self._closing.is_set():
                self._overflowing = True
                log.error("Unable to record event: too many queued events, dropping %s", found.event.reason)
            return
        entry = self._resting.pop(found.key, None)
        if entry is None:
            entry = _Entry(found)
        entry.event = found.event
        self._ready(entry, entry.at + PACE - now)
        self._pending[entry.key] = entry

    def _ready(self, entry: _Entry, delay: float = 0.0) -> None:
        """Give an entry to the workers, after a delay."""
        if delay > 0 and not self._closing.is_set():
            loop = asyncio.get_running_loop()
            entry.timer = loop.call_later(delay, self._ready, entry, context=self._context)
            return
        entry.timer = None
        self._queue.put_nowait(entry)
        self._start()

    # -- sending ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Send events until cancelled or closed. What was emitted before is not lost."""
        self.open()
        try:
            await self._closed.wait()
        finally:
            await self._stop()

    def open(self) -> None:
        """Send events from now on, until closed. What was emitted before is not lost."""
        self._context = copy_context()
        if self._pending:
            self._start()

    @property
    def busy(self) -> bool:
        """Whether there is anything to be closed."""
        return bool(self._workers or self._pending)

    async def close(self, timeout: float = 5.0) -> None:
        """Send what is pending, trying each event once, for so many seconds at most; then stop.

        Works whether `run` still runs or was cancelled before. Events above the rate limit are dropped.
        """
        for backlog in self._backlogs.values():
            self.dropped += backlog.clear()
        now = self._clock.monotonic()
        for found in self._correlator.unwritten():
            self._hold(found, now)
        self._closing.set()
        for entry in list(self._pending.values()):
            if entry.timer is not None:
                entry.timer.cancel()
                self._ready(entry)
        if self._context is None:
            self.open()
        try:
            async with asyncio.timeout(timeout):
                await self._queue.join()
        except TimeoutError:
            self.dropped += len(self._pending)
            log.error("Unable to write %d events (recorder is shut down)", len(self._pending))
        finally:
            self._closed.set()
            await self._stop()

    def _start(self) -> None:
        """Start the workers, on the first event: most components emit none most of the time."""
        if self._workers or self._context is None:
            return
        # The workers run in the context of the recorder, not of the caller that emits the first event.
        loop, context = asyncio.get_running_loop(), self._context
        names = [f"events of {self._component}#{number}" for number in range(self._parallel)]
        self._workers = [loop.create_task(self._work(), name=name, context=context.copy()) for name in names]
        if isinstance(self._correlator, SeriesCorrelator):
            sweep, name = self._sweep(self._correlator), f"event series of {self._component}"
            self._workers.append(loop.create_task(sweep, name=name, context=context.copy()))

    async def _stop(self) -> None:
        self._context = None
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _sweep(self, correlator: SeriesCorrelator) -> None:
        begin = self._clock.monotonic()
        while True:
            if not len(correlator):
                # Without running series there is nothing to sweep until the next event.
                self._taken.clear()
                await self._taken.wait()
            sweeps = (self._clock.monotonic() - begin) // SERIES_ENDS + 1
            await asyncio.sleep(begin + sweeps * SERIES_ENDS - self._clock.monotonic())
            now = self._clock.monotonic()
            for found in correlator.sweep(now, refresh=sweeps % REFRESH == 0):
                self._hold(found, now)

    async def _work(self) -> None:
        while True:
            entry = await self._queue.get()
            try:
                await self._deliver(entry)
            except asyncio.CancelledError:
                self._ready(entry)  # `close` sends it
                raise
            except Exception:
                # A bug, or an object without a valid name: it must not stop the other events.
                self.dropped += 1
                log.exception("Unable to write event %s (will not retry!)", entry.event.reason)
                self._settle(entry)
            finally:
                self._queue.task_done()

    async def _deliver(self, entry: _Entry) -> None:
        """Write an event, holding this worker while the server cannot be reached."""
        for attempt in range(1, TRIES + 1):
            # Also of one that is dropped: what was counted meanwhile goes with it, or it would come back.
            entry.more = False
            if not self._fence():
                self.dropped += 1
                break
            try:
                await self._send(entry)
                break
            # differs: upstream gives up on any answer that is a Status. An overloaded or restarting
            # server says nothing about the event, so it is tried again like an unreachable one.
            except (Unreachable, ServerError, TooManyRequests) as error:
                if attempt == TRIES or self._closing.is_set():
                    self.dropped += 1
                    log.error("Unable to write event %s (giving up): %s", entry.event.reason, error)
                    break
                await self._pause(attempt, error.retry_after or 0.0)
            except ApiError as error:
                self.dropped += 1
                quiet = isinstance(error, AlreadyExists) or error.caused_by("NamespaceTerminating")
                level = V[4] if quiet else logging.ERROR
                log.log(level, "Server rejected event %s (will not retry!): %s", entry.event.reason, error)
                break
        self._settle(entry)

    async def _pause(self, attempt: int, retry_after: float) -> None:
        # The first pause is of any length, so that not all clients of a server come back at once.
        delay = HOLD * self._clock.random.random() if attempt == 1 else HOLD
        with suppress(TimeoutError):
            async with asyncio.timeout(max(delay, retry_after)):
                await self._closing.wait()

    async def _send(self, entry: _Entry) -> None:
        if entry.present:
            try:
                await self._patch(entry)
                return
            except NotFound:
                entry.present = False  # deleted or expired since: write it anew, count and all
        event = entry.event
        try:
            await self._api.create(self._kind, event.metadata.namespace, event)
        except AlreadyExists:
            if not entry.unsure:
                # Another event has the name; its counts are not ours to touch.
                self._correlator.forget(entry.key)
                raise
            # It is the one we sent when no answer came; what has been counted since is missing.
            entry.present = True
            if event.repeated:
                await self._patch(entry)
        except ApiError as error:
            entry.unsure = entry.unsure or error.uncertain
            raise
        except asyncio.CancelledError:
            entry.unsure = True
            raise
        entry.present = True

    async def _patch(self, entry: _Entry) -> None:
        meta = entry.event.metadata
        body = entry.event.change()
        await self._api.patch(self._kind, meta.namespace, meta.name, body, content_type=STRATEGIC)

    def _settle(self, entry: _Entry) -> None:
        """An event was written or given up: let it rest, or write what has been counted meanwhile."""
        entry.at = now = self._clock.monotonic()
        if entry.more:
            self._ready(entry, PACE)
            return
        del self._pending[entry.key]
        self._overflowing = self._overflowing and len(self._pending) > self._queued // 2
        self._resting[entry.key] = entry
        # Two go for every one that comes, so the old ones never pile up.
        for _ in range(2):
            oldest = next(iter(self._resting))
            if now - self._resting[oldest].at < PACE:
                break
            del self._resting[oldest]
