"""cronjob-controller: scheduled times, started Jobs and the history limits; and months of it in moments."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.cron import parse
from steersman.api.errors import AlreadyExists, ApiError, Cause, Forbidden, NotFound, ServerError
from steersman.api.kinds import Condition, Job, JobStatus, ObjectMeta, ObjectReference, OwnerReference
from steersman.api.kinds.cronjobs import CronJob, CronJobSpec, CronJobStatus, NewJob
from steersman.api.scheme import Key
from steersman.controllers.cronjob import SCHEDULED_TIMESTAMP, controller
from steersman.controllers.cronjob.schedule import InvalidSchedule, most_recent_due, until_next
from steersman.intent.actions import Action, Create, Delete, Emit, Read, UpdateStatus
from steersman.intent.controller import Change
from steersman.intent.verdict import Rest, Verdict, Wake
from steersman.sim.faults.requests import SlowResponse
from steersman.sim.world import START
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import StaticCaches, walk

BORN = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
NOW = datetime(2026, 1, 1, 10, 0, 30, tzinfo=UTC)
TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
KEY = Key("d", "c")


def cron(
    schedule: str = "0 * * * *", *, last: datetime | None = None, active: Any = (), **spec: Any
) -> CronJob:
    return CronJob(
        metadata=ObjectMeta(name="c", namespace="d", uid="c", creationTimestamp=BORN),
        spec=CronJobSpec(schedule=schedule, **spec),
        status=CronJobStatus(lastScheduleTime=last, active=tuple(map(reference, active))),
    )


def reference(name: str) -> ObjectReference:
    return ObjectReference(apiVersion="batch/v1", kind="Job", namespace="d", name=name, uid=name)


def job(name: str, ended: str = "", *, minutes: int = 0, owner: str = "c") -> Job:
    conditions = (Condition(type=ended, status="True"),) if ended else ()
    started = BORN + timedelta(minutes=minutes)
    owners = (OwnerReference(apiVersion="batch/v1", kind="CronJob", name="c", uid=owner, controller=True),)
    return Job(
        metadata=ObjectMeta(name=name, namespace="d", uid=name, ownerReferences=owners),
        status=JobStatus(
            startTime=started, completionTime=started if ended == "Complete" else None, conditions=conditions
        ),
    )


def look(
    of: CronJob, *jobs: Job, now: datetime = NOW, answers: Any = None
) -> tuple[list[Action[Any]], Verdict]:
    seen = controller.see(StaticCaches(controller, of, *jobs), KEY)
    assert seen is not None
    return walk(controller.decide(seen, now), answers)


def events(actions: list[Action[Any]]) -> list[tuple[str, str]]:
    return [(one.reason, one.message) for one in actions if isinstance(one, Emit)]


def written(actions: list[Action[Any]]) -> CronJobStatus:
    (update,) = (one for one in actions if isinstance(one, UpdateStatus))
    assert isinstance(update.status, CronJobStatus)
    return update.status


# -- what is due ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "now", "latest", "missed"),
    [
        (cron(), BORN + timedelta(minutes=29), None, 0),
        (cron(), TEN, TEN, 0),
        (cron(), NOW, TEN, 0),
        (cron(last=TEN), NOW, None, 0),
        (cron(), TEN + timedelta(hours=5, minutes=1), TEN + timedelta(hours=5), 6),
        (cron(startingDeadlineSeconds=60), TEN + timedelta(hours=5, minutes=2), None, 0),
        (cron("0 9-17/4 * * 1-5"), TEN + timedelta(days=4), datetime(2026, 1, 5, 9, tzinfo=UTC), 24),
    ],
)
def test_what_is_due(of: CronJob, now: datetime, latest: datetime | None, missed: int) -> None:
    found = most_recent_due(of, parse(of.spec.schedule), now)
    assert (found.latest, found.missed) == (latest, missed)


def test_a_schedule_that_never_comes_is_impossible() -> None:
    with pytest.raises(InvalidSchedule):
        most_recent_due(cron("0 0 31 2 *"), parse("0 0 31 2 *"), NOW)


def test_the_next_look_is_a_little_after_the_next_time() -> None:
    assert until_next(cron(last=TEN), parse("0 * * * *"), NOW) == timedelta(
        minutes=59, seconds=30, milliseconds=100
    )


# -- starting ---------------------------------------------------------------------------------


def test_a_job_is_started_named_for_its_time_and_noted() -> None:
    actions, verdict = look(cron(timeZone="Europe/Berlin"))
    create = next(one for one in actions if isinstance(one, Create))
    assert isinstance(create.body, NewJob)
    meta = create.body.metadata
    assert meta.name == f"c-{int(TEN.timestamp()) // 60}"
    assert meta.annotations == {SCHEDULED_TIMESTAMP: "2026-01-01T11:00:00+01:00"}
    assert meta.ownerReferences[0].uid == "c"
    assert events(actions) == [("SuccessfulCreate", f"Created job {meta.name}")]
    status = written(actions)
    assert status.lastScheduleTime == TEN
    assert [one.name for one in status.active] == [meta.name]
    assert verdict == Wake(
        timedelta(minutes=59, seconds=30, milliseconds=100),
        "Job started; waiting for the next scheduled time",
    )


def test_before_its_time_it_rests() -> None:
    actions, verdict = look(cron(), now=BORN)
    assert actions == []
    assert verdict == Wake(timedelta(minutes=30, milliseconds=100), "waiting for the next scheduled time")


def test_only_the_latest_of_what_was_missed_is_made_up_for() -> None:
    actions, _ = look(cron(), now=TEN + timedelta(hours=5, minutes=1))
    assert written(actions).lastScheduleTime == TEN + timedelta(hours=5)
    assert len([one for one in actions if isinstance(one, Create)]) == 1


def test_too_many_missed_starts_are_told_of_and_the_last_is_made_up_for() -> None:
    actions, _ = look(cron("* * * * *"), now=TEN + timedelta(hours=5))
    assert events(actions)[0] == (
        "TooManyMissedTimes",
        "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
    )
    assert written(actions).lastScheduleTime == TEN + timedelta(hours=5)


def test_what_is_too_late_is_not_started() -> None:
    actions, verdict = look(cron(startingDeadlineSeconds=10))
    assert not [one for one in actions if isinstance(one, Create)]
    assert isinstance(verdict, Wake)


@pytest.mark.parametrize(
    ("of", "reason", "message"),
    [
        (
            cron(timeZone="Nowhere"),
            "UnknownTimeZone",
            'invalid timeZone: "Nowhere": unknown time zone Nowhere',
        ),
        (
            cron("every day"),
            "UnparseableSchedule",
            'unparseable schedule: "every day" : expected exactly 5 fields, found 2: [every day]',
        ),
        (
            cron("0 0 31 2 *"),
            "InvalidSchedule",
            "invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second",
        ),
    ],
)
def test_what_cannot_be_read_is_an_event_and_no_loop(of: CronJob, reason: str, message: str) -> None:
    actions, verdict = look(of)
    assert events(actions) == [(reason, message)]
    assert isinstance(verdict, Rest)


def test_a_zone_within_the_schedule_works_and_is_told_of() -> None:
    actions, _ = look(cron("TZ=Europe/Berlin 0 11 * * *"))
    assert events(actions)[0][0] == "UnsupportedSchedule"
    assert written(actions).lastScheduleTime == TEN


def test_a_suspended_one_starts_nothing() -> None:
    assert look(cron(suspend=True)) == ([], Rest("suspended"))


def test_forbid_waits_for_the_one_before() -> None:
    of = cron(concurrencyPolicy="Forbid", active=["old"])
    actions, verdict = look(of, job("old"))
    message = "Not starting job because prior execution is running and concurrency policy is Forbid"
    assert events(actions) == [("JobAlreadyActive", message)]
    assert isinstance(verdict, Wake)


def test_replace_ends_the_one_before() -> None:
    of = cron(concurrencyPolicy="Replace", active=["old"])
    old = job("old")
    actions, _ = look(of, old, answers={Read: old})
    assert [type(one) for one in actions if isinstance(one, Delete | Create)] == [Delete, Create]
    assert [one.name for one in written(actions).active] == [f"c-{int(TEN.timestamp()) // 60}"]


def test_replace_that_cannot_end_it_starts_nothing() -> None:
    of = cron(concurrencyPolicy="Replace", active=["old"])
    said: list[Action[Any]] = []
    seen = controller.see(StaticCaches(controller, of, job("old")), KEY)
    assert seen is not None
    with pytest.raises(ApiError):
        walk(controller.decide(seen, NOW), {Read: job("old"), Delete: ServerError("down")}, recorded=said)
    assert events(said) == [("FailedDelete", "Deleted job: down")]
    assert not [one for one in said if isinstance(one, Create)]


def test_a_job_of_that_name_that_is_ours_is_noted_and_another_is_left_alone() -> None:
    name = f"c-{int(TEN.timestamp()) // 60}"
    actions, _ = look(cron(), answers={Create: AlreadyExists("there"), Read: job(name)})
    assert [one.name for one in written(actions).active] == [name]
    actions, verdict = look(cron(), answers={Create: AlreadyExists("there"), Read: job(name, owner="x")})
    assert not [one for one in actions if isinstance(one, UpdateStatus)]
    assert verdict == Rest(f"Job c-{int(TEN.timestamp()) // 60} exists with another owner")


def test_a_refusal_is_told_of_unless_the_namespace_goes() -> None:
    said: list[Action[Any]] = []
    seen = controller.see(StaticCaches(controller, cron()), KEY)
    assert seen is not None
    with pytest.raises(Forbidden):
        walk(controller.decide(seen, NOW), {Create: Forbidden("full")}, recorded=said)
    assert events(said) == [("FailedCreate", "Error creating job: full")]
    said.clear()
    going = Forbidden("going", causes=(Cause("NamespaceTerminating", "", ""),))
    with pytest.raises(Forbidden):
        walk(controller.decide(seen, NOW), {Create: going}, recorded=said)
    assert events(said) == []


# -- keeping ----------------------------------------------------------------------------------


def test_a_job_that_ended_is_active_no_longer_and_its_success_is_noted() -> None:
    actions, _ = look(cron(last=TEN, active=["a", "b"]), job("a", "Complete", minutes=5), job("b", "Failed"))
    assert events(actions) == [
        ("SawCompletedJob", "Saw completed job: a, condition: Complete"),
        ("SawCompletedJob", "Saw completed job: b, condition: Failed"),
    ]
    status = written(actions)
    assert status.active == ()
    assert status.lastSuccessfulTime == BORN + timedelta(minutes=5)


def test_an_active_job_that_is_gone_is_dropped_only_when_the_server_says_so() -> None:
    of = cron(last=TEN, active=["a"])
    actions, _ = look(of, answers={Read: NotFound("gone")})
    assert events(actions) == [("MissingJob", "Active job went missing: a")]
    assert written(actions).active == ()
    assert not [one for one in look(of, answers={Read: job("a")})[0] if isinstance(one, UpdateStatus)]


def test_a_job_that_nobody_started_is_told_of_unless_the_cache_was_behind() -> None:
    of = cron(last=TEN)
    assert events(look(of, job("x"), answers={Read: of})[0])[0][0] == "UnexpectedJob"
    live = cron(last=TEN, active=["x"])
    assert look(of, job("x"), answers={Read: live})[0] == [Read(of)]


def test_where_the_cache_was_behind_the_live_cronjob_is_gone_on_with() -> None:
    suspended = cron(last=BORN, active=["x"], suspend=True)
    actions, verdict = look(cron(last=BORN), job("x"), answers={Read: suspended})
    assert (len(actions), verdict) == (1, Rest("suspended"))
    live = cron("*/15 * * * *", last=BORN, active=["x"])
    actions, _ = look(cron("0 0 * * *", last=BORN), job("x"), answers={Read: live})
    (update,) = (one for one in actions if isinstance(one, UpdateStatus))
    assert update.target is live
    name = f"c-{int(TEN.timestamp()) // 60}"
    assert [one.name for one in written(actions).active] == ["x", name]
    assert written(actions).lastScheduleTime == TEN


def test_a_job_that_was_cleaned_up_is_active_no_longer_in_the_live_cronjob_either() -> None:
    of = cron(last=TEN, successfulJobsHistoryLimit=0)
    live = cron(last=TEN, active=["a", "x"], successfulJobsHistoryLimit=0)
    actions, _ = look(of, job("a", "Complete"), job("x"), answers={Read: live})
    assert [one.name for one in written(actions).active] == ["x"]


def test_only_so_many_that_ended_are_kept_and_the_oldest_go() -> None:
    jobs = [job(f"j{n}", "Complete", minutes=n) for n in range(4)] + [
        job(f"f{n}", "Failed", minutes=n) for n in range(3)
    ]
    of = cron(last=TEN, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    actions, _ = look(of, *jobs)
    assert [one.target.metadata.name for one in actions if isinstance(one, Delete)] == ["j0", "f0", "f1"]
    assert {one.propagation for one in actions if isinstance(one, Delete)} == {"Background"}
    assert not [one for one in look(cron(last=TEN), *jobs)[0] if isinstance(one, Delete)]


# -- a schedule that changes ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "seconds"),
    [
        (None, cron(), 0.0),
        (cron(), None, 0.0),
        (cron(), cron(suspend=True), 0.0),
        (cron(), cron("*/5 * * * *", last=BORN), 120.1),
        (cron(), cron("0 12 * * *"), 7020.1),
        (cron(), cron(timeZone="Asia/Kolkata", last=BORN), 1620.1),
        (cron(), cron("every day"), 0.0),
        (cron(), cron("0 0 31 2 *"), 0.0),
    ],
)
def test_a_new_schedule_begins_with_its_next_time(
    old: CronJob | None, new: CronJob | None, seconds: float
) -> None:
    watch, change = controller.watches[0], Change(old, new)
    assert list(watch.to(StaticCaches(controller), change)) == [KEY], "one key for one CronJob"
    assert callable(watch.delay)
    assert watch.delay(change, TEN + timedelta(minutes=3)) == pytest.approx(seconds)


def test_a_job_is_a_reason_to_look_at_its_own_cronjob_only() -> None:
    caches = StaticCaches(controller, cron())
    to = controller.watches[1].to
    assert list(to(caches, Change(None, job("a")))) == [KEY]
    assert list(to(caches, Change(None, job("a", owner="another")))) == []


NIGHTLY = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  timeZone: Europe/Berlin
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: app:1}]}}}
"""


def test_in_a_cluster_every_night_has_its_job_at_its_hour() -> None:
    with Cluster(seed=4, nodes=1) as cluster:
        cluster.apply(NIGHTLY)
        cluster.advance(days=3)
        stamps = sorted(one.metadata.annotations[SCHEDULED_TIMESTAMP] for one in cluster.list("Job"))
        assert stamps == [f"2026-01-0{day}T03:00:00+01:00" for day in (1, 2, 3)]
        born = sorted(at for one in cluster.list("Job") if (at := one.metadata.creationTimestamp))
        assert [(one.hour, one.minute, one.second) for one in born] == [(2, 0, 0)] * 3


SLOW = SlowResponse(0.3, verb="write", times=100_000)
"""Every write takes 0.3 s, so that rounds of several keys overlap."""


def test_in_a_cluster_the_first_time_of_a_new_schedule_is_kept_however_late_its_round_is() -> None:
    names = [f"hourly-{number}" for number in range(40)]
    with Cluster(seed=4, nodes=1, faults=[SLOW]) as cluster:
        cluster.apply([manifest(name, "0 12 * * *") for name in names])
        cluster.advance(minutes=30)
        for name in names:
            cluster.patch("CronJob", name, {"spec": {"schedule": "0 * * * *"}})
        cluster.advance(minutes=31)
        scheduled = {name: cluster.get("CronJob", name).status.lastScheduleTime for name in names}
    assert scheduled == dict.fromkeys(names, START + timedelta(hours=1))


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("Forbid", {"SuccessfulCreate": 1, "JobAlreadyActive": 3}),
        ("Replace", {"SuccessfulCreate": 4, "SuccessfulDelete": 3}),
    ],
)
def test_in_a_cluster_a_cronjob_with_a_new_schedule_has_one_round_for_a_time(
    policy: str, told: dict[str, int]
) -> None:
    with Cluster(seed=4, nodes=1, faults=[SLOW]) as cluster:
        cluster.apply(manifest("c", "*/10 * * * *", concurrencyPolicy=policy))
        cluster.advance(minutes=5)
        cluster.patch("CronJob", "c", {"spec": {"schedule": "*/10 0-23 * * *"}})
        cluster.advance(minutes=40)
        counts: Counter[str] = Counter()
        for event in cluster.events("CronJob", "c"):
            counts[event.reason] += event.count
    assert counts == told


def manifest(name: str, schedule: str, **spec: Any) -> dict[str, Any]:
    """A CronJob whose Jobs run for ten hours."""
    main = {"name": "main", "image": "example/app:1", "command": ["sleep", "36000"]}
    pod = {"spec": {"restartPolicy": "Never", "containers": [main]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": pod}}, **spec},
    }
