"""Finished conditions: whether and how a Job ends.

The end is recorded twice. ``FailureTarget`` or ``SuccessCriteriaMet`` says how the Job will end: from then on its
pods are deleted, and the outcome is fixed. ``Failed`` or ``Complete`` follows once all pods are counted and gone.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from steersman.api.conditions import find_condition
from steersman.api.kinds import Condition, Job, Opaque, Pod
from steersman.api.meta import truncate_to_seconds
from steersman.controllers.job.pods import (
    backoff_limit_of,
    completions_of,
    has_failed,
    is_indexed,
    is_suspended,
)
from steersman.controllers.job.policies import match_failure_policy, match_success_policy
from steersman.controllers.job.tally import Tally


class FinishedCondition(msgspec.Struct, frozen=True):
    """How a Job ends."""

    succeeds: bool
    reason: str
    message: str
    recorded: bool = False
    """The status has its interim condition already."""

    @property
    def interim_type(self) -> str:
        """The type of the condition that says how the Job will end."""
        return "SuccessCriteriaMet" if self.succeeds else "FailureTarget"

    @property
    def final_type(self) -> str:
        """The type of the condition that says it has ended."""
        return "Complete" if self.succeeds else "Failed"


COMPLETIONS_REACHED = FinishedCondition(
    True, "CompletionsReached", "Reached expected number of succeeded pods"
)
BACKOFF_LIMIT_EXCEEDED = FinishedCondition(
    False, "BackoffLimitExceeded", "Job has reached the specified backoff limit"
)
DEADLINE_EXCEEDED = FinishedCondition(
    False, "DeadlineExceeded", "Job was active longer than specified deadline"
)
MAX_FAILED_INDEXES_EXCEEDED = FinishedCondition(
    False, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
)
FAILED_INDEXES = FinishedCondition(False, "FailedIndexes", "Job has failed indexes")


def finished_condition(counts: Tally, started: datetime | None, now: datetime) -> FinishedCondition | None:
    """How the Job ends, if it does: a recorded condition comes first, then failures, then the success policy.

    `completions_reached` is checked later, since it requires that no pod is active.
    """
    return (
        _recorded(counts.job)
        or _by_failure_policy(counts)
        or _by_limits(counts, started, now)
        or (_by_indexes(counts) if is_indexed(counts.job) else None)
    )


def completions_reached(counts: Tally, active: int) -> FinishedCondition | None:
    """The end of a Job with enough succeeded and no active pods. Without ``spec.completions``, one success is enough."""
    completions = counts.job.spec.completions
    enough = counts.succeeded > 0 if completions is None else counts.succeeded >= completions
    return COMPLETIONS_REACHED if enough and active == 0 else None


def _recorded(job: Job) -> FinishedCondition | None:
    for succeeds, type_ in ((True, "SuccessCriteriaMet"), (False, "FailureTarget")):
        condition = find_condition(job.status.conditions, type_)
        if condition is not None and condition.status == "True":
            return FinishedCondition(succeeds, condition.reason, condition.message, recorded=True)
    return None


def _by_failure_policy(counts: Tally) -> FinishedCondition | None:
    if counts.job.spec.podFailurePolicy is None:
        return None
    for pod in counts.pods:
        if has_failed(pod, counts.job):
            message = match_failure_policy(counts.job, pod).message
            if message:
                return FinishedCondition(False, "PodFailurePolicy", message)
    return None


def _by_limits(counts: Tally, started: datetime | None, now: datetime) -> FinishedCondition | None:
    limit = backoff_limit_of(counts.job)
    if counts.failed > limit or _exceeds_restarts(counts.job, counts.pods, limit):
        return BACKOFF_LIMIT_EXCEEDED
    left = until_deadline(counts.job, started, now)
    return DEADLINE_EXCEEDED if left is not None and left <= timedelta() else None


def until_deadline(job: Job, started: datetime | None, now: datetime) -> timedelta | None:
    """The time left of ``activeDeadlineSeconds``; None without a deadline, and before start or while suspended."""
    if job.spec.activeDeadlineSeconds is None or started is None or is_suspended(job):
        return None
    return started + timedelta(seconds=job.spec.activeDeadlineSeconds) - now


def _exceeds_restarts(job: Job, pods: tuple[Pod, ...], limit: int) -> bool:
    """Whether container restarts exceed the backoff limit, where pods restart their containers (OnFailure)."""
    restarts = sum(
        status.restartCount
        for pod in pods
        if pod.status.phase in ("Running", "Pending")
        for status in (*pod.status.initContainerStatuses, *pod.status.containerStatuses)
    )
    if restarts < max(limit, 1):
        return False
    return _restart_policy(job.spec.template.spec) == "OnFailure"


class _TemplateSpec(msgspec.Struct):
    """The field of a pod template's spec that is read here."""

    restartPolicy: str | None = None


_decode = msgspec.json.Decoder(_TemplateSpec).decode


def _restart_policy(spec: Opaque | _TemplateSpec) -> str:
    """The restart policy of a template's spec, which is raw JSON or a struct."""
    return (_decode(spec) if isinstance(spec, msgspec.Raw) else spec).restartPolicy or ""


def _by_indexes(counts: Tally) -> FinishedCondition | None:
    job, completions = counts.job, completions_of(counts.job)
    failed = counts.failed_indexes
    if failed is not None:
        limit = job.spec.maxFailedIndexes
        if limit is not None and len(failed) > limit:
            return MAX_FAILED_INDEXES_EXCEEDED
        if failed and len(failed) + len(counts.succeeded_indexes) >= completions:
            return FAILED_INDEXES
    message = match_success_policy(job, completions, counts.succeeded_indexes)
    return FinishedCondition(True, "SuccessPolicy", message) if message else None


# -- status.conditions ----------------------------------------------------------------------------


def new_condition(type_: str, reason: str, message: str, now: datetime, status: str = "True") -> Condition:
    """A condition that changed now."""
    at = truncate_to_seconds(now)
    return Condition(
        type=type_, status=status, reason=reason, message=message, lastProbeTime=at, lastTransitionTime=at
    )


def ensure_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """The conditions with this one, in place of another of its type; the same object where nothing changes.

    A condition with status False is not added where there is none of its type.
    """
    old = find_condition(conditions, new.type)
    if old is None:
        return conditions if new.status == "False" else (*conditions, new)
    if (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
        return conditions
    return tuple(new if condition is old else condition for condition in conditions)
