"""How many replicas a metric asks for: the arithmetic, in upstream's tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.kinds import (
    Condition,
    Container,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from steersman.controllers.horizontalpodautoscaler.replica_calculator import (
    MetricError,
    PodMetric,
    ReplicaCalculator,
    Tolerance,
    group_pods,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OLD = NOW - timedelta(hours=1)


def calculator(pods: tuple[Pod, ...], replicas: int) -> ReplicaCalculator:
    return ReplicaCalculator(
        pods, replicas, Tolerance(0.1, 0.1), NOW, timedelta(minutes=2), timedelta(seconds=10)
    )


def pod(
    number: int,
    *,
    request: str = "1",
    ready: str = "True",
    phase: str = "Running",
    started: datetime = OLD,
    since: datetime | None = OLD,
    going: bool = False,
) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=f"p{number}", deletionTimestamp=NOW if going else None),
        spec=PodSpec(
            containers=(
                Container(
                    name="c", resources=ResourceRequirements(requests={"cpu": request} if request else {})
                ),
            )
        ),
        status=PodStatus(
            phase=phase,
            startTime=started,
            conditions=(Condition(type="Ready", status=ready, lastTransitionTime=since),),
        ),
    )


def metrics(*levels: int | None) -> dict[str, PodMetric]:
    return {f"p{number}": PodMetric(level, NOW) for number, level in enumerate(levels) if level is not None}


def cpu(
    pods: list[Pod], levels: tuple[int | None, ...], target: int, current: int | None = None
) -> tuple[int, int, int]:
    count = len(pods) if current is None else current
    return calculator(tuple(pods), count).by_utilization(metrics(*levels), target, "cpu")


@pytest.mark.parametrize(
    ("levels", "target", "replicas", "percent"),
    [
        ((300, 500, 700), 30, 5, 50),
        ((1010, 1030, 1020), 100, 3, 102),
        ((100, 300, 500, 250, 250), 50, 3, 28),
        ((400, 500, 700), 100, 2, 53),
        ((10, 20), 100, 1, 1),
        ((1000, 500, 900, 700), 60, 6, 77),
    ],
)
def test_by_use_of_what_was_asked_for(
    levels: tuple[int, ...], target: int, replicas: int, percent: int
) -> None:
    assert cpu([pod(n) for n in range(len(levels))], levels, target)[:2] == (replicas, percent)


def test_pods_that_say_nothing_speak_against_growing() -> None:
    assert cpu([pod(n) for n in range(3)], (300, 500, None), 30)[0] == 3
    assert cpu([pod(n) for n in range(4)], (3000, 4000, None, None), 50)[0] == 28 // 2


def test_pods_that_say_nothing_speak_against_shrinking() -> None:
    assert cpu([pod(n) for n in range(4)], (400, 950, None, None), 100)[0] == 4
    assert cpu([pod(n) for n in range(3)], (100, 100, None), 50)[0] == 3


def test_a_pod_that_is_starting_counts_for_nothing_where_there_would_be_more() -> None:
    young = NOW - timedelta(minutes=1)
    pods = [pod(0), pod(1), pod(2, ready="False", started=young, since=young)]
    assert cpu(pods, (300, 500, 700), 30)[0] == 3
    late = [pod(0), pod(1), pod(2, started=young, since=NOW - timedelta(seconds=20))]
    assert cpu(late, (300, 500, 700), 30)[0] == 3


def test_a_pod_that_became_unready_later_counts() -> None:
    pods = [pod(0), pod(1), pod(2, ready="False", since=NOW - timedelta(minutes=3))]
    assert cpu(pods, (300, 500, 700), 30)[0] == 5


@pytest.mark.parametrize("other", [pod(2, phase="Failed"), pod(2, going=True)])
def test_a_pod_that_failed_or_goes_does_not_count(other: Pod) -> None:
    assert cpu([pod(0), pod(1), other], (500, 700, 9000), 50, current=2)[0] == 3


def test_a_pending_pod_counts_only_against_growing() -> None:
    assert cpu([pod(0), pod(1), pod(2, phase="Pending")], (500, 700), 50)[0] == 3
    assert cpu([pod(0), pod(1), pod(2, phase="Pending")], (100, 100), 50)[0] == 1


@pytest.mark.parametrize(
    ("pods", "levels", "why"),
    [
        ([], (1,), "no pods returned by selector while calculating replica count"),
        (
            [pod(0, phase="Pending")],
            (1,),
            "did not receive metrics for targeted pods (pods might be unready)",
        ),
        ([pod(0, request="")], (1,), "missing request for cpu in container c of Pod p0"),
        ([pod(0, request="0")], (1,), "no metrics returned matched known pods"),
    ],
)
def test_where_nobody_can_tell_it_says_why(pods: list[Pod], levels: tuple[int, ...], why: str) -> None:
    with pytest.raises(MetricError) as caught:
        cpu(pods, levels, 50)
    assert str(caught.value) == why


def test_by_an_average() -> None:
    pods = tuple(pod(n) for n in range(3))
    assert calculator(pods, 3).by_average(metrics(20000, 10000, 30000), 15000) == (4, 20000)
    assert calculator(pods, 3).by_average(metrics(20000, 10000, 30000), 20000) == (3, 20000)


@pytest.mark.parametrize(
    ("current", "ratio", "ready", "replicas"),
    [(3, 1.05, 3, 3), (3, 2.0, 3, 6), (3, 0.5, 2, 1), (0, 3.2, 0, 4), (3, 1e12, 3, 2**31 - 1)],
)
def test_by_one_value_for_all(current: int, ratio: float, ready: int, replicas: int) -> None:
    pods = tuple(pod(n, ready="True" if n < ready else "False") for n in range(3))
    assert calculator(pods, current).by_ratio(ratio) == replicas


def test_by_one_value_shared_by_all() -> None:
    assert calculator((), 0).per_pod(5, 40000, 10000) == (4, 8000)
    assert calculator((), 0).per_pod(4, 41000, 10000) == (4, 10250)
    assert calculator((), 0).per_pod(0, 41000, 10000)[0] == 5


LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("replicas", "usage", "target", "wanted", "each"),
    [
        (2, LARGEST, 1, 2**31 - 1, LARGEST),
        (1, LARGEST, LARGEST, 1, LARGEST),
        (2, 2**62, 2**62, 1, 2**61),
    ],
)
def test_an_overflow_ends_at_the_largest_value(
    replicas: int, usage: int, target: int, wanted: int, each: int
) -> None:
    assert calculator((), replicas).per_pod(replicas, usage, target) == (wanted, each)


@pytest.mark.parametrize(
    ("levels", "average"), [((-1, -2), -1), ((-3, 0), -1), ((-4, -4), -4), ((3, 0), 1), ((1, -4), -1)]
)
def test_negative_averages_are_truncated_towards_zero(levels: tuple[int, ...], average: int) -> None:
    pods = tuple(pod(n) for n in range(len(levels)))
    assert calculator(pods, 2).by_average(metrics(*levels), 1000)[1] == average


def test_a_negative_utilization_is_truncated_towards_zero() -> None:
    assert cpu([pod(n) for n in range(2)], (-15, -16), 50)[1:] == (-1, -15)


YOUNG = NOW - timedelta(minutes=1)


@pytest.mark.parametrize(
    ("started", "since", "ready", "at", "counted"),
    [
        # Within the initialization period, a reading counts one window after the last transition.
        (YOUNG, YOUNG, "True", NOW, True),
        (YOUNG, YOUNG, "True", None, False),
        (YOUNG, None, "True", NOW, True),
        (NOW - timedelta(seconds=10), None, "True", NOW, True),
        (YOUNG, None, "True", None, False),
        (YOUNG, None, "False", NOW, False),
        # After it, a pod that has never been ready does not count.
        (OLD, OLD, "True", None, True),
        (OLD, None, "True", None, True),
        (OLD, None, "False", NOW, False),
        (OLD, NOW, "False", NOW, True),
    ],
)
def test_missing_times_count_as_the_earliest(
    started: datetime, since: datetime | None, ready: str, at: datetime | None, counted: bool
) -> None:
    one = pod(0, started=started, since=since, ready=ready)
    groups = group_pods(
        [one],
        {"p0": PodMetric(1, at, timedelta(seconds=30))},
        "cpu",
        NOW,
        timedelta(minutes=2),
        timedelta(seconds=10),
    )
    assert groups.ready == counted
    assert (groups.unready == {"p0"}) is not counted


@given(
    levels=st.lists(st.one_of(st.none(), st.integers(0, 5000)), min_size=1, max_size=8),
    target=st.integers(1, 200),
)
def test_more_is_never_proposed_when_less_is_used(levels: list[int | None], target: int) -> None:
    pods = [pod(n) for n in range(len(levels))]
    try:
        replicas, percent, _ = cpu(pods, tuple(levels), target)
    except MetricError:
        return
    assert replicas >= 0
    if percent < target * 0.9:
        assert replicas <= len(pods)
    if percent > target * 1.1:
        assert replicas >= len([level for level in levels if level is not None])


def test_each_pod_asks_for_itself() -> None:
    some: list[Any] = [pod(0, request="500m"), pod(1, request="2")]
    assert cpu(some, (500, 500), 40)[1] == 40
