"""Exponential back-off: for one operation, and for each item of a queue.

None of these sleeps: they compute delays in seconds, and the caller waits.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from random import Random
from typing import Generic, TypeVar

from steersman.api.clock import Clock

K = TypeVar("K", bound=Hashable)


def jittered(random: Random, seconds: float, factor: float) -> float:
    """``seconds``, prolonged by up to ``factor`` times itself, so that many clients do not act at once."""
    return seconds * (1.0 + factor * random.random()) if factor > 0.0 else seconds


def growing(attempt: int, base: float, factor: float, cap: float) -> float:
    """The delay after the given attempt (the first is 0), without jitter, in seconds."""
    if attempt <= 0 or base <= 0.0 or factor <= 1.0:
        return min(base, cap)
    # The power would overflow a float after many attempts.
    if attempt * math.log(factor) >= math.log(cap / base):
        return cap
    return min(base * factor**attempt, cap)


class Backoff:
    """The back-off of one operation that keeps failing.

    The defaults are those of client-go's reflectors: 0.8 s doubling up to 30 s, each prolonged by
    up to as much again, starting over when nothing failed for two minutes.
    """

    __slots__ = ("_asked", "_attempt", "_clock", "base", "cap", "factor", "jitter", "reset_after")

    def __init__(
        self,
        clock: Clock,
        *,
        base: float = 0.8,
        cap: float = 30.0,
        factor: float = 2.0,
        jitter: float = 1.0,
        reset_after: float = 120.0,
    ) -> None:
        self.base = base
        self.cap = cap
        self.factor = factor
        self.jitter = jitter
        self.reset_after = reset_after
        self._clock = clock
        self._attempt = 0
        self._asked: float | None = None

    def next(self) -> float:
        """Count one more failure; returns the delay in seconds."""
        now = self._clock.monotonic()
        # differs: client-go starts over two minutes after it last started over, even when all of them
        # were failures; this asks for two minutes without one.
        if self._asked is not None and now - self._asked > self.reset_after:
            self._attempt = 0
        pause = growing(self._attempt, self.base, self.factor, self.cap)
        pause = jittered(self._clock.random, pause, self.jitter)
        self._attempt += 1
        self._asked = now + pause
        return pause

    def reset(self) -> None:
        """Start over with the shortest delay after a success."""
        self._attempt = 0
        self._asked = None


class ItemBackoff(Generic[K]):
    """The back-off of each item: ``base`` seconds doubling up to ``cap``, until the item is forgotten."""

    __slots__ = ("_failures", "base", "cap")

    def __init__(self, base: float = 0.005, cap: float = 1000.0) -> None:
        self.base = base
        self.cap = cap
        self._failures: dict[K, int] = {}

    def next(self, key: K) -> float:
        """Count one more failure of an item; returns its delay in seconds."""
        attempt = self._failures.get(key, 0)
        self._failures[key] = attempt + 1
        return growing(attempt, self.base, 2.0, self.cap)

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often an item has failed since it was last forgotten."""
        return self._failures.get(key, 0)

    def __len__(self) -> int:
        return len(self._failures)
