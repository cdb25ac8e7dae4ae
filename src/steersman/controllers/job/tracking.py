"""Tracking with finalizers: counts ended pods in the status, and removes the finalizer of pods that are counted.

The order is status, finalizers, status: see `tally`. Pods whose Job is gone are orphans, and only lose their finalizer.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import JOBS, Job, JobStatus, Pod
from steersman.api.meta import controller_of
from steersman.api.scheme import Key
from steersman.controllers.job.backoff import deleted_at
from steersman.controllers.job.conditions import FinishedCondition, ensure_condition, new_condition
from steersman.controllers.job.indexes import Indexes
from steersman.controllers.job.pods import (
    completions_of,
    has_failed,
    has_succeeded,
    has_valid_index,
    index_of,
    is_finished,
    is_indexed,
    is_managed_externally,
    is_tracked,
    remove_finalizer,
)
from steersman.controllers.job.policies import match_failure_policy
from steersman.controllers.job.tally import NO_UNCOUNTED, Tally, count_released
from steersman.controllers.shared.controller_ref import resolve_controller_ref
from steersman.intent.actions import Batch, Emit, Failed, UpdateStatus
from steersman.intent.controller import Caches, Change
from steersman.intent.verdict import Rest, Verdict

MAX_UNCOUNTED = 500
"""The most pods that a status lists as uncounted, so that it stays small and other Jobs get their turn."""


class TrackingStep(msgspec.Struct, frozen=True):
    """The status to write before finalizers are removed, and the pods to remove them from."""

    status: JobStatus
    release: tuple[Pod, ...]
    """The pods whose finalizer is removed."""
    tracked: dict[str, Pod]
    """Uid -> pod that has the finalizer."""
    is_full: bool
    """More pods have ended, and have to wait for the next round."""


def next_step(
    counts: Tally, status: JobStatus, finished: FinishedCondition | None, now: datetime
) -> TrackingStep:
    """Lists the pods that ended as uncounted, and records how the Job will end, if it does."""
    tracked = {pod.metadata.uid: pod for pod in counts.pods if is_tracked(pod)}
    status = count_released(status, tracked)
    uncounted = status.uncountedTerminatedPods or NO_UNCOUNTED
    indexed = is_indexed(counts.job)
    succeeded, failed = list(uncounted.succeeded), list(uncounted.failed)
    known_succeeded, known_failed = frozenset(succeeded), frozenset(failed)
    before = Indexes.parse(status.completedIndexes, completions_of(counts.job)) if indexed else Indexes()
    new_indexes = 0
    release: list[Pod] = []
    is_full = False
    for uid, pod in tracked.items():
        if not _may_release(counts, pod, finished):
            continue
        release.append(pod)
        if has_succeeded(pod) and uid not in known_failed:
            if indexed:
                # The index in completedIndexes shows that the pod is counted.
                new_indexes += has_valid_index(pod, counts.job) and index_of(pod) not in before
            elif uid not in known_succeeded:
                succeeded.append(uid)
        elif uid not in known_failed and _counts_as_failed(counts, pod, finished):
            failed.append(uid)
        if new_indexes + len(succeeded) + len(failed) >= MAX_UNCOUNTED:
            is_full = True
            break
    if (tuple(succeeded), tuple(failed)) != (uncounted.succeeded, uncounted.failed):
        uncounted = replace(uncounted, succeeded=tuple(succeeded), failed=tuple(failed))
        status = replace(status, uncountedTerminatedPods=uncounted)
    if indexed:
        status = replace(
            status,
            succeeded=len(counts.succeeded_indexes),
            completedIndexes=str(counts.succeeded_indexes),
            failedIndexes=None if counts.failed_indexes is None else str(counts.failed_indexes),
        )
    if finished is not None and not finished.recorded:
        status = with_interim_condition(status, finished, now)
    return TrackingStep(status, tuple(release), tracked, is_full)


def with_interim_condition(status: JobStatus, finished: FinishedCondition, now: datetime) -> JobStatus:
    """The status with the condition that says how the Job will end."""
    interim = new_condition(finished.interim_type, finished.reason, finished.message, now)
    return replace(status, conditions=(*status.conditions, interim))


def _may_release(counts: Tally, pod: Pod, finished: FinishedCondition | None) -> bool:
    """Whether the pod may lose its finalizer. The last failed pod of an index keeps it until it is replaced."""
    if counts.job.metadata.deletionTimestamp is not None or finished is not None or has_succeeded(pod):
        return True
    if not has_failed(pod, counts.job):
        return False
    index = index_of(pod)
    last = counts.to_replace.get(index) if index is not None else None
    return last is None or last.metadata.uid != pod.metadata.uid


def _counts_as_failed(counts: Tally, pod: Pod, finished: FinishedCondition | None) -> bool:
    """Whether the pod counts as failed. When the Job fails, every pod that has not succeeded does."""
    failed = has_failed(pod, counts.job) or (finished is not None and not finished.succeeds)
    if counts.succeeds_since is not None and pod.status.phase != "Failed":
        # differs: upstream also counts pods that were deleted because the Job succeeds, if another round follows the
        # one that deleted them; the number of rounds must make no difference.
        at = deleted_at(pod)
        failed = failed and at is not None and at < counts.succeeds_since
    return failed and has_valid_index(pod, counts.job) and match_failure_policy(counts.job, pod).counts


async def track(
    counts: Tally, status: JobStatus, finished: FinishedCondition | None, terminating: int, now: datetime
) -> bool:
    """Counts pods, removes finalizers, and finishes the Job when nothing is left to wait for; returns whether it
    has finished."""
    job = counts.job
    step = next_step(counts, status, finished, now)
    final = step.status
    # differs: where no finalizer is to be removed and no end to be recorded, upstream writes the status twice.
    if step.release or (finished is not None and not finished.recorded):
        if step.status != job.status:
            job = await UpdateStatus(job, step.status)
        final = job.status
    tracked = dict(step.tracked)
    failure = await _remove_finalizers(step.release, tracked)
    final = count_released(final, tracked)
    if failure is not None:
        await _write(job, final)
        raise failure
    uncounted = final.uncountedTerminatedPods or NO_UNCOUNTED
    is_over = not (step.is_full or uncounted.succeeded or uncounted.failed or terminating)
    if finished is None or not is_over:
        await _write(job, final)
        return False
    condition = new_condition(finished.final_type, finished.reason, finished.message, now)
    final = replace(final, conditions=ensure_condition(final.conditions, condition))
    if finished.succeeds:
        final = replace(final, completionTime=condition.lastTransitionTime)
    await _write(job, final)
    await _emit_finished(job, final, finished)
    return True


async def _write(job: Job, status: JobStatus) -> None:
    if status != job.status:
        await UpdateStatus(job, status)


async def _remove_finalizers(pods: tuple[Pod, ...], tracked: dict[str, Pod]) -> ApiError | None:
    """Removes finalizers, and the released pods from ``tracked``; returns the first error."""
    failure: ApiError | None = None
    outcomes = await Batch(tuple(map(remove_finalizer, pods)), slow_start=False) if pods else []
    for pod, outcome in zip(pods, outcomes, strict=True):
        match outcome:
            case Failed(NotFound()):
                pass  # already deleted
            case Failed(error):
                failure = failure or error
                continue
            case _:
                pass
        del tracked[pod.metadata.uid]
    return failure


async def _emit_finished(job: Job, status: JobStatus, finished: FinishedCondition) -> None:
    if not finished.succeeds:
        await Emit(job, "Warning", finished.reason, finished.message)
        return
    completions = job.spec.completions
    if completions is not None and status.succeeded > completions:
        message = "Too many succeeded pods running after completion count reached"
        await Emit(job, "Warning", "TooManySucceededPods", message)
    await Emit(job, "Normal", "Completed", "Job completed")


# -- orphan pods ----------------------------------------------------------------------------------

ORPHAN_PREFIX = "pod/"
"""Begins the names in the keys of orphan pods; no Job's name has a slash."""


def orphan_key(pod: Pod) -> Key:
    """The key under which an orphan pod is enqueued."""
    return Key(pod.metadata.namespace, ORPHAN_PREFIX + pod.metadata.name)


def is_orphan(caches: Caches, pod: Pod) -> bool:
    """Whether the pod has the tracking finalizer and its Job is gone or finished."""
    if not is_tracked(pod):
        return False
    reference = controller_of(pod)
    if reference is None:
        return True
    if (reference.kind, reference.apiVersion) != (JOBS.name, JOBS.api_version):
        return False
    job = resolve_controller_ref(caches[JOBS], JOBS, pod.metadata.namespace, reference)
    return job is None or (is_finished(job) and not is_managed_externally(job))


def enqueue_orphan(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """Enqueues a pod that may have become an orphan.

    A pod whose Job is unknown and that is not being deleted is left to the garbage collector.
    """
    pod = change.new
    if pod is None or not is_orphan(caches, pod):
        return ()
    if controller_of(pod) is not None and pod.metadata.deletionTimestamp is None:
        return ()
    return (orphan_key(pod),)


async def release_orphan(pod: Pod) -> Verdict:
    """Removes the tracking finalizer of an orphan pod."""
    try:
        await remove_finalizer(pod)
    except NotFound:
        return Rest("pod already deleted")
    return Rest("removed the job-tracking finalizer of an orphan pod")
