"""Status of a CronJob: its active and finished Jobs, and cleanup of finished Jobs beyond the history limits."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from steersman.api.conditions import is_condition_true
from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import JOBS, Job
from steersman.api.kinds.cronjobs import CronJob, CronJobStatus, ObjectReference
from steersman.intent.actions import Address, Delete, Emit, Read


class StatusDraft:
    """A CronJob's status while a round works on it."""

    def __init__(self, status: CronJobStatus) -> None:
        self._before = status
        self._active = {reference.uid: reference for reference in status.active}
        self._last_scheduled = status.lastScheduleTime
        self._last_successful = status.lastSuccessfulTime

    @property
    def active(self) -> tuple[ObjectReference, ...]:
        """The active Jobs."""
        return tuple(self._active.values())

    def is_active(self, uid: str) -> bool:
        return uid in self._active

    def remove(self, uid: str) -> None:
        """Removes a Job that is no longer active."""
        self._active.pop(uid, None)

    def reset(self, status: CronJobStatus) -> None:
        """Starts anew from the live status, where the cached one was outdated."""
        self._active = {reference.uid: reference for reference in status.active}
        self._last_scheduled, self._last_successful = status.lastScheduleTime, status.lastSuccessfulTime

    def add_success(self, at: datetime | None) -> None:
        """Records when a Job succeeded."""
        if at is not None and (self._last_successful is None or at > self._last_successful):
            self._last_successful = at

    def add_started(self, job: ObjectReference, at: datetime) -> None:
        """Adds a Job that was started for a scheduled time."""
        self._active[job.uid] = job
        self._last_scheduled = at

    @property
    def changed(self) -> bool:
        before = self._before
        uids = [reference.uid for reference in before.active]
        now = (list(self._active), self._last_scheduled, self._last_successful)
        return now != (uids, before.lastScheduleTime, before.lastSuccessfulTime)

    def status(self) -> CronJobStatus:
        return CronJobStatus(
            active=self.active,
            lastScheduleTime=self._last_scheduled,
            lastSuccessfulTime=self._last_successful,
        )


def finished_type(job: Job) -> str:
    """The condition a Job has finished with, ``Complete`` or ``Failed``; empty where it has not finished."""
    for type_ in ("Complete", "Failed"):
        if is_condition_true(job.status.conditions, type_):
            return type_
    return ""


async def sync_jobs(cron: CronJob, jobs: Iterable[Job], draft: StatusDraft) -> None:
    """Updates the draft from the Jobs the CronJob controls."""
    jobs = tuple(jobs)
    for job in jobs:
        await _sync_job(cron, job, draft)
    known = {job.metadata.uid for job in jobs}
    for reference in draft.active:
        if reference.uid not in known:
            try:
                await Read(Address(JOBS, reference.namespace, reference.name))
            except NotFound:
                await Emit(cron, "Normal", "MissingJob", f"Active job went missing: {reference.name}")
                draft.remove(reference.uid)


async def _sync_job(cron: CronJob, job: Job, draft: StatusDraft) -> None:
    finished = finished_type(job)
    uid, name = job.metadata.uid, job.metadata.name
    if not finished:
        if draft.is_active(uid):
            return
        live = await Read(cron)
        if any(reference.uid == uid for reference in live.status.active):
            draft.reset(live.status)
            return
        message = f"Saw a job that the controller did not create or forgot: {name}"
        await Emit(cron, "Warning", "UnexpectedJob", message)
        return
    if draft.is_active(uid):
        draft.remove(uid)
        message = f"Saw completed job: {name}, condition: {finished}"
        await Emit(cron, "Normal", "SawCompletedJob", message)
    if finished == "Complete":
        draft.add_success(job.status.completionTime)


async def cleanup_finished_jobs(cron: CronJob, jobs: Iterable[Job], draft: StatusDraft) -> None:
    """Deletes the oldest finished Jobs beyond the history limits."""
    jobs = tuple(jobs)
    for type_, limit in (
        ("Complete", cron.spec.successfulJobsHistoryLimit),
        ("Failed", cron.spec.failedJobsHistoryLimit),
    ):
        if limit is None:
            continue
        finished = sorted((job for job in jobs if finished_type(job) == type_), key=_by_start_time)
        for job in finished[: max(0, len(finished) - limit)]:
            await delete_job(cron, job, draft)


def _by_start_time(job: Job) -> tuple[bool, float, str]:
    started = job.status.startTime
    return (started is None, started.timestamp() if started is not None else 0.0, job.metadata.name)


async def delete_job(cron: CronJob, job: Job, draft: StatusDraft) -> bool:
    """Deletes a Job with its pods; returns whether that succeeded."""
    try:
        await Delete(job, propagation="Background")
    except ApiError as error:
        await Emit(cron, "Warning", "FailedDelete", f"Deleted job: {error.message}")
        return False
    draft.remove(job.metadata.uid)
    await Emit(cron, "Normal", "SuccessfulDelete", f"Deleted job {job.metadata.name}")
    return True
