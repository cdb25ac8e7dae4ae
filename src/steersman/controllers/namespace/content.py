"""Emptying a namespace: all objects of all resources that can be deleted, in as few requests as will do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import field

from steersman.api.discovery import Resource
from steersman.api.errors import ApiError, MethodNotAllowed, NotFound
from steersman.api.kinds import PODS, Object, Struct
from steersman.intent.actions import Action, Address, Batch, Delete, DeleteCollection, Failed, List, Outcome

FINALIZING = 15
"""Seconds that finalizers are expected to take; upstream's guess."""
GROUP = 20
"""Requests under way at once: what deletes a whole collection keeps a server busy for long."""


class GracefulSpec(Struct, frozen=True):
    terminationGracePeriodSeconds: int | None = None


class GracefulStatus(Struct, frozen=True):
    phase: str = ""


class GracefulPod(Object, frozen=True):
    """A pod for how long it may take to stop."""

    spec: GracefulSpec = GracefulSpec()
    status: GracefulStatus = GracefulStatus()


GRACEFUL = PODS.as_(GracefulPod)


class Remains(msgspec.Struct):
    """What is left of a namespace, and why."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    """Objects by resource: name and group."""
    finalizers: Counter[str] = field(default_factory=Counter)
    estimate: int = 0
    """Seconds until it may be gone; 0 where nobody knows."""
    errors: list[str] = field(default_factory=list)

    def note(self, resource: Resource, namespace: str, objects: Sequence[Object], estimate: int) -> None:
        """What is left of one resource."""
        if not objects:
            return
        self.counts[resource.name, resource.group] = len(objects)
        finalizers = Counter(name for obj in objects for name in obj.metadata.finalizers)
        self.finalizers.update(finalizers)
        if estimate or finalizers:
            self.estimate = max(self.estimate, estimate or FINALIZING)
        else:
            where = f"{resource.group}/{resource.version}, Resource={resource.name}"
            self.errors.append(f"unexpected items still remain in namespace: {namespace} for gvr: {where}")


def is_pods(resource: Resource) -> bool:
    return resource.id == "pods" and resource.version == "v1"


async def empty_pods(pods: Resource, namespace: str, since: datetime, now: datetime) -> Remains:
    """Delete the pods of a namespace, which go before all else: they may still need it."""
    remains = Remains()
    try:
        there = await List(GRACEFUL, namespace)
    except ApiError as error:
        remains.errors.append(error.message)
        return remains
    estimate = grace(there)
    if (now - since).total_seconds() >= estimate:
        # They had their time: whatever is left now is no longer expected to go by itself.
        estimate = 0
    await _empty((pods,), namespace, remains, estimate if there else 0, known=bool(there))
    return remains


def grace(pods: Iterable[GracefulPod]) -> int:
    """How long the slowest of some pods may take to stop, in seconds."""
    return max(
        (
            pod.spec.terminationGracePeriodSeconds or 0
            for pod in pods
            if pod.status.phase not in ("Succeeded", "Failed")
        ),
        default=0,
    )


async def empty(resources: Sequence[Resource], namespace: str) -> Remains:
    """Delete everything else."""
    remains = Remains()
    await _empty(resources, namespace, remains, 0)
    return remains


async def _empty(
    resources: Sequence[Resource],
    namespace: str,
    remains: Remains,
    estimate: int,
    known: bool | None = None,
) -> None:
    """One step after the other, each for all resources at once."""
    if known is None:
        # differs: upstream deletes first and then looks. Most resources have nothing in most namespaces.
        resources = await _inhabited(resources, namespace, remains)
    elif not known:
        return
    resources = await _delete(resources, namespace, remains)
    listable = [resource for resource in resources if resource.can("list")]
    lists = await _all([List(resource.partial, namespace) for resource in listable])
    for resource, outcome in zip(listable, lists, strict=True):
        if isinstance(outcome, Failed):
            _complain(remains, outcome.error)
        else:
            remains.note(resource, namespace, _value(outcome), estimate)


async def _inhabited(resources: Sequence[Resource], namespace: str, remains: Remains) -> list[Resource]:
    """The resources that have objects here, or of which nobody can tell."""
    found = [resource for resource in resources if not resource.can("list")]
    listable = [resource for resource in resources if resource.can("list")]
    looks = await _all([List(resource.partial, namespace, limit=1) for resource in listable])
    for resource, outcome in zip(listable, looks, strict=True):
        if isinstance(outcome, Failed):
            _complain(remains, outcome.error)
        elif _value(outcome):
            found.append(resource)
    return found


async def _delete(resources: Sequence[Resource], namespace: str, remains: Remains) -> list[Resource]:
    """Delete all there is; answers with the resources for which that was possible."""
    # Whatever was asked of single objects: nothing may be left behind for its own sake.
    whole = [resource for resource in resources if resource.can("deletecollection")]
    single = [resource for resource in resources if not resource.can("deletecollection")]
    done: list[Resource] = []
    outcomes = await _all([DeleteCollection(each.partial, namespace, "Background") for each in whole])
    for resource, outcome in zip(whole, outcomes, strict=True):
        if not isinstance(outcome, Failed):
            done.append(resource)
        elif isinstance(outcome.error, MethodNotAllowed | NotFound):
            single.append(resource)
        else:
            remains.errors.append(outcome.error.message)
    for resource in single:
        if await _delete_each(resource, namespace, remains):
            done.append(resource)
    return done


async def _delete_each(resource: Resource, namespace: str, remains: Remains) -> bool:
    """Delete one by one, where a collection cannot be deleted as such; whether that went well."""
    if not resource.can("list"):
        return True
    kind = resource.partial
    try:
        there = await List(kind, namespace)
    except (MethodNotAllowed, NotFound):
        return False
    except ApiError as error:
        remains.errors.append(error.message)
        return False
    removals = [Delete(Address(kind, namespace, obj.metadata.name), "Background") for obj in there]
    for outcome in await _all(removals):
        if isinstance(outcome, Failed) and not isinstance(outcome.error, NotFound | MethodNotAllowed):
            remains.errors.append(outcome.error.message)
            return False
    return True


async def _all(actions: Sequence[Action[Any]]) -> list[Outcome[Any]]:
    """Carry out many requests, some at a time."""
    outcomes: list[Outcome[Any]] = []
    for start in range(0, len(actions), GROUP):
        outcomes += await Batch(tuple(actions[start : start + GROUP]), slow_start=False)
    return outcomes


def _complain(remains: Remains, error: ApiError) -> None:
    # What cannot be listed at all is not there to be deleted: discovery may promise too much.
    if not isinstance(error, MethodNotAllowed | NotFound):
        remains.errors.append(error.message)


def _value(outcome: Outcome[Any]) -> Any:
    return getattr(outcome, "value", ())
