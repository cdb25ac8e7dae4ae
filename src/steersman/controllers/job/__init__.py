"""job-controller (a decision): runs pods until enough of them have succeeded.

A round counts pods (`tally`), checks whether the Job ends (`conditions`), creates or deletes pods (`scaling`), and
writes the counts in an order that survives a crash at any point (`tracking`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial

import msgspec
from msgspec.structs import replace

from steersman.api.kinds import JOBS, PODS, Job, JobStatus, Pod
from steersman.api.meta import truncate_to_seconds
from steersman.api.scheme import Key
from steersman.controllers.job import tracking
from steersman.controllers.job.backoff import ZERO, FailureMemory, FailureStreak
from steersman.controllers.job.conditions import (
    FinishedCondition,
    completions_reached,
    ensure_condition,
    finished_condition,
    new_condition,
    until_deadline,
)
from steersman.controllers.job.metrics import METRICS, measure_job, measure_pod, sync
from steersman.controllers.job.pods import (
    TRACKING_FINALIZER,
    is_finished,
    is_managed_externally,
    is_suspended,
    is_tracked,
)
from steersman.controllers.job.scaling import ScaleResult, apply_scaling, delete_active, plan_scaling
from steersman.controllers.job.tally import NO_UNCOUNTED, tally, without_pods
from steersman.controllers.shared.controller_ref import claim
from steersman.controllers.shared.enqueue_owner import enqueue_owner
from steersman.controllers.shared.indexes import CONTROLLED, controlled_by, orphans_in
from steersman.controllers.shared.selectors import selector_of, selects
from steersman.intent.actions import Emit, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.metrics import Measure
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict, Wake

BATCH_PERIOD = 1.0
"""Seconds from a change of a pod or a status to the round for it: changes in between share one status write. Upstream's
SyncJobBatchPeriod."""
MIN_BACKOFF, MAX_BACKOFF = 1.0, 60.0
"""The shortest and the longest back-off of a Job whose rounds fail, in seconds; upstream's DefaultJobApiBackOff and
MaxJobApiBackOff."""
COMPLETION_MODES = (None, "", "NonIndexed", "Indexed")


class Config(msgspec.Struct, frozen=True):
    """The controller's feature gates."""

    clear_start_time: bool = True
    """Whether suspending a Job removes ``status.startTime``."""
    managed_by: bool = True
    """Whether ``spec.managedBy`` may leave a Job to another controller."""
    pod_replacement_policy: bool = True
    """Whether ``spec.podReplacementPolicy`` is followed, and terminating pods are counted in the status."""

    def gated(self, job: Job | None) -> Job | None:
        """The Job without the fields of its spec whose gates are off."""
        if job is None or (self.managed_by and self.pod_replacement_policy):
            return job
        spec = job.spec
        manager = spec.managedBy if self.managed_by else None
        policy = spec.podReplacementPolicy if self.pod_replacement_policy else None
        return replace(job, spec=replace(spec, managedBy=manager, podReplacementPolicy=policy))


# -- observe --------------------------------------------------------------------------------------


class Seen(msgspec.Struct, frozen=True):
    """A Job and its pods at one instant."""

    job: Job
    owned: tuple[Pod, ...]
    """The pods it controls."""
    orphans: tuple[Pod, ...]
    """The pods of the namespace that have no controller."""
    streak: FailureStreak = FailureStreak()
    """Its failures since the last success, also of pods that are deleted."""


def observe(caches: Caches, key: Key, config: Config = Config()) -> Seen | Pod | None:
    """A Job with its pods, or an orphan pod."""
    if key.name.startswith(tracking.ORPHAN_PREFIX):
        pod = caches[PODS].get(Key(key.namespace, key.name.removeprefix(tracking.ORPHAN_PREFIX)))
        return pod if pod is not None and tracking.is_orphan(caches, pod) else None
    memory = memory_of(caches, FailureMemory)
    job = config.gated(caches[JOBS].get(key))
    if job is None or is_finished(job):
        memory.forget(key)
    if job is None:
        return None
    owned = tuple(controlled_by(caches[PODS], job))
    if is_finished(job) or is_managed_externally(job):
        return Seen(job, owned, ())
    return Seen(job, owned, tuple(orphans_in(caches[PODS], key.namespace)), memory.record(job, owned))


# -- decide ---------------------------------------------------------------------------------------


async def decide(seen: Seen | Pod, now: datetime, config: Config = Config()) -> Verdict:
    if not isinstance(seen, Seen):
        return await tracking.release_orphan(seen)
    job = seen.job
    if is_managed_externally(job):
        return Rest(f"managed by {job.spec.managedBy}")
    if is_finished(job):
        for pod in filter(is_tracked, seen.owned):
            await tracking.release_orphan(pod)
        return Rest("finished")
    if job.spec.completionMode not in COMPLETION_MODES:
        message = "Skipped Job sync because completion mode is unknown"
        await Emit(job, "Warning", "UnknownCompletionMode", message)
        return Rest("unknown completionMode")
    try:
        selector = selector_of(job)
    except ValueError as error:
        return Rest(f"invalid selector: {error}")
    async with sync(job) as timed:
        owned = await claim(
            job,
            seen.owned,
            seen.orphans,
            lambda pod: selector.matches(pod.metadata.labels),
            (TRACKING_FINALIZER,),
        )
        return await _sync(job, owned, seen.streak, now, timed.labels, config)


async def _sync(
    job: Job, owned: list[Pod], streak: FailureStreak, now: datetime, labels: dict[str, str], config: Config
) -> Verdict:
    """Runs a round of a Job that is not finished. ``labels`` are those of the sync metrics."""
    counts = tally(job, owned)
    status = _started(job, now)
    finished = finished_condition(counts, status.startTime, now)
    wait = ZERO
    if finished is not None and not finished.recorded and counts.active:
        # differs: upstream deletes pods first. Deleted pods count as failed, so after a crash it could find
        # another end than the one it was about to record.
        written = await UpdateStatus(job, tracking.with_interim_condition(status, finished, now))
        job = replace(written, spec=job.spec)
        counts, status = msgspec.structs.replace(counts, job=job), job.status
        finished = msgspec.structs.replace(finished, recorded=True)
    if finished is not None:
        scaled = await delete_active(counts)
        if scaled.failure is not None:
            finished = (
                None  # pods are left: those that have ended are counted, and the Job ends in a later round
            )
    else:
        scaled = ScaleResult(len(counts.active), counts.ready, counts.terminating)
        if job.metadata.deletionTimestamp is None:
            plan = plan_scaling(counts, streak, now)
            wait = plan.wait
            labels["action"] = "pods_deleted" if is_suspended(job) else plan.action
            scaled = await apply_scaling(counts, plan)
            counts = without_pods(counts, plan.delete)
        finished = completions_reached(counts, scaled.active)
        if finished is None and job.metadata.deletionTimestamp is None:
            status = await _suspended_or_resumed(job, status, now, config)
    terminating = scaled.terminating if config.pod_replacement_policy else None
    status = replace(status, active=scaled.active, ready=scaled.ready, terminating=terminating)
    if await tracking.track(counts, status, finished, scaled.terminating, now):
        return Rest("finished")
    if scaled.failure is not None:
        raise scaled.failure
    return _verdict(job, status, finished, wait, now)


def _started(job: Job, now: datetime) -> JobStatus:
    """The status with a startTime, unless the Job is suspended."""
    status = job.status
    if status.uncountedTerminatedPods is None:
        status = replace(status, uncountedTerminatedPods=NO_UNCOUNTED)
    if status.startTime is None and not is_suspended(job):
        status = replace(status, startTime=truncate_to_seconds(now))
    return status


async def _suspended_or_resumed(job: Job, status: JobStatus, now: datetime, config: Config) -> JobStatus:
    """The status with the Suspended condition, where it changed. The active deadline starts anew with it."""
    if is_suspended(job):
        reason, new = "Suspended", new_condition("Suspended", "JobSuspended", "Job suspended", now)
        started = None if config.clear_start_time else status.startTime
    else:
        new = new_condition("Suspended", "JobResumed", "Job resumed", now, status="False")
        reason, started = "Resumed", truncate_to_seconds(now)
    conditions = ensure_condition(status.conditions, new)
    if conditions == status.conditions:
        return status
    await Emit(job, "Normal", reason, new.message)
    return replace(status, conditions=conditions, startTime=started)


def _verdict(
    job: Job, status: JobStatus, finished: FinishedCondition | None, wait: timedelta, now: datetime
) -> Verdict:
    counts = f"{status.active} active, {status.succeeded} succeeded, {status.failed} failed"
    if finished is not None:
        return Rest(f"finishing ({finished.reason}): {status.terminating or 0} pods terminating")
    left = until_deadline(job, status.startTime, now)
    if wait > ZERO and (left is None or wait < left):
        return Wake(max(wait, timedelta(seconds=BATCH_PERIOD)), f"{counts}; waiting for pod failure backoff")
    if left is not None:
        return Wake(left, f"{counts}; waiting for activeDeadlineSeconds")
    return Rest("suspended" if is_suspended(job) else counts)


# -- declaration ----------------------------------------------------------------------------------


def _enqueue_new_spec(caches: Caches, change: Change[Job]) -> Iterator[Key]:
    """Enqueues a Job at once when it is created or deleted or its spec changed, and the pods of a deleted Job."""
    old, new = change.old, change.new
    if old is None or new is None or old.metadata.generation != new.metadata.generation:
        yield change.obj.key
    if new is None:
        for pod in (*controlled_by(caches[PODS], change.obj), *_selected_orphans(caches, change.obj)):
            if is_tracked(pod):
                yield tracking.orphan_key(pod)


def _selected_orphans(caches: Caches, job: Job) -> Iterable[Pod]:
    """The pods without a controller that a Job selects: pods it left behind."""
    return [pod for pod in orphans_in(caches[PODS], job.metadata.namespace) if selects(job, pod)]


def _enqueue_same_spec(caches: Caches, change: Change[Job]) -> Iterator[Key]:
    """Enqueues a Job whose status or metadata changed."""
    old, new = change.old, change.new
    if old is not None and new is not None and old.metadata.generation == new.metadata.generation:
        yield new.key


def configure(settings: Settings) -> Controller[Seen | Pod]:
    config = Config(
        clear_start_time=settings.enabled("MutableSchedulingDirectivesForSuspendedJobs"),
        managed_by=settings.enabled("JobManagedBy"),
        pod_replacement_policy=settings.enabled("JobPodReplacementPolicy"),
    )

    def measure(caches: Caches, change: Change[Job]) -> Iterator[Measure]:
        return measure_job(caches, Change(config.gated(change.old), config.gated(change.new)))

    return Controller(
        name="job-controller",
        aliases=("job",),
        service_account="job-controller",
        watches=(
            Watch(JOBS, to=_enqueue_new_spec, measures=measure),
            Watch(JOBS, to=_enqueue_same_spec, delay=BATCH_PERIOD),
            Watch(PODS, to=enqueue_owner(JOBS, selects), delay=BATCH_PERIOD, indexes=CONTROLLED),
            Watch(PODS, to=tracking.enqueue_orphan, measures=measure_pod),
        ),
        workers=Flag("concurrent-job-syncs", 5),
        observe=partial(observe, config=config),
        decide=partial(decide, config=config),
        configure=configure,
        memory=FailureMemory,
        min_backoff=MIN_BACKOFF,
        max_backoff=MAX_BACKOFF,
        metrics=METRICS,
    )


controller = configure(DEFAULTS)
