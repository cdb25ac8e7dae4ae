"""Whether a Job is to end, and how that is said.

An end is told twice. ``FailureTarget`` or ``SuccessCriteriaMet`` says how it will end: from then on pods go, and
nothing else can happen to the Job. ``Failed`` or ``Complete`` follows once all pods are counted and gone.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from steersman.api.conditions import find
from steersman.api.kinds import Condition, Job, Pod
from steersman.api.meta import truncate
from steersman.controllers.job.counting import Tally
from steersman.controllers.job.pods import has_failed
from steersman.controllers.job.policy import ruling, success
from steersman.controllers.job.spec import (
    backoff_limit_of,
    completions_of,
    is_indexed,
    is_suspended,
)
from steersman.controllers.job.template import restart_policy


class Ending(msgspec.Struct, frozen=True):
    """How a Job ends."""

    succeeds: bool
    reason: str
    message: str
    told: bool = False
    """The status says so already."""

    @property
    def first(self) -> str:
        """The condition that says how it will end."""
        return "SuccessCriteriaMet" if self.succeeds else "FailureTarget"

    @property
    def last(self) -> str:
        """The condition that says it has."""
        return "Complete" if self.succeeds else "Failed"


REACHED = Ending(True, "CompletionsReached", "Reached expected number of succeeded pods")
LIMIT = Ending(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = Ending(False, "DeadlineExceeded", "Job was active longer than specified deadline")
MAX_FAILED = Ending(
    False, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
)
FAILED_INDEXES = Ending(False, "FailedIndexes", "Job has failed indexes")


def ending(seen: Tally, started: datetime | None, now: datetime) -> Ending | None:
    """How the Job is to end, if it is: what was said before counts first, then failures, then success.

    That all completions are there is not for here: it counts only once no pod is active.
    """
    return (
        _told(seen.job)
        or _by_failure_policy(seen)
        or _by_limits(seen, started, now)
        or (_by_indexes(seen) if is_indexed(seen.job) else None)
    )


def completed(seen: Tally, active: int) -> Ending | None:
    """Whether it has all it wants, and nothing runs any more. Without a number, one success is all."""
    wanted = seen.job.spec.completions
    enough = seen.succeeded > 0 if wanted is None else seen.succeeded >= wanted
    return REACHED if enough and active == 0 else None


def _told(job: Job) -> Ending | None:
    for succeeds, type_ in ((True, "SuccessCriteriaMet"), (False, "FailureTarget")):
        said = find(job.status.conditions, type_)
        if said is not None and said.status == "True":
            return Ending(succeeds, said.reason, said.message, told=True)
    return None


def _by_failure_policy(seen: Tally) -> Ending | None:
    if seen.job.spec.podFailurePolicy is None:
        return None
    for pod in seen.pods:
        if has_failed(pod, seen.job):
            message = ruling(seen.job, pod).message
            if message:
                return Ending(False, "PodFailurePolicy", message)
    return None


def _by_limits(seen: Tally, started: datetime | None, now: datetime) -> Ending | None:
    limit = backoff_limit_of(seen.job)
    if seen.failed > limit or _restarted_too_often(seen.job, seen.pods, limit):
        return LIMIT
    left = time_left(seen.job, started, now)
    return DEADLINE if left is not None and left <= timedelta() else None


def time_left(job: Job, started: datetime | None, now: datetime) -> timedelta | None:
    """Until its deadline; None where it has none, or the clock does not run."""
    if job.spec.activeDeadlineSeconds is None or started is None or is_suspended(job):
        return None
    return started + timedelta(seconds=job.spec.activeDeadlineSeconds) - now


def _restarted_too_often(job: Job, pods: tuple[Pod, ...], limit: int) -> bool:
    """Where pods restart their containers themselves, restarts are the failures."""
    restarts = sum(
        status.restartCount
        for pod in pods
        if pod.status.phase in ("Running", "Pending")
        for status in (*pod.status.initContainerStatuses, *pod.status.containerStatuses)
    )
    if restarts < max(limit, 1):
        return False
    return restart_policy(job.spec.template.spec) == "OnFailure"


def _by_indexes(seen: Tally) -> Ending | None:
    job, completions = seen.job, completions_of(seen.job)
    if seen.lost is not None:
        most = job.spec.maxFailedIndexes
        if most is not None and len(seen.lost) > most:
            return MAX_FAILED
        if seen.lost and len(seen.lost) + len(seen.done) >= completions:
            return FAILED_INDEXES
    message = success(job, completions, seen.done)
    return Ending(True, "SuccessPolicy", message) if message else None


# -- conditions -----------------------------------------------------------------------------------


def condition(type_: str, reason: str, message: str, now: datetime, status: str = "True") -> Condition:
    at = truncate(now)
    return Condition(
        type=type_, status=status, reason=reason, message=message, lastProbeTime=at, lastTransitionTime=at
    )


def ensure(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """The conditions with this one, in the place of another of its type; the same where it says nothing new.

    That something is not so is no news where nobody said it was.
    """
    old = find(conditions, new.type)
    if old is None:
        return conditions if new.status == "False" else (*conditions, new)
    if (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
        return conditions
    return tuple(new if one is old else one for one in conditions)
