"""Clocks for tests: one that is set by hand, and one that follows the virtual loop."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self, seed: int = 1, start: datetime = START) -> None:
        self.random = random.Random(seed)
        self.start = start
        self.elapsed = 0.0
        """Seconds since the start; tests may set it."""

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return self.elapsed

    def advance(self, seconds: float = 0.0, **more: float) -> None:
        """Move the clock by seconds, or by what `timedelta` takes: ``days=1``."""
        self.elapsed += timedelta(seconds=seconds, **more).total_seconds()


class LoopClock(FakeClock):
    """A clock that shows the time of the running loop, which a `VirtualLoop` moves."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()
