"""The conditions Progressing and ReplicaFailure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from steersman.api.conditions import find_condition
from steersman.api.kinds import Condition, Deployment, DeploymentStatus
from steersman.controllers.deployment import status as deployment_status
from steersman.controllers.deployment.replicasets import Limits, ReplicaSets
from tests.harness.workloads import deployment, replicaset

THEN = datetime(2017, 2, 15, 18, 49, tzinfo=UTC)


def progressing(status: str, reason: str, at: datetime = THEN) -> Condition:
    return Condition(
        type="Progressing", status=status, reason=reason, lastUpdateTime=at, lastTransitionTime=at
    )


MOVING = progressing("True", "ReplicaSetUpdated")
FAILED = progressing("False", "ProgressDeadlineExceeded")
ROLLED_OUT = progressing("True", "NewReplicaSetAvailable")


def rolling_out(
    replicas: int,
    known: tuple[int, int, int],
    *conditions: Condition,
    deadline: int | None = 60,
    image: str = "v2",
) -> Deployment:
    """``known`` are the replicas, updated and available ones the status had."""
    current, updated, available = known
    return deployment(
        replicas,
        image,
        strategy="Recreate",
        deadline=deadline,
        status=DeploymentStatus(
            observedGeneration=1,
            replicas=current,
            updatedReplicas=updated,
            readyReplicas=available,
            availableReplicas=available,
            conditions=conditions,
        ),
    )


def said(
    owner: Deployment, new: tuple[int, int] | None, old: tuple[int, int], now: datetime
) -> Condition | None:
    """The Progressing condition, given how many pods a set has and how many are available."""
    sets = [replicaset(owner, "v1", 0, current=old[0], available=old[1], age=9)]
    if new is not None:
        sets.append(replicaset(owner, "v2", 3, current=new[0], available=new[1]))
    replicasets = ReplicaSets.of(owner, sets)
    status = deployment_status.new_status(replicasets, Limits.of(owner), owner.status.conditions, now)
    return find_condition(deployment_status.with_progress(replicasets, status, now).conditions, "Progressing")


SOON = THEN + timedelta(seconds=30)
LATE = THEN + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("owner", "new", "old", "now", "status", "reason", "updated", "transition"),
    [
        pytest.param(
            rolling_out(3, (2, 2, 2), MOVING),
            (2, 2),
            (1, 1),
            SOON,
            "True",
            "ReplicaSetUpdated",
            SOON,
            THEN,
            id="one more available: progress, and no transition",
        ),
        pytest.param(
            rolling_out(3, (2, 2, 2), FAILED),
            (2, 2),
            (1, 1),
            LATE,
            "True",
            "ReplicaSetUpdated",
            LATE,
            LATE,
            id="progress after it was given up",
        ),
        pytest.param(
            rolling_out(3, (2, 2, 2)),
            (2, 2),
            (1, 1),
            SOON,
            "True",
            "ReplicaSetUpdated",
            SOON,
            SOON,
            id="the first that is said",
        ),
        pytest.param(
            rolling_out(3, (3, 1, 3), MOVING),
            (1, 1),
            (1, 1),
            SOON,
            "True",
            "ReplicaSetUpdated",
            SOON,
            THEN,
            id="an old pod went: progress",
        ),
        pytest.param(
            rolling_out(3, (3, 3, 3), MOVING),
            (3, 3),
            (0, 0),
            SOON,
            "True",
            "NewReplicaSetAvailable",
            SOON,
            THEN,
            id="done",
        ),
        pytest.param(
            rolling_out(3, (3, 3, 3), FAILED),
            (3, 3),
            (0, 0),
            LATE,
            "True",
            "NewReplicaSetAvailable",
            LATE,
            LATE,
            id="done after it was given up",
        ),
        pytest.param(
            rolling_out(0, (3, 3, 3), MOVING),
            None,
            (0, 0),
            SOON,
            "True",
            "NewReplicaSetAvailable",
            SOON,
            THEN,
            id="done without a new set: none is wanted",
        ),
        pytest.param(
            rolling_out(3, (3, 3, 3), ROLLED_OUT),
            (3, 2),
            (0, 0),
            LATE,
            "True",
            "NewReplicaSetAvailable",
            THEN,
            THEN,
            id="a pod lost after the rollout is no rollout",
        ),
        pytest.param(
            rolling_out(3, (3, 3, 3), ROLLED_OUT),
            (0, 0),
            (3, 3),
            LATE,
            "True",
            "NewReplicaSetAvailable",
            THEN,
            THEN,
            id="a rollout that has only begun is not late by the time of the last one",
        ),
        pytest.param(
            rolling_out(3, (3, 0, 3), ROLLED_OUT),
            (1, 1),
            (3, 3),
            LATE,
            "True",
            "ReplicaSetUpdated",
            LATE,
            THEN,
            id="the first new pod after an earlier rollout is progress",
        ),
        pytest.param(
            rolling_out(3, (2, 2, 2), MOVING),
            (2, 2),
            (0, 0),
            LATE,
            "False",
            "ProgressDeadlineExceeded",
            LATE,
            LATE,
            id="late, at the very instant",
        ),
        pytest.param(
            rolling_out(3, (2, 2, 2), MOVING),
            (2, 2),
            (0, 0),
            LATE - timedelta(microseconds=1),
            "True",
            "ReplicaSetUpdated",
            THEN,
            THEN,
            id="not late a moment before",
        ),
        pytest.param(
            rolling_out(3, (2, 2, 2), FAILED),
            (2, 2),
            (0, 0),
            LATE,
            "False",
            "ProgressDeadlineExceeded",
            THEN,
            THEN,
            id="given up stays given up",
        ),
        pytest.param(
            rolling_out(3, (2, 2, 2), progressing("Unknown", "DeploymentResumed")),
            (2, 2),
            (0, 0),
            LATE,
            "False",
            "ProgressDeadlineExceeded",
            LATE,
            LATE,
            id="late since it was resumed",
        ),
    ],
)
def test_progress_is_told_from_what_the_status_was(
    owner: Deployment,
    new: tuple[int, int] | None,
    old: tuple[int, int],
    now: datetime,
    status: str,
    reason: str,
    updated: datetime,
    transition: datetime,
) -> None:
    condition = said(owner, new, old, now)
    assert condition is not None
    assert (condition.status, condition.reason) == (status, reason)
    assert (condition.lastUpdateTime, condition.lastTransitionTime) == (updated, transition)


@pytest.mark.parametrize("deadline", [None, 2**31 - 1])
def test_without_a_deadline_nothing_is_said(deadline: int | None) -> None:
    assert said(rolling_out(3, (2, 2, 2), MOVING, deadline=deadline), (2, 2), (1, 1), LATE) is None


@pytest.mark.parametrize(
    ("owner", "new", "old", "message"),
    [
        (rolling_out(3, (2, 2, 2)), (2, 2), (1, 1), 'ReplicaSet "web-v2" is progressing.'),
        (rolling_out(3, (3, 3, 3)), (3, 3), (0, 0), 'ReplicaSet "web-v2" has successfully progressed.'),
        (rolling_out(3, (2, 2, 2), MOVING), (2, 2), (0, 0), 'ReplicaSet "web-v2" has timed out progressing.'),
        (rolling_out(0, (3, 3, 3)), None, (0, 0), 'Deployment "web" has successfully progressed.'),
        (rolling_out(1, (3, 0, 3), MOVING), None, (2, 2), 'Deployment "web" is progressing.'),
        (rolling_out(1, (3, 0, 3), MOVING), None, (3, 3), 'Deployment "web" has timed out progressing.'),
    ],
)
def test_the_message_names_the_new_set_or_else_the_deployment(
    owner: Deployment, new: tuple[int, int] | None, old: tuple[int, int], message: str
) -> None:
    condition = said(owner, new, old, LATE)
    assert condition is not None
    assert condition.message == message


@pytest.mark.parametrize(
    ("paused", "was", "status", "reason"),
    [
        pytest.param(True, MOVING, "Unknown", "DeploymentPaused", id="paused"),
        pytest.param(True, None, "Unknown", "DeploymentPaused", id="paused from the start"),
        pytest.param(
            False, progressing("Unknown", "DeploymentPaused"), "Unknown", "DeploymentResumed", id="resumed"
        ),
        pytest.param(
            True, progressing("Unknown", "DeploymentPaused"), "Unknown", "DeploymentPaused", id="no news"
        ),
        pytest.param(True, FAILED, "False", "ProgressDeadlineExceeded", id="a failure is not covered up"),
        pytest.param(False, MOVING, "True", "ReplicaSetUpdated", id="never paused"),
    ],
)
def test_pausing_and_resuming_is_news(paused: bool, was: Condition | None, status: str, reason: str) -> None:
    conditions = () if was is None else (was,)
    owner = deployment(paused=paused, status=DeploymentStatus(conditions=conditions))
    condition = find_condition(deployment_status.with_paused(owner, LATE), "Progressing")
    assert condition is not None
    assert (condition.status, condition.reason) == (status, reason)
    if was is not None and was.reason == reason:
        assert condition is was


def test_pausing_is_not_mentioned_without_a_deadline() -> None:
    assert deployment_status.with_paused(deployment(paused=True, deadline=None), LATE) == ()


def test_a_resumed_rollout_has_its_whole_deadline_before_it() -> None:
    owner = deployment(
        deadline=60, status=DeploymentStatus(conditions=(progressing("Unknown", "DeploymentPaused"),))
    )
    now = THEN + timedelta(days=3, milliseconds=250)
    shown = deployment_status.with_paused(owner, now)
    assert deployment_status.deadline_at(owner, shown) == THEN + timedelta(days=3, seconds=60)


@pytest.mark.parametrize(
    ("condition", "deadline", "expiry"),
    [
        (MOVING, 60, LATE),
        (MOVING, None, None),
        (MOVING, 2**31 - 1, None),
        (None, 60, None),
        (FAILED, 60, None),
        (ROLLED_OUT, 60, None),
    ],
)
def test_when_a_rollout_counts_as_stuck(
    condition: Condition | None, deadline: int | None, expiry: datetime | None
) -> None:
    shown = () if condition is None else (condition,)
    assert deployment_status.deadline_at(deployment(deadline=deadline), shown) == expiry


FAILURE = Condition(
    type="ReplicaFailure", status="True", reason="FailedCreate", message="quota", lastTransitionTime=THEN
)


def test_a_failure_of_the_new_set_comes_before_those_of_others() -> None:
    owner = deployment(image="v2")
    other = Condition(type="ReplicaFailure", status="True", reason="FailedDelete", lastTransitionTime=THEN)
    sets = ReplicaSets.of(
        owner,
        [
            replicaset(owner, "v1", age=9, conditions=(other,)),
            replicaset(owner, "v2", conditions=(FAILURE,)),
        ],
    )
    failure = deployment_status.replica_failure(sets)
    assert failure is not None
    assert (failure.reason, failure.message, failure.lastUpdateTime) == ("FailedCreate", "quota", THEN)


def test_a_failure_is_shown_while_it_lasts() -> None:
    owner = deployment()
    broken = ReplicaSets.of(owner, [replicaset(owner, conditions=(FAILURE,))])
    status = deployment_status.new_status(broken, Limits.of(owner), (), LATE)
    shown = deployment_status.with_progress(broken, status, LATE).conditions
    assert find_condition(shown, "ReplicaFailure") is not None

    mended = ReplicaSets.of(owner, [replicaset(owner)])
    status = deployment_status.new_status(mended, Limits.of(owner), shown, LATE)
    assert (
        find_condition(deployment_status.with_progress(mended, status, LATE).conditions, "ReplicaFailure")
        is None
    )
