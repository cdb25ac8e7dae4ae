"""How fast a client may ask: a token bucket, as upstream's clients have.

The bucket starts full and refills at ``qps``; a request takes one token. When it is empty the next
request waits for the token that is not yet there, those after it for the ones after that: first
come, first served, by arithmetic rather than by a queue.
"""

from __future__ import annotations

import asyncio


class Bucket:
    """``burst`` requests at once, ``qps`` a second in the long run. Zero or less is no limit."""

    __slots__ = ("_at", "_tokens", "burst", "qps")

    def __init__(self, qps: float, burst: int) -> None:
        self.qps = qps
        self.burst = max(burst, 1)
        self._tokens = float(self.burst)
        self._at: float | None = None

    def reserve(self, now: float) -> float:
        """Take a token, and answer how many seconds from now it is good."""
        if self.qps <= 0:
            return 0.0
        if self._at is not None:
            self._tokens = min(self.burst, self._tokens + (now - self._at) * self.qps)
        self._at = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self.qps)

    def give_back(self) -> None:
        """Return a token that was not used, for those still to come."""
        self._tokens = min(float(self.burst), self._tokens + 1)

    async def take(self) -> float:
        """Wait for a token; answers how long that took."""
        delay = self.reserve(asyncio.get_running_loop().time()) if self.qps > 0 else 0.0
        if delay > 0:
            try:
                await asyncio.sleep(delay)
            except asyncio.CancelledError:
                self.give_back()
                raise
        return delay
