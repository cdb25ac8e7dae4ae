"""Making and deleting the pods of an owner, and telling of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds import PODS, NewPod, Object, Pod
from steersman.intent.actions import Batch, Create, Delete, Done, Emit, Failed


class Written(msgspec.Struct, frozen=True):
    """What became of some pods."""

    done: tuple[Pod, ...] = ()
    """Those that were made, or that are gone or going."""
    failure: ApiError | None = None
    """Why not all, where one was refused for a real reason."""
    refused: int = 0
    """How many were."""


async def create_pods(owner: Object, pods: Iterable[NewPod]) -> Written:
    """Create pods in the owner's namespace, slow-start."""
    namespace = owner.metadata.namespace
    done: list[Pod] = []
    refusals: list[ApiError] = []
    for outcome in await Batch(tuple(Create(PODS, namespace, pod) for pod in pods)):
        match outcome:
            case Done(created):
                done.append(created)
                await Emit(owner, "Normal", "SuccessfulCreate", f"Created pod: {created.metadata.name}")
            case Failed(error) if not error.caused_by("NamespaceTerminating"):
                refusals.append(error)
                await Emit(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            case _:
                pass  # not tried, or the namespace is going: no pod will ever come of it
    return Written(tuple(done), refusals[0] if refusals else None, len(refusals))


async def delete_pods(owner: Object, pods: Sequence[Pod]) -> Written:
    """Delete pods of the owner's, all at once. What is gone already is done."""
    done: list[Pod] = []
    refusals: list[ApiError] = []
    outcomes = await Batch(tuple(map(Delete, pods)), slow_start=False)
    for pod, outcome in zip(pods, outcomes, strict=True):
        match outcome:
            case Done():
                done.append(pod)
                await Emit(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
            case Failed(NotFound()):
                done.append(pod)
            case Failed(error):
                refusals.append(type(error)(f"unable to delete pods: {error}", code=error.code))
                await Emit(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            case _:
                pass
    return Written(tuple(done), refusals[0] if refusals else None, len(refusals))
