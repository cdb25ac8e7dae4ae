"""How a Job stands: its pods and what its status has counted already, added up.

Every pod carries a finalizer until it is counted. A pod that has ended is first listed in the status as
uncounted; then the finalizer goes; then the number in the status grows and the pod leaves the list. Whoever dies
in between leaves enough to go on from, and no pod is counted twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from steersman.api.kinds import Job, JobStatus, Pod, UncountedTerminatedPods
from steersman.api.pods import is_active, is_ready, is_terminating
from steersman.controllers.job.backoff import finished_at
from steersman.controllers.job.indexes import Indexes
from steersman.controllers.job.pods import (
    failures_before,
    has_failed,
    has_succeeded,
    ignored_before,
    in_order,
    index_of,
    is_tracked,
    is_valid,
)
from steersman.controllers.job.policy import ruling
from steersman.controllers.job.spec import completions_of, is_indexed, limits_each_index

NONE = UncountedTerminatedPods()


class Tally(msgspec.Struct, frozen=True):
    """How a Job stands at one instant."""

    job: Job
    pods: tuple[Pod, ...]
    """All it controls, in the order in which they are counted."""
    active: tuple[Pod, ...]
    ready: int
    terminating: int
    succeeded: int
    failed: int
    """With those that the status does not count yet; without those a policy ignores."""
    done: Indexes
    """The indexes that succeeded; none where it has no indexes."""
    lost: Indexes | None
    """The indexes that failed for good; None where they do not fail on their own."""
    awaiting: Mapping[int, Pod]
    """By index, the last pod that failed and is still to be replaced."""


def tally(job: Job, owned: Iterable[Pod]) -> Tally:
    """Add it all up."""
    pods = in_order(job, owned)
    active = tuple(filter(is_active, pods))
    counted, uncounted = job.status, job.status.uncountedTerminatedPods or NONE
    fresh = [pod for pod in pods if is_tracked(pod) and is_valid(pod, job)]
    failed = sum(
        has_failed(pod, job) and ruling(job, pod).counts
        for pod in fresh
        if pod.metadata.uid not in uncounted.failed
    )
    succeeded = sum(has_succeeded(pod) for pod in fresh if pod.metadata.uid not in uncounted.succeeded)
    done, lost = Indexes(), None
    awaiting: Mapping[int, Pod] = {}
    if is_indexed(job):
        done = _done(job, fresh)
        if limits_each_index(job):
            lost = _lost(job, fresh)
            awaiting = _awaiting(job, fresh, done | lost | indexes_of(active))
    return Tally(
        job=job,
        pods=pods,
        active=active,
        ready=sum(map(is_ready, active)),
        terminating=sum(map(is_terminating, pods)),
        succeeded=len(done) if is_indexed(job) else counted.succeeded + succeeded + len(uncounted.succeeded),
        failed=counted.failed + failed + len(uncounted.failed),
        done=done,
        lost=lost,
        awaiting=awaiting,
    )


def without(seen: Tally, removed: tuple[Pod, ...]) -> Tally:
    """The same without pods that are not to be counted: nobody wanted them any more."""
    if not removed:
        return seen
    uids = frozenset(pod.metadata.uid for pod in removed)
    left = tuple(pod for pod in seen.pods if pod.metadata.uid not in uids)
    return msgspec.structs.replace(seen, pods=left)


def indexes_of(pods: Iterable[Pod]) -> Indexes:
    """The indexes that the pods are for."""
    return Indexes.of(index for index in map(index_of, pods) if index is not None)


def _done(job: Job, fresh: list[Pod]) -> Indexes:
    before = Indexes.parse(job.status.completedIndexes, completions_of(job))
    return before | indexes_of(filter(has_succeeded, fresh))


def _lost(job: Job, fresh: list[Pod]) -> Indexes:
    before = Indexes.parse(job.status.failedIndexes or "", completions_of(job))
    return before | indexes_of(pod for pod in fresh if _fails_index(job, pod))


def _fails_index(job: Job, pod: Pod) -> bool:
    """Whether its index may not be tried again after this pod."""
    if not has_failed(pod, job):
        return False
    ruled = ruling(job, pod)
    if ruled.action == "FailIndex":
        return True
    return ruled.counts and failures_before(pod) >= (job.spec.backoffLimitPerIndex or 0)


def _awaiting(job: Job, fresh: list[Pod], taken: Indexes) -> dict[int, Pod]:
    """The last pods of indexes that have no other yet: what their successors are to know of them."""
    last: dict[int, Pod] = {}
    for pod in fresh:
        index = index_of(pod)
        if index is None or index in taken or not has_failed(pod, job):
            continue
        if index not in last or _came_before(last[index], pod):
            last[index] = pod
    return last


def _came_before(one: Pod, other: Pod) -> bool:
    def all_before(pod: Pod) -> int:
        return failures_before(pod) + ignored_before(pod)

    return all_before(one) <= all_before(other) and finished_at(one) <= finished_at(other)


# -- from the list of the uncounted to the numbers ------------------------------------------------


def count(status: JobStatus, tracked: Mapping[str, Pod]) -> JobStatus:
    """The status with those counted that were listed and have let go of the finalizer since."""
    uncounted = status.uncountedTerminatedPods or NONE
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
