"""The scheduling queue: pods that wait to be scheduled.

A pod is *active* (may be scheduled now), in *back-off* (until a time), or *unschedulable* (until a change in the cluster that
might help).
"""

from __future__ import annotations

import heapq

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.scheme import Key

BACKOFF = 1.0
BACKOFF_MOST = 10.0


class QueuedPod(msgspec.Struct):
    """A pod in the queue."""

    pod: v1.Pod
    number: int
    """Order of arrival."""
    attempts: int = 0
    ready_at: float = 0.0
    """When its back-off ends."""
    message: str = ""
    """Its last FailedScheduling message."""
    unschedulable: bool = False


class SchedulingQueue:
    """The scheduling queue: by priority, then by arrival."""

    def __init__(self) -> None:
        self._waiting: dict[Key, QueuedPod] = {}
        self._active: list[tuple[int, int, Key]] = []
        self._backing_off: list[tuple[float, int, Key]] = []
        self._unschedulable: dict[Key, None] = {}
        self._count = 0

    def get(self, key: Key) -> QueuedPod | None:
        """A pod in the queue."""
        return self._waiting.get(key)

    def put(self, pod: v1.Pod) -> None:
        """Add a new or changed pod as active."""
        key = pod.key
        self._count += 1
        self._unschedulable.pop(key, None)
        self._waiting[key] = QueuedPod(pod, self._count)
        self._activate(key)

    def remove(self, key: Key) -> None:
        """Remove a pod."""
        self._waiting.pop(key, None)
        self._unschedulable.pop(key, None)

    def pop(self) -> QueuedPod | None:
        """The next active pod. It stays known until it is removed."""
        while self._active:
            _, number, key = heapq.heappop(self._active)
            found = self._waiting.get(key)
            if found is not None and found.number == number:
                return found
        return None

    def add_unschedulable(self, queued: QueuedPod, now: float) -> None:
        """Move a pod to the unschedulable ones."""
        self._back_off(queued, now)
        self._unschedulable[queued.pod.key] = None

    def wait(self, queued: QueuedPod) -> None:
        """Keep a pod that lacks something until the cluster changes, without back-off: it was not attempted."""
        self._unschedulable[queued.pod.key] = None

    def retry(self, queued: QueuedPod, now: float) -> None:
        """Retry a pod after its back-off, because of an error."""
        self._back_off(queued, now)
        heapq.heappush(self._backing_off, (queued.ready_at, queued.number, queued.pod.key))

    def cluster_changed(self) -> None:
        """Move all unschedulable pods to the back-off queue: the cluster has changed."""
        for key in self._unschedulable:
            found = self._waiting[key]
            heapq.heappush(self._backing_off, (found.ready_at, found.number, key))
        self._unschedulable.clear()

    def flush_backoff(self, now: float) -> float | None:
        """Activate pods whose back-off is over; returns when the next one ends."""
        while self._backing_off and self._backing_off[0][0] <= now:
            _, number, key = heapq.heappop(self._backing_off)
            found = self._waiting.get(key)
            if found is not None and found.number == number:
                self._activate(key)
        return self._backing_off[0][0] if self._backing_off else None

    def _activate(self, key: Key) -> None:
        found = self._waiting[key]
        heapq.heappush(self._active, (-(found.pod.spec.priority or 0), found.number, key))

    @staticmethod
    def _back_off(queued: QueuedPod, now: float) -> None:
        queued.attempts += 1
        queued.ready_at = now + min(BACKOFF * 2.0 ** min(queued.attempts - 1, 8), BACKOFF_MOST)
