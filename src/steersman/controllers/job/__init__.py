"""job (a decision): run pods until enough of them have succeeded.

A round counts, decides whether this is the end, makes pods more or fewer, and writes it all down in an order
that nothing is lost of if it breaks off anywhere: see `counting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial

import msgspec
from msgspec.structs import replace

from steersman.api.kinds import JOBS, PODS, Job, JobStatus, Pod
from steersman.api.meta import truncate
from steersman.api.scheme import Key
from steersman.controllers.job import orphan_pods
from steersman.controllers.job.backoff import NOT_AT_ALL, Streak, Streaks
from steersman.controllers.job.counting import NONE, tally, without
from steersman.controllers.job.ending import Ending, completed, condition, ending, ensure, time_left
from steersman.controllers.job.metrics import METRICS, of_job, of_pod, sync
from steersman.controllers.job.pods import FINALIZER, is_tracked
from steersman.controllers.job.scaling import Scaled, carry_out, end, plan
from steersman.controllers.job.spec import is_finished, is_managed_elsewhere, is_suspended
from steersman.controllers.job.tracking import foretold, track
from steersman.controllers.shared.controller_ref import claim
from steersman.controllers.shared.enqueue_owner import enqueue_owner
from steersman.controllers.shared.indexes import CONTROLLED, controlled_by, orphans_in
from steersman.controllers.shared.selectors import selector_of, selects
from steersman.intent.actions import Emit, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict, Wake

PERIOD = 1.0
"""Seconds from a change of a pod, or of a status, to the look at it: what changes meanwhile is one write."""
PATIENCE = 60.0
"""The longest a Job whose rounds fail waits for the next, in seconds; upstream's MaxJobApiBackOff."""
MODES = (None, "", "NonIndexed", "Indexed")


class Seen(msgspec.Struct, frozen=True):
    job: Job
    owned: tuple[Pod, ...]
    """The pods it controls."""
    orphans: tuple[Pod, ...]
    """The pods of the namespace that have no controller."""
    streak: Streak = Streak()
    """What is known of its failures, also of pods that are gone."""


def observe(caches: Caches, key: Key) -> Seen | Pod | None:
    if key.name.startswith(orphan_pods.POD):
        pod = caches[PODS].get(Key(key.namespace, key.name.removeprefix(orphan_pods.POD)))
        return pod if pod is not None and orphan_pods.is_stray(caches, pod) else None
    streaks = memory_of(caches, Streaks)
    job = caches[JOBS].get(key)
    if job is None or is_finished(job):
        streaks.forget(key)
    if job is None:
        return None
    owned = tuple(controlled_by(caches[PODS], job))
    if is_finished(job) or is_managed_elsewhere(job):
        return Seen(job, owned, ())
    return Seen(job, owned, tuple(orphans_in(caches[PODS], key.namespace)), streaks.note(job, owned))


class Config(msgspec.Struct, frozen=True):
    """The controller's feature gates."""

    clear_start_time: bool = True
    """Whether suspending a Job removes ``status.startTime``."""


async def decide(seen: Seen | Pod, now: datetime, config: Config = Config()) -> Verdict:
    if not isinstance(seen, Seen):
        return await orphan_pods.release(seen)
    job = seen.job
    if is_managed_elsewhere(job):
        return Rest(f"is managed by {job.spec.managedBy}")
    if is_finished(job):
        for pod in filter(is_tracked, seen.owned):
            await orphan_pods.release(pod)
        return Rest("is finished")
    if job.spec.completionMode not in MODES:
        message = "Skipped Job sync because completion mode is unknown"
        await Emit(job, "Warning", "UnknownCompletionMode", message)
        return Rest("nobody knows its completion mode")
    try:
        selector = selector_of(job)
    except ValueError as error:
        return Rest(f"cannot act: the selector is not usable: {error}")
    async with sync(job) as timed:
        owned = await claim(
            job, seen.owned, seen.orphans, lambda pod: selector.matches(pod.metadata.labels), (FINALIZER,)
        )
        return await _run(job, owned, seen.streak, now, timed.labels, config)


async def _run(
    job: Job, owned: list[Pod], streak: Streak, now: datetime, labels: dict[str, str], config: Config
) -> Verdict:
    """One step on the way of a Job that is not finished."""
    counts = tally(job, owned)
    status = _started(job, now)
    finish = ending(counts, status.startTime, now)
    wait = NOT_AT_ALL
    if finish is not None and not finish.told and counts.active:
        # differs: upstream deletes pods first. Deleted pods count as failed, so if it died then it could find
        # another end than the one it was about to write down.
        job = await UpdateStatus(job, foretold(status, finish, now))
        counts, status = msgspec.structs.replace(counts, job=job), job.status
        finish = msgspec.structs.replace(finish, told=True)
    if finish is not None:
        scaled = await end(counts)
        if scaled.failure is not None:
            raise scaled.failure  # nothing is counted before all are on their way out
    else:
        scaled = Scaled(len(counts.active), counts.ready, counts.terminating)
        if job.metadata.deletionTimestamp is None:
            todo = plan(counts, streak, now)
            wait = todo.wait
            labels["action"] = "pods_deleted" if is_suspended(job) else todo.deed
            scaled = await carry_out(counts, todo)
            counts = without(counts, todo.remove)
        finish = completed(counts, scaled.active)
        if finish is None and job.metadata.deletionTimestamp is None:
            status = await _suspended_or_resumed(job, status, now, config)
    status = replace(status, active=scaled.active, ready=scaled.ready, terminating=scaled.terminating)
    if await track(counts, status, finish, scaled.terminating, now):
        return Rest("has ended")
    if scaled.failure is not None:
        raise scaled.failure
    return _verdict(job, status, finish, wait, now)


def _started(job: Job, now: datetime) -> JobStatus:
    """The status to begin with: a Job that is not suspended has started."""
    status = job.status
    if status.uncountedTerminatedPods is None:
        status = replace(status, uncountedTerminatedPods=NONE)
    if status.startTime is None and not is_suspended(job):
        status = replace(status, startTime=truncate(now))
    return status


async def _suspended_or_resumed(job: Job, status: JobStatus, now: datetime, config: Config) -> JobStatus:
    """Say whether it is suspended, where that is new. The clock of its deadline starts anew with it."""
    if is_suspended(job):
        word, new = "Suspended", condition("Suspended", "JobSuspended", "Job suspended", now)
        at = None if config.clear_start_time else status.startTime
    else:
        new = condition("Suspended", "JobResumed", "Job resumed", now, status="False")
        word, at = "Resumed", truncate(now)
    conditions = ensure(status.conditions, new)
    if conditions == status.conditions:
        return status
    await Emit(job, "Normal", word, new.message)
    return replace(status, conditions=conditions, startTime=at)


def _verdict(job: Job, status: JobStatus, finish: Ending | None, wait: timedelta, now: datetime) -> Verdict:
    counted = f"{status.active} active, {status.succeeded} succeeded, {status.failed} failed"
    if finish is not None:
        return Rest(f"is about to end ({finish.reason}); {status.terminating} pods are still to go")
    left = time_left(job, status.startTime, now)
    if wait > NOT_AT_ALL and (left is None or wait < left):
        return Wake(max(wait, timedelta(seconds=PERIOD)), f"backs off after failures; {counted}")
    if left is not None:
        return Wake(left, f"has a deadline; {counted}")
    return Rest("is suspended" if is_suspended(job) else counted)


# -- when to look ---------------------------------------------------------------------------------


def _job_wants_other(caches: Caches, change: Change[Job]) -> Iterator[Key]:
    """A Job that is new, gone, or wants something else is looked at at once."""
    old, new = change.old, change.new
    if old is None or new is None or old.metadata.generation != new.metadata.generation:
        yield change.obj.key
    if new is None:
        for pod in (*controlled_by(caches[PODS], change.obj), *_selected(caches, change.obj)):
            if is_tracked(pod):
                yield orphan_pods.key_of(pod)


def _selected(caches: Caches, job: Job) -> Iterable[Pod]:
    """The pods a Job has left behind that no longer say so."""
    return [pod for pod in orphans_in(caches[PODS], job.metadata.namespace) if selects(job, pod)]


def _job_changed(caches: Caches, change: Change[Job]) -> Iterator[Key]:
    """Whatever else changes can wait a moment."""
    old, new = change.old, change.new
    if old is not None and new is not None and old.metadata.generation == new.metadata.generation:
        yield new.key


def _stray(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    return orphan_pods.suspects(caches, change.new) if change.new is not None else ()


def configure(settings: Settings) -> Controller[Seen | Pod]:
    config = Config(clear_start_time=settings.enabled("MutableSchedulingDirectivesForSuspendedJobs"))
    return Controller(
        name="job-controller",
        aliases=("job",),
        service_account="job-controller",
        watches=(
            Watch(JOBS, to=_job_wants_other, measures=of_job),
            Watch(JOBS, to=_job_changed, delay=PERIOD),
            Watch(PODS, to=enqueue_owner(JOBS, selects), delay=PERIOD, indexes=CONTROLLED),
            Watch(PODS, to=_stray, measures=of_pod),
        ),
        workers=Flag("concurrent-job-syncs", 5),
        observe=observe,
        decide=partial(decide, config=config),
        configure=configure,
        memory=Streaks,
        max_backoff=PATIENCE,
        metrics=METRICS,
    )


controller = configure(DEFAULTS)
