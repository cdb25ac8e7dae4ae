"""ttl-after-finished (a dialogue): delete a finished Job once its TTL has passed."""

from __future__ import annotations

from datetime import datetime, timedelta

from steersman.api.errors import NotFound
from steersman.api.kinds import JOBS, Job
from steersman.intent.actions import Delete, Measure, ReadLive
from steersman.intent.controller import Controller, Flag, Watch
from steersman.intent.metrics import Metric, exponential
from steersman.intent.verdict import Nonsense, Rest, Verdict, Wake

FINISHED = ("Complete", "Failed")
LATE = Metric(
    "ttl_after_finished_controller_job_deletion_duration_seconds",
    "How long after its time a finished Job was deleted",
    buckets=exponential(0.1, 2, 14),
)


def expiry(job: Job) -> datetime | None:
    """When the job may go, or None if it is not ours to clean up."""
    ttl = job.spec.ttlSecondsAfterFinished
    if ttl is None or job.metadata.deletionTimestamp is not None:
        return None
    for condition in job.status.conditions:
        if condition.type in FINISHED and condition.status == "True":
            if condition.lastTransitionTime is None:
                raise Nonsense(f"unable to find the time when the Job {job.key} finished")
            return condition.lastTransitionTime + timedelta(seconds=ttl)
    return None


async def decide(job: Job, now: datetime) -> Verdict:
    due = expiry(job)
    if due is None:
        return Rest("not finished, has no TTL, or is going already")
    if now < due:
        return Wake(due - now, "TTL runs")
    try:
        # The cache may lag behind a TTL that was raised to keep the job.
        fresh = await ReadLive(job)
    except NotFound:
        return Rest("already gone")
    due = expiry(fresh)
    if due is None:
        return Rest("no longer ours to delete: it has changed since")
    if now < due:
        return Wake(due - now, "TTL was raised")
    # `exact`, where upstream checks the uid alone: a TTL raised after our look is respected too.
    await Delete(fresh, propagation="Foreground", exact=True)
    await Measure(LATE, (now - due).total_seconds())
    return Rest("expired and deleted")


controller = Controller(
    name="ttl-after-finished-controller",
    aliases=("ttl-after-finished",),
    watches=(Watch(JOBS),),
    workers=Flag("concurrent-ttl-after-finished-syncs", 5),
    decide=decide,
    metrics=(LATE,),
)
