"""The status of a CronJob while a round works on it."""

from __future__ import annotations

from datetime import datetime

from steersman.api.kinds.cronjobs import CronJobStatus, ObjectReference


class Draft:
    """Starts as what the status is; becomes what it should be."""

    def __init__(self, status: CronJobStatus) -> None:
        self._before = status
        self._active = {one.uid: one for one in status.active}
        self._last = status.lastScheduleTime
        self._success = status.lastSuccessfulTime

    @property
    def active(self) -> tuple[ObjectReference, ...]:
        return tuple(self._active.values())

    def has(self, uid: str) -> bool:
        return uid in self._active

    def drop(self, uid: str) -> None:
        """A job that runs no longer."""
        self._active.pop(uid, None)

    def renew(self, status: CronJobStatus) -> None:
        """The cache was behind: this is what the status is."""
        self._active = {one.uid: one for one in status.active}
        self._last, self._success = status.lastScheduleTime, status.lastSuccessfulTime

    def succeeded(self, at: datetime | None) -> None:
        if at is not None and (self._success is None or at > self._success):
            self._success = at

    def started(self, job: ObjectReference, at: datetime) -> None:
        self._active[job.uid] = job
        self._last = at

    @property
    def changed(self) -> bool:
        before = self._before
        then = ([one.uid for one in before.active], before.lastScheduleTime, before.lastSuccessfulTime)
        return (list(self._active), self._last, self._success) != then

    def status(self) -> CronJobStatus:
        return CronJobStatus(
            active=self.active, lastScheduleTime=self._last, lastSuccessfulTime=self._success
        )
