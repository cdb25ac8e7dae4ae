"""How fast replicas may change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from steersman.api.kinds.autoscaling import HorizontalPodAutoscalerBehavior, HPAScalingPolicy, HPAScalingRules
from steersman.controllers.horizontalpodautoscaler.behavior import History, longest, plain, ruled

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOW = timedelta(minutes=5)


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
    found = plain(History(list(recent)), current, wanted, 2, 20, NOW, WINDOW)
    assert (found.replicas, found.stabilized[0], found.limited[1]) == (replicas, able, limited)


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
    found = ruled(History(added=list(added)), behavior, 10, wanted, 1, 50, NOW, WINDOW)
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
    found = ruled(History(removed=list(removed)), behavior, 10, 1, 1, 50, NOW, WINDOW)
    assert found.replicas == replicas
    assert found.limited[1] == ("ScaleDownLimit" if replicas > 1 else "DesiredWithinRange")


def test_windows_hold_back_in_both_directions() -> None:
    slow = HorizontalPodAutoscalerBehavior(
        scaleUp=rules(("Pods", 99, 60), window=120), scaleDown=rules(("Pods", 99, 60), window=300)
    )
    rising = ruled(History([(11, ago(seconds=60)), (12, ago(seconds=200))]), slow, 10, 20, 1, 50, NOW, WINDOW)
    assert (rising.replicas, rising.stabilized[0]) == (11, "ScaleUpStabilized")
    falling = ruled(History([(8, ago(seconds=60)), (9, ago(seconds=200))]), slow, 10, 2, 1, 50, NOW, WINDOW)
    assert (falling.replicas, falling.stabilized[0]) == (9, "ScaleDownStabilized")


def test_the_window_down_is_the_managers_where_it_is_not_said() -> None:
    behavior = HorizontalPodAutoscalerBehavior(scaleUp=FREE, scaleDown=rules(("Pods", 99, 60), window=None))
    found = ruled(History([(9, ago(seconds=200))]), behavior, 10, 2, 1, 50, NOW, WINDOW)
    assert found.replicas == 9


def test_a_history_forgets_what_nobody_looks_back_on() -> None:
    history = History([(1, ago(minutes=9))], added=[(1, ago(minutes=9))])
    history.recommend(5, NOW, WINDOW)
    history.changed(3, 5, NOW, timedelta(seconds=60))
    assert history.recommended == [(5, NOW)]
    assert history.added == [(2, NOW)]
    assert longest(rules(("Pods", 1, 30), ("Pods", 1, 90))) == timedelta(seconds=90)
