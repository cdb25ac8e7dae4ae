"""What is counted about Jobs, under upstream's names.

How long looks take is said by the look itself; what became of Jobs and pods is read off their changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.kinds import JOBS, Job, Pod
from steersman.controllers.job.indexes import Indexes
from steersman.controllers.job.orphan_pods import owner_of
from steersman.controllers.job.pods import is_tracked
from steersman.controllers.job.policy import ruling
from steersman.controllers.job.spec import (
    completions_of,
    is_finished,
    is_indexed,
    is_managed_elsewhere,
    limits_each_index,
)
from steersman.intent.controller import Caches, Change
from steersman.intent.metrics import Measure, Metric, Timed, exponential

_SYNC = ("completion_mode", "result", "action")
SYNC_SECONDS = Metric(
    "job_controller_job_sync_duration_seconds",
    "How long a look at a Job took",
    _SYNC,
    buckets=exponential(0.004, 2, 15),
    stability="STABLE",
)
SYNCS = Metric("job_controller_job_syncs_total", "Looks at Jobs", _SYNC, stability="STABLE")
FINISHED = Metric(
    "job_controller_jobs_finished_total",
    "Jobs that ended",
    ("completion_mode", "result", "reason"),
    stability="STABLE",
)
EXTERNAL = Metric(
    "job_controller_jobs_by_external_controller_total",
    "Jobs that somebody else manages",
    ("controller_name",),
)
PODS_FINISHED = Metric(
    "job_controller_job_pods_finished_total",
    "Pods that ended and are counted",
    ("completion_mode", "result"),
    stability="STABLE",
)
HANDLED = Metric(
    "job_controller_pod_failures_handled_by_failure_policy_total",
    "Pods that failed as a rule of their Job's policy says, by what it has done about them",
    ("action",),
    stability="BETA",
)
TRACKED = Metric(
    "job_controller_terminated_pods_tracking_finalizer_total",
    "Pods that have ended, as they begin and cease to wait for being counted",
    ("event",),
    stability="BETA",
)
INDEXES = Metric(
    "job_controller_job_finished_indexes_total", "Indexes that ended", ("status", "backoffLimit")
)
CREATIONS = Metric("job_controller_job_pods_creation_total", "Pods created", ("reason", "status"))
METRICS = (
    SYNC_SECONDS,
    SYNCS,
    FINISHED,
    EXTERNAL,
    PODS_FINISHED,
    HANDLED,
    TRACKED,
    INDEXES,
    CREATIONS,
)


def _mode(job: Job) -> str:
    return "Indexed" if is_indexed(job) else "NonIndexed"


def sync(job: Job) -> Timed:
    """A look at a Job that has not ended."""
    labels = {"completion_mode": _mode(job), "result": "success", "action": "reconciling"}
    return Timed(SYNC_SECONDS, SYNCS, labels, lambda error: {"result": "error"})


async def created(job: Job, failed: int, terminating: int, made: int, refused: int) -> None:
    """Count pods that were created, and those that were not to be."""
    reason = "new"
    if failed and job.spec.podReplacementPolicy == "Failed":
        reason = "recreate_failed"
    elif failed or terminating:
        reason = "recreate_terminating_or_failed"
    # differs: upstream counts those that were refused among those that succeeded, too.
    for status, count in (("succeeded", made), ("failed", refused)):
        if count:
            await Measure(CREATIONS, count, (reason, status))


# -- read off changes -----------------------------------------------------------------------------


def of_job(caches: Caches, change: Change[Job]) -> Iterator[Measure]:
    """What a change of a Job counts."""
    old, new = change.old, change.new
    if new is None:
        return
    if is_managed_elsewhere(new):
        if old is None:
            yield Measure(EXTERNAL, labels=(new.spec.managedBy or "",))
        return
    if old is None or old.metadata.uid != new.metadata.uid or old.status is new.status:
        return
    mode, before, after = _mode(new), old.status, new.status
    succeeded = after.succeeded - before.succeeded
    if is_indexed(new):
        limit = "perIndex" if limits_each_index(new) else "global"
        # An index beyond the completions there are now has not been taken back.
        succeeded = _more(new, before.completedIndexes, after.completedIndexes)
        lost = _more(new, before.failedIndexes or "", after.failedIndexes or "")
        for status, count in (("succeeded", succeeded), ("failed", lost)):
            if count > 0:
                yield Measure(INDEXES, count, (status, limit))
    for result, count in (("succeeded", succeeded), ("failed", after.failed - before.failed)):
        if count > 0:
            yield Measure(PODS_FINISHED, count, (mode, result))
    if is_finished(new) and not is_finished(old):
        for condition in after.conditions:
            if condition.type in _RESULTS and condition.status == "True":
                yield Measure(FINISHED, labels=(mode, _RESULTS[condition.type], condition.reason))


_RESULTS = {"Complete": "succeeded", "Failed": "failed"}


def _more(job: Job, before: str, after: str) -> int:
    if before == after:
        return 0
    completions = completions_of(job)
    return len(Indexes.parse(after, completions)) - len(Indexes.parse(before, completions))


def of_pod(caches: Caches, change: Change[Pod]) -> Iterator[Measure]:
    """What a change of a pod counts."""
    was, is_ = _waits(change.old), _waits(change.new)
    if was == is_:
        return
    yield Measure(TRACKED, labels=("add" if is_ else "delete",))
    if was and change.obj.status.phase == "Failed":
        job = owner_of(caches[JOBS], change.obj)
        action = ruling(job, change.obj).action if job is not None else ""
        if action:
            yield Measure(HANDLED, labels=(action,))


def _waits(pod: Pod | None) -> bool:
    return pod is not None and pod.status.phase in ("Succeeded", "Failed") and is_tracked(pod)
