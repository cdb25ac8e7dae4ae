"""Jobs and CronJobs: suspended, failed, past their deadline, in back-off, waiting for the last run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from steersman.api import cron
from steersman.explain.model import Case, Finding, Weight
from steersman.explain.situations.registry import situation
from steersman.explain.words import at, brief, count, duration, some

JOB_CONTROLLER = "kubernetes.io/job-controller"
"""The value of spec.managedBy that leaves a Job to job-controller."""
MAX_BACK_OFF = timedelta(minutes=10)
"""The longest a job waits before it replaces a failed pod."""


@situation("Job")
def suspended_job(case: Case) -> Iterator[Finding]:
    """The Job is suspended."""
    if case.spec.get("suspend"):
        yield Finding(
            code="suspended",
            subject=case.ref,
            cause="it is suspended (spec.suspend), so it has no pods",
            controller="job-controller",
            remedy=f'kubectl patch job {case.ref.name}{case.ref.namespace_flag} --type=merge -p \'{{"spec":{{"suspend":false}}}}\'',
        )


@situation("Job")
def managed_by_another(case: Case) -> Iterator[Finding]:
    """The Job is left to another controller, which has not finished it."""
    by = case.spec.get("managedBy")
    if by in (None, JOB_CONTROLLER) or case.condition("Complete") or case.condition("Failed"):
        return
    yield Finding(
        code="managed-by",
        subject=case.ref,
        cause=f"it is left to {by} (spec.managedBy), and job-controller does nothing about it",
        controller=str(by),
        remedy=f"see whether the controller {by} runs; spec.managedBy cannot be changed, so create the Job anew without it",
    )


@situation("Job")
def failed_job(case: Case) -> Iterator[Finding]:
    """The Job has failed: back-off limit, deadline, or a rule of its pod failure policy."""
    condition = case.condition("Failed")
    if condition.get("status") != "True":
        condition = case.condition("FailureTarget")
    if condition.get("status") != "True":
        return
    reason, failures = condition.get("reason", ""), case.status.get("failed", 0)
    match reason:
        case "BackoffLimitExceeded":
            limit = case.spec.get("backoffLimit", 6)
            cause = f"it has given up after {count(failures, 'failed pod')} (backoffLimit {limit})"
            remedy = "find out why its pods fail, then create the Job anew"
            pod = (case.spec.get("template") or {}).get("spec") or {}
            if pod.get("restartPolicy") == "OnFailure":
                cause = f"it has given up after its containers were restarted (restartPolicy OnFailure, backoffLimit {limit})"
                remedy += "; its pods are deleted with their logs, which restartPolicy: Never keeps"
        case "FailedIndexes" if case.status.get("failedIndexes"):
            failed = case.status["failedIndexes"]
            many = not str(failed).isdecimal()
            limit = case.spec.get("backoffLimitPerIndex")
            cause = f"{f'indexes {failed} have' if many else f'index {failed} has'} failed (backoffLimitPerIndex {limit})"
            remedy = "find out why the pods of these indexes fail, then create the Job anew"
        case "DeadlineExceeded":
            seconds = case.spec.get("activeDeadlineSeconds")
            cause = f"it ran longer than its activeDeadlineSeconds of {seconds} s, and its pods were stopped"
            remedy = "create the Job anew with a longer deadline"
        case _:
            cause = f"it has failed ({reason}): {brief(str(condition.get('message', '')))}"
            remedy = ""
    yield Finding(
        code=f"job-{reason.lower()}" if reason else "job-failed",
        subject=case.ref,
        cause=cause,
        controller="job-controller",
        next="nothing: a failed Job is not started again",
        remedy=remedy,
    )


@situation("Job")
def job_back_off(case: Case) -> Iterator[Finding]:
    """A pod has failed, and the next one comes after a back-off."""
    failures = case.status.get("failed", 0)
    finished = case.condition("Failed") or case.condition("Complete") or case.condition("FailureTarget")
    if not failures or case.status.get("active", 0) or finished or case.spec.get("suspend"):
        return
    ended = [
        when
        for pod in case.snapshot.owned(case.document, "Pod")
        for status in (pod.get("status") or {}).get("containerStatuses") or ()
        if (when := case.time(((status.get("state") or {}).get("terminated") or {}).get("finishedAt")))
        is not None
    ]
    wait = min(timedelta(seconds=10 * 2 ** min(failures - 1, 10)), MAX_BACK_OFF)
    due = f" {at(max(ended) + wait, case.now)}" if ended and max(ended) + wait > case.now else " soon"
    limit = case.spec.get("backoffLimit", 6)
    yield Finding(
        code="job-back-off",
        subject=case.ref,
        cause=f"{count(failures, 'pod')} failed, and the next comes after a back-off of {duration(wait)}",
        controller="job-controller",
        next=f"it creates the next pod{due}; after {count(limit, 'failure')} it gives up",
        weight=Weight.WAITS,
    )


@situation("CronJob")
def suspended_cronjob(case: Case) -> Iterator[Finding]:
    """The CronJob is suspended."""
    if case.spec.get("suspend"):
        yield Finding(
            code="suspended",
            subject=case.ref,
            cause="it is suspended (spec.suspend), so no Job is created at its times",
            controller="cronjob-controller",
            remedy=f'kubectl patch cronjob {case.ref.name}{case.ref.namespace_flag} --type=merge -p \'{{"spec":{{"suspend":false}}}}\'',
        )


@situation("CronJob")
def forbidden_overlap(case: Case) -> Iterator[Finding]:
    """The last Job still runs, and the concurrencyPolicy forbids a second one."""
    active = [str(each.get("name", "")) for each in case.status.get("active") or ()]
    if active and case.spec.get("concurrencyPolicy") == "Forbid":
        yield Finding(
            code="concurrency",
            subject=case.ref,
            cause=f"its Job {some(active)} still runs, and concurrencyPolicy Forbid skips the times until it ends",
            controller="cronjob-controller",
            next="it creates the next Job at the first time after that one has ended",
            remedy=f"see why it does not end: steersman why job/{active[0]} -n {case.ref.namespace}",
        )


@situation("CronJob")
def never_due(case: Case) -> Iterator[Finding]:
    """The schedule has no time: the 31st of February."""
    text = str(case.spec.get("schedule", ""))
    try:
        schedule = cron.parse(text, str(case.spec.get("timeZone") or ""))
    except (cron.ScheduleSyntaxError, LookupError):
        # The controller says so in an event.
        return
    if schedule.next(case.now) is None:
        yield Finding(
            code="never-due",
            subject=case.ref,
            cause=f"its schedule {text!r} has no time in the next five years",
            controller="cronjob-controller",
            remedy="correct spec.schedule: the day and the month never come together",
        )


@situation("CronJob")
def missed_times(case: Case) -> Iterator[Finding]:
    """Times are missed because startingDeadlineSeconds is too short, or too many have passed."""
    for event in case.snapshot.events(
        case.document, "MissSchedule", "TooManyMissedTimes", "UnparseableSchedule", "UnknownTimeZone"
    ):
        match event.get("reason"):
            case "UnknownTimeZone":
                cause = f"its time zone {case.spec.get('timeZone')} is not known to the controller manager"
                remedy = "correct spec.timeZone, or give the controller manager newer time zone data"
            case "MissSchedule":
                seconds = case.spec.get("startingDeadlineSeconds")
                cause = f"it missed its time by more than its startingDeadlineSeconds of {seconds} s"
                remedy = "raise startingDeadlineSeconds above 10 s: the controller looks every 10 s"
            case "TooManyMissedTimes":
                cause = "it has missed more than 100 of its times"
                remedy = "set startingDeadlineSeconds, so that older times do not count"
            case _:
                cause = f"its schedule {case.spec.get('schedule')!r} cannot be read"
                remedy = "correct spec.schedule"
        yield Finding(
            code="missed-schedule",
            subject=case.ref,
            cause=cause,
            controller="cronjob-controller",
            remedy=remedy,
        )
        return
