"""Answers that hold for a while: a small cache by time."""

from __future__ import annotations

from typing import Generic, TypeVar

from steersman.runtime.clock import Clock

K = TypeVar("K")
V = TypeVar("V")

MOST = 8192
"""How many answers are kept; the oldest make room."""


class Lately(Generic[K, V]):
    """What was answered lately. Each answer has its own time; none at all for one that holds 0 seconds."""

    def __init__(self, clock: Clock, most: int = MOST) -> None:
        self._clock = clock
        self._most = most
        self._answers: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        """The answer, where there is one that still holds."""
        found = self._answers.get(key)
        if found is None:
            return None
        until, answer = found
        if self._clock.monotonic() < until:
            return answer
        del self._answers[key]
        return None

    def put(self, key: K, answer: V, seconds: float) -> None:
        """Remember an answer for so long."""
        if seconds <= 0:
            return
        self._answers.pop(key, None)
        if len(self._answers) >= self._most:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (self._clock.monotonic() + seconds, answer)
