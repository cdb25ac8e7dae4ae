"""Limits how fast an autoscaler changes replicas: stabilization windows and scaling policies.

Pure functions of a `History`, the recommendations and scale events of one autoscaler. They return the
history to keep for the next round.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from steersman.api.kinds.autoscaling import HorizontalPodAutoscalerBehavior, HPAScalingRules

SCALE_UP_LIMIT_FACTOR = 2
SCALE_UP_LIMIT_MINIMUM = 4
"""Without a behavior, replicas at most double in one round, and may always grow to four."""


class Recommendation(msgspec.Struct, frozen=True):
    """The replicas that metrics asked for, before stabilization."""

    replicas: int
    at: datetime


class ScaleEvent(msgspec.Struct, frozen=True):
    """A change of the target's scale: the number of replicas added or removed."""

    change: int
    at: datetime


class History(msgspec.Struct, frozen=True):
    """The recent recommendations and scale events of one autoscaler."""

    recommendations: tuple[Recommendation, ...] = ()
    scale_up_events: tuple[ScaleEvent, ...] = ()
    scale_down_events: tuple[ScaleEvent, ...] = ()

    def with_initial_recommendation(self, replicas: int, now: datetime) -> History:
        """Takes the current replicas as the first recommendation, where there is none yet."""
        return (
            self if self.recommendations else replace(self, recommendations=(Recommendation(replicas, now),))
        )

    def with_recommendation(self, replicas: int, now: datetime, window: timedelta) -> History:
        """Adds a recommendation and drops those older than the stabilization window."""
        recent = (one for one in self.recommendations if one.at >= now - window)
        return replace(self, recommendations=(*recent, Recommendation(replicas, now)))

    def with_scale_event(self, before: int, after: int, now: datetime, period: timedelta) -> History:
        """Adds a scale event and drops those older than the longest policy period of that direction."""
        events = self.scale_up_events if after > before else self.scale_down_events
        recent = (one for one in events if one.at >= now - period)
        kept = (*recent, ScaleEvent(abs(after - before), now))
        return (
            replace(self, scale_up_events=kept) if after > before else replace(self, scale_down_events=kept)
        )


class Normalized(msgspec.Struct, frozen=True):
    """The desired replicas after stabilization and limits, and the conditions that say so."""

    replicas: int
    able_to_scale: tuple[str, str]
    """Reason and message of the condition AbleToScale."""
    scaling_limited: tuple[bool, str, str]
    """Status, reason and message of the condition ScalingLimited."""
    history: History
    """The history with this recommendation."""


READY = ("ReadyForNewScale", "recommended size matches current size")
SCALE_DOWN_STABILIZED = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
SCALE_UP_STABILIZED = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
WITHIN_RANGE = ("DesiredWithinRange", "the desired count is within the acceptable range")
TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
SCALE_UP_LIMIT = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
SCALE_DOWN_LIMIT = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)


def normalize(
    history: History,
    *,
    current: int,
    desired: int,
    minimum: int,
    maximum: int,
    now: datetime,
    window: timedelta,
) -> Normalized:
    """Without a behavior: apply the highest recent recommendation, at most double, stay within the bounds."""
    recent = (one.replicas for one in history.recommendations if one.at >= now - window)
    stable = max([desired, *recent])
    fastest = max(SCALE_UP_LIMIT_FACTOR * current, SCALE_UP_LIMIT_MINIMUM)
    ceiling, over = (fastest, SCALE_UP_LIMIT) if maximum > fastest else (maximum, TOO_MANY)
    replicas, reason = stable, WITHIN_RANGE
    if stable < minimum:
        replicas, reason = minimum, TOO_FEW
    elif stable > ceiling:
        replicas, reason = ceiling, over
    return Normalized(
        replicas,
        SCALE_DOWN_STABILIZED if stable != desired else READY,
        (replicas != stable, *reason),
        history.with_recommendation(desired, now, window),
    )


def normalize_with_behavior(
    history: History,
    behavior: HorizontalPodAutoscalerBehavior,
    *,
    current: int,
    desired: int,
    minimum: int,
    maximum: int,
    now: datetime,
    window: timedelta,
) -> Normalized:
    """With a behavior: apply its stabilization windows, then its scaling policies.

    ``window`` is the downscale stabilization where the behavior sets none.
    """
    up, down = behavior.scaleUp or HPAScalingRules(), behavior.scaleDown or HPAScalingRules()
    up_window = timedelta(seconds=up.stabilizationWindowSeconds or 0)
    down_window = (
        window
        if down.stabilizationWindowSeconds is None
        else timedelta(seconds=down.stabilizationWindowSeconds)
    )
    lowest = min([desired, *(one.replicas for one in history.recommendations if one.at > now - up_window)])
    highest = max([desired, *(one.replicas for one in history.recommendations if one.at > now - down_window)])
    stable = min(max(current, lowest), highest)
    able_to_scale = READY
    if stable != desired:
        able_to_scale = SCALE_UP_STABILIZED if desired >= current else SCALE_DOWN_STABILIZED
    replicas, reason = stable, WITHIN_RANGE
    if stable > current:
        limit = max(current, _scale_up_limit(history, up, current, now))
        ceiling, over = (limit, SCALE_UP_LIMIT) if maximum > limit else (maximum, TOO_MANY)
        if stable > ceiling:
            replicas, reason = ceiling, over
    elif stable < current:
        limit = min(current, _scale_down_limit(history, down, current, now))
        floor, under = (limit, SCALE_DOWN_LIMIT) if minimum < limit else (minimum, TOO_FEW)
        if stable < floor:
            replicas, reason = floor, under
    return Normalized(
        replicas,
        able_to_scale,
        (replicas != stable, *reason),
        history.with_recommendation(desired, now, max(up_window, down_window)),
    )


def _period_start_replicas(history: History, seconds: int, current: int, now: datetime) -> int:
    """The replicas when a policy's period began."""
    since = now - timedelta(seconds=seconds)
    added = sum(event.change for event in history.scale_up_events if event.at > since)
    removed = sum(event.change for event in history.scale_down_events if event.at > since)
    return current - added + removed


def _scale_up_limit(history: History, rules: HPAScalingRules, current: int, now: datetime) -> int:
    if rules.selectPolicy == "Disabled":
        return current
    limits = []
    for policy in rules.policies or ():
        start = _period_start_replicas(history, policy.periodSeconds, current, now)
        by_percent = math.ceil(start * (1 + policy.value / 100))
        limits.append(start + policy.value if policy.type == "Pods" else by_percent)
    select = min if rules.selectPolicy == "Min" else max
    return select(limits, default=current)


def _scale_down_limit(history: History, rules: HPAScalingRules, current: int, now: datetime) -> int:
    if rules.selectPolicy == "Disabled":
        return current
    limits = []
    for policy in rules.policies or ():
        start = _period_start_replicas(history, policy.periodSeconds, current, now)
        by_percent = int(start * (1 - policy.value / 100))
        limits.append(start - policy.value if policy.type == "Pods" else by_percent)
    select = max if rules.selectPolicy == "Min" else min
    return select(limits, default=current)


def longest_policy_period(rules: HPAScalingRules | None) -> timedelta:
    """The longest period of a direction's policies: how long its scale events are kept."""
    periods = (policy.periodSeconds for policy in rules.policies or ()) if rules is not None else ()
    return timedelta(seconds=max(periods, default=0))
