"""Time and chance. The second seam: a live clock reads the machine, a world winds its own.

Timers are the event loop's (`loop.call_later`, `asyncio.sleep`): a virtual loop moves `monotonic`
and `now` together with them, so nothing above this module knows which kind of time it lives in.
"""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the time is, and where randomness comes from."""

    random: random.Random

    def now(self) -> datetime:
        """Wall time, UTC: for what is written into objects."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back: for measuring and for deadlines."""
        ...


class LiveClock:
    """The machine's time; monotonic is the running loop's, so it agrees with its timers."""

    def __init__(self) -> None:
        self.random: random.Random = random.SystemRandom()  # serial numbers are drawn from it

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()
