"""cronjob (a dialogue): a Job for every time of a schedule.

Jobs are named for the time they stand for, so no time gets two. What was missed while nobody looked is made
up for once, and only the latest of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from steersman.api.conditions import is_true
from steersman.api.cron import Every, Schedule, Unparseable, parse, zone_of
from steersman.api.errors import AlreadyExists, ApiError, NotFound
from steersman.api.kinds import JOBS, Job, ObjectMeta
from steersman.api.kinds.cronjobs import CRONJOBS, NEW_JOBS, CronJob, NewJob, ObjectReference
from steersman.api.meta import controller_of, is_controlled_by, owner_reference
from steersman.api.scheme import Key
from steersman.controllers.cronjob.status import Draft
from steersman.controllers.cronjob.times import MANY, Due, Impossible, due, until_next
from steersman.controllers.shared.indexes import CONTROLLED, controlled_by
from steersman.intent.actions import Address, Create, Delete, Emit, Read, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Flag, Watch
from steersman.intent.metrics import Measure, Metric, exponential
from steersman.intent.verdict import Rest, Verdict, Wake

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
CHANGED = "/schedule"
"""Ends the keys of schedules that changed; no CronJob's name has a slash."""
SKEW = Metric(
    "cronjob_controller_job_creation_skew_duration_seconds",
    "How long after its time the Job of a CronJob was created",
    buckets=exponential(1, 2, 10),
    stability="STABLE",
)
FRESH = timedelta(seconds=1)


class Seen(msgspec.Struct, frozen=True):
    cron: CronJob
    jobs: tuple[Job, ...]
    """Those it controls."""
    changed: bool = False
    """Its schedule is new: only times to come count."""


def observe(caches: Caches, key: Key) -> Seen | None:
    name = key.name.removesuffix(CHANGED)
    cron = caches[CRONJOBS].get(Key(key.namespace, name))
    if cron is None:
        return None
    return Seen(cron, tuple(controlled_by(caches[JOBS], cron)), name != key.name)


def finished(job: Job) -> str:
    """How a job ended: ``Complete``, ``Failed``, or empty where it has not."""
    for type_ in ("Complete", "Failed"):
        if is_true(job.status.conditions, type_):
            return type_
    return ""


def job_name(cron: CronJob, at: datetime) -> str:
    return f"{cron.metadata.name}-{int(at.timestamp()) // 60}"


async def decide(seen: Seen, now: datetime) -> Verdict:
    cron = seen.cron
    if seen.changed and (rest := _not_yet(cron, now)) is not None:
        return rest
    draft = Draft(cron.status)
    failure: ApiError | None = None
    verdict: Verdict = Rest("")
    await _forget_finished(seen, draft)
    try:
        verdict = await _keep(seen, draft, now)
    except ApiError as error:
        failure = error
    if draft.changed:
        await UpdateStatus(cron, draft.status())
    if failure is not None:
        raise failure
    return verdict


def _not_yet(cron: CronJob, now: datetime) -> Verdict | None:
    """A schedule that is new begins with its next time, not with those of the past it would have had."""
    try:
        schedule = _parsed(cron)
        found = due(cron, schedule, now, deadline=False)
        if found.latest is not None and now - found.latest <= FRESH:
            return None
        following = schedule.next(now)
    except (Unparseable, LookupError, Impossible):
        return None
    if following is None:
        return None
    return Wake(until_next(cron, schedule, now), "its schedule has changed")


# -- what has become of its jobs ------------------------------------------------------------------


async def _keep(seen: Seen, draft: Draft, now: datetime) -> Verdict:
    cron = seen.cron
    for job in seen.jobs:
        await _account(cron, job, draft)
    known = {job.metadata.uid for job in seen.jobs}
    for reference in draft.active:
        if reference.uid not in known:
            try:
                await Read(Address(JOBS, reference.namespace, reference.name))
            except NotFound:
                await Emit(cron, "Normal", "MissingJob", f"Active job went missing: {reference.name}")
                draft.drop(reference.uid)
    if cron.metadata.deletionTimestamp is not None:
        return Rest("is going away")
    return await _start(cron, draft, now)


async def _account(cron: CronJob, job: Job, draft: Draft) -> None:
    """Note what one job means for the status."""
    ended = finished(job)
    uid, name = job.metadata.uid, job.metadata.name
    if not ended:
        if draft.has(uid):
            return
        live = await Read(cron)
        if any(reference.uid == uid for reference in live.status.active):
            draft.renew(live.status)
            return
        message = f"Saw a job that the controller did not create or forgot: {name}"
        await Emit(cron, "Warning", "UnexpectedJob", message)
        return
    if draft.has(uid):
        draft.drop(uid)
        message = f"Saw completed job: {name}, condition: {ended}"
        await Emit(cron, "Normal", "SawCompletedJob", message)
    if ended == "Complete":
        draft.succeeded(job.status.completionTime)


async def _forget_finished(seen: Seen, draft: Draft) -> None:
    """Keep only so many of those that ended, the youngest."""
    spec = seen.cron.spec
    for ending, limit in (
        ("Complete", spec.successfulJobsHistoryLimit),
        ("Failed", spec.failedJobsHistoryLimit),
    ):
        if limit is None:
            continue
        jobs = sorted((job for job in seen.jobs if finished(job) == ending), key=_age)
        for job in jobs[: max(0, len(jobs) - limit)]:
            await _delete(seen.cron, job, draft)


def _age(job: Job) -> tuple[bool, float, str]:
    started = job.status.startTime
    return (started is None, started.timestamp() if started is not None else 0.0, job.metadata.name)


async def _delete(cron: CronJob, job: Job, draft: Draft) -> bool:
    try:
        await Delete(job, propagation="Background")
    except ApiError as error:
        await Emit(cron, "Warning", "FailedDelete", f"Deleted job: {error.message}")
        return False
    draft.drop(job.metadata.uid)
    await Emit(cron, "Normal", "SuccessfulDelete", f"Deleted job {job.metadata.name}")
    return True


# -- what is due ----------------------------------------------------------------------------------


def _parsed(cron: CronJob) -> Schedule | Every:
    own = "TZ" in cron.spec.schedule
    return parse(cron.spec.schedule, "" if own else cron.spec.timeZone or "")


async def _start(cron: CronJob, draft: Draft, now: datetime) -> Verdict:
    spec = cron.spec
    if spec.timeZone is not None:
        try:
            zone_of(spec.timeZone)
        except LookupError as error:
            message = f"invalid timeZone: {_quoted(spec.timeZone)}: {error.args[0]}"
            await Emit(cron, "Warning", "UnknownTimeZone", message)
            return Rest("nobody knows its time zone")
    if spec.suspend:
        return Rest("is suspended")
    if "TZ" in spec.schedule:
        message = (
            f"CRON_TZ or TZ used in schedule {_quoted(spec.schedule)} is not officially supported, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )
        await Emit(cron, "Warning", "UnsupportedSchedule", message)
    try:
        schedule = _parsed(cron)
    except (Unparseable, LookupError) as error:
        message = f"unparseable schedule: {_quoted(spec.schedule)} : {error.args[0]}"
        await Emit(cron, "Warning", "UnparseableSchedule", message)
        return Rest("its schedule cannot be read")
    try:
        found = due(cron, schedule, now)
    except Impossible as error:
        await Emit(cron, "Warning", "InvalidSchedule", f"invalid schedule: {spec.schedule} : {error}")
        return Rest("its schedule makes no sense")
    if found.latest is None:
        return Wake(until_next(cron, schedule, now), "nothing is due before")
    return await _due(cron, draft, schedule, found, now)


async def _due(cron: CronJob, draft: Draft, schedule: Schedule | Every, found: Due, now: datetime) -> Verdict:
    spec, at = cron.spec, found.latest
    assert at is not None
    pause = until_next(cron, schedule, now)
    if found.missed > MANY:
        message = (
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        )
        await Emit(cron, "Warning", "TooManyMissedTimes", message)
    patience = spec.startingDeadlineSeconds
    if patience is not None and at + timedelta(seconds=patience) < now:
        when = at.strftime("%a, %d %b %Y %H:%M:%S +0000")
        await Emit(cron, "Warning", "MissSchedule", f"Missed scheduled time to start a job: {when}")
        return Wake(pause, "it is too late for the last one")
    name = job_name(cron, at)
    if cron.status.lastScheduleTime == at or any(one.name == name for one in draft.active):
        return Wake(pause, "the last one was started already")
    if spec.concurrencyPolicy == "Forbid" and draft.active:
        message = "Not starting job because prior execution is running and concurrency policy is Forbid"
        await Emit(cron, "Normal", "JobAlreadyActive", message)
        return Wake(pause, "the one before still runs")
    if spec.concurrencyPolicy == "Replace":
        await _replace(cron, draft)
    job = await _create(cron, at)
    if job is None:
        return Rest("its name is taken by somebody else's job")
    if draft.has(job.metadata.uid):
        return Rest("was started already")
    draft.started(_reference(job), at)
    started = draft.status()
    return Wake(until_next(_with(cron, started.lastScheduleTime), schedule, now), "the next one is due then")


def _with(cron: CronJob, last: datetime | None) -> CronJob:
    return msgspec.structs.replace(cron, status=msgspec.structs.replace(cron.status, lastScheduleTime=last))


async def _replace(cron: CronJob, draft: Draft) -> None:
    """End what still runs: its time is over."""
    for reference in draft.active:
        try:
            job = await Read(Address(JOBS, reference.namespace, reference.name))
        except ApiError as error:
            await Emit(cron, "Warning", "FailedGet", f"Get job: {error.message}")
            raise
        if not await _delete(cron, job, draft):
            raise ApiError(f"could not replace job {reference.namespace}/{reference.name}")


async def _create(cron: CronJob, at: datetime) -> Job | None:
    """The job of a time; None where its name is somebody else's."""
    template = cron.spec.jobTemplate
    local = at.astimezone(zone_of(cron.spec.timeZone or ""))
    stamp = local.isoformat().replace("+00:00", "Z")
    namespace = cron.metadata.namespace
    body = NewJob(
        metadata=ObjectMeta(
            name=job_name(cron, at),
            namespace=namespace,
            labels=template.metadata.labels,
            annotations={**template.metadata.annotations, SCHEDULED: stamp},
            ownerReferences=(owner_reference(cron, CRONJOBS),),
        ),
        spec=template.spec,
    )
    try:
        made = await Create(NEW_JOBS, namespace, body)
    except AlreadyExists:
        # differs: upstream looks for it in no namespace, finds nothing, and tries again for ever.
        job = await Read(Address(JOBS, namespace, body.metadata.name))
        return job if is_controlled_by(job, cron) else None
    except ApiError as error:
        if not error.caused_by("NamespaceTerminating"):
            await Emit(cron, "Warning", "FailedCreate", f"Error creating job: {error.message}")
        raise
    if made.metadata.creationTimestamp is not None:
        await Measure(SKEW, (made.metadata.creationTimestamp - at).total_seconds())
    await Emit(cron, "Normal", "SuccessfulCreate", f"Created job {made.metadata.name}")
    return Job(metadata=made.metadata)


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


# -- when to look ---------------------------------------------------------------------------------


def _rescheduled(caches: Caches, change: Change[CronJob]) -> Iterable[Key]:
    key = change.obj.key
    old, new = change.old, change.new
    if old is not None and new is not None:
        before, after = old.spec, new.spec
        if (before.schedule, before.timeZone) != (after.schedule, after.timeZone):
            return (Key(key.namespace, key.name + CHANGED),)
    return (key,)


def _owner(caches: Caches, change: Change[Job]) -> Iterable[Key]:
    for job in (change.old, change.new):
        reference = controller_of(job) if job is not None else None
        if reference is not None and reference.kind == CRONJOBS.name:
            cron = caches[CRONJOBS].get(Key(change.obj.metadata.namespace, reference.name))
            if cron is not None and cron.metadata.uid == reference.uid:
                yield cron.key
                return


controller = Controller(
    name="cronjob-controller",
    aliases=("cronjob",),
    service_account="cronjob-controller",
    watches=(Watch(CRONJOBS, to=_rescheduled), Watch(JOBS, to=_owner, indexes=CONTROLLED)),
    workers=Flag("concurrent-cron-job-syncs", 5),
    observe=observe,
    decide=decide,
    metrics=(SKEW,),
)
