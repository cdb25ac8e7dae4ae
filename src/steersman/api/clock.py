"""Clocks: the source of time and randomness, and with the event loop the second seam.

Timers are the event loop's (`loop.call_later`, `asyncio.sleep`). A virtual loop moves `monotonic` and `now` together
with them, so no code that takes a clock knows whether it lives in real or virtual time.
"""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time, and provides randomness."""

    @property
    def random(self) -> random.Random: ...

    def now(self) -> datetime:
        """Wall time in UTC: for what is written into objects."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back: for durations and deadlines."""
        ...


class RealClock:
    """The machine's time, for any thread.

    `monotonic` agrees with the timers of event loops to the millisecond: asyncio's and uvloop's count from the same moment. It does
    not ask the running loop, because finding that takes a system call, and every event of a watch asks for the time.
    """

    def __init__(self) -> None:
        # Unpredictable, for serial numbers are drawn from it.
        self.random: random.Random = random.SystemRandom()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
