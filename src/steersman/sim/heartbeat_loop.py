"""Heartbeats of a virtual event loop: which beats run, and which watchdogs expire. See `steersman.runtime.heartbeat`."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable
from typing import Any

import msgspec

from steersman.runtime.heartbeat import Heartbeat


class Due(msgspec.Struct, frozen=True):
    """Beats due at one instant."""

    instant: float
    rhythms: list[Heartbeat]
    unobserved: bool
    """Whether no watcher follows the beats one by one, so that a reader must see all of their writes or none."""


class HeartbeatSchedule:
    """The heartbeats of a loop that wait for their next beat, and the watchdogs that listen for them."""

    def __init__(self) -> None:
        self.followed: Callable[[str], bool] = lambda resource: False
        """Whether a watcher wants to see every single change of a resource."""
        self._rhythms: dict[Heartbeat, asyncio.Future[None]] = {}
        self._tasks: dict[Heartbeat, asyncio.Task[Any] | None] = {}
        self._silences: list[tuple[float, int, asyncio.TimerHandle, str]] = []
        self._set = 0

    def __bool__(self) -> bool:
        return bool(self._rhythms or self._silences)

    @property
    def beating(self) -> bool:
        """Whether there is any heartbeat."""
        return bool(self._rhythms)

    async def wait(self, rhythm: Heartbeat, waiter: asyncio.Future[None]) -> None:
        """Wait until a beat may run."""
        self._rhythms[rhythm] = waiter
        self._tasks[rhythm] = asyncio.current_task()
        try:
            await waiter
        finally:
            del self._rhythms[rhythm], self._tasks[rhythm]

    def next(self, target: float) -> Due | None:
        """The beats that run before the next timer at ``target``."""
        # A beat that is observed, or that reads, is an event of its own: all other beats come first.
        seen: list[tuple[float, Heartbeat]] = []
        unobserved: list[Heartbeat] = []
        for rhythm in self._rhythms:
            if rhythm.due > target:
                continue
            if rhythm.reads or self._is_sharp(rhythm):
                seen.append((self._beat(rhythm, target), rhythm))
            else:
                unobserved.append(rhythm)
        target = min([target, *(beat for beat, _ in seen)])
        first = [(self._beat(rhythm, target), rhythm) for rhythm in unobserved if rhythm.due <= target]
        chosen = first or seen
        instant = min([beat for beat, _ in chosen], default=math.inf)
        if instant == math.inf:
            return None
        return Due(instant, [rhythm for beat, rhythm in chosen if beat == instant], bool(first))

    def tasks(self, rhythms: list[Heartbeat]) -> dict[asyncio.Task[Any] | None, None]:
        """The tasks of these heartbeats."""
        return {self._tasks[rhythm]: None for rhythm in rhythms}

    def release(self, rhythms: list[Heartbeat], instant: float) -> None:
        """Run these beats at this instant."""
        for rhythm in rhythms:
            rhythm.due = instant
            waiter = self._rhythms[rhythm]
            if not waiter.done():
                waiter.set_result(None)

    def _is_sharp(self, rhythm: Heartbeat) -> bool:
        """Whether every single beat must run."""
        return not rhythm.repeatable() or bool(rhythm.writes and self.followed(rhythm.writes))

    def _beat(self, rhythm: Heartbeat, target: float) -> float:
        if self._is_sharp(rhythm):
            return rhythm.due
        # Unobserved beats: only the last one before the target has an effect, and without a target none has.
        return rhythm.last(target) if target < math.inf else math.inf

    # -- watchdogs ----------------------------------------------------------------------------

    def listen(self, handle: asyncio.TimerHandle, heartbeat: str) -> None:
        """Add a watchdog: a timer that expires unless a heartbeat renews it."""
        self._set += 1
        heapq.heappush(self._silences, (handle.when(), self._set, handle, heartbeat))

    def silent(self, limit: float) -> float:
        """When the first watchdog expires that no heartbeat renews, up to ``limit``; infinity where none does."""
        heap = self._silences
        while heap and heap[0][2].cancelled():
            heapq.heappop(heap)
        if not heap or heap[0][0] > limit:
            return math.inf
        return min(
            [when for when, _, handle, heartbeat in heap if self._alone(when, handle, heartbeat)],
            default=math.inf,
        )

    def due(self, now: float) -> list[asyncio.TimerHandle]:
        """Remove and return the watchdogs that expire at this instant."""
        if not self._silences or self._silences[0][0] > now:
            return []
        due = sorted(
            each[:3] for each in self._silences if each[0] <= now and self._alone(each[0], *each[2:])
        )
        gone = {number for _, number, _ in due}
        self._silences = [each for each in self._silences if each[1] not in gone]
        heapq.heapify(self._silences)
        return [handle for _, _, handle in due]

    def _alone(self, when: float, handle: asyncio.TimerHandle, heartbeat: str) -> bool:
        return not handle.cancelled() and not any(
            each.due <= when and each.renews(heartbeat) and each.repeatable() for each in self._rhythms
        )
