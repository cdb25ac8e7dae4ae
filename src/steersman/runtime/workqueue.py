"""The work queue of a controller, with client-go's contract:

* fair: keys are handed out in the order they were added;
* stingy: one key is never processed by two workers at once;
* coalescing: a key added several times before it is handed out is handed out once;
* nothing lost: a key added while it is being processed is handed out again afterwards.

On top of that: delays (one timer for all keys), retries with back-off under an overall rate, a minimum interval
between two rounds of a key that changes in bursts, and the causes for which a key was added.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Hashable
from contextvars import copy_context
from typing import Generic, TypeVar

import msgspec

from steersman.api.clock import Clock
from steersman.api.token_bucket import TokenBucket
from steersman.runtime.backoff import ItemBackoff
from steersman.runtime.causes import Cause, add_cause
from steersman.runtime.metrics import Metrics

K = TypeVar("K", bound=Hashable)


class ShutDown(Exception):
    """The queue has been shut down and nothing is left in it."""


class Taken(msgspec.Struct, Generic[K], frozen=True):
    """A key handed out to a worker, which must call `WorkQueue.done` when it has processed it."""

    key: K
    causes: tuple[Cause, ...]
    """Why it was added, each cause once."""
    waited: float
    """Seconds from when it was first due until now."""


class _Due:
    """A key that will be added later."""

    __slots__ = ("causes", "when")

    def __init__(self, when: float, causes: tuple[Cause, ...]) -> None:
        self.when = when
        self.causes = causes


class WorkQueue(Generic[K]):
    """The keys to process. All methods except `get` and `drain` are synchronous."""

    def __init__(
        self,
        clock: Clock,
        *,
        name: str,
        metrics: Metrics | None = None,
        backoff: ItemBackoff[K] | None = None,
        bucket: TokenBucket | None = None,
        min_interval: float = 0.0,
    ) -> None:
        """``min_interval``: the shortest time, in seconds, between the starts of two rounds of one key that
        `add` asks for. The first round is never delayed."""
        self.name = name
        self.min_interval = min_interval
        self.interval = min_interval
        """The interval in force, in seconds. The owner of the queue may lower it, down to 0."""
        self._clock = clock
        self._backoff = ItemBackoff[K]() if backoff is None else backoff
        self._bucket = TokenBucket() if bucket is None else bucket
        self._order: deque[K] = deque()
        """The keys to hand out next: exactly those that are dirty and not being processed."""
        self._dirty: dict[K, tuple[float, tuple[Cause, ...]]] = {}
        """Keys to be handed out, since when and why."""
        self._working: dict[K, float] = {}
        """The keys being processed, and since when."""
        self._started: dict[K, float] = {}
        """When the last round of a key started, or ended with a rest, oldest first; no older than the interval. Only kept with
        one."""
        self._resting: dict[K, float] = {}
        """Until when a key rests. Keys of `_started` only."""
        self._due: dict[K, _Due] = {}
        """Keys to be added later: at most one time each."""
        self._heap: list[tuple[float, int, K]] = []
        """Their times. May hold times that are no longer those of `_due`; never lacks one that is."""
        self._serial = 0
        """Breaks ties between equal times, so keys are never compared."""
        self._timer: asyncio.TimerHandle | None = None
        self._context = copy_context()
        """The timer runs in the context of the queue, not of the caller that delays the key that is due first."""
        self.on_unserved: Callable[[], None] | None = None
        """Called when a key is added and no worker waits for one, so that another worker can be started."""
        self._getters: deque[asyncio.Future[None]] = deque()
        self._drained: list[asyncio.Future[None]] = []
        self._closing = False
        self._metrics = None
        if metrics is not None:
            self._metrics = metrics.queue(
                name, depth=lambda: len(self._dirty), unfinished=self.unfinished, longest=self.longest
            )

    # -- adding

    def add(self, key: K, cause: Cause = "") -> None:
        """Enqueue a key."""
        if self.min_interval and key not in self._dirty:
            started = self._started.get(key)
            if started is not None:
                due = max(started + self.interval, self._resting.get(key, 0.0))
                if due > self._clock.monotonic():
                    self._put_off(key, due, (cause,) if cause else ())
                    return
        self._add(key, (cause,) if cause else ())

    def add_after(self, key: K, seconds: float, cause: Cause = "") -> None:
        """Enqueue a key after some seconds. Of several times for one key the earliest counts."""
        if self._closing:
            return
        if self._metrics is not None:
            self._metrics.retries.inc()
        causes = (cause,) if cause else ()
        if seconds <= 0.0:
            self._add(key, causes)
        else:
            self._put_off(key, self._clock.monotonic() + seconds, causes)

    def retry(self, key: K, cause: Cause = "") -> float:
        """Enqueue a key whose round failed, with back-off and under the overall rate; returns the delay in seconds."""
        if self._closing:
            return 0.0
        item = self._backoff.next(key)
        delay = max(item, self._bucket.reserve(self._clock.monotonic()))
        self.add_after(key, delay, cause)
        return delay

    def forget(self, key: K) -> None:
        """Reset the back-off of a key whose round succeeded."""
        self._backoff.forget(key)

    def failures(self, key: K) -> int:
        """How often the key was retried since its back-off was last reset."""
        return self._backoff.failures(key)

    def _add(self, key: K, causes: tuple[Cause, ...]) -> None:
        if self._closing:
            return
        known = self._dirty.get(key)
        if known is not None:
            since, reasons = known
            for cause in causes:
                reasons = add_cause(reasons, cause)
            if reasons is not known[1]:
                self._dirty[key] = (since, reasons)
            return
        if self._metrics is not None:
            self._metrics.adds.inc()
        self._dirty[key] = (self._clock.monotonic(), causes)
        if key not in self._working:
            self._order.append(key)
            self._wake()

    # -- working

    async def get(self) -> Taken[K]:
        """The next key. Raises `ShutDown` when there will be none."""
        while not self._order:
            if self._closing:
                raise ShutDown(self.name)
            waiter = asyncio.get_running_loop().create_future()
            self._getters.append(waiter)
            try:
                await waiter
            except BaseException:
                # A worker that was woken and cancelled in the same instant wakes another.
                if waiter.done() and not waiter.cancelled():
                    self._wake()
                elif waiter in self._getters:
                    self._getters.remove(waiter)
                raise
        key = self._order.popleft()
        since, causes = self._dirty.pop(key)
        now = self._clock.monotonic()
        self._working[key] = now
        if self.min_interval:
            self._note_start(key, now)
        if self._metrics is not None:
            self._metrics.latency.observe(now - since)
        return Taken(key, causes, now - since)

    def done(self, key: K, rest: float = 0.0) -> None:
        """Mark a key as processed. For ``rest`` seconds, at most `min_interval`, no other round of it begins that `add` asks for."""
        started = self._working.pop(key, None)
        if started is None:
            raise ValueError(f"{key} is not being processed")
        now = self._clock.monotonic()
        if self._metrics is not None:
            self._metrics.work.observe(now - started)
        rest = min(rest, self.min_interval)
        if rest > 0.0 and not self._closing:
            self._note_start(key, now)
            self._resting[key] = now + rest
            if (dirty := self._dirty.pop(key, None)) is not None:
                self._put_off(key, now + rest, dirty[1])
        if key in self._dirty:
            self._order.append(key)
            self._wake()
        elif self._closing and not self._working and not self._order:
            self._settle()

    def _wake(self) -> None:
        """Wake one waiting worker."""
        while self._getters:
            waiter = self._getters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        if self.on_unserved is not None:
            self.on_unserved()

    def _note_start(self, key: K, now: float) -> None:
        """Remember the start of a round, or its end, for as long as it may hold back the next."""
        started = self._started
        started.pop(key, None)
        self._resting.pop(key, None)
        started[key] = now
        horizon = now - self.min_interval
        # Oldest first, so this looks at each start once and stops at the first that still counts.
        expired = []
        for other, start in started.items():
            if start > horizon:
                break
            expired.append(other)
        for other in expired:
            del started[other]
            self._resting.pop(other, None)

    # -- waiting

    def _put_off(self, key: K, when: float, causes: tuple[Cause, ...]) -> None:
        if self._closing:
            return
        due = self._due.get(key)
        if due is not None:
            for cause in causes:
                due.causes = add_cause(due.causes, cause)
            if due.when <= when:
                return
            due.when = when
        else:
            self._due[key] = _Due(when, causes)
        if len(self._heap) > 2 * len(self._due) + 64:
            self._sift()
        self._serial += 1
        heapq.heappush(self._heap, (when, self._serial, key))
        if self._heap[0][1] == self._serial:
            self._arm()

    def _sift(self) -> None:
        """Drop outdated times from the heap; they would otherwise stay until they come."""
        kept: dict[K, tuple[float, int, K]] = {}
        for entry in self._heap:
            due = self._due.get(entry[2])
            if due is not None and due.when == entry[0]:
                kept[entry[2]] = entry
        self._heap = list(kept.values())
        heapq.heapify(self._heap)

    def _arm(self) -> None:
        """Set the timer to the first due time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            when = self._heap[0][0]
            self._timer = asyncio.get_running_loop().call_at(when, self._ring, when, context=self._context)

    def _ring(self, called: float) -> None:
        """Enqueue the keys that are due. The loop may call a little early; the time it was asked for counts then."""
        now = max(called, self._clock.monotonic())
        while self._heap and self._heap[0][0] <= now:
            when, _, key = heapq.heappop(self._heap)
            due = self._due.get(key)
            if due is not None and due.when == when:
                del self._due[key]
                self._add(key, due.causes)
        self._timer = None
        self._arm()

    # -- ending

    def shut_down(self) -> None:
        """Take no more keys. Queued keys are still handed out; delayed keys are dropped."""
        self._closing = True
        self._due.clear()
        self._heap.clear()
        self._arm()
        while self._getters:
            self._wake()
        if not self._working and not self._order:
            self._settle()

    async def drain(self) -> None:
        """Shut down and wait until the workers have finished what was queued."""
        self.shut_down()
        # differs: client-go waits for the keys being processed; this also for those still queued.
        while self._working or self._order:
            waiter = asyncio.get_running_loop().create_future()
            self._drained.append(waiter)
            await waiter

    def _settle(self) -> None:
        for waiter in self._drained:
            if not waiter.done():
                waiter.set_result(None)
        self._drained.clear()

    # -- inspection

    def __len__(self) -> int:
        """How many keys wait for a worker."""
        return len(self._order)

    @property
    def waiting(self) -> int:
        """How many keys are delayed."""
        return len(self._due)

    @property
    def working(self) -> int:
        """How many keys are being processed."""
        return len(self._working)

    def oldest(self) -> float:
        """The age of the key that has waited for a worker for longest, in seconds."""
        order = self._order
        return self._clock.monotonic() - self._dirty[order[0]][0] if order else 0.0

    def due(self, key: K) -> tuple[str, float, tuple[Cause, ...]]:
        """The state of a key (``working``, ``ready``, ``waiting`` or empty), the seconds until it is due, and its causes."""
        if key in self._dirty:
            return "working" if key in self._working else "ready", 0.0, self._dirty[key][1]
        if key in self._working:
            return "working", 0.0, ()
        if (due := self._due.get(key)) is not None:
            return "waiting", max(due.when - self._clock.monotonic(), 0.0), due.causes
        return "", 0.0, ()

    def next_due(self) -> float | None:
        """When the first delayed key is due, on the clock's ``monotonic``; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def unfinished(self) -> float:
        """The total age of the keys being processed, in seconds."""
        now = self._clock.monotonic()
        return sum(now - start for start in self._working.values())

    def longest(self) -> float:
        """The age of the key processed for longest, in seconds."""
        return self._clock.monotonic() - min(self._working.values()) if self._working else 0.0
