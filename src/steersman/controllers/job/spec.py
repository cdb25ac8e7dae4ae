"""What a Job asks for, read off its spec."""

from __future__ import annotations

from steersman.api.conditions import is_true
from steersman.api.kinds import Job
from steersman.intent.verdict import InvalidSpec

CONTROLLER = "kubernetes.io/job-controller"
"""What ``spec.managedBy`` says of Jobs that are managed here, where it says anything."""


def is_managed_elsewhere(job: Job) -> bool:
    return job.spec.managedBy is not None and job.spec.managedBy != CONTROLLER


def is_indexed(job: Job) -> bool:
    """Whether each of its completions is one of its own, with a number."""
    return job.spec.completionMode == "Indexed"


def is_suspended(job: Job) -> bool:
    return bool(job.spec.suspend)


def is_finished(job: Job) -> bool:
    """Whether it is over: nothing about it changes any more."""
    return is_true(job.status.conditions, "Complete") or is_true(job.status.conditions, "Failed")


def limits_each_index(job: Job) -> bool:
    """Whether each index may fail so often, and goes on whatever others do."""
    return job.spec.backoffLimitPerIndex is not None


def replaces_only_failed(job: Job) -> bool:
    """Whether a pod that is asked to go is replaced only once it has gone."""
    return job.spec.podReplacementPolicy == "Failed" or job.spec.podFailurePolicy is not None


def completions_of(job: Job) -> int:
    """How many indexes there are."""
    return _number("completions", job.spec.completions)


def parallelism_of(job: Job) -> int:
    return _number("parallelism", job.spec.parallelism)


def backoff_limit_of(job: Job) -> int:
    return _number("backoffLimit", job.spec.backoffLimit)


def _number(field: str, value: int | None) -> int:
    if value is None or value < 0:
        raise InvalidSpec(f"spec.{field} is {'missing' if value is None else value}")
    return value
