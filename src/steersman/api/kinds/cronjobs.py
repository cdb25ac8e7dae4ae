"""Views of CronJobs."""

from __future__ import annotations

from datetime import datetime

from steersman.api.kinds import JOBS, Object, ObjectMeta, ObjectReference, Opaque, Struct
from steersman.api.scheme import Kind, register


class JobTemplateSpec(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Opaque = Opaque(b"{}")


class NewJob(Struct, frozen=True):
    """A Job as the controller creates it: its own metadata, and the template's spec unchanged."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Opaque = Opaque(b"{}")


class CronJobSpec(Struct, frozen=True):
    schedule: str = ""
    timeZone: str | None = None
    startingDeadlineSeconds: int | None = None
    concurrencyPolicy: str = ""
    suspend: bool | None = None
    jobTemplate: JobTemplateSpec = JobTemplateSpec()
    successfulJobsHistoryLimit: int | None = None
    failedJobsHistoryLimit: int | None = None


class CronJobStatus(Struct, frozen=True):
    active: tuple[ObjectReference, ...] = ()
    lastScheduleTime: datetime | None = None
    lastSuccessfulTime: datetime | None = None


class CronJob(Object, frozen=True):
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


CRONJOBS = register(Kind("batch", "v1", "CronJob", "cronjobs", True, CronJob))
NEW_JOBS = register(JOBS.as_(NewJob))
