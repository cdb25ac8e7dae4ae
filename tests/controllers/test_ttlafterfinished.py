"""ttl-after-finished-controller: deletes finished Jobs when their TTL has passed."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.errors import Conflict, NotFound
from steersman.api.kinds import Condition, Job, JobSpec, JobStatus, ObjectMeta
from steersman.controllers.ttlafterfinished import DELETION_DELAY, decide, expiry
from steersman.intent.actions import Delete, Read
from steersman.intent.metrics import Measure
from steersman.intent.verdict import InvalidSpec, Rest, Wake
from steersman.testing.decision_driver import walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def job(
    ttl: int | None = 60, *, finished: float | None = 30, type_: str = "Complete", going: bool = False
) -> Job:
    """A job that finished so many seconds ago, or has not."""
    conditions: tuple[Condition, ...] = ()
    if finished is not None:
        at = NOW - timedelta(seconds=finished)
        conditions = (Condition(type=type_, status="True", lastTransitionTime=at),)
    return Job(
        metadata=ObjectMeta(namespace="default", name="j", uid="u", deletionTimestamp=NOW if going else None),
        spec=JobSpec(ttlSecondsAfterFinished=ttl),
        status=JobStatus(conditions=conditions),
    )


@pytest.mark.parametrize(
    "left_alone",
    [job(None), job(finished=None), job(going=True, finished=3600), job(type_="Suspended", finished=3600)],
)
def test_a_job_without_ttl_or_end_is_left_alone(left_alone: Job) -> None:
    actions, verdict = walk(decide(left_alone, NOW))
    assert actions == []
    assert isinstance(verdict, Rest)


def test_a_running_ttl_is_waited_for_to_the_instant() -> None:
    actions, verdict = walk(decide(job(60, finished=30), NOW))
    assert actions == []
    assert verdict == Wake(timedelta(seconds=30), "waiting for ttlSecondsAfterFinished")


@pytest.mark.parametrize("type_", ["Complete", "Failed"])
def test_an_expired_job_is_read_live_and_deleted_in_the_foreground(type_: str) -> None:
    expired = job(60, finished=90, type_=type_)
    actions, verdict = walk(decide(expired, NOW))
    assert actions == [
        Read(expired),
        Delete(expired, propagation="Foreground", exact=True),
        Measure(DELETION_DELAY, 30.0),
    ]
    assert verdict == Rest("TTL expired, Job deleted")


def test_a_ttl_raised_behind_the_caches_back_is_respected() -> None:
    raised = job(600, finished=90)
    actions, verdict = walk(decide(job(60, finished=90), NOW), {Read: raised})
    assert not [action for action in actions if isinstance(action, Delete)]
    assert verdict == Wake(timedelta(seconds=510), "ttlSecondsAfterFinished was raised")


def test_a_job_that_is_gone_already_is_no_error() -> None:
    _, verdict = walk(decide(job(0), NOW), {Read: NotFound("gone")})
    assert verdict == Rest("Job already deleted")


def test_a_job_that_changed_in_the_last_moment_is_looked_at_again() -> None:
    with pytest.raises(Conflict):
        walk(decide(job(0), NOW), {Delete: Conflict("changed")})


def test_a_job_that_does_not_say_when_it_finished_fails_its_own_round() -> None:
    odd = Job(
        metadata=ObjectMeta(namespace="default", name="j"),
        spec=JobSpec(ttlSecondsAfterFinished=1),
        status=JobStatus(conditions=(Condition(type="Complete", status="True"),)),
    )
    with pytest.raises(InvalidSpec, match="unable to find the time when the Job default/j finished"):
        expiry(odd)


@given(st.integers(0, 10_000), st.floats(0, 20_000))
def test_a_job_is_deleted_exactly_when_its_time_has_come(ttl: int, finished: float) -> None:
    actions, verdict = walk(decide(job(ttl, finished=finished), NOW))
    deleted = any(isinstance(action, Delete) for action in actions)
    due = expiry(job(ttl, finished=finished))
    assert due is not None
    assert deleted == (due <= NOW)
    if isinstance(verdict, Wake):
        assert NOW + verdict.after == due


# -- upstream's table -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "finished", "ttl", "left"),
    [
        ("Complete", None, 100, None),
        ("Complete", 0, None, None),
        ("Complete", 0, 0, 0),
        ("Complete", 0, 10, 10),
        ("Complete", 10, 15, 5),
        ("Failed", 0, None, None),
        ("Failed", 0, 0, 0),
        ("Failed", 0, 10, 10),
        ("Failed", 10, 15, 5),
        # A clock that is ahead only defers the deletion.
        ("Complete", -20, 10, 30),
    ],
)
def test_the_time_left_is_counted_from_the_end_of_the_job(
    type_: str, finished: float | None, ttl: int | None, left: int | None
) -> None:
    due = expiry(job(ttl, finished=finished, type_=type_))
    assert due == (None if left is None else NOW + timedelta(seconds=left))


def test_the_first_condition_of_an_end_counts_and_only_if_it_is_true() -> None:
    at = NOW - timedelta(seconds=10)
    conditions = (
        Condition(type="Complete", status="False"),
        Condition(type="Failed", status="True", lastTransitionTime=at),
        Condition(type="Complete", status="True", lastTransitionTime=NOW),
    )
    odd = Job(
        metadata=ObjectMeta(namespace="default", name="j"),
        spec=JobSpec(ttlSecondsAfterFinished=15),
        status=JobStatus(conditions=conditions),
    )
    assert expiry(odd) == at + timedelta(seconds=15)


@pytest.mark.parametrize("fresh", [job(None), job(finished=None), job(going=True)])
def test_a_live_job_that_is_no_longer_due_stays(fresh: Job) -> None:
    actions, verdict = walk(decide(job(0), NOW), {Read: fresh})
    assert not [action for action in actions if isinstance(action, Delete)]
    assert verdict == Rest("Job changed and is no longer due for deletion")
