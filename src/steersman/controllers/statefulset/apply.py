"""The writes: claims before pods, each said in an event. What is refused is told, not raised: the status
is to be written all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from steersman.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.api.kinds import PODS, NewPod, Pod
from steersman.api.kinds.quota import PERSISTENTVOLUMECLAIMS
from steersman.api.kinds.statefulsets import StatefulSet
from steersman.controllers.statefulset import claims
from steersman.controllers.statefulset.claims import Claims
from steersman.controllers.statefulset.identity import (
    correction,
    has_storage,
    is_itself,
    ordinal_of,
    pod_name,
)
from steersman.intent.actions import Batch, Create, Delete, Done, Emit, Failed, Patch, PatchType

Refusals: TypeAlias = dict[int, ApiError | None]
"""Why an ordinal lacks a claim, by ordinal; None: it was not tried, since others were refused."""


async def fill(
    set_: StatefulSet, ordinals: Iterable[int], there: Claims, birth: Callable[[int], NewPod]
) -> ApiError | None:
    """Create the pods of some ordinals, each after its claims."""
    wanted = list(ordinals)
    refusals = await furnish(set_, wanted, there)
    for ordinal, refusal in refusals.items():
        if refusal is not None:
            await _say(set_, "Create", pod_name(set_, ordinal), refusal)
    furnished = [ordinal for ordinal in wanted if ordinal not in refusals]
    creates = tuple(Create(PODS, set_.metadata.namespace, birth(ordinal)) for ordinal in furnished)
    first = _first(refusals.values())
    for ordinal, outcome in zip(furnished, await Batch(creates) if creates else (), strict=True):
        match outcome:
            case Done():
                await _say(set_, "Create", pod_name(set_, ordinal))
            case Failed(error):
                first = first or error
                # Somebody else's pod may have the name; that is no event.
                if not isinstance(error, AlreadyExists):
                    await _say(set_, "Create", pod_name(set_, ordinal), error)
            case _:
                pass
    return first


async def furnish(set_: StatefulSet, ordinals: Iterable[int], there: Claims) -> Refusals:
    """Create the claims that some ordinals lack; answers which of them still lack some, and why."""
    refusals: Refusals = {}
    lacking = []
    for ordinal in ordinals:
        name = claims.going(set_, ordinal, there)
        if name is not None:
            refusals[ordinal] = Conflict(f"pvc {name} is being deleted")
        lacking += [(ordinal, claim) for claim in claims.new_claims(set_, ordinal, there)]
    creates = tuple(Create(PERSISTENTVOLUMECLAIMS, set_.metadata.namespace, claim) for _, claim in lacking)
    for (ordinal, claim), outcome in zip(lacking, await Batch(creates) if creates else (), strict=True):
        name, pod, of = claim.metadata.name, pod_name(set_, ordinal), set_.metadata.name
        match outcome:
            case Done():
                message = f"Create Claim {name} Pod {pod} in StatefulSet {of} success"
                await Emit(set_, "Normal", "SuccessfulCreate", message)
            case Failed(error):
                told = type(error)(f"failed to create PVC {name}: {error}", code=error.code)
                refusals.setdefault(ordinal, told)
                if not isinstance(error, AlreadyExists):
                    message = f"Create Claim {name} for Pod {pod} in StatefulSet {of} failed error: {error}"
                    await Emit(set_, "Warning", "FailedCreate", message)
            case _:
                refusals.setdefault(ordinal, None)
    return refusals


async def hand_over(set_: StatefulSet, pod: Pod, there: Claims) -> ApiError | None:
    """Give a pod's claims the owners they should have."""
    for name in claims.contested(set_, pod, there):
        message = (
            f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
            "the retention policy is ignored for this claim"
        )
        await Emit(set_, "Warning", "ConflictingController", message)
    for claim in claims.disowned(set_, pod, there):
        try:
            await claims.handover(set_, pod, claim)
        except NotFound:
            pass  # gone meanwhile: there is nothing to own
        except ApiError as error:
            name = claim.metadata.name
            text = f"could not update claim {name} for delete policy ownerRefs: {error}"
            return type(error)(text, code=error.code)
    return None


async def mend(set_: StatefulSet, pod: Pod, there: Claims) -> ApiError | None:
    """Give a pod its identity and its claims back."""
    ordinal, error = ordinal_of(pod.metadata.name), None
    stored = has_storage(set_, pod)
    if not stored:
        error = _first((await furnish(set_, (ordinal,), there)).values())
    error = error or await hand_over(set_, pod, there)
    # differs: upstream puts the pod back also where nothing about it changes.
    if error is None and not (stored and is_itself(set_, pod)):
        try:
            await Patch(pod, correction(set_, pod), PatchType.STRATEGIC)
        except ApiError as refusal:
            error = refusal
    await _say(set_, "Update", pod.metadata.name, error)
    return error


async def dismiss(set_: StatefulSet, leaving: Iterable[Pod]) -> ApiError | None:
    """Delete pods."""
    victims, first = tuple(leaving), None
    deletes = tuple(Delete(pod) for pod in victims)
    for pod, outcome in zip(victims, await Batch(deletes) if deletes else (), strict=True):
        match outcome:
            case Done() | Failed(NotFound()):
                await _say(set_, "Delete", pod.metadata.name)
            case Failed(error):
                first = first or error
                await _say(set_, "Delete", pod.metadata.name, error)
            case _:
                pass
    return first


async def _say(set_: StatefulSet, verb: str, pod: str, error: ApiError | None = None) -> None:
    what = f"{verb} Pod {pod} in StatefulSet {set_.metadata.name}"
    if error is None:
        await Emit(set_, "Normal", f"Successful{verb}", f"{what} successful")
    else:
        await Emit(set_, "Warning", f"Failed{verb}", f"{what} failed error: {error}")


def _first(errors: Iterable[ApiError | None]) -> ApiError | None:
    return next(filter(None, errors), None)
