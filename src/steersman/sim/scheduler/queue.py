"""Pods that wait for a place: who is next, who has to wait, and for what.

A pod is *active* (may be placed now), *resting* (until its back-off is over) or *parked* (until something
changes that might help it).
"""

from __future__ import annotations

import heapq

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.scheme import Key

BACKOFF = 1.0
BACKOFF_MOST = 10.0


class Waiting(msgspec.Struct):
    """A pod that waits."""

    pod: v1.Pod
    number: int
    """In the order they came."""
    attempts: int = 0
    ready_at: float = 0.0
    """Before this it is not tried again."""
    said: str = ""
    """What its last refusal was."""
    parked: bool = False


class Queue:
    """By priority, then first come, first served."""

    def __init__(self) -> None:
        self._waiting: dict[Key, Waiting] = {}
        self._active: list[tuple[int, int, Key]] = []
        self._resting: list[tuple[float, int, Key]] = []
        self._parked: dict[Key, None] = {}
        self._count = 0

    def get(self, key: Key) -> Waiting | None:
        """A pod that waits."""
        return self._waiting.get(key)

    def put(self, pod: v1.Pod) -> None:
        """A pod that is new, or asks for something else than before: try it now."""
        key = pod.key
        self._count += 1
        self._parked.pop(key, None)
        self._waiting[key] = Waiting(pod, self._count)
        self._activate(key)

    def drop(self, key: Key) -> None:
        """A pod that waits no longer."""
        self._waiting.pop(key, None)
        self._parked.pop(key, None)

    def pop(self) -> Waiting | None:
        """The next pod to be placed. It stays known until it is dropped."""
        while self._active:
            _, number, key = heapq.heappop(self._active)
            found = self._waiting.get(key)
            if found is not None and found.number == number:
                return found
        return None

    def park(self, waiting: Waiting, now: float) -> None:
        """There is no place for it."""
        self._back_off(waiting, now)
        self._parked[waiting.pod.key] = None

    def retry(self, waiting: Waiting, now: float) -> None:
        """Something went wrong that was not its fault: again after its back-off."""
        self._back_off(waiting, now)
        heapq.heappush(self._resting, (waiting.ready_at, waiting.number, waiting.pod.key))

    def stir(self) -> None:
        """Something changed: what is parked may be tried again once its back-off is over."""
        for key in self._parked:
            found = self._waiting[key]
            heapq.heappush(self._resting, (found.ready_at, found.number, key))
        self._parked.clear()

    def wake(self, now: float) -> float | None:
        """Make active what has rested long enough; answers when the next one has."""
        while self._resting and self._resting[0][0] <= now:
            _, number, key = heapq.heappop(self._resting)
            found = self._waiting.get(key)
            if found is not None and found.number == number:
                self._activate(key)
        return self._resting[0][0] if self._resting else None

    def _activate(self, key: Key) -> None:
        found = self._waiting[key]
        heapq.heappush(self._active, (-(found.pod.spec.priority or 0), found.number, key))

    @staticmethod
    def _back_off(waiting: Waiting, now: float) -> None:
        waiting.attempts += 1
        waiting.ready_at = now + min(BACKOFF * 2.0 ** min(waiting.attempts - 1, 8), BACKOFF_MOST)
