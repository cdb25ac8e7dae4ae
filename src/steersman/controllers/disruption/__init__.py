"""disruption (a dialogue): how many pods of a budget may be disrupted now.

A budget counts the pods it selects that are ready, and compares them with how many there should be: a
number, or a share of what the owners of the pods want. Whoever evicts a pod is charged by the API server
in ``disruptedPods`` until the pod is seen to go, or for two minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.errors import ApiError, Conflict
from steersman.api.kinds import DEPLOYMENTS, PODS, REPLICASETS, REPLICATIONCONTROLLERS, Pod
from steersman.api.kinds.policy import PODDISRUPTIONBUDGETS, PodDisruptionBudget
from steersman.api.kinds.statefulsets import STATEFULSETS
from steersman.api.label_selectors import NOTHING, Selector, compile_selector
from steersman.api.meta import controller_of
from steersman.api.scheme import Key
from steersman.controllers.disruption.budget import (
    Uncountable,
    charges,
    failed,
    healthy,
    says_failed,
    status,
    wanted,
)
from steersman.controllers.disruption.reasons import described
from steersman.controllers.disruption.scale import Owners, expected, known_scale
from steersman.controllers.disruption.stale import STALE, clean, stale_since
from steersman.intent.actions import Emit, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake

POD = "pod/"
"""Begins the names in keys of pods; no budget's name has a slash."""


class Seen(msgspec.Struct, frozen=True):
    budget: PodDisruptionBudget
    pods: tuple[Pod, ...]
    owners: Owners
    """What the caches know of who controls the pods."""
    doubled: tuple[Pod, ...]
    """Pods that other budgets select, too, where this is the one that says so."""


def selector_of(budget: PodDisruptionBudget) -> Selector:
    """Which pods it selects; none, where its selector cannot be."""
    try:
        return compile_selector(budget.spec.selector)
    except ValueError:
        return NOTHING


def observe(caches: Caches, key: Key) -> Seen | Pod | None:
    if key.name.startswith(POD):
        return caches[PODS].get(Key(key.namespace, key.name.removeprefix(POD)))
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
    doubled = tuple(pod for pod in pods if any(one.matches(pod.metadata.labels) for one in others))
    return Seen(budget, pods, known_scale(caches, pods), doubled)


async def decide(seen: Seen | Pod, now: datetime) -> Verdict:
    if not isinstance(seen, Seen):
        return await clean(seen, now)
    try:
        return await _count(seen, now)
    except Conflict:
        raise
    except (ApiError, Uncountable) as error:
        # Better no disruption at all than one too many.
        if not says_failed(seen.budget, str(error)):
            await UpdateStatus(seen.budget, failed(seen.budget, str(error), now))
        raise InvalidSpec(str(error)) from None


async def _count(seen: Seen, now: datetime) -> Verdict:
    budget = seen.budget
    try:
        compile_selector(budget.spec.selector)
    except ValueError as error:
        await Emit(budget, "Warning", "NoPods", f"Failed to get pods: {error}")
        raise Uncountable(str(error)) from None
    for pod in seen.doubled:
        where = f'"{pod.metadata.namespace}"/"{pod.metadata.name}"'
        chosen = f'Chose "{budget.metadata.name}" arbitrarily.'
        message = f"Pod {where} matches multiple PodDisruptionBudgets.  {chosen}"
        await Emit(pod, "Warning", "MultiplePodDisruptionBudgets", message)
    if not seen.pods:
        await Emit(budget, "Normal", "NoPods", "No matching pods found")
    try:
        scale = await expected(seen.pods, seen.owners) if _by_share(budget) else len(seen.pods)
        desired = wanted(budget, scale)
    except (ApiError, Uncountable) as error:
        message = f"Failed to calculate the number of expected pods: {error}"
        await Emit(budget, "Warning", "CalculateExpectedPodCountFailed", message)
        raise
    if _by_share(budget) and any(controller_of(pod) is None for pod in seen.pods):
        await Emit(budget, "Warning", "UnmanagedPods", described(budget))
    charged, overdue = charges(budget, seen.pods, now)
    for pod in overdue:
        # The budget's namespace stands in for its name, as it does upstream.
        where = f"{budget.metadata.namespace}/{budget.metadata.namespace}"
        message = f"Pod was expected by PDB {where} to be deleted but it wasn't"
        await Emit(pod, "Warning", "NotDeleted", message)
    made = status(budget, healthy(seen.pods, charged), desired, scale, charged, now)
    if made != budget.status:
        await UpdateStatus(budget, made)
    if charged:
        return Wake(min(charged.values()) + STALE - now, "a pod should have been deleted by then")
    return Rest(f"{made.disruptionsAllowed} disruptions allowed")


def _by_share(budget: PodDisruptionBudget) -> bool:
    """Whether what the owners want counts, and not just the pods there are."""
    return budget.spec.maxUnavailable is not None or isinstance(budget.spec.minAvailable, str)


# -- when to look ---------------------------------------------------------------------------------


def _selecting(caches: Caches, pods: Iterable[Pod]) -> Iterator[Key]:
    found: dict[Key, None] = {}
    for pod in pods:
        for budget in caches[PODDISRUPTIONBUDGETS].list(pod.metadata.namespace):
            if selector_of(budget).matches(pod.metadata.labels):
                found[budget.key] = None
    return iter(found)


def _pod_changed(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    # differs: upstream looks at one of several budgets only, and not at those a pod has left.
    yield from _selecting(caches, [pod for pod in (change.old, change.new) if pod is not None])
    if change.new is not None and stale_since(change.new) is not None:
        meta = change.new.metadata
        yield Key(meta.namespace, POD + meta.name)


def _owner_changed(caches: Caches, change: Change[Any]) -> Iterable[Key]:
    """A set that wants another number of pods changes what shares are of."""
    old, new = change.old, change.new
    if old is None or new is None or old.spec.replicas == new.spec.replicas:
        return ()
    budgets = caches[PODDISRUPTIONBUDGETS].list(new.metadata.namespace)
    return (budget.key for budget in budgets if _by_share(budget))


controller: Controller[Seen | Pod] = Controller(
    name="disruption-controller",
    aliases=("disruption",),
    service_account="disruption-controller",
    event_component="controllermanager",
    watches=(
        Watch(PODDISRUPTIONBUDGETS),
        Watch(PODS, to=_pod_changed),
        Watch(REPLICATIONCONTROLLERS, to=_owner_changed),
        Watch(REPLICASETS, to=_owner_changed),
        Watch(DEPLOYMENTS, to=_owner_changed),
        Watch(STATEFULSETS, to=_owner_changed),
    ),
    workers=1,
    observe=observe,
    decide=decide,
)
