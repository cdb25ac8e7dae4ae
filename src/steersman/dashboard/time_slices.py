"""Time slices: work on thousands of objects in pieces, so that the event loop serves others in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from time import perf_counter
from typing import TypeVar, cast

T = TypeVar("T")

SLICE = 0.004
"""Seconds of work at a time."""


class TimeSlices:
    """One piece of work that pauses every few milliseconds."""

    def __init__(self, timer: Callable[[], float] = perf_counter) -> None:
        self.worked = 0.0
        """Seconds of work up to the last pause."""
        self.pauses = 0
        self._timer = timer
        self._begin = timer()

    @property
    def over(self) -> bool:
        """Whether the slice is used up."""
        return self._timer() - self._begin >= SLICE

    async def pause(self) -> None:
        """Let others have their turn, if the slice is used up."""
        if self.over:
            self.stop()
            self.pauses += 1
            await asyncio.sleep(0)
            self._begin = self._timer()

    async def run(self, steps: Generator[None, None, T]) -> T:
        """Carry out work that yields between its steps; returns its result."""
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return cast("T", done.value)
            await self.pause()

    def stop(self) -> None:
        """Count the time of the current slice."""
        now = self._timer()
        self.worked += now - self._begin
        self._begin = now
