"""When a pod ended, and how long to wait after so many that failed.

The wait doubles with every failure since the last success. Pods tell of failures while they are there; of those
that have gone, the `Streaks` of this process know.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from steersman.api.kinds import ContainerStatus, Job, Pod
from steersman.api.scheme import Key
from steersman.controllers.job.pods import (
    failures_before,
    has_failed,
    has_succeeded,
    ignored_before,
    is_tracked,
    is_valid,
)

SHORTEST = timedelta(seconds=10)
LONGEST = timedelta(minutes=10)
NOT_AT_ALL = timedelta()

KEPT = 8
"""As many failures make the longest wait; older ones make no difference."""

_NEVER = datetime.min.replace(tzinfo=UTC)


# -- when a pod ended -----------------------------------------------------------------------------


def finished_at(pod: Pod) -> datetime:
    """When the pod ended, by what there is to tell it."""
    at = _by_containers(pod) or _by_readiness(pod)
    if at is None and pod.metadata.deletionTimestamp is not None:
        # It is asked to be gone by then, and has been asked the grace period before.
        grace = timedelta(seconds=pod.metadata.deletionGracePeriodSeconds or 0)
        at = pod.metadata.deletionTimestamp - grace
    return at or pod.metadata.creationTimestamp or _NEVER


def _by_containers(pod: Pod) -> datetime | None:
    # Sidecars end last.
    sidecars = [one.name for one in pod.spec.initContainers if one.restartPolicy == "Always"]
    statuses: list[ContainerStatus] = list(pod.status.containerStatuses)
    statuses += [one for one in pod.status.initContainerStatuses if one.name in sidecars]
    latest: datetime | None = None
    for status in statuses:
        ended = status.state.terminated
        if ended is None or ended.finishedAt is None:
            return None
        if latest is None or latest < ended.finishedAt:
            latest = ended.finishedAt
    return latest


def _by_readiness(pod: Pod) -> datetime | None:
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition.lastTransitionTime if condition.status == "False" else None
    return None


# -- how long to wait -----------------------------------------------------------------------------


def delay(failures: int) -> timedelta:
    """The wait after so many failures in a row."""
    if failures <= 0:
        return NOT_AT_ALL
    doublings = min(failures - 1, KEPT)
    return min(SHORTEST * (1 << doublings), LONGEST)


def remaining(failures: int, last: datetime | None, now: datetime) -> timedelta:
    """How much of that wait is left."""
    if failures <= 0 or last is None:
        return NOT_AT_ALL
    return max(NOT_AT_ALL, last + delay(failures) - now)


def remaining_after(pod: Pod | None, now: datetime) -> timedelta:
    """How much is left until an index may have another pod after this one."""
    if pod is None:
        return NOT_AT_ALL
    return remaining(failures_before(pod) + ignored_before(pod) + 1, finished_at(pod), now)


# -- what is remembered ---------------------------------------------------------------------------


class Streak(msgspec.Struct, frozen=True):
    """The failures of a Job since its last success."""

    job: str = ""
    """Its uid."""
    success: datetime | None = None
    failures: tuple[tuple[datetime, str], ...] = ()
    """When, and the uid of which pod; the latest last, and no more than make a difference."""

    @property
    def last(self) -> datetime | None:
        return self.failures[-1][0] if self.failures else None

    def with_(self, job: Job, owned: Iterable[Pod]) -> Streak:
        """This, and what the pods tell. What is known already changes nothing."""
        success = self.success
        failures = dict(map(reversed, self.failures))  # type: ignore[arg-type]
        for pod in owned:
            if not is_valid(pod, job):
                continue
            if has_succeeded(pod):
                at = finished_at(pod)
                success = at if success is None or success < at else success
            elif has_failed(pod, job) and _failed_by_itself(pod):
                failures[pod.metadata.uid] = finished_at(pod)
        after = sorted((at, uid) for uid, at in failures.items() if success is None or at > success)
        return Streak(job.metadata.uid, success, tuple(after[-KEPT:]))


def _failed_by_itself(pod: Pod) -> bool:
    """Not if it was let go uncounted, and then deleted: because the Job was suspended, or wants fewer."""
    return is_tracked(pod) or pod.metadata.deletionTimestamp is None


class Streaks:
    """What one process has seen of failures. All of it stays true, whatever becomes of the rounds that saw it."""

    def __init__(self) -> None:
        self._known: dict[Key, Streak] = {}

    def note(self, job: Job, owned: Iterable[Pod]) -> Streak:
        """Take in what the pods tell; answers with all that is known of the Job."""
        known = self._known.get(job.key)
        if known is None or known.job != job.metadata.uid:
            known = Streak()
        streak = known.with_(job, owned)
        if streak.failures:
            self._known[job.key] = streak
        else:
            self._known.pop(job.key, None)
        return streak

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)

    def __len__(self) -> int:
        return len(self._known)
