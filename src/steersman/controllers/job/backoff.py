"""Pod failure backoff: when a pod finished, and the delay before a failed pod is replaced.

The delay doubles with every failure since the last success. Failed pods that are deleted already are remembered by this
process (`FailureMemory`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from steersman.api.kinds import ContainerStatus, Job, Pod
from steersman.api.scheme import Key
from steersman.controllers.job.pods import (
    has_failed,
    has_succeeded,
    has_valid_index,
    ignored_index_failures,
    index_failures,
    is_tracked,
)

INITIAL_DELAY = timedelta(seconds=10)
MAX_DELAY = timedelta(minutes=10)
ZERO = timedelta()

REMEMBERED = 8
"""This many failures reach the longest delay; older ones make no difference."""

_NEVER = datetime.min.replace(tzinfo=UTC)


# -- when a pod finished --------------------------------------------------------------------------


def finished_at(pod: Pod) -> datetime:
    """When the pod finished: by its containers, its Ready condition, its deletion, or else its creation."""
    return (
        _by_containers(pod)
        or _by_readiness(pod)
        or deleted_at(pod)
        or pod.metadata.creationTimestamp
        or _NEVER
    )


def deleted_at(pod: Pod) -> datetime | None:
    """When the pod was deleted: its deletionTimestamp includes the grace period."""
    if pod.metadata.deletionTimestamp is None:
        return None
    return pod.metadata.deletionTimestamp - timedelta(seconds=pod.metadata.deletionGracePeriodSeconds or 0)


def _by_containers(pod: Pod) -> datetime | None:
    # Sidecars finish last.
    sidecars = [
        container.name for container in pod.spec.initContainers if container.restartPolicy == "Always"
    ]
    statuses: list[ContainerStatus] = list(pod.status.containerStatuses)
    statuses += [status for status in pod.status.initContainerStatuses if status.name in sidecars]
    latest: datetime | None = None
    for status in statuses:
        terminated = status.state.terminated
        if terminated is None or terminated.finishedAt is None:
            return None
        if latest is None or latest < terminated.finishedAt:
            latest = terminated.finishedAt
    return latest


def _by_readiness(pod: Pod) -> datetime | None:
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition.lastTransitionTime if condition.status == "False" else None
    return None


# -- delay ----------------------------------------------------------------------------------------


def delay(failures: int) -> timedelta:
    """The delay after this many failures in a row."""
    if failures <= 0:
        return ZERO
    doublings = min(failures - 1, REMEMBERED)
    return min(INITIAL_DELAY * (1 << doublings), MAX_DELAY)


def remaining(failures: int, last: datetime | None, now: datetime) -> timedelta:
    """The rest of the delay, counted from the last failure."""
    if failures <= 0 or last is None:
        return ZERO
    return max(ZERO, last + delay(failures) - now)


def remaining_after(pod: Pod | None, now: datetime) -> timedelta:
    """The rest of the delay before the index of this failed pod gets another pod."""
    if pod is None:
        return ZERO
    return remaining(index_failures(pod) + ignored_index_failures(pod) + 1, finished_at(pod), now)


# -- memory ---------------------------------------------------------------------------------------


class FailureStreak(msgspec.Struct, frozen=True):
    """The failures of a Job since its last success."""

    job: str = ""
    """The Job's uid."""
    success: datetime | None = None
    """When the last pod succeeded."""
    failures: tuple[tuple[datetime, str], ...] = ()
    """When each pod failed and its uid; the latest last, at most `REMEMBERED`."""

    @property
    def last(self) -> datetime | None:
        """When the last pod failed."""
        return self.failures[-1][0] if self.failures else None

    def updated(self, job: Job, owned: Iterable[Pod]) -> FailureStreak:
        """The streak with the pods that have ended since. Known pods change nothing."""
        success = self.success
        failures = dict(map(reversed, self.failures))  # type: ignore[arg-type]
        for pod in owned:
            if not has_valid_index(pod, job):
                continue
            if has_succeeded(pod):
                at = finished_at(pod)
                success = at if success is None or success < at else success
            elif has_failed(pod, job) and _was_not_released(pod):
                failures[pod.metadata.uid] = finished_at(pod)
        after = sorted((at, uid) for uid, at in failures.items() if success is None or at > success)
        return FailureStreak(job.metadata.uid, success, tuple(after[-REMEMBERED:]))


def _was_not_released(pod: Pod) -> bool:
    """False for a pod that was deleted uncounted, since the Job was suspended or its parallelism lowered."""
    return is_tracked(pod) or pod.metadata.deletionTimestamp is None


class FailureMemory:
    """The failures this process has seen, by Job. An entry stays true whether or not its round is carried out."""

    def __init__(self) -> None:
        self._streaks: dict[Key, FailureStreak] = {}

    def record(self, job: Job, owned: Iterable[Pod]) -> FailureStreak:
        """Adds the pods that have ended among ``owned``, and returns the Job's streak."""
        known = self._streaks.get(job.key)
        if known is None or known.job != job.metadata.uid:
            known = FailureStreak()
        streak = known.updated(job, owned)
        if streak.failures:
            self._streaks[job.key] = streak
        else:
            self._streaks.pop(job.key, None)
        return streak

    def forget(self, key: Key) -> None:
        """Drops a Job that is gone or finished."""
        self._streaks.pop(key, None)

    def __len__(self) -> int:
        return len(self._streaks)
