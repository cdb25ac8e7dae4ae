"""The arithmetic of a budget: how many are there, how many should be, how many may go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from steersman.api.conditions import find, revise
from steersman.api.intstr import scaled
from steersman.api.kinds import Condition, Pod
from steersman.api.kinds.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from steersman.api.meta import truncate
from steersman.api.pods import is_ready
from steersman.controllers.disruption.stale import STALE

ALLOWED = "DisruptionAllowed"


class Uncountable(Exception):
    """Nobody can say how many pods there should be."""


def wanted(budget: PodDisruptionBudget, expected: int) -> int:
    """How many pods must stay healthy, of so many expected."""
    spec = budget.spec
    try:
        if spec.maxUnavailable is not None:
            return max(0, expected - scaled(spec.maxUnavailable, expected, round_up=True))
        if spec.minAvailable is not None:
            return scaled(spec.minAvailable, expected, round_up=True)
    except ValueError as error:
        raise Uncountable(str(error)) from None
    return 0


def charges(
    budget: PodDisruptionBudget, pods: Iterable[Pod], now: datetime
) -> tuple[dict[str, datetime], list[Pod]]:
    """Evictions that were granted and not seen yet, by pod; and the pods that should have gone."""
    granted = budget.status.disruptedPods
    charged: dict[str, datetime] = {}
    overdue: list[Pod] = []
    for pod in pods if granted else ():
        since = granted.get(pod.metadata.name)
        if since is None or pod.metadata.deletionTimestamp is not None:
            continue
        if since + STALE <= now:  # also to the moment, for that is when it is looked at again
            overdue.append(pod)
        else:
            charged[pod.metadata.name] = since
    return charged, overdue


def healthy(pods: Iterable[Pod], charged: Mapping[str, datetime]) -> int:
    """How many pods serve, and nobody has been allowed to evict."""
    return sum(
        pod.metadata.deletionTimestamp is None and pod.metadata.name not in charged and is_ready(pod)
        for pod in pods
    )


def status(
    budget: PodDisruptionBudget,
    current: int,
    desired: int,
    expected: int,
    charged: Mapping[str, datetime],
    now: datetime,
) -> PodDisruptionBudgetStatus:
    """What the budget should say; what it says already, where nothing is new."""
    allowed = max(0, current - desired) if expected > 0 else 0
    generation = budget.metadata.generation
    condition = Condition(
        type=ALLOWED,
        status="True" if allowed else "False",
        observedGeneration=generation,
        reason="SufficientPods" if allowed else "InsufficientPods",
        lastTransitionTime=truncate(now),
    )
    made = PodDisruptionBudgetStatus(
        conditions=budget.status.conditions,
        currentHealthy=current,
        desiredHealthy=desired,
        disruptedPods=charged,
        disruptionsAllowed=allowed,
        expectedPods=expected,
        observedGeneration=generation,
    )
    known = find(budget.status.conditions, ALLOWED)
    said = known is not None and (known.status, known.reason) == (condition.status, condition.reason)
    if said and _numbers(budget.status) == _numbers(made):
        return budget.status
    return msgspec.structs.replace(made, conditions=revise(budget.status.conditions, condition))


def failed(budget: PodDisruptionBudget, why: str, now: datetime) -> PodDisruptionBudgetStatus:
    """Nothing may be disrupted while nobody knows."""
    old = budget.status
    condition = Condition(
        type=ALLOWED,
        status="False",
        observedGeneration=old.observedGeneration,
        reason="SyncFailed",
        message=why,
        lastTransitionTime=truncate(now),
    )
    return PodDisruptionBudgetStatus(
        conditions=revise(old.conditions, condition),
        currentHealthy=old.currentHealthy,
        desiredHealthy=old.desiredHealthy,
        disruptedPods=old.disruptedPods,
        disruptionsAllowed=0,
        expectedPods=old.expectedPods,
        observedGeneration=old.observedGeneration,
    )


def says_failed(budget: PodDisruptionBudget, why: str) -> bool:
    """Whether that is what the budget says already."""
    known = find(budget.status.conditions, ALLOWED)
    said = known is not None and (known.status, known.reason, known.message) == ("False", "SyncFailed", why)
    return said and not budget.status.disruptionsAllowed


def _numbers(status: PodDisruptionBudgetStatus) -> tuple[object, ...]:
    return (
        status.currentHealthy,
        status.desiredHealthy,
        status.expectedPods,
        status.disruptionsAllowed,
        dict(status.disruptedPods),
        status.observedGeneration,
    )
