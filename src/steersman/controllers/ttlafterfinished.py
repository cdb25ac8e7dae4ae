"""ttl-after-finished-controller (a dialogue): deletes a finished Job once its ``ttlSecondsAfterFinished`` has passed."""

from __future__ import annotations

from datetime import datetime, timedelta

from steersman.api.errors import NotFound
from steersman.api.kinds import JOBS, Job
from steersman.intent.actions import Delete, Read
from steersman.intent.controller import Controller, Flag, Watch
from steersman.intent.metrics import Measure, Metric, exponential
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake

FINISHED = ("Complete", "Failed")
DELETION_DELAY = Metric(
    "ttl_after_finished_controller_job_deletion_duration_seconds",
    "Seconds from the expiry of a finished Job to its deletion",
    buckets=exponential(0.1, 2, 14),
)


def expiry(job: Job) -> datetime | None:
    """When the Job's TTL expires; None where it has no TTL, is not finished, or is being deleted."""
    ttl = job.spec.ttlSecondsAfterFinished
    if ttl is None or job.metadata.deletionTimestamp is not None:
        return None
    for condition in job.status.conditions:
        if condition.type in FINISHED and condition.status == "True":
            if condition.lastTransitionTime is None:
                raise InvalidSpec(f"unable to find the time when the Job {job.key} finished")
            return condition.lastTransitionTime + timedelta(seconds=ttl)
    return None


async def decide(job: Job, now: datetime) -> Verdict:
    due = expiry(job)
    if due is None:
        return Rest("no ttlSecondsAfterFinished, not finished, or already being deleted")
    if now < due:
        return Wake(due - now, "waiting for ttlSecondsAfterFinished")
    try:
        # The cache may lag behind a TTL that was raised to keep the Job.
        fresh = await Read(job)
    except NotFound:
        return Rest("Job already deleted")
    due = expiry(fresh)
    if due is None:
        return Rest("Job changed and is no longer due for deletion")
    if now < due:
        return Wake(due - now, "ttlSecondsAfterFinished was raised")
    # differs: upstream checks the uid alone. With `exact`, a TTL raised after the read is respected too.
    await Delete(fresh, propagation="Foreground", exact=True)
    await Measure(DELETION_DELAY, (now - due).total_seconds())
    return Rest("TTL expired, Job deleted")


controller = Controller(
    name="ttl-after-finished-controller",
    aliases=("ttl-after-finished",),
    watches=(Watch(JOBS),),
    workers=Flag("concurrent-ttl-after-finished-syncs", 5),
    decide=decide,
    metrics=(DELETION_DELAY,),
)
