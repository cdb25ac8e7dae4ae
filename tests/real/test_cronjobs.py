"""CronJobs on a real API server: steersman and kube-controller-manager leave the same objects and events.

Nobody can wait for a schedule here. A CronJob is suspended, told when it last ran and which of its Jobs still
run, and then let go: what is due since is due now. One alone waits for the next minute, and those whose schedule
changes wait for a minute soon after.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.kinds import JOBS, PODS
from steersman.api.kinds.cronjobs import CRONJOBS, CronJob
from steersman.controllers.cronjob import SCHEDULED_TIMESTAMP

Document = dict[str, Any]
LAST = "2025-02-10T00:00:00Z"
"""When all have run last: long enough ago for any schedule here to have come since."""
MONTHLY = "15 3 1 * *"
YEARLY = "0 0 1 1 *"
COMPLETE = ("SuccessCriteriaMet", "Complete")
FAILED = ("FailureTarget", "Failed")


def template(seconds: int) -> Document:
    main = {"name": "main", "image": "example/app:1", "command": ["sleep", str(seconds)]}
    pod = {"nodeName": "node-1", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    return {"spec": {**pod, "containers": [main]}}


def cron(name: str, schedule: str = MONTHLY, seconds: int = 3600, **spec: Any) -> Document:
    job = {
        "metadata": {"labels": {"app": name}, "annotations": {"example/note": "of the template"}},
        "spec": {"template": template(seconds), "backoffLimit": 0},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "suspend": True, "jobTemplate": job, **spec},
    }


MISSED = (
    cron("monthly", seconds=1),
    cron("at-sign", "@monthly"),
    cron("ranges", "0 0-18/6,22 ? JAN-DEC SUN-SAT"),
    cron("spaced", "@every 720h"),
    cron("elsewhere", timeZone="Asia/Tokyo"),
    cron("skipped", "30 2 8 3 *", timeZone="America/New_York"),  # not there in 2026: clocks go forward
    cron("repeated", "30 1 1 11 *", timeZone="America/New_York"),  # twice in 2026: clocks go back
    cron("many", "0 0 * * *"),
    cron("late", startingDeadlineSeconds=20),
    cron("never", "0 0 31 2 *"),
    cron("halted"),
    cron("moved"),
    cron("allows", concurrencyPolicy="Allow"),
    cron("forbids", concurrencyPolicy="Forbid"),
    cron("replaces", concurrencyPolicy="Replace"),
    cron("forgetful"),
    cron("taken"),
    cron("noted"),
    cron("short", successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0),
)
BUSY = ("allows", "forbids", "replaces")
HELD = ("taken", "noted")
"""Those whose Job is there already, where the reference manager is stuck: it looks for it in no namespace."""
KEEP = ("halted", "moved", "short")
"""Those that stay suspended, or are let go in another way."""


RENEWED = (
    cron("forbidding", YEARLY, suspend=False, concurrencyPolicy="Forbid"),
    cron("replacing", YEARLY, suspend=False, concurrencyPolicy="Replace"),
)
"""Those whose schedule changes while a Job of theirs runs."""
LATE = tuple(cron(f"late-{number:02}", YEARLY, suspend=False) for number in range(20))
"""Those whose schedule changes to one and the same time, so many that a manager looks at some of them late."""


def soon() -> Document:
    """A spec with a schedule that comes once, ten to seventy seconds from now."""
    at = datetime.now(UTC) + timedelta(seconds=70)
    return {"schedule": f"{at.minute} {at.hour} * * *", "timeZone": "Etc/UTC"}


def owned_by(owner: CronJob) -> Document:
    reference = {"apiVersion": "batch/v1", "kind": "CronJob", "controller": True}
    return {"ownerReferences": [{**reference, "name": owner.metadata.name, "uid": owner.metadata.uid}]}


def made_by_hand(name: str, seconds: int, **spec: Any) -> Document:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template(seconds), **spec},
    }


async def running(stage: Any, owner: CronJob, name: str) -> Document:
    """A Job for an earlier time that still runs, as the status of its CronJob refers to it."""
    document = made_by_hand(name, 3600)
    document["metadata"] |= owned_by(owner)
    made = await stage.api.create(JOBS, stage.namespace, document)
    reference = {"apiVersion": "batch/v1", "kind": "Job", "namespace": stage.namespace, "name": name}
    return {**reference, "uid": made.metadata.uid}


async def ended(stage: Any, owner: CronJob, name: str, at: str, conditions: tuple[str, str]) -> None:
    """A Job for an earlier time that has ended, and is its CronJob's only since then."""
    # Nobody else is to write its status.
    await stage.create(JOBS, made_by_hand(name, 1, managedBy="example.com/nobody"))
    told = [
        {"type": type_, "status": "True", "lastTransitionTime": at, "lastProbeTime": at}
        for type_ in conditions
    ]
    status: Document = {"startTime": at, "conditions": told}
    if conditions is COMPLETE:
        status["completionTime"] = at
    await stage.patch(JOBS, name, {"status": status}, subresource="status")
    await stage.patch(JOBS, name, {"metadata": owned_by(owner)})


async def renew(stage: Any) -> None:
    """Change the schedules of CronJobs that have a running Job, and then something else of them."""
    for document in RENEWED:
        name = document["metadata"]["name"]
        owner = await stage.until(CRONJOBS, name, bool)
        active = [await running(stage, owner, f"{name}-before")]
        await stage.told("UnexpectedJob", name)
        await stage.patch(CRONJOBS, name, {"status": {"active": active}}, subresource="status")
        await stage.patch(CRONJOBS, name, {"spec": soon()})
        await stage.patch(CRONJOBS, name, {"metadata": {"annotations": {"example/look": "again"}}})


async def tell(stage: Any) -> None:
    minutely = cron("minutely", "* * * * *", 1, suspend=False)
    await stage.create(CRONJOBS, minutely, *MISSED, *RENEWED)
    await renew(stage)
    known = {
        one["metadata"]["name"]: await stage.until(CRONJOBS, one["metadata"]["name"], bool) for one in MISSED
    }
    for name, owner in known.items():
        active = []
        if name in BUSY:
            active = [await running(stage, owner, f"{name}-before")]
            await stage.told("UnexpectedJob", name)  # nobody has said so far that it is its own
        if name == "forgetful":
            active = [{"kind": "Job", "namespace": stage.namespace, "name": "lost", "uid": "no-such"}]
        status = {"lastScheduleTime": LAST, "active": active}
        await stage.patch(CRONJOBS, name, {"status": status}, subresource="status")
    for number, hour in enumerate(("01", "02", "03")):
        at = f"2025-02-09T{hour}:00:00Z"
        await ended(stage, known["short"], f"short-good-{number}", at, COMPLETE)
        await ended(stage, known["short"], f"short-bad-{number}", at, FAILED)
    # What the names of these will be is learned from another of the same schedule.
    await stage.patch(CRONJOBS, "monthly", {"spec": {"suspend": False}})
    monthly = await stage.until(CRONJOBS, "monthly", lambda one: bool(one.status.lastSuccessfulTime))
    minute = int(monthly.status.lastScheduleTime.timestamp()) // 60
    await stage.create(JOBS, made_by_hand(f"taken-{minute}", 3600))
    await running(stage, known["noted"], f"noted-{minute}")
    for name in known:
        if name not in KEEP and name != "monthly":
            await stage.patch(CRONJOBS, name, {"spec": {"suspend": False}})
    # A schedule that is new begins with its next time, whatever it would have missed.
    await stage.patch(CRONJOBS, "moved", {"spec": {"suspend": False, "schedule": "0 0 1 */2 *"}})
    async with asyncio.TaskGroup() as tasks:
        for name in ("at-sign", "ranges", "spaced", "elsewhere", "skipped", "repeated", "many", *BUSY):
            if name != "forbids":
                tasks.create_task(stage.told("SuccessfulCreate", name))
        for name in ("forbids", "forbidding"):
            tasks.create_task(stage.told("JobAlreadyActive", name))
        for name in ("replaces", "replacing"):
            tasks.create_task(stage.told("SuccessfulDelete", name))
        tasks.create_task(stage.told("SuccessfulCreate", "replacing"))
        tasks.create_task(stage.told("TooManyMissedTimes", "many"))
        tasks.create_task(stage.told("InvalidSchedule", "never"))
        tasks.create_task(stage.told("MissingJob", "forgetful"))
        tasks.create_task(stage.told("SuccessfulCreate", "forgetful"))
        if stage.binary == "steersman":
            tasks.create_task(stage.until(CRONJOBS, "noted", lambda one: bool(one.status.active)))
        for number in (0, 1):
            tasks.create_task(stage.gone(JOBS, f"short-good-{number}"))
        for number in (0, 1, 2):
            tasks.create_task(stage.gone(JOBS, f"short-bad-{number}"))
        tasks.create_task(stage.until(CRONJOBS, "minutely", lambda one: bool(one.status.lastSuccessfulTime)))
    await stage.patch(CRONJOBS, "minutely", {"spec": {"suspend": True}})
    await stage.quiet()


async def tell_late(stage: Any) -> None:
    await stage.create(CRONJOBS, cron("first", YEARLY))
    await running(stage, await stage.until(CRONJOBS, "first", bool), "first-before")
    # From now on the manager watches, so that it sees the schedules change.
    await stage.told("UnexpectedJob", "first")
    await stage.create(CRONJOBS, *LATE)
    names = [one["metadata"]["name"] for one in LATE]
    for name in names:
        await stage.until(CRONJOBS, name, bool)
    spec = soon()
    for name in names:
        await stage.patch(CRONJOBS, name, {"spec": spec})
    for name in names:
        await stage.until(CRONJOBS, name, lambda one: bool(one.status.active))
    await stage.quiet()


def timeless(end: dict[str, Any]) -> dict[str, Any]:
    """The same, whichever minute it was."""
    text = re.sub(r"(minutely|replacing|late-\d\d)-\d+", r"\1-@", json.dumps(end))
    plain: dict[str, Any] = json.loads(re.sub(r"\d+ \d+ \* \* \*", "soon", text))
    for name, job in plain["jobs"].items():
        if name.endswith("-@"):
            job["metadata"]["annotations"][SCHEDULED_TIMESTAMP] = "then"
    return plain


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found = both(
        tell,
        "crons",
        controllers=("cronjob-controller", "job-controller", "garbage-collector-controller"),
        kinds=(CRONJOBS, JOBS, PODS),
    )
    return {binary: timeless(end) for binary, end in found.items()}


@pytest.fixture(scope="module")
def late_ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found = both(
        tell_late,
        "late",
        controllers=("cronjob-controller",),
        kinds=(CRONJOBS, JOBS),
        # Some four seconds for all of them.
        flags=("--concurrent-cron-job-syncs=1", "--kube-api-qps=10", "--kube-api-burst=1"),
    )
    return {binary: timeless(end) for binary, end in found.items()}


def test_every_schedule_starts_what_is_due_and_nothing_else(ends: dict[str, dict[str, Any]]) -> None:
    found = ends["steersman"]
    started = {name.rpartition("-")[0] for name in found["jobs"]}
    assert {"monthly", "ranges", "repeated", "many", "allows", "replaces", "forgetful"} <= started
    assert not {"late", "never", "halted", "moved"} & started
    active = {name: len(one["status"].get("active", ())) for name, one in found["cronjobs"].items()}
    assert (active["allows"], active["forbids"], active["replaces"]) == (2, 1, 1)
    assert (active["taken"], active["noted"]) == (0, 1), "a Job that is there is noted, if it is ours"
    assert [name for name in found["jobs"] if name.startswith("short")] == ["short-good-2"]


def shared(found: Any) -> Any:
    """What both can have: without the CronJobs that the reference manager never gets done with."""
    if isinstance(found, list):
        return [event for event in found if event["about"].partition("/")[2].partition("-")[0] not in HELD]
    return {name: one for name, one in found.items() if name.partition("-")[0] not in HELD}


@pytest.mark.parametrize("plural", ["cronjobs", "jobs", "pods", "events"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], plural: str
) -> None:
    alike(ends, lambda end: shared(end[plural]))


@pytest.mark.parametrize("plural", ["cronjobs", "jobs", "events"])
def test_both_managers_start_the_first_job_of_a_new_schedule_however_late(
    late_ends: dict[str, dict[str, Any]], alike: Callable[..., None], plural: str
) -> None:
    alike(late_ends, plural)
