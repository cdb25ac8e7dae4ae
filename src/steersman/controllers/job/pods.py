"""Reads a Job's spec and pods: its limits, and of a pod its completion index, how it ended, and whether it is tracked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby

from steersman.api import pods
from steersman.api.conditions import is_condition_true
from steersman.api.kinds import Job, Pod
from steersman.intent.actions import Patch, PatchType
from steersman.intent.verdict import InvalidSpec

JOB_CONTROLLER = "kubernetes.io/job-controller"
"""The value of ``spec.managedBy`` for this controller; so is a missing value."""

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
"""Keeps a pod until it is counted in the Job's status."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
"""The annotation with the number of earlier pods of the same index that failed."""
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
"""The annotation with the number of those failures that the pod failure policy ignored."""

_DIGITS = re.compile(r"[0-9]{1,18}")
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_MAX_COUNT = 2**31 - 1
_LAST = datetime.max.replace(tzinfo=UTC)


# -- spec -----------------------------------------------------------------------------------------


def is_managed_externally(job: Job) -> bool:
    """Whether ``spec.managedBy`` names another controller."""
    return job.spec.managedBy is not None and job.spec.managedBy != JOB_CONTROLLER


def is_indexed(job: Job) -> bool:
    """Whether each completion has an index."""
    return job.spec.completionMode == "Indexed"


def is_suspended(job: Job) -> bool:
    return bool(job.spec.suspend)


def is_finished(job: Job) -> bool:
    """Whether the Job has the condition Complete or Failed."""
    return is_condition_true(job.status.conditions, "Complete") or is_condition_true(
        job.status.conditions, "Failed"
    )


def has_backoff_limit_per_index(job: Job) -> bool:
    """Whether failures are limited for each index on its own."""
    return job.spec.backoffLimitPerIndex is not None


def only_replaces_failed(job: Job) -> bool:
    """Whether a terminating pod is replaced only once it has ended."""
    return job.spec.podReplacementPolicy == "Failed" or job.spec.podFailurePolicy is not None


def completions_of(job: Job) -> int:
    """The number of completions. Raises `InvalidSpec` where it is missing or negative, as do the next two."""
    return _number("completions", job.spec.completions)


def parallelism_of(job: Job) -> int:
    return _number("parallelism", job.spec.parallelism)


def backoff_limit_of(job: Job) -> int:
    return _number("backoffLimit", job.spec.backoffLimit)


def _number(field: str, value: int | None) -> int:
    if value is None or value < 0:
        raise InvalidSpec(f"spec.{field} is {'missing' if value is None else value}")
    return value


# -- pods -----------------------------------------------------------------------------------------


def index_of(pod: Pod) -> int | None:
    """The completion index of a pod; None where it has none."""
    text = pod.metadata.annotations.get(COMPLETION_INDEX, "")
    return int(text) if _DIGITS.fullmatch(text) else None


def has_valid_index(pod: Pod, job: Job) -> bool:
    """Whether the pod's index is below ``spec.completions``; always so for a NonIndexed Job."""
    if not is_indexed(job):
        return True
    index = index_of(pod)
    return index is not None and index < completions_of(job)


def is_tracked(pod: Pod) -> bool:
    """Whether the pod has the tracking finalizer, that is, is not counted yet."""
    return TRACKING_FINALIZER in pod.metadata.finalizers


def has_succeeded(pod: Pod) -> bool:
    return pod.status.phase == "Succeeded"


def has_failed(pod: Pod, job: Job) -> bool:
    """Whether the pod counts as failed. A terminating pod does, for it may never report how it ended, unless the Job
    only replaces failed pods."""
    if pod.status.phase == "Failed":
        return True
    if only_replaces_failed(job):
        return False
    return pod.metadata.deletionTimestamp is not None and not has_succeeded(pod)


def index_failures(pod: Pod) -> int:
    """The failures of the pod's index before it that counted."""
    return _count(pod, INDEX_FAILURES)


def ignored_index_failures(pod: Pod) -> int:
    """The failures of the pod's index before it that were ignored."""
    return _count(pod, INDEX_IGNORED_FAILURES)


def _count(pod: Pod, annotation: str) -> int:
    text = pod.metadata.annotations.get(annotation, "")
    count = int(text) if _DIGITS.fullmatch(text) else 0
    return count if count <= _MAX_COUNT else 0


def remove_finalizer(pod: Pod) -> Patch[Pod]:
    """The patch that removes the tracking finalizer and leaves all others."""
    metadata = {"$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER], "uid": pod.metadata.uid}
    return Patch(pod, {"metadata": metadata}, PatchType.STRATEGIC)


# -- order ----------------------------------------------------------------------------------------


def surplus_pods(job: Job, active: Iterable[Pod], at_least: int) -> list[Pod]:
    """The active pods to delete: at least so many, and all without a valid index or whose index has another pod."""
    if not is_indexed(job):
        return sorted(active, key=_deletion_rank)[:at_least]
    delete: list[Pod] = []
    keep: list[Pod] = []
    invalid: list[Pod] = []
    indexed = sorted(active, key=lambda pod: _index_or_first(index_of(pod)))
    for index, group in groupby(indexed, key=index_of):
        ranked = sorted(group, key=_deletion_rank)
        if index is None:
            delete += ranked
        elif index >= completions_of(job):
            invalid += ranked
        else:
            delete += ranked[:-1]
            keep.append(ranked[-1])
    delete += invalid
    if len(delete) < at_least:
        delete += sorted(keep, key=_deletion_rank)[: at_least - len(delete)]
    return delete


def sort_by_index(job: Job, owned: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods of an Indexed Job by index; otherwise in the order given."""
    if not is_indexed(job):
        return tuple(owned)
    return tuple(sorted(owned, key=lambda pod: _index_or_first(index_of(pod))))


def _index_or_first(index: int | None) -> int:
    return -1 if index is None else index


def _deletion_rank(pod: Pod) -> tuple[bool, int, bool, float, int, int, float]:
    """The sort key for deletion: unscheduled, not running and not ready pods first, then the youngest."""
    ready = pods.is_ready(pod)
    regular, sidecar = pods.restarts(pod)
    return (
        bool(pod.spec.nodeName),
        _PHASES.get(pod.status.phase, 0),
        ready,
        _youngest_first(pods.ready_since(pod)) if ready else 0.0,
        -regular,
        -sidecar,
        _youngest_first(pod.metadata.creationTimestamp),
    )


def _youngest_first(at: datetime | None) -> float:
    return -(at if at is not None else _LAST).timestamp()
