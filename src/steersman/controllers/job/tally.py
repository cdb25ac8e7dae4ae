"""Tally: counts a Job's pods together with the pods its status has counted already.

Every pod has a finalizer until it is counted. A pod that has ended is first listed in the status as uncounted; then its
finalizer is removed; then the counter in the status grows and the pod leaves the list. A crash at any point leaves
enough to continue, and no pod is counted twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec
from msgspec.structs import replace

from steersman.api.conditions import find_condition
from steersman.api.kinds import Job, JobStatus, Pod, UncountedTerminatedPods
from steersman.api.pods import is_active, is_ready, is_terminating
from steersman.controllers.job.backoff import finished_at
from steersman.controllers.job.indexes import Indexes
from steersman.controllers.job.pods import (
    completions_of,
    has_backoff_limit_per_index,
    has_failed,
    has_succeeded,
    has_valid_index,
    ignored_index_failures,
    index_failures,
    index_of,
    is_indexed,
    is_tracked,
    sort_by_index,
)
from steersman.controllers.job.policies import match_failure_policy

NO_UNCOUNTED = UncountedTerminatedPods()


class Tally(msgspec.Struct, frozen=True):
    """The counts of a Job at one instant."""

    job: Job
    pods: tuple[Pod, ...]
    """All pods it controls, by index."""
    active: tuple[Pod, ...]
    ready: int
    terminating: int
    succeeded: int
    """With the pods that the status does not count yet."""
    failed: int
    """With the pods that the status does not count yet; without those the failure policy ignores."""
    succeeded_indexes: Indexes
    """Empty for a NonIndexed Job."""
    failed_indexes: Indexes | None
    """None without ``backoffLimitPerIndex``."""
    to_replace: Mapping[int, Pod]
    """Index -> its last failed pod, where the index has no other pod and has not ended. Upstream's pods with delayed
    deletion per index."""
    succeeds_since: datetime | None = None
    """When an earlier round recorded that the Job succeeds; pods that were deleted since then were deleted for that."""


def tally(job: Job, owned: Iterable[Pod]) -> Tally:
    """Counts the pods a Job controls."""
    pods = sort_by_index(job, owned)
    active = tuple(filter(is_active, pods))
    counted, uncounted = job.status, job.status.uncountedTerminatedPods or NO_UNCOUNTED
    tracked = [pod for pod in pods if is_tracked(pod) and has_valid_index(pod, job)]
    failed = sum(
        has_failed(pod, job) and match_failure_policy(job, pod).counts
        for pod in tracked
        if pod.metadata.uid not in uncounted.failed
    )
    succeeded = sum(has_succeeded(pod) for pod in tracked if pod.metadata.uid not in uncounted.succeeded)
    succeeded_indexes, failed_indexes = Indexes(), None
    to_replace: Mapping[int, Pod] = {}
    if is_indexed(job):
        succeeded_indexes = _succeeded_indexes(job, tracked)
        if has_backoff_limit_per_index(job):
            failed_indexes = _failed_indexes(job, tracked)
            taken = succeeded_indexes | failed_indexes | indexes_of(active)
            to_replace = _to_replace(job, tracked, taken)
    if is_indexed(job):
        total_succeeded = len(succeeded_indexes)
    else:
        total_succeeded = counted.succeeded + succeeded + len(uncounted.succeeded)
    return Tally(
        job=job,
        pods=pods,
        active=active,
        ready=sum(map(is_ready, active)),
        terminating=sum(map(is_terminating, pods)),
        succeeded=total_succeeded,
        failed=counted.failed + failed + len(uncounted.failed),
        succeeded_indexes=succeeded_indexes,
        failed_indexes=failed_indexes,
        to_replace=to_replace,
        succeeds_since=_succeeds_since(job),
    )


def _succeeds_since(job: Job) -> datetime | None:
    condition = find_condition(job.status.conditions, "SuccessCriteriaMet")
    return condition.lastTransitionTime if condition is not None and condition.status == "True" else None


def without_pods(counts: Tally, deleted: tuple[Pod, ...]) -> Tally:
    """The tally without surplus pods that were deleted: they are not counted as failed."""
    if not deleted:
        return counts
    uids = frozenset(pod.metadata.uid for pod in deleted)
    left = tuple(pod for pod in counts.pods if pod.metadata.uid not in uids)
    return msgspec.structs.replace(counts, pods=left)


def indexes_of(pods: Iterable[Pod]) -> Indexes:
    """The completion indexes of pods."""
    return Indexes.of(index for index in map(index_of, pods) if index is not None)


def _succeeded_indexes(job: Job, tracked: list[Pod]) -> Indexes:
    before = Indexes.parse(job.status.completedIndexes, completions_of(job))
    return before | indexes_of(filter(has_succeeded, tracked))


def _failed_indexes(job: Job, tracked: list[Pod]) -> Indexes:
    before = Indexes.parse(job.status.failedIndexes or "", completions_of(job))
    return before | indexes_of(pod for pod in tracked if _fails_index(job, pod))


def _fails_index(job: Job, pod: Pod) -> bool:
    """Whether the pod's index has failed for good with this pod."""
    if not has_failed(pod, job):
        return False
    match = match_failure_policy(job, pod)
    if match.action == "FailIndex":
        return True
    return match.counts and index_failures(pod) >= (job.spec.backoffLimitPerIndex or 0)


def _to_replace(job: Job, tracked: list[Pod], taken: Indexes) -> dict[int, Pod]:
    last: dict[int, Pod] = {}
    for pod in tracked:
        index = index_of(pod)
        if index is None or index in taken or not has_failed(pod, job):
            continue
        if index not in last or _is_before(last[index], pod):
            last[index] = pod
    return last


def _is_before(one: Pod, other: Pod) -> bool:
    def failures(pod: Pod) -> int:
        return index_failures(pod) + ignored_index_failures(pod)

    return failures(one) <= failures(other) and finished_at(one) <= finished_at(other)


# -- uncountedTerminatedPods ----------------------------------------------------------------------


def count_released(status: JobStatus, tracked: Mapping[str, Pod]) -> JobStatus:
    """The status with those uncounted pods counted that are no longer ``tracked``: their finalizer is removed."""
    uncounted = status.uncountedTerminatedPods or NO_UNCOUNTED
    succeeded = tuple(uid for uid in uncounted.succeeded if uid in tracked)
    failed = tuple(uid for uid in uncounted.failed if uid in tracked)
    successes = len(uncounted.succeeded) - len(succeeded)
    failures = len(uncounted.failed) - len(failed)
    if not successes and not failures:
        return status
    return replace(
        status,
        succeeded=status.succeeded + successes,
        failed=status.failed + failures,
        uncountedTerminatedPods=replace(uncounted, succeeded=succeeded, failed=failed),
    )
