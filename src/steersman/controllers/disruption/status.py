"""The status of a PodDisruptionBudget: healthy pods, desired healthy pods, and the disruptions allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from steersman.api.conditions import find_condition, replace_condition
from steersman.api.intstr import scaled
from steersman.api.kinds import Condition, Pod
from steersman.api.kinds.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from steersman.api.meta import truncate_to_seconds
from steersman.api.pods import is_ready

DISRUPTION_ALLOWED = "DisruptionAllowed"
DELETION_TIMEOUT = timedelta(minutes=2)
"""How long a granted eviction counts against the budget while the pod is not seen to be deleted."""


class CountError(Exception):
    """The number of expected pods cannot be calculated. The message is upstream's."""


def desired_healthy(budget: PodDisruptionBudget, expected: int) -> int:
    """The number of the expected pods that must stay healthy. Raises `CountError`."""
    spec = budget.spec
    try:
        if spec.maxUnavailable is not None:
            return max(0, expected - scaled(spec.maxUnavailable, expected, round_up=True))
        if spec.minAvailable is not None:
            return scaled(spec.minAvailable, expected, round_up=True)
    except ValueError as error:
        raise CountError(str(error)) from None
    return 0


def disrupted_pods(
    budget: PodDisruptionBudget, pods: Iterable[Pod], now: datetime
) -> tuple[dict[str, datetime], list[Pod]]:
    """The granted evictions that still count, by pod; and the pods that were not deleted in time."""
    granted = budget.status.disruptedPods
    disrupted: dict[str, datetime] = {}
    overdue: list[Pod] = []
    for pod in pods if granted else ():
        since = granted.get(pod.metadata.name)
        if since is None or pod.metadata.deletionTimestamp is not None:
            continue
        if since + DELETION_TIMEOUT <= now:  # equal, too: that is when the next round is due
            overdue.append(pod)
        else:
            disrupted[pod.metadata.name] = since
    return disrupted, overdue


def count_healthy(pods: Iterable[Pod], disrupted: Mapping[str, datetime]) -> int:
    """The number of ready pods that are neither being deleted nor granted for eviction."""
    return sum(
        pod.metadata.deletionTimestamp is None and pod.metadata.name not in disrupted and is_ready(pod)
        for pod in pods
    )


def new_status(
    budget: PodDisruptionBudget,
    current: int,
    desired: int,
    expected: int,
    disrupted: Mapping[str, datetime],
    now: datetime,
) -> PodDisruptionBudgetStatus:
    """The status with these counts; the current status itself where nothing changes."""
    allowed = max(0, current - desired) if expected > 0 else 0
    generation = budget.metadata.generation
    condition = Condition(
        type=DISRUPTION_ALLOWED,
        status="True" if allowed else "False",
        observedGeneration=generation,
        reason="SufficientPods" if allowed else "InsufficientPods",
        lastTransitionTime=truncate_to_seconds(now),
    )
    status = PodDisruptionBudgetStatus(
        conditions=budget.status.conditions,
        currentHealthy=current,
        desiredHealthy=desired,
        disruptedPods=disrupted,
        disruptionsAllowed=allowed,
        expectedPods=expected,
        observedGeneration=generation,
    )
    known = find_condition(budget.status.conditions, DISRUPTION_ALLOWED)
    same = known is not None and (known.status, known.reason) == (condition.status, condition.reason)
    if same and _counts(budget.status) == _counts(status):
        return budget.status
    return msgspec.structs.replace(status, conditions=replace_condition(budget.status.conditions, condition))


def failed_status(budget: PodDisruptionBudget, why: str, now: datetime) -> PodDisruptionBudgetStatus:
    """The status after a failed sync: no disruption is allowed."""
    old = budget.status
    condition = Condition(
        type=DISRUPTION_ALLOWED,
        status="False",
        observedGeneration=old.observedGeneration,
        reason="SyncFailed",
        message=why,
        lastTransitionTime=truncate_to_seconds(now),
    )
    return PodDisruptionBudgetStatus(
        conditions=replace_condition(old.conditions, condition),
        currentHealthy=old.currentHealthy,
        desiredHealthy=old.desiredHealthy,
        disruptedPods=old.disruptedPods,
        disruptionsAllowed=0,
        expectedPods=old.expectedPods,
        observedGeneration=old.observedGeneration,
    )


def has_failed_status(budget: PodDisruptionBudget, why: str) -> bool:
    """Whether the status already is that of a sync that failed for this reason."""
    known = find_condition(budget.status.conditions, DISRUPTION_ALLOWED)
    same = known is not None and (known.status, known.reason, known.message) == ("False", "SyncFailed", why)
    return same and not budget.status.disruptionsAllowed


def _counts(status: PodDisruptionBudgetStatus) -> tuple[object, ...]:
    return (
        status.currentHealthy,
        status.desiredHealthy,
        status.expectedPods,
        status.disruptionsAllowed,
        dict(status.disruptedPods),
        status.observedGeneration,
    )
