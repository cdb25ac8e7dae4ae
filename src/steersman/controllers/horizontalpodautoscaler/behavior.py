"""How fast replicas may change: what was recommended lately, and how much was changed lately."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import msgspec
from msgspec import field

from steersman.api.kinds.autoscaling import HorizontalPodAutoscalerBehavior, HPAScalingRules

UP_FACTOR = 2
UP_LEAST = 4


class History(msgspec.Struct):
    """What one autoscaler remembers, for as long as its manager leads."""

    recommended: list[tuple[int, datetime]] = field(default_factory=list)
    added: list[tuple[int, datetime]] = field(default_factory=list)
    removed: list[tuple[int, datetime]] = field(default_factory=list)

    def begin(self, replicas: int, now: datetime) -> None:
        """What is there when it begins counts as recommended."""
        if not self.recommended:
            self.recommended.append((replicas, now))

    def recommend(self, replicas: int, now: datetime, keep: timedelta) -> None:
        self.recommended = [(number, at) for number, at in self.recommended if at >= now - keep]
        self.recommended.append((replicas, now))

    def changed(self, before: int, after: int, now: datetime, keep: timedelta) -> None:
        """Note a change, for the policies that look back on it."""
        events = self.added if after > before else self.removed
        events[:] = [(number, at) for number, at in events if at >= now - keep]
        events.append((abs(after - before), now))


class Limited(msgspec.Struct, frozen=True):
    """What is left of a wish, and why."""

    replicas: int
    stabilized: tuple[str, str]
    """Reason and message of AbleToScale."""
    limited: tuple[bool, str, str]
    """Status, reason and message of ScalingLimited."""


READY = ("ReadyForNewScale", "recommended size matches current size")
HIGHER = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
LOWER = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
TOO_FAST_UP = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
TOO_FAST_DOWN = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)


def plain(
    history: History, current: int, wanted: int, least: int, most: int, now: datetime, window: timedelta
) -> Limited:
    """Without a behaviour: the highest of what was recommended lately, twice as many (or four) at once at most."""
    recent = [number for number, at in history.recommended if at >= now - window]
    stable = max([wanted, *recent])
    history.recommend(wanted, now, window)
    fast = max(UP_FACTOR * current, UP_LEAST)
    ceiling, why = (fast, TOO_FAST_UP) if most > fast else (most, TOO_MANY)
    reason, replicas = WITHIN, stable
    if stable < least:
        reason, replicas = TOO_FEW, least
    elif stable > ceiling:
        reason, replicas = why, ceiling
    return Limited(replicas, HIGHER if stable != wanted else READY, (replicas != stable, *reason))


def ruled(
    history: History,
    behavior: HorizontalPodAutoscalerBehavior,
    current: int,
    wanted: int,
    least: int,
    most: int,
    now: datetime,
    window: timedelta,
) -> Limited:
    """With a behaviour: its windows, then its policies."""
    up, down = behavior.scaleUp or HPAScalingRules(), behavior.scaleDown or HPAScalingRules()
    rise = timedelta(seconds=up.stabilizationWindowSeconds or 0)
    fall = window if down.stabilizationWindowSeconds is None else _seconds(down.stabilizationWindowSeconds)
    lowest = min([wanted, *(number for number, at in history.recommended if at > now - rise)])
    highest = max([wanted, *(number for number, at in history.recommended if at > now - fall)])
    stable = min(max(current, lowest), highest)
    history.recommend(wanted, now, max(rise, fall))
    stabilized = READY
    if stable != wanted:
        stabilized = LOWER if wanted >= current else HIGHER
    replicas, reason = stable, WITHIN
    if stable > current:
        limit = max(current, _rise(history, up, current, now))
        ceiling, why = (limit, TOO_FAST_UP) if most > limit else (most, TOO_MANY)
        if stable > ceiling:
            replicas, reason = ceiling, why
    elif stable < current:
        limit = min(current, _fall(history, down, current, now))
        floor, why = (limit, TOO_FAST_DOWN) if least < limit else (least, TOO_FEW)
        if stable < floor:
            replicas, reason = floor, why
    return Limited(replicas, stabilized, (replicas != stable, *reason))


def _seconds(number: int) -> timedelta:
    return timedelta(seconds=number)


def _start(history: History, period: int, current: int, now: datetime) -> int:
    """How many there were when a policy's period began."""
    since = now - timedelta(seconds=period)
    added = sum(number for number, at in history.added if at > since)
    removed = sum(number for number, at in history.removed if at > since)
    return current - added + removed


def _rise(history: History, rules: HPAScalingRules, current: int, now: datetime) -> int:
    if rules.selectPolicy == "Disabled":
        return current
    limits = []
    for policy in rules.policies:
        start = _start(history, policy.periodSeconds, current, now)
        by_share = math.ceil(start * (1 + policy.value / 100))
        limits.append(start + policy.value if policy.type == "Pods" else by_share)
    pick = min if rules.selectPolicy == "Min" else max
    return pick(limits, default=current)


def _fall(history: History, rules: HPAScalingRules, current: int, now: datetime) -> int:
    if rules.selectPolicy == "Disabled":
        return current
    limits = []
    for policy in rules.policies:
        start = _start(history, policy.periodSeconds, current, now)
        by_share = int(start * (1 - policy.value / 100))
        limits.append(start - policy.value if policy.type == "Pods" else by_share)
    pick = max if rules.selectPolicy == "Min" else min
    return pick(limits, default=current)


def longest(rules: HPAScalingRules | None) -> timedelta:
    """How far back the policies look."""
    periods = (policy.periodSeconds for policy in rules.policies) if rules is not None else ()
    return timedelta(seconds=max(periods, default=0))
