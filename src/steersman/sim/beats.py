"""Which beats a virtual loop lets happen, and which watchdogs can go off. See `steersman.runtime.rhythm`."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable

from steersman.runtime.rhythm import Rhythm


class Beats:
    """The rhythms of a loop that wait for their next beat, and who listens for them."""

    def __init__(self) -> None:
        self.followed: Callable[[str], bool] = lambda resource: False
        """Whether somebody wants to see every single change of a resource."""
        self._rhythms: dict[Rhythm, asyncio.Future[None]] = {}
        self._silences: list[tuple[float, int, asyncio.TimerHandle, str]] = []
        self._set = 0

    def __bool__(self) -> bool:
        return bool(self._rhythms or self._silences)

    @property
    def beating(self) -> bool:
        """Whether somebody has a rhythm."""
        return bool(self._rhythms)

    async def wait(self, rhythm: Rhythm, waiter: asyncio.Future[None]) -> None:
        """Wait until a beat is let happen."""
        self._rhythms[rhythm] = waiter
        try:
            await waiter
        finally:
            del self._rhythms[rhythm]

    def next(self, target: float) -> tuple[float, list[Rhythm]]:
        """When there is a beat before something else happens at ``target``, and whose; infinity where none."""
        beats = [(self._beat(rhythm, target), rhythm) for rhythm in self._rhythms]
        instant = min([beat for beat, _ in beats], default=math.inf)
        return instant, [rhythm for beat, rhythm in beats if beat == instant]

    def release(self, rhythms: list[Rhythm], instant: float) -> None:
        """Let these beat at this instant."""
        for rhythm in rhythms:
            rhythm.due = instant
            waiter = self._rhythms[rhythm]
            if not waiter.done():
                waiter.set_result(None)

    def _beat(self, rhythm: Rhythm, target: float) -> float:
        if rhythm.due > target:
            return math.inf
        if not rhythm.alike() or (rhythm.stirs and self.followed(rhythm.stirs)):
            return rhythm.due
        # Nobody looks in between, so that only the last can be seen; and where nothing follows, none.
        return rhythm.last(target) if target < math.inf else math.inf

    # -- watchdogs ----------------------------------------------------------------------------

    def listen(self, handle: asyncio.TimerHandle, voice: str) -> None:
        """Have a timer go off unless a rhythm feeds the voice."""
        self._set += 1
        heapq.heappush(self._silences, (handle.when(), self._set, handle, voice))

    def silent(self, limit: float) -> float:
        """When the first watchdog goes off that nobody feeds, up to ``limit``; infinity where none does."""
        heap = self._silences
        while heap and heap[0][2].cancelled():
            heapq.heappop(heap)
        if not heap or heap[0][0] > limit:
            return math.inf
        return min(
            [when for when, _, handle, voice in heap if self._alone(when, handle, voice)], default=math.inf
        )

    def due(self, now: float) -> list[asyncio.TimerHandle]:
        """Takes out the watchdogs that go off at this instant."""
        if not self._silences or self._silences[0][0] > now:
            return []
        due = sorted(
            each[:3] for each in self._silences if each[0] <= now and self._alone(each[0], *each[2:])
        )
        gone = {number for _, number, _ in due}
        self._silences = [each for each in self._silences if each[1] not in gone]
        heapq.heapify(self._silences)
        return [handle for _, _, handle in due]

    def _alone(self, when: float, handle: asyncio.TimerHandle, voice: str) -> bool:
        return not handle.cancelled() and not any(
            each.due <= when and each.feeds(voice) and each.alike() for each in self._rhythms
        )
