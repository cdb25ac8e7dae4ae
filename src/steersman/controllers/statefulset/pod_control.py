"""Stateful pod control: creates, updates and deletes pods and their claims, and records an event for each.

Claims are written before pods. Errors are returned and not raised, since the status is written all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from steersman.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.api.kinds import PODS, NewPod, Pod
from steersman.api.kinds.statefulsets import StatefulSet
from steersman.api.kinds.storage import PERSISTENTVOLUMECLAIMS
from steersman.controllers.statefulset import claims
from steersman.controllers.statefulset.claims import Claims
from steersman.controllers.statefulset.identity import (
    has_identity,
    has_storage,
    identity_patch,
    ordinal_of,
    pod_name,
)
from steersman.intent.actions import Batch, Create, Delete, Done, Emit, Failed, Patch, PatchType

ClaimErrors: TypeAlias = dict[int, ApiError | None]
"""Ordinal -> why it lacks a claim; None where the creation was not tried, since others failed."""


async def create_pods(
    set_: StatefulSet, ordinals: Iterable[int], existing: Claims, new_pod: Callable[[int], NewPod]
) -> ApiError | None:
    """Creates the pods of some ordinals, each after its claims; returns the first error."""
    wanted = list(ordinals)
    errors = await create_claims(set_, wanted, existing)
    for ordinal, error in errors.items():
        if error is not None:
            await _emit(set_, "Create", pod_name(set_, ordinal), error)
    ready = [ordinal for ordinal in wanted if ordinal not in errors]
    creates = tuple(Create(PODS, set_.metadata.namespace, new_pod(ordinal)) for ordinal in ready)
    first = first_error(errors.values())
    for ordinal, outcome in zip(ready, await Batch(creates) if creates else (), strict=True):
        match outcome:
            case Done():
                await _emit(set_, "Create", pod_name(set_, ordinal))
            case Failed(error):
                first = first or error
                # The name may belong to a pod of another owner, for which there is no event.
                if not isinstance(error, AlreadyExists):
                    await _emit(set_, "Create", pod_name(set_, ordinal), error)
            case _:
                pass
    return first


async def create_claims(set_: StatefulSet, ordinals: Iterable[int], existing: Claims) -> ClaimErrors:
    """Creates the missing claims of some ordinals; returns the ordinals that still lack one."""
    errors: ClaimErrors = {}
    missing = []
    for ordinal in ordinals:
        name = claims.terminating_claim(set_, ordinal, existing)
        if name is not None:
            errors[ordinal] = Conflict(f"pvc {name} is being deleted")
        missing += [(ordinal, claim) for claim in claims.missing_claims(set_, ordinal, existing)]
    creates = tuple(Create(PERSISTENTVOLUMECLAIMS, set_.metadata.namespace, claim) for _, claim in missing)
    for (ordinal, claim), outcome in zip(missing, await Batch(creates) if creates else (), strict=True):
        name, pod, owner = claim.metadata.name, pod_name(set_, ordinal), set_.metadata.name
        match outcome:
            case Done():
                message = f"Create Claim {name} Pod {pod} in StatefulSet {owner} success"
                await Emit(set_, "Normal", "SuccessfulCreate", message)
            case Failed(error):
                errors.setdefault(
                    ordinal, type(error)(f"failed to create PVC {name}: {error}", code=error.code)
                )
                if not isinstance(error, AlreadyExists):
                    message = (
                        f"Create Claim {name} for Pod {pod} in StatefulSet {owner} failed error: {error}"
                    )
                    await Emit(set_, "Warning", "FailedCreate", message)
            case _:
                errors.setdefault(ordinal, None)
    return errors


async def update_claim_owners(set_: StatefulSet, pod: Pod, existing: Claims) -> ApiError | None:
    """Sets the owners of a pod's claims by the retention policy; returns the first error."""
    for name in claims.conflicting_claims(set_, pod, existing):
        message = (
            f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
            "the retention policy is ignored for this claim"
        )
        await Emit(set_, "Warning", "ConflictingController", message)
    for claim in claims.outdated_claims(set_, pod, existing):
        try:
            await claims.update_owners(set_, pod, claim)
        except NotFound:
            pass  # deleted in the meantime
        except ApiError as error:
            name = claim.metadata.name
            text = f"could not update claim {name} for delete policy ownerRefs: {error}"
            return type(error)(text, code=error.code)
    return None


async def update_pod(set_: StatefulSet, pod: Pod, existing: Claims) -> ApiError | None:
    """Restores a pod's identity, claims and claim owners; returns the error."""
    ordinal, error = ordinal_of(pod.metadata.name), None
    stored = has_storage(set_, pod)
    if not stored:
        error = first_error((await create_claims(set_, (ordinal,), existing)).values())
    error = error or await update_claim_owners(set_, pod, existing)
    # differs: upstream updates the pod also where nothing about it changes.
    if error is None and not (stored and has_identity(set_, pod)):
        try:
            await Patch(pod, identity_patch(set_, pod), PatchType.STRATEGIC)
        except ApiError as refusal:
            error = refusal
    await _emit(set_, "Update", pod.metadata.name, error)
    return error


async def delete_pods(set_: StatefulSet, victims: Iterable[Pod]) -> ApiError | None:
    """Deletes pods, with slow start; returns the first error."""
    pods, first = tuple(victims), None
    deletes = tuple(Delete(pod) for pod in pods)
    for pod, outcome in zip(pods, await Batch(deletes) if deletes else (), strict=True):
        match outcome:
            case Done() | Failed(NotFound()):
                await _emit(set_, "Delete", pod.metadata.name)
            case Failed(error):
                first = first or error
                await _emit(set_, "Delete", pod.metadata.name, error)
            case _:
                pass
    return first


async def _emit(set_: StatefulSet, verb: str, pod: str, error: ApiError | None = None) -> None:
    subject = f"{verb} Pod {pod} in StatefulSet {set_.metadata.name}"
    if error is None:
        await Emit(set_, "Normal", f"Successful{verb}", f"{subject} successful")
    else:
        await Emit(set_, "Warning", f"Failed{verb}", f"{subject} failed error: {error}")


def first_error(errors: Iterable[ApiError | None]) -> ApiError | None:
    """The first error that is not None."""
    return next(filter(None, errors), None)
