"""A token bucket: limits the rate of requests, retries and events, as upstream's flowcontrol does.

The bucket starts full with ``burst`` tokens and refills at ``qps`` tokens a second; a request takes one. When it is
empty, the next request waits for the token that is not there yet, those after it for the ones after that: first come,
first served, by arithmetic rather than by a queue.
"""

from __future__ import annotations

import asyncio
import math


class TokenBucket:
    """``burst`` requests at once, ``qps`` a second in the long run. A rate of zero or less, or infinity, is no limit."""

    __slots__ = ("_last", "_tokens", "burst", "qps")

    def __init__(self, qps: float = 10.0, burst: int = 100) -> None:
        self.qps = qps
        self.burst = max(burst, 1)
        self._tokens = float(self.burst)
        self._last: float | None = None

    def reserve(self, now: float) -> float:
        """Take one token, now or from the future; returns the seconds until it is available."""
        if self.qps <= 0.0 or math.isinf(self.qps):
            return 0.0
        self._refill(now)
        self._tokens -= 1.0
        return -self._tokens / self.qps if self._tokens < 0.0 else 0.0

    def try_take(self, now: float) -> bool:
        """Take one token if there is one."""
        self._refill(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def wait(self, now: float) -> float:
        """Seconds until there is a token, for a bucket with a rate; nothing is taken."""
        self._refill(now)
        return max(0.0, (1.0 - self._tokens) / self.qps)

    def give_back(self) -> None:
        """Return a reserved token that was not used."""
        self._tokens = min(float(self.burst), self._tokens + 1.0)

    async def acquire(self) -> float:
        """Wait for a token; returns the seconds waited. A cancelled wait gives its token back."""
        delay = self.reserve(asyncio.get_running_loop().time()) if self.qps > 0.0 else 0.0
        if delay > 0.0:
            try:
                await asyncio.sleep(delay)
            except asyncio.CancelledError:
                self.give_back()
                raise
        return delay

    def _refill(self, now: float) -> None:
        if self._last is None:
            self._last = now
        elif now > self._last:
            self._tokens = min(float(self.burst), self._tokens + (now - self._last) * self.qps)
            self._last = now
