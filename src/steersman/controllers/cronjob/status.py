"""Status of a CronJob: its active and finished Jobs, and cleanup of finished Jobs beyond the history limits."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from steersman.api.conditions import is_condition_true
from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import JOBS, Job, ObjectReference
from steersman.api.kinds.cronjobs import CronJob, CronJobStatus
from steersman.intent.actions import Address, Delete, Emit, Read


class StatusDraft:
    """A CronJob and its status while a round works on it."""

    def __init__(self, cron: CronJob) -> None:
        self._removed: dict[str, None] = {}
        self.reset(cron)

    @property
    def active(self) -> tuple[ObjectReference, ...]:
        """The active Jobs."""
        return tuple(self._active.values())

    def is_active(self, uid: str) -> bool:
        return uid in self._active

    def remove(self, uid: str) -> None:
        """Removes a Job that is no longer active."""
        self._removed[uid] = None
        self._active.pop(uid, None)

    def reset(self, cron: CronJob) -> None:
        """Goes on with the live CronJob, its spec and its status, where the cached one was outdated.

        The Jobs that the round has removed stay removed.
        """
        self.cron = cron
        status = cron.status
        self._active = {one.uid: one for one in status.active if one.uid not in self._removed}
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
        before = self.cron.status
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


async def sync_jobs(jobs: Iterable[Job], draft: StatusDraft) -> None:
    """Updates the draft from the Jobs the CronJob controls."""
    jobs = tuple(jobs)
    for job in jobs:
        await _sync_job(job, draft)
    known = {job.metadata.uid for job in jobs}
    for reference in draft.active:
        if reference.uid not in known:
            try:
                await Read(Address(JOBS, reference.namespace, reference.name))
            except NotFound:
                message = f"Active job went missing: {reference.name}"
                await Emit(draft.cron, "Normal", "MissingJob", message)
                draft.remove(reference.uid)


async def _sync_job(job: Job, draft: StatusDraft) -> None:
    finished = finished_type(job)
    uid, name = job.metadata.uid, job.metadata.name
    if not finished:
        if draft.is_active(uid):
            return
        live = await Read(draft.cron)
        if any(reference.uid == uid for reference in live.status.active):
            draft.reset(live)
            return
        message = f"Saw a job that the controller did not create or forgot: {name}"
        await Emit(draft.cron, "Warning", "UnexpectedJob", message)
        return
    if draft.is_active(uid):
        draft.remove(uid)
        message = f"Saw completed job: {name}, condition: {finished}"
        await Emit(draft.cron, "Normal", "SawCompletedJob", message)
    if finished == "Complete":
        draft.add_success(job.status.completionTime)


async def cleanup_finished_jobs(jobs: Iterable[Job], draft: StatusDraft) -> None:
    """Deletes the oldest finished Jobs beyond the history limits."""
    jobs, spec = tuple(jobs), draft.cron.spec
    for type_, limit in (
        ("Complete", spec.successfulJobsHistoryLimit),
        ("Failed", spec.failedJobsHistoryLimit),
    ):
        if limit is None:
            continue
        finished = sorted((job for job in jobs if finished_type(job) == type_), key=_by_start_time)
        for job in finished[: max(0, len(finished) - limit)]:
            await delete_job(job, draft)


def _by_start_time(job: Job) -> tuple[bool, float, str]:
    started = job.status.startTime
    return (started is None, started.timestamp() if started is not None else 0.0, job.metadata.name)


async def delete_job(job: Job, draft: StatusDraft) -> bool:
    """Deletes a Job with its pods; returns whether that succeeded."""
    try:
        await Delete(job, propagation="Background")
    except ApiError as error:
        await Emit(draft.cron, "Warning", "FailedDelete", f"Deleted job: {error.message}")
        return False
    draft.remove(job.metadata.uid)
    await Emit(draft.cron, "Normal", "SuccessfulDelete", f"Deleted job {job.metadata.name}")
    return True
