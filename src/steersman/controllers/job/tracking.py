"""Counting pods that ended, for good: the status first, then the finalizers, then the status again."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec.structs import replace

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import Job, JobStatus, Pod
from steersman.controllers.job.counting import NONE, Tally, count
from steersman.controllers.job.ending import Ending, condition, ensure
from steersman.controllers.job.indexes import Indexes
from steersman.controllers.job.pods import (
    has_failed,
    has_succeeded,
    index_of,
    is_tracked,
    is_valid,
    let_go,
)
from steersman.controllers.job.policy import ruling
from steersman.controllers.job.spec import completions_of, is_indexed
from steersman.intent.actions import Batch, Emit, Failed, UpdateStatus

MOST_UNCOUNTED = 500
"""How many pods a status lists at most, so that it stays small and other Jobs get their turn."""


class Account(msgspec.Struct, frozen=True):
    """What the status is to say before finalizers go, and whose."""

    status: JobStatus
    release: tuple[Pod, ...]
    tracked: dict[str, Pod]
    """By uid, the pods that have the finalizer."""
    is_full: bool
    """There are more; they have to wait for their turn."""


def account(seen: Tally, status: JobStatus, end: Ending | None, now: datetime) -> Account:
    """List what ended since, and say how the Job will end, if it will."""
    tracked = {pod.metadata.uid: pod for pod in seen.pods if is_tracked(pod)}
    status = count(status, tracked)
    uncounted = status.uncountedTerminatedPods or NONE
    indexed = is_indexed(seen.job)
    succeeded, failed = list(uncounted.succeeded), list(uncounted.failed)
    known_succeeded, known_failed = frozenset(succeeded), frozenset(failed)
    before = Indexes.parse(status.completedIndexes, completions_of(seen.job)) if indexed else Indexes()
    new_indexes = 0
    release: list[Pod] = []
    is_full = False
    for uid, pod in tracked.items():
        if not _may_go(seen, pod, end):
            continue
        release.append(pod)
        if has_succeeded(pod) and uid not in known_failed:
            if indexed:
                # The index is enough to know that it has been counted.
                new_indexes += is_valid(pod, seen.job) and index_of(pod) not in before
            elif uid not in known_succeeded:
                succeeded.append(uid)
        elif uid not in known_failed and _is_failure(seen, pod, end):
            failed.append(uid)
        if new_indexes + len(succeeded) + len(failed) >= MOST_UNCOUNTED:
            is_full = True
            break
    if (tuple(succeeded), tuple(failed)) != (uncounted.succeeded, uncounted.failed):
        uncounted = replace(uncounted, succeeded=tuple(succeeded), failed=tuple(failed))
        status = replace(status, uncountedTerminatedPods=uncounted)
    if indexed:
        status = replace(
            status,
            succeeded=len(seen.done),
            completedIndexes=str(seen.done),
            failedIndexes=None if seen.lost is None else str(seen.lost),
        )
    if end is not None and not end.told:
        status = foretold(status, end, now)
    return Account(status, tuple(release), tracked, is_full)


def foretold(status: JobStatus, end: Ending, now: datetime) -> JobStatus:
    """The status with the condition that says how the Job will end."""
    told = condition(end.first, end.reason, end.message, now)
    return replace(status, conditions=(*status.conditions, told))


def _may_go(seen: Tally, pod: Pod, end: Ending | None) -> bool:
    """Whether the pod is done with. The last that failed at an index stays until the next one knows of it."""
    if seen.job.metadata.deletionTimestamp is not None or end is not None or has_succeeded(pod):
        return True
    if not has_failed(pod, seen.job):
        return False
    index = index_of(pod)
    waits = seen.awaiting.get(index) if index is not None else None
    return waits is None or waits.metadata.uid != pod.metadata.uid


def _is_failure(seen: Tally, pod: Pod, end: Ending | None) -> bool:
    """Whether the pod counts as failed. Of a Job that fails, all do that have not succeeded."""
    failed = has_failed(pod, seen.job)
    if end is not None:
        # differs: of a Job that succeeds, upstream also counts pods that are asked to go, if it looks again after
        # it has asked them; how often it looks must make no difference.
        failed = not end.succeeds or pod.status.phase == "Failed"
    return failed and is_valid(pod, seen.job) and ruling(seen.job, pod).counts


async def track(seen: Tally, status: JobStatus, end: Ending | None, terminating: int, now: datetime) -> bool:
    """Count, let go, and end the Job where nothing is left to wait for; answers whether it has ended."""
    job = seen.job
    counted = account(seen, status, end, now)
    final = counted.status
    # differs: where no pod is to be let go and no end is news, upstream writes twice what can be written once.
    if counted.release or (end is not None and not end.told):
        if counted.status != job.status:
            job = await UpdateStatus(job, counted.status)
        final = job.status
    tracked = dict(counted.tracked)
    refusal = await _let_go(counted.release, tracked)
    final = count(final, tracked)
    if refusal is not None:
        await _write(job, final)
        raise refusal
    uncounted = final.uncountedTerminatedPods or NONE
    is_over = not (counted.is_full or uncounted.succeeded or uncounted.failed or terminating)
    if end is None or not is_over:
        await _write(job, final)
        return False
    ended = condition(end.last, end.reason, end.message, now)
    final = replace(final, conditions=ensure(final.conditions, ended))
    if end.succeeds:
        final = replace(final, completionTime=ended.lastTransitionTime)
    await _write(job, final)
    await _tell(job, final, end)
    return True


async def _write(job: Job, status: JobStatus) -> None:
    if status != job.status:
        await UpdateStatus(job, status)


async def _let_go(pods: tuple[Pod, ...], tracked: dict[str, Pod]) -> ApiError | None:
    """Take finalizers off. Those that are off are no longer ``tracked``; answers why not all."""
    refusal: ApiError | None = None
    outcomes = await Batch(tuple(map(let_go, pods)), slow_start=False) if pods else []
    for pod, outcome in zip(pods, outcomes, strict=True):
        match outcome:
            case Failed(NotFound()):
                pass  # it has gone by itself
            case Failed(error):
                refusal = refusal or error
                continue
            case _:
                pass
        del tracked[pod.metadata.uid]
    return refusal


async def _tell(job: Job, status: JobStatus, end: Ending) -> None:
    if not end.succeeds:
        await Emit(job, "Warning", end.reason, end.message)
        return
    wanted = job.spec.completions
    if wanted is not None and status.succeeded > wanted:
        message = "Too many succeeded pods running after completion count reached"
        await Emit(job, "Warning", "TooManySucceededPods", message)
    await Emit(job, "Normal", "Completed", "Job completed")
