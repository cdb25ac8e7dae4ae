"""How fast replicas may change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from steersman.api.kinds.autoscaling import HorizontalPodAutoscalerBehavior, HPAScalingPolicy, HPAScalingRules
from steersman.controllers.horizontalpodautoscaler.behavior import (
    History,
    Normalized,
    Recommendation,
    ScaleEvent,
    longest_policy_period,
    normalize,
    normalize_with_behavior,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOW = timedelta(minutes=5)


def recommendations(*made: tuple[int, datetime]) -> History:
    return History(tuple(Recommendation(replicas, at) for replicas, at in made))


def events(made: list[tuple[int, datetime]]) -> tuple[ScaleEvent, ...]:
    return tuple(ScaleEvent(change, at) for change, at in made)


def with_behavior(
    history: History, behavior: HorizontalPodAutoscalerBehavior, current: int, desired: int
) -> Normalized:
    return normalize_with_behavior(
        history,
        behavior,
        current=current,
        desired=desired,
        minimum=1,
        maximum=50,
        now=NOW,
        window=WINDOW,
    )


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


@pytest.mark.parametrize(
    ("current", "wanted", "recent", "replicas", "able", "limited"),
    [
        (5, 5, [], 5, "ReadyForNewScale", "DesiredWithinRange"),
        (5, 3, [], 3, "ReadyForNewScale", "DesiredWithinRange"),
        (5, 3, [(6, ago(minutes=2))], 6, "ScaleDownStabilized", "DesiredWithinRange"),
        (5, 3, [(6, ago(minutes=6))], 3, "ReadyForNewScale", "DesiredWithinRange"),
        (5, 0, [], 2, "ReadyForNewScale", "TooFewReplicas"),
        (5, 40, [], 10, "ReadyForNewScale", "ScaleUpLimit"),
        (1, 40, [], 4, "ReadyForNewScale", "ScaleUpLimit"),
        (12, 40, [], 20, "ReadyForNewScale", "TooManyReplicas"),
    ],
)
def test_without_a_behaviour(
    current: int, wanted: int, recent: list[tuple[int, datetime]], replicas: int, able: str, limited: str
) -> None:
    found = normalize(
        recommendations(*recent),
        current=current,
        desired=wanted,
        minimum=2,
        maximum=20,
        now=NOW,
        window=WINDOW,
    )
    assert (found.replicas, found.able_to_scale[0], found.scaling_limited[1]) == (replicas, able, limited)


def rules(*policies: tuple[str, int, int], select: str = "Max", window: int | None = 0) -> HPAScalingRules:
    made = tuple(
        HPAScalingPolicy(type=sort, value=value, periodSeconds=period) for sort, value, period in policies
    )
    return HPAScalingRules(policies=made, selectPolicy=select, stabilizationWindowSeconds=window)


FREE = rules(("Percent", 100, 15))


@pytest.mark.parametrize(
    ("up", "added", "wanted", "replicas"),
    [
        (rules(("Pods", 4, 60)), [], 30, 14),
        (rules(("Pods", 4, 60)), [(3, ago(seconds=30))], 30, 11),
        (rules(("Pods", 4, 60)), [(3, ago(seconds=90))], 30, 14),
        (rules(("Percent", 50, 60)), [], 30, 15),
        (rules(("Pods", 4, 60), ("Percent", 100, 60)), [], 30, 20),
        (rules(("Pods", 4, 60), ("Percent", 100, 60), select="Min"), [], 30, 14),
        (rules(("Pods", 4, 60), select="Disabled"), [], 30, 10),
        (rules(("Pods", 4, 60)), [(9, ago(seconds=5))], 30, 10),
    ],
)
def test_growing_by_policies(
    up: HPAScalingRules, added: list[tuple[int, datetime]], wanted: int, replicas: int
) -> None:
    behavior = HorizontalPodAutoscalerBehavior(scaleUp=up, scaleDown=FREE)
    found = with_behavior(History(scale_up_events=events(added)), behavior, 10, wanted)
    assert found.replicas == replicas


@pytest.mark.parametrize(
    ("down", "removed", "replicas"),
    [
        (rules(("Pods", 2, 60)), [], 8),
        (rules(("Pods", 2, 60)), [(1, ago(seconds=30))], 9),
        (rules(("Percent", 30, 60)), [], 7),
        (rules(("Pods", 2, 60), ("Percent", 50, 60)), [], 5),
        (rules(("Pods", 2, 60), ("Percent", 50, 60), select="Min"), [], 8),
        (rules(("Pods", 2, 60), select="Disabled"), [], 10),
    ],
)
def test_shrinking_by_policies(
    down: HPAScalingRules, removed: list[tuple[int, datetime]], replicas: int
) -> None:
    behavior = HorizontalPodAutoscalerBehavior(scaleUp=FREE, scaleDown=down)
    found = with_behavior(History(scale_down_events=events(removed)), behavior, 10, 1)
    assert found.replicas == replicas
    assert found.scaling_limited[1] == ("ScaleDownLimit" if replicas > 1 else "DesiredWithinRange")


def test_windows_hold_back_in_both_directions() -> None:
    slow = HorizontalPodAutoscalerBehavior(
        scaleUp=rules(("Pods", 99, 60), window=120), scaleDown=rules(("Pods", 99, 60), window=300)
    )
    rising = with_behavior(recommendations((11, ago(seconds=60)), (12, ago(seconds=200))), slow, 10, 20)
    assert (rising.replicas, rising.able_to_scale[0]) == (11, "ScaleUpStabilized")
    falling = with_behavior(recommendations((8, ago(seconds=60)), (9, ago(seconds=200))), slow, 10, 2)
    assert (falling.replicas, falling.able_to_scale[0]) == (9, "ScaleDownStabilized")


def test_the_window_down_is_the_managers_where_it_is_not_said() -> None:
    behavior = HorizontalPodAutoscalerBehavior(scaleUp=FREE, scaleDown=rules(("Pods", 99, 60), window=None))
    found = with_behavior(recommendations((9, ago(seconds=200))), behavior, 10, 2)
    assert found.replicas == 9


def test_a_history_drops_recommendations_and_events_that_are_too_old() -> None:
    history = History((Recommendation(1, ago(minutes=9)),), (ScaleEvent(1, ago(minutes=9)),))
    history = history.with_recommendation(5, NOW, WINDOW)
    history = history.with_scale_event(3, 5, NOW, timedelta(seconds=60))
    assert history == History((Recommendation(5, NOW),), (ScaleEvent(2, NOW),))
    assert history.with_initial_recommendation(9, NOW) is history
    assert longest_policy_period(rules(("Pods", 1, 30), ("Pods", 1, 90))) == timedelta(seconds=90)
