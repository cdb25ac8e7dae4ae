"""Metrics of job-controller, under upstream's names.

Syncs are timed by the round itself; finished Jobs and pods are counted from changes of their objects.
"""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.kinds import JOBS, Job, Pod
from steersman.api.meta import controller_of
from steersman.controllers.job.indexes import Indexes
from steersman.controllers.job.pods import (
    completions_of,
    has_backoff_limit_per_index,
    is_finished,
    is_indexed,
    is_managed_externally,
    is_tracked,
)
from steersman.controllers.job.policies import match_failure_policy
from steersman.controllers.shared.controller_ref import resolve_controller_ref
from steersman.intent.controller import Caches, Change
from steersman.intent.metrics import Measure, Metric, Timed, exponential

_SYNC = ("completion_mode", "result", "action")
SYNC_SECONDS = Metric(
    "job_controller_job_sync_duration_seconds",
    "Seconds to sync a Job",
    _SYNC,
    buckets=exponential(0.004, 2, 15),
    stability="STABLE",
)
SYNCS = Metric("job_controller_job_syncs_total", "Syncs of Jobs", _SYNC, stability="STABLE")
FINISHED = Metric(
    "job_controller_jobs_finished_total",
    "Finished Jobs",
    ("completion_mode", "result", "reason"),
    stability="STABLE",
)
EXTERNAL = Metric(
    "job_controller_jobs_by_external_controller_total",
    "Jobs managed by an external controller",
    ("controller_name",),
)
PODS_FINISHED = Metric(
    "job_controller_job_pods_finished_total",
    "Finished pods that are tracked",
    ("completion_mode", "result"),
    stability="STABLE",
)
HANDLED = Metric(
    "job_controller_pod_failures_handled_by_failure_policy_total",
    "Failed pods that matched a rule of the pod failure policy, by its action",
    ("action",),
    stability="BETA",
)
TRACKED = Metric(
    "job_controller_terminated_pods_tracking_finalizer_total",
    "Terminated pods that got or lost the job-tracking finalizer",
    ("event",),
    stability="BETA",
)
INDEXES = Metric("job_controller_job_finished_indexes_total", "Finished indexes", ("status", "backoffLimit"))
CREATIONS = Metric(
    "job_controller_job_pods_creation_total", "Pods created by the controller", ("reason", "status")
)
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
    """Times the sync of a Job that is not finished."""
    labels = {"completion_mode": _mode(job), "result": "success", "action": "reconciling"}
    return Timed(SYNC_SECONDS, SYNCS, labels, lambda error: {"result": "error"})


async def count_creations(job: Job, failed: int, terminating: int, created: int, errors: int) -> None:
    """Counts pods that were created and creations that failed. ``failed`` and ``terminating`` are the Job's pods."""
    reason = "new"
    if failed and job.spec.podReplacementPolicy == "Failed":
        reason = "recreate_failed"
    elif failed or terminating:
        reason = "recreate_terminating_or_failed"
    # differs: upstream counts failed creations among the succeeded ones, too.
    for status, count in (("succeeded", created), ("failed", errors)):
        if count:
            await Measure(CREATIONS, count, (reason, status))


# -- from changes ---------------------------------------------------------------------------------


def measure_job(caches: Caches, change: Change[Job]) -> Iterator[Measure]:
    """The metrics that a change of a Job updates."""
    old, new = change.old, change.new
    if new is None:
        return
    if is_managed_externally(new):
        if old is None:
            yield Measure(EXTERNAL, labels=(new.spec.managedBy or "",))
        return
    if old is None or old.metadata.uid != new.metadata.uid or old.status is new.status:
        return
    mode, before, after = _mode(new), old.status, new.status
    succeeded = after.succeeded - before.succeeded
    if is_indexed(new):
        limit = "perIndex" if has_backoff_limit_per_index(new) else "global"
        # Indexes beyond a lowered spec.completions leave the count as it is.
        succeeded = _added_indexes(new, before.completedIndexes, after.completedIndexes)
        failed_indexes = _added_indexes(new, before.failedIndexes or "", after.failedIndexes or "")
        for status, count in (("succeeded", succeeded), ("failed", failed_indexes)):
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


def _added_indexes(job: Job, before: str, after: str) -> int:
    if before == after:
        return 0
    completions = completions_of(job)
    return len(Indexes.parse(after, completions)) - len(Indexes.parse(before, completions))


def measure_pod(caches: Caches, change: Change[Pod]) -> Iterator[Measure]:
    """The metrics that a change of a pod updates."""
    before, after = _is_tracked_and_ended(change.old), _is_tracked_and_ended(change.new)
    if before == after:
        return
    yield Measure(TRACKED, labels=("add" if after else "delete",))
    pod = change.obj
    if before and pod.status.phase == "Failed":
        job = resolve_controller_ref(caches[JOBS], JOBS, pod.metadata.namespace, controller_of(pod))
        action = match_failure_policy(job, pod).action if job is not None else ""
        if action:
            yield Measure(HANDLED, labels=(action,))


def _is_tracked_and_ended(pod: Pod | None) -> bool:
    return pod is not None and pod.status.phase in ("Succeeded", "Failed") and is_tracked(pod)
