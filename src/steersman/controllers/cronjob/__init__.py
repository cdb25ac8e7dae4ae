"""cronjob-controller (a dialogue): creates a Job for every scheduled time.

A Job is named for its scheduled time, so no time gets two. Of the times missed while the controller was down only the
latest is made up for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from steersman.api.cron import ConstantDelaySchedule, Schedule, ScheduleSyntaxError, time_zone
from steersman.api.errors import AlreadyExists, ApiError
from steersman.api.kinds import JOBS, Job, ObjectMeta, ObjectReference
from steersman.api.kinds.cronjobs import CRONJOBS, NEW_JOBS, CronJob, NewJob
from steersman.api.meta import controller_of, is_controlled_by, owner_reference
from steersman.api.scheme import Key
from steersman.controllers.cronjob.schedule import (
    TOO_MANY_MISSED,
    Due,
    InvalidSchedule,
    most_recent_due,
    schedule_of,
    until_next,
)
from steersman.controllers.cronjob.status import StatusDraft, cleanup_finished_jobs, delete_job, sync_jobs
from steersman.controllers.shared.controller_ref import resolve_controller_ref
from steersman.controllers.shared.indexes import CONTROLLED, controlled_by
from steersman.intent.actions import Address, Create, Emit, Read, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Flag, Watch
from steersman.intent.metrics import Measure, Metric, exponential
from steersman.intent.verdict import Rest, Verdict, Wake

SCHEDULED_TIMESTAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp"
CREATION_SKEW = Metric(
    "cronjob_controller_job_creation_skew_duration_seconds",
    "Seconds from the scheduled time of a Job to its creation",
    buckets=exponential(1, 2, 10),
    stability="STABLE",
)

# -- observe --------------------------------------------------------------------------------------


class Seen(msgspec.Struct, frozen=True):
    """A CronJob and its Jobs at one instant."""

    cron: CronJob
    jobs: tuple[Job, ...]
    """The Jobs it controls."""


def observe(caches: Caches, key: Key) -> Seen | None:
    cron = caches[CRONJOBS].get(key)
    return None if cron is None else Seen(cron, tuple(controlled_by(caches[JOBS], cron)))


# -- decide ---------------------------------------------------------------------------------------


async def decide(seen: Seen, now: datetime) -> Verdict:
    draft = StatusDraft(seen.cron)
    failure: ApiError | None = None
    verdict: Verdict = Rest("")
    await cleanup_finished_jobs(seen.jobs, draft)
    try:
        verdict = await _sync(seen.jobs, draft, now)
    except ApiError as error:
        failure = error
    if draft.changed:
        await UpdateStatus(draft.cron, draft.status())
    if failure is not None:
        raise failure
    return verdict


async def _sync(jobs: tuple[Job, ...], draft: StatusDraft, now: datetime) -> Verdict:
    await sync_jobs(jobs, draft)
    cron, spec = draft.cron, draft.cron.spec
    if cron.metadata.deletionTimestamp is not None:
        return Rest("being deleted")
    if spec.timeZone is not None:
        try:
            time_zone(spec.timeZone)
        except LookupError as error:
            message = f"invalid timeZone: {_quoted(spec.timeZone)}: {error.args[0]}"
            await Emit(cron, "Warning", "UnknownTimeZone", message)
            return Rest("unknown timeZone")
    if spec.suspend:
        return Rest("suspended")
    if "TZ" in spec.schedule:
        message = (
            f"CRON_TZ or TZ used in schedule {_quoted(spec.schedule)} is not officially supported, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )
        await Emit(cron, "Warning", "UnsupportedSchedule", message)
    try:
        schedule = schedule_of(cron)
    except (ScheduleSyntaxError, LookupError) as error:
        message = f"unparseable schedule: {_quoted(spec.schedule)} : {error.args[0]}"
        await Emit(cron, "Warning", "UnparseableSchedule", message)
        return Rest("unparseable schedule")
    try:
        due = most_recent_due(cron, schedule, now)
    except InvalidSchedule as error:
        await Emit(cron, "Warning", "InvalidSchedule", f"invalid schedule: {spec.schedule} : {error}")
        return Rest("invalid schedule")
    if due.latest is None:
        return Wake(until_next(cron, schedule, now), "waiting for the next scheduled time")
    return await _start(draft, schedule, due, due.latest, now)


async def _start(
    draft: StatusDraft,
    schedule: Schedule | ConstantDelaySchedule,
    due: Due,
    at: datetime,
    now: datetime,
) -> Verdict:
    """Starts the Job of the scheduled time ``at``, unless it is too late or the concurrencyPolicy forbids it."""
    cron, spec = draft.cron, draft.cron.spec
    pause = until_next(cron, schedule, now)
    if due.missed > TOO_MANY_MISSED:
        message = (
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        )
        await Emit(cron, "Warning", "TooManyMissedTimes", message)
    seconds = spec.startingDeadlineSeconds
    if seconds is not None and at + timedelta(seconds=seconds) < now:
        when = at.strftime("%a, %d %b %Y %H:%M:%S +0000")
        await Emit(cron, "Warning", "MissSchedule", f"Missed scheduled time to start a job: {when}")
        return Wake(pause, "startingDeadlineSeconds exceeded; waiting for the next scheduled time")
    name = job_name(cron, at)
    if cron.status.lastScheduleTime == at or any(job.name == name for job in draft.active):
        return Wake(pause, "Job already started; waiting for the next scheduled time")
    if spec.concurrencyPolicy == "Forbid" and draft.active:
        message = "Not starting job because prior execution is running and concurrency policy is Forbid"
        await Emit(cron, "Normal", "JobAlreadyActive", message)
        return Wake(pause, "concurrencyPolicy Forbid: the previous Job is still active")
    if spec.concurrencyPolicy == "Replace":
        await _delete_active(draft)
    job = await _create(cron, at)
    if job is None:
        return Rest(f"Job {name} exists with another owner")
    if draft.is_active(job.metadata.uid):
        return Rest("Job already started")
    draft.add_started(_reference(job), at)
    started = _with_last_schedule(cron, draft.status().lastScheduleTime)
    return Wake(until_next(started, schedule, now), "Job started; waiting for the next scheduled time")


def _with_last_schedule(cron: CronJob, last: datetime | None) -> CronJob:
    return msgspec.structs.replace(cron, status=msgspec.structs.replace(cron.status, lastScheduleTime=last))


async def _delete_active(draft: StatusDraft) -> None:
    """Deletes the active Jobs, for concurrencyPolicy Replace."""
    for reference in draft.active:
        try:
            job = await Read(Address(JOBS, reference.namespace, reference.name))
        except ApiError as error:
            await Emit(draft.cron, "Warning", "FailedGet", f"Get job: {error.message}")
            raise
        if not await delete_job(job, draft):
            raise ApiError(f"could not replace job {reference.namespace}/{reference.name}")


# -- jobs -----------------------------------------------------------------------------------------


def job_name(cron: CronJob, at: datetime) -> str:
    """The name of the Job for a scheduled time."""
    return f"{cron.metadata.name}-{int(at.timestamp()) // 60}"


async def _create(cron: CronJob, at: datetime) -> Job | None:
    """Creates the Job of a scheduled time, or finds it; None where its name belongs to a Job of another owner."""
    template = cron.spec.jobTemplate
    local = at.astimezone(time_zone(cron.spec.timeZone or ""))
    stamp = local.isoformat().replace("+00:00", "Z")
    namespace = cron.metadata.namespace
    body = NewJob(
        metadata=ObjectMeta(
            name=job_name(cron, at),
            namespace=namespace,
            labels=template.metadata.labels,
            annotations={**template.metadata.annotations, SCHEDULED_TIMESTAMP: stamp},
            ownerReferences=(owner_reference(cron, CRONJOBS),),
        ),
        spec=template.spec,
    )
    try:
        created = await Create(NEW_JOBS, namespace, body)
    except AlreadyExists:
        # differs: upstream looks for it in no namespace, finds nothing, and tries again for ever.
        job = await Read(Address(JOBS, namespace, body.metadata.name))
        return job if is_controlled_by(job, cron) else None
    except ApiError as error:
        if not error.caused_by("NamespaceTerminating"):
            await Emit(cron, "Warning", "FailedCreate", f"Error creating job: {error.message}")
        raise
    if created.metadata.creationTimestamp is not None:
        await Measure(CREATION_SKEW, (created.metadata.creationTimestamp - at).total_seconds())
    await Emit(cron, "Normal", "SuccessfulCreate", f"Created job {created.metadata.name}")
    return Job(metadata=created.metadata)


def _reference(job: Job) -> ObjectReference:
    meta = job.metadata
    return ObjectReference(
        apiVersion=JOBS.api_version,
        kind=JOBS.name,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resourceVersion=meta.resourceVersion,
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# -- declaration ----------------------------------------------------------------------------------


def _until_enqueued(change: Change[CronJob], now: datetime) -> float:
    """Seconds until a changed CronJob is enqueued: a new schedule begins with its next time, not with times in the past.

    A round that was due earlier by the old schedule stays due.
    """
    old, new = change.old, change.new
    if old is None or new is None:
        return 0.0
    if (old.spec.schedule, old.spec.timeZone) == (new.spec.schedule, new.spec.timeZone):
        return 0.0
    try:
        return until_next(new, schedule_of(new), now).total_seconds()
    except (ScheduleSyntaxError, LookupError, InvalidSchedule):
        # differs: upstream emits UnParseableCronJobSchedule here, and runs no round that would tell of the new schedule.
        return 0.0


def _enqueue_owner(caches: Caches, change: Change[Job]) -> Iterable[Key]:
    """Enqueues the CronJob that controls a Job, or did."""
    namespace = change.obj.metadata.namespace
    for job in (change.old, change.new):
        reference = controller_of(job) if job is not None else None
        cron = resolve_controller_ref(caches[CRONJOBS], CRONJOBS, namespace, reference)
        if cron is not None:
            return (cron.key,)
    return ()


controller = Controller(
    name="cronjob-controller",
    aliases=("cronjob",),
    service_account="cronjob-controller",
    watches=(Watch(CRONJOBS, delay=_until_enqueued), Watch(JOBS, to=_enqueue_owner, indexes=CONTROLLED)),
    workers=Flag("concurrent-cron-job-syncs", 5),
    observe=observe,
    decide=decide,
    metrics=(CREATION_SKEW,),
)
