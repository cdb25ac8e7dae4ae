"""Deletes the content of a namespace: the objects of all resources that can be deleted, with few requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import field

from steersman.api.discovery import ApiResource
from steersman.api.errors import ApiError, MethodNotAllowed, NotFound
from steersman.api.kinds import PODS, Object, Struct
from steersman.intent.actions import (
    Action,
    Address,
    Batch,
    Delete,
    DeleteCollection,
    Done,
    Failed,
    List,
    Outcome,
)

FINALIZER_ESTIMATE = 15
"""Seconds that finalizers are expected to take; upstream's estimate."""
MAX_BATCH = 20
"""The most requests at once: deleting a collection keeps a server busy."""


class PodGraceSpec(Struct, frozen=True):
    terminationGracePeriodSeconds: int | None = None


class PodGraceStatus(Struct, frozen=True):
    phase: str = ""


class PodGrace(Object, frozen=True):
    """A pod with the fields that say how long its termination takes."""

    spec: PodGraceSpec = PodGraceSpec()
    status: PodGraceStatus = PodGraceStatus()


POD_GRACE = PODS.as_(PodGrace)


class Remaining(msgspec.Struct):
    """The objects that remain in a namespace, and the errors met."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    """The number of objects by resource name and group."""
    finalizers: Counter[str] = field(default_factory=Counter)
    """The number of objects by finalizer."""
    estimate: int = 0
    """The estimated seconds until they are gone; 0 where there is no estimate."""
    errors: list[str] = field(default_factory=list)

    def add(self, resource: ApiResource, namespace: str, objects: Sequence[Object], estimate: int) -> None:
        """Adds the remaining objects of one resource."""
        if not objects:
            return
        self.counts[resource.name, resource.group] = len(objects)
        finalizers = Counter(name for obj in objects for name in obj.metadata.finalizers)
        self.finalizers.update(finalizers)
        if estimate or finalizers:
            self.estimate = max(self.estimate, estimate or FINALIZER_ESTIMATE)
        else:
            where = f"{resource.group}/{resource.version}, Resource={resource.name}"
            self.errors.append(f"unexpected items still remain in namespace: {namespace} for gvr: {where}")


def is_pods(resource: ApiResource) -> bool:
    return resource.id == "pods" and resource.version == "v1"


async def delete_pods(pods: ApiResource, namespace: str, since: datetime, now: datetime) -> Remaining:
    """Deletes the pods of a namespace, before all other objects, which they may still use."""
    remaining = Remaining()
    try:
        found = await List(POD_GRACE, namespace)
    except ApiError as error:
        remaining.errors.append(error.message)
        return remaining
    estimate = longest_grace_period(found)
    if (now - since).total_seconds() >= estimate:
        # The grace period is over: remaining pods are no longer expected to terminate by themselves.
        estimate = 0
    await _delete_and_list((pods,), namespace, remaining, estimate if found else 0, has_objects=bool(found))
    return remaining


def longest_grace_period(pods: Iterable[PodGrace]) -> int:
    """The longest termination grace period of pods that have not ended, in seconds."""
    return max(
        (
            pod.spec.terminationGracePeriodSeconds or 0
            for pod in pods
            if pod.status.phase not in ("Succeeded", "Failed")
        ),
        default=0,
    )


async def delete_content(resources: Sequence[ApiResource], namespace: str) -> Remaining:
    """Deletes the objects of resources other than pods."""
    remaining = Remaining()
    await _delete_and_list(resources, namespace, remaining, 0)
    return remaining


async def _delete_and_list(
    resources: Sequence[ApiResource],
    namespace: str,
    remaining: Remaining,
    estimate: int,
    has_objects: bool | None = None,
) -> None:
    """Deletes the objects of all resources at once, then lists the remaining ones.

    ``has_objects`` says whether there are any; None: find out.
    """
    if has_objects is None:
        # differs: upstream deletes without a look. Most resources have no objects in most namespaces.
        resources = await _with_objects(resources, namespace, remaining)
    elif not has_objects:
        return
    resources = await _delete(resources, namespace, remaining)
    listable = [resource for resource in resources if resource.supports("list")]
    lists = await _all([List(resource.partial, namespace) for resource in listable])
    for resource, outcome in zip(listable, lists, strict=True):
        if isinstance(outcome, Failed):
            _add_error(remaining, outcome.error)
        else:
            remaining.add(resource, namespace, _value(outcome), estimate)


async def _with_objects(
    resources: Sequence[ApiResource], namespace: str, remaining: Remaining
) -> list[ApiResource]:
    """The resources that have objects in the namespace, or that cannot be listed."""
    found = [resource for resource in resources if not resource.supports("list")]
    listable = [resource for resource in resources if resource.supports("list")]
    lists = await _all([List(resource.partial, namespace, limit=1) for resource in listable])
    for resource, outcome in zip(listable, lists, strict=True):
        if isinstance(outcome, Failed):
            _add_error(remaining, outcome.error)
        elif _value(outcome):
            found.append(resource)
    return found


async def _delete(
    resources: Sequence[ApiResource], namespace: str, remaining: Remaining
) -> list[ApiResource]:
    """Deletes all objects; returns the resources for which that was possible."""
    collections = [resource for resource in resources if resource.supports("deletecollection")]
    single = [resource for resource in resources if not resource.supports("deletecollection")]
    done: list[ApiResource] = []
    # Background deletion: no object may keep the namespace by an orphan or foreground finalizer of its own.
    outcomes = await _all([DeleteCollection(each.partial, namespace, "Background") for each in collections])
    for resource, outcome in zip(collections, outcomes, strict=True):
        if not isinstance(outcome, Failed):
            done.append(resource)
        elif isinstance(outcome.error, MethodNotAllowed | NotFound):
            single.append(resource)
        else:
            remaining.errors.append(outcome.error.message)
    for resource in single:
        if await _delete_each(resource, namespace, remaining):
            done.append(resource)
    return done


async def _delete_each(resource: ApiResource, namespace: str, remaining: Remaining) -> bool:
    """Deletes objects one by one, where the collection cannot be deleted; whether that succeeded."""
    if not resource.supports("list"):
        return True
    kind = resource.partial
    try:
        objects = await List(kind, namespace)
    except (MethodNotAllowed, NotFound):
        return False
    except ApiError as error:
        remaining.errors.append(error.message)
        return False
    removals = [Delete(Address(kind, namespace, obj.metadata.name), "Background") for obj in objects]
    for outcome in await _all(removals):
        if isinstance(outcome, Failed) and not isinstance(outcome.error, NotFound | MethodNotAllowed):
            remaining.errors.append(outcome.error.message)
            return False
    return True


async def _all(actions: Sequence[Action[Any]]) -> list[Outcome[Any]]:
    """Sends many requests, a limited number at once."""
    outcomes: list[Outcome[Any]] = []
    for start in range(0, len(actions), MAX_BATCH):
        outcomes += await Batch(tuple(actions[start : start + MAX_BATCH]), slow_start=False)
    return outcomes


def _add_error(remaining: Remaining, error: ApiError) -> None:
    # A resource that cannot be listed has nothing to delete: discovery may announce too much.
    if not isinstance(error, MethodNotAllowed | NotFound):
        remaining.errors.append(error.message)


def _value(outcome: Outcome[Any]) -> Any:
    return outcome.value if isinstance(outcome, Done) else ()
