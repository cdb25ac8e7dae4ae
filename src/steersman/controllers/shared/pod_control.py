"""Pod control: creates and deletes the pods of a workload and records an event for each; marks pods as disrupted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.conditions import find_condition
from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import PODS, NewPod, Object, Pod
from steersman.api.label_syntax import MAX_SUBDOMAIN
from steersman.api.meta import format_time
from steersman.intent.actions import Batch, Create, Delete, Done, Emit, Failed

DISRUPTION_TARGET = "DisruptionTarget"


def pods_prefix(workload: str) -> str:
    """The ``generateName`` of a workload's pods: its name and a dash, where the dash fits."""
    return f"{workload}-" if len(workload) < MAX_SUBDOMAIN else workload


class PodWrites(msgspec.Struct, frozen=True):
    """The result of creating or deleting pods."""

    done: tuple[Pod, ...] = ()
    """The pods created, or deleted or already gone."""
    failure: ApiError | None = None
    """The first error."""
    failed: int = 0
    """The number of requests that failed."""


async def create_pods(owner: Object, pods: Iterable[NewPod]) -> PodWrites:
    """Creates pods in the owner's namespace, with slow start."""
    namespace = owner.metadata.namespace
    done: list[Pod] = []
    errors: list[ApiError] = []
    for outcome in await Batch(tuple(Create(PODS, namespace, pod) for pod in pods)):
        match outcome:
            case Done(created):
                done.append(created)
                await Emit(owner, "Normal", "SuccessfulCreate", f"Created pod: {created.metadata.name}")
            case Failed(error) if not error.caused_by("NamespaceTerminating"):
                errors.append(error)
                await Emit(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            case _:
                pass  # not tried, or the namespace is terminating and takes no pods
    return PodWrites(tuple(done), errors[0] if errors else None, len(errors))


async def delete_pods(owner: Object, pods: Sequence[Pod]) -> PodWrites:
    """Deletes pods of the owner, all at once. A pod that is already gone counts as done."""
    done: list[Pod] = []
    errors: list[ApiError] = []
    outcomes = await Batch(tuple(map(Delete, pods)), slow_start=False)
    for pod, outcome in zip(pods, outcomes, strict=True):
        match outcome:
            case Done():
                done.append(pod)
                await Emit(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
            case Failed(NotFound()):
                done.append(pod)
            case Failed(error):
                errors.append(type(error)(f"unable to delete pods: {error}", code=error.code))
                await Emit(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            case _:
                pass
    return PodWrites(tuple(done), errors[0] if errors else None, len(errors))


def disruption_condition(
    pod: Pod, now: datetime, reason: str, message: str, *, observed_generation: bool = True
) -> dict[str, Any] | None:
    """The condition DisruptionTarget that marks a pod before it is deleted; None where the pod has it."""
    known = find_condition(pod.status.conditions, DISRUPTION_TARGET)
    since = known.lastTransitionTime if known is not None and known.status == "True" else None
    generation = pod.metadata.generation if observed_generation else 0
    if (
        known is not None
        and (known.status, known.reason, known.message) == ("True", reason, message)
        and known.observedGeneration == generation
    ):
        return None
    condition: dict[str, Any] = {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "lastTransitionTime": format_time(since or now),
        "reason": reason,
        "message": message,
    }
    if generation:
        condition["observedGeneration"] = generation
    return condition
