"""disruption-controller (a dialogue): keeps the status of PodDisruptionBudgets, which says how many pods may be evicted.

A budget compares the healthy pods it selects with the number that must stay healthy: a number, or a percentage
of the replicas of the pods' controllers. The API server notes each granted eviction in ``disruptedPods``; it
counts against the budget until the pod is deleted, or for two minutes. The controller also takes back the
condition DisruptionTarget of pods that were not deleted after all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from steersman.api.conditions import find_condition
from steersman.api.errors import ApiError, Conflict
from steersman.api.kinds import DEPLOYMENTS, PODS, REPLICASETS, REPLICATIONCONTROLLERS, Condition, Pod
from steersman.api.kinds.policy import PODDISRUPTIONBUDGETS, PodDisruptionBudget
from steersman.api.kinds.statefulsets import STATEFULSETS
from steersman.api.label_selectors import NOTHING, Selector, compile_selector, format_as_go
from steersman.api.meta import controller_of, format_time
from steersman.api.scheme import Key
from steersman.controllers.disruption.expected_pods import Scales, cached_scales, expected_pods
from steersman.controllers.disruption.status import (
    DELETION_TIMEOUT,
    CountError,
    count_healthy,
    desired_healthy,
    disrupted_pods,
    failed_status,
    has_failed_status,
    new_status,
)
from steersman.controllers.shared.pod_control import DISRUPTION_TARGET
from steersman.intent.actions import Emit, Patch, PatchType, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake

POD_PREFIX = "pod/"
"""The prefix of keys that name a pod; no budget's name has a slash."""
STALE_DISRUPTION_TIMEOUT = timedelta(minutes=2)
"""How long a pod that is not being deleted keeps the condition DisruptionTarget."""


class Observation(msgspec.Struct, frozen=True):
    """A budget and the pods it selects."""

    budget: PodDisruptionBudget
    pods: tuple[Pod, ...]
    scales: Scales
    shared_pods: tuple[Pod, ...]
    """Pods that other budgets select, too, where this budget is the first of them by name."""


def selector_of(budget: PodDisruptionBudget) -> Selector:
    """The selector of a budget; an invalid one selects nothing."""
    try:
        return compile_selector(budget.spec.selector)
    except ValueError:
        return NOTHING


def observe(caches: Caches, key: Key) -> Observation | Pod | None:
    if key.name.startswith(POD_PREFIX):
        return caches[PODS].get(Key(key.namespace, key.name.removeprefix(POD_PREFIX)))
    budget = caches[PODDISRUPTIONBUDGETS].get(key)
    if budget is None:
        return None
    matches = selector_of(budget).matches
    pods = tuple(pod for pod in caches[PODS].list(key.namespace) if matches(pod.metadata.labels))
    others = [
        selector_of(other)
        for other in caches[PODDISRUPTIONBUDGETS].list(key.namespace)
        if other.metadata.name > key.name
    ]
    shared = tuple(pod for pod in pods if any(one.matches(pod.metadata.labels) for one in others))
    return Observation(budget, pods, cached_scales(caches, pods), shared)


async def decide(seen: Observation | Pod, now: datetime) -> Verdict:
    if not isinstance(seen, Observation):
        return await _clean_stale_disruption(seen, now)
    try:
        return await _sync(seen, now)
    except Conflict:
        raise
    except (ApiError, CountError) as error:
        # Fail safe: no disruption is allowed until the sync succeeds.
        if not has_failed_status(seen.budget, str(error)):
            await UpdateStatus(seen.budget, failed_status(seen.budget, str(error), now))
        raise InvalidSpec(str(error)) from None


async def _sync(seen: Observation, now: datetime) -> Verdict:
    budget = seen.budget
    try:
        compile_selector(budget.spec.selector)
    except ValueError as error:
        await Emit(budget, "Warning", "NoPods", f"Failed to get pods: {error}")
        raise CountError(str(error)) from None
    for pod in seen.shared_pods:
        where = f'"{pod.metadata.namespace}"/"{pod.metadata.name}"'
        chosen = f'Chose "{budget.metadata.name}" arbitrarily.'
        message = f"Pod {where} matches multiple PodDisruptionBudgets.  {chosen}"
        await Emit(pod, "Warning", "MultiplePodDisruptionBudgets", message)
    if not seen.pods:
        await Emit(budget, "Normal", "NoPods", "No matching pods found")
    try:
        expected = await _expected_pods(seen)
        desired = desired_healthy(budget, expected)
    except (ApiError, CountError) as error:
        message = f"Failed to calculate the number of expected pods: {error}"
        await Emit(budget, "Warning", "CalculateExpectedPodCountFailed", message)
        raise
    if _counts_expected_pods(budget) and any(controller_of(pod) is None for pod in seen.pods):
        await Emit(budget, "Warning", "UnmanagedPods", _unmanaged_pods_message(budget))
    disrupted, overdue = disrupted_pods(budget, seen.pods, now)
    for pod in overdue:
        # Upstream prints the namespace in the place of the budget's name.
        where = f"{budget.metadata.namespace}/{budget.metadata.namespace}"
        message = f"Pod was expected by PDB {where} to be deleted but it wasn't"
        await Emit(pod, "Warning", "NotDeleted", message)
    healthy = count_healthy(seen.pods, disrupted)
    status = new_status(budget, healthy, desired, expected, disrupted, now)
    if status != budget.status:
        await UpdateStatus(budget, status)
    because = f"{status.disruptionsAllowed} disruptions allowed"
    if disrupted:
        due = min(disrupted.values()) + DELETION_TIMEOUT
        return Wake(due - now, f"{because}; an evicted pod is not deleted yet")
    return Rest(because)


async def _expected_pods(seen: Observation) -> int:
    """The number of pods that the budget is relative to; 0, so that no disruption is allowed, where the budget sets
    neither ``minAvailable`` nor ``maxUnavailable``."""
    if _counts_expected_pods(seen.budget):
        return await expected_pods(seen.pods, seen.scales)
    return len(seen.pods) if seen.budget.spec.minAvailable is not None else 0


def _counts_expected_pods(budget: PodDisruptionBudget) -> bool:
    """Whether the budget is relative to the replicas of the pods' controllers, and not to the pods that exist."""
    return budget.spec.maxUnavailable is not None or isinstance(budget.spec.minAvailable, str)


def _unmanaged_pods_message(budget: PodDisruptionBudget) -> str:
    """Upstream's message, which prints the selector as Go does."""
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {format_as_go(budget.spec.selector)}) were found to be "
        "unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in "
        'undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an '
        "integer value."
    )


# -- stale disruptions ----------------------------------------------------------------------------


def disruption_target(pod: Pod) -> Condition | None:
    """The condition DisruptionTarget of a pod that is not being deleted; None without it."""
    if pod.metadata.deletionTimestamp is not None or pod.status.phase in ("Succeeded", "Failed"):
        return None
    condition = find_condition(pod.status.conditions, DISRUPTION_TARGET)
    if condition is None or condition.status != "True" or condition.reason == "TerminationByKubelet":
        return None
    return condition


async def _clean_stale_disruption(pod: Pod, now: datetime) -> Verdict:
    """Sets a DisruptionTarget condition to False once it is stale."""
    target = disruption_target(pod)
    if target is None:
        return Rest("no DisruptionTarget condition to clean up")
    since = target.lastTransitionTime
    # A condition that does not say since when counts as stale.
    if since is not None and now < since + STALE_DISRUPTION_TIMEOUT:
        return Wake(since + STALE_DISRUPTION_TIMEOUT - now, "DisruptionTarget condition not stale yet")
    meta = pod.metadata
    condition: dict[str, Any] = {
        "type": DISRUPTION_TARGET,
        "status": "False",
        "lastTransitionTime": format_time(now),
        "reason": None,
        "message": None,
    }
    if meta.generation:
        condition["observedGeneration"] = meta.generation
    # differs: upstream puts the whole status; a patch keeps fields this program does not know.
    preconditions = {"uid": meta.uid, "resourceVersion": meta.resourceVersion}
    body = {"metadata": preconditions, "status": {"conditions": [condition]}}
    await Patch(pod, body, PatchType.STRATEGIC, subresource="status")
    return Rest("stale DisruptionTarget condition set to False")


# -- enqueue --------------------------------------------------------------------------------------


def _budgets_of(caches: Caches, pods: Iterable[Pod]) -> Iterator[Key]:
    found: dict[Key, None] = {}
    for pod in pods:
        for budget in caches[PODDISRUPTIONBUDGETS].list(pod.metadata.namespace):
            if selector_of(budget).matches(pod.metadata.labels):
                found[budget.key] = None
    return iter(found)


def _pod_changed(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    # differs: upstream enqueues only one of several budgets, and none that a pod has left.
    yield from _budgets_of(caches, [pod for pod in (change.old, change.new) if pod is not None])
    if change.new is not None and disruption_target(change.new) is not None:
        meta = change.new.metadata
        yield Key(meta.namespace, POD_PREFIX + meta.name)


def _replicas_changed(caches: Caches, change: Change[Any]) -> Iterable[Key]:
    """A change of replicas changes the expected pods of budgets that count them."""
    old, new = change.old, change.new
    if old is None or new is None or old.spec.replicas == new.spec.replicas:
        return ()
    budgets = caches[PODDISRUPTIONBUDGETS].list(new.metadata.namespace)
    return (budget.key for budget in budgets if _counts_expected_pods(budget))


controller: Controller[Observation | Pod] = Controller(
    name="disruption-controller",
    aliases=("disruption",),
    service_account="disruption-controller",
    event_component="controllermanager",
    watches=(
        Watch(PODDISRUPTIONBUDGETS),
        Watch(PODS, to=_pod_changed),
        Watch(REPLICATIONCONTROLLERS, to=_replicas_changed),
        Watch(REPLICASETS, to=_replicas_changed),
        Watch(DEPLOYMENTS, to=_replicas_changed),
        Watch(STATEFULSETS, to=_replicas_changed),
    ),
    workers=1,
    observe=observe,
    decide=decide,
)
