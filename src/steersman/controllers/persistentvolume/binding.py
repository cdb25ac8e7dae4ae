"""Binds a volume and a claim to each other, in upstream's order of writes.

::

    1. volume.spec.claimRef      from here on no other claim can take the volume
    2. volume.status.phase       Bound
    3. claim.spec.volumeName     with the annotation bind-completed
    4. claim.status              Bound, with the capacity and access modes of the volume

Each write is left out where nothing differs, so a binding that was interrupted after any of them is completed by the
same function. A write carries the resourceVersion that was read: of two claims that choose one volume, one gets it.
"""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.kinds import EMPTY, ObjectReference
from steersman.api.kinds.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
)
from steersman.api.quantity import Quantity
from steersman.api.volume_binding import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PRE_RESIZE_CAPACITY,
    is_claimed_for,
    storage_of,
)
from steersman.intent.actions import Emit, Update, UpdateStatus
from steersman.intent.verdict import InvalidSpec

PENDING = "Pending"
AVAILABLE = "Available"
BOUND = "Bound"
RELEASED = "Released"
FAILED = "Failed"
LOST = "Lost"


async def bind(volume: PersistentVolume, claim: PersistentVolumeClaim, *, attributes_classes: bool) -> None:
    """Bind a volume and a claim, or complete their binding."""
    claimed = claimed_volume(volume, claim)
    if claimed is not volume:
        volume = await Update(claimed)
    volume = await set_phase(volume, BOUND)
    bound = bound_claim(claim, volume)
    if bound is not claim:
        claim = await Update(bound)
    await UpdateStatus(claim, bound_status(claim, volume, attributes_classes=attributes_classes))


async def unbind(volume: PersistentVolume) -> None:
    """Take a volume back from its claim. A volume that a user reserved for the claim stays reserved."""
    annotations, ref = dict(volume.metadata.annotations), volume.spec.claimRef
    if annotations.pop(BOUND_BY_CONTROLLER, None) is not None:
        ref = None
    elif ref is not None:
        ref = replace(ref, uid="")
    freed = await Update(
        replace(
            volume,
            metadata=replace(volume.metadata, annotations=annotations),
            spec=replace(volume.spec, claimRef=ref),
        )
    )
    await set_phase(freed, AVAILABLE)


async def set_phase(volume: PersistentVolume, phase: str, message: str = "") -> PersistentVolume:
    """Write the phase of a volume, if it differs. The server sets the time of the transition."""
    if volume.status.phase == phase:
        return volume
    written: PersistentVolume = await UpdateStatus(volume, _in_phase(volume.status, phase, message))
    return written


async def fail(volume: PersistentVolume, reason: str, message: str) -> PersistentVolume:
    """Make a volume Failed, with a warning if it was not."""
    if volume.status.phase == FAILED:
        return volume
    failed = await set_phase(volume, FAILED, message)
    await Emit(failed, "Warning", reason, message)
    return failed


async def lose(claim: PersistentVolumeClaim, reason: str, message: str) -> None:
    """Make a claim Lost, with a warning if it was not."""
    if claim.status.phase != LOST:
        lost = await UpdateStatus(claim, unbound_status(claim, LOST))
        await Emit(lost, "Warning", reason, message)


async def stay_pending(claim: PersistentVolumeClaim) -> None:
    await UpdateStatus(claim, unbound_status(claim, PENDING))


def is_released(volume: PersistentVolume, claim: PersistentVolumeClaim | None) -> bool:
    """Whether the claim of a volume is gone or bound to another volume. ``claim`` has the name in its claimRef."""
    ref = volume.spec.claimRef
    if ref is None or not ref.uid:
        return False
    if claim is None or claim.metadata.uid != ref.uid:
        return True
    return claim.spec.volumeName not in ("", volume.metadata.name)


def is_still_released(
    current: PersistentVolume, volume: PersistentVolume, claim: PersistentVolumeClaim | None
) -> bool:
    """Whether a volume that was read live is released, as the cache shows. ``claim`` has the name in the cached claimRef.

    A volume that has another claimRef by now is another claim's, which the round knows nothing of.
    """
    before, ref = volume.spec.claimRef, current.spec.claimRef
    if before is None or ref is None:
        return False
    if (ref.namespace, ref.name, ref.uid) != (before.namespace, before.name, before.uid):
        return False
    return is_released(current, claim)


# -- new states -------------------------------------------------------------------------------


def claimed_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume with a reference to the claim; the same object if it has one."""
    annotations, ref, meta = volume.metadata.annotations, volume.spec.claimRef, claim.metadata
    if not is_claimed_for(volume, claim) and BOUND_BY_CONTROLLER not in annotations:
        annotations = {**annotations, BOUND_BY_CONTROLLER: "yes"}
    if ref is None or (ref.namespace, ref.name, ref.uid) != (meta.namespace, meta.name, meta.uid):
        ref = reference_to(claim)
    if annotations is volume.metadata.annotations and ref is volume.spec.claimRef:
        return volume
    return replace(
        volume,
        metadata=replace(volume.metadata, annotations=annotations),
        spec=replace(volume.spec, claimRef=ref),
    )


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    meta = claim.metadata
    return ObjectReference(
        kind="PersistentVolumeClaim",
        apiVersion="v1",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resourceVersion=meta.resourceVersion,
    )


def bound_claim(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    """The claim with the name of its volume; the same object if its binding is complete."""
    annotations, name = claim.metadata.annotations, volume.metadata.name
    if claim.spec.volumeName != name and BOUND_BY_CONTROLLER not in annotations:
        annotations = {**annotations, BOUND_BY_CONTROLLER: "yes"}
    if BIND_COMPLETED not in annotations:
        annotations = {**annotations, BIND_COMPLETED: "yes"}
    if annotations is claim.metadata.annotations and claim.spec.volumeName == name:
        return claim
    return replace(
        claim,
        metadata=replace(claim.metadata, annotations=annotations),
        spec=replace(claim.spec, volumeName=name),
    )


def unbound_status(claim: PersistentVolumeClaim, phase: str) -> PersistentVolumeClaimStatus:
    """The status of a claim that has no volume."""
    return replace(
        claim.status, phase=phase, accessModes=(), capacity=EMPTY, currentVolumeAttributesClassName=None
    )


def bound_status(
    claim: PersistentVolumeClaim, volume: PersistentVolume, *, attributes_classes: bool
) -> PersistentVolumeClaimStatus:
    """The status of a claim that is bound to a volume. Raises `InvalidSpec` for a volume without capacity.

    The capacity is copied when the claim becomes bound. Later a difference may be on purpose: the file system may be
    smaller than the volume.
    """
    status = replace(claim.status, phase=BOUND, accessModes=volume.spec.accessModes)
    if claim.status.phase == BOUND:
        return status
    if "storage" not in volume.spec.capacity:
        raise InvalidSpec(f'PersistentVolume "{volume.metadata.name}" is without a storage capacity')
    if PRE_RESIZE_CAPACITY in volume.metadata.annotations:
        status = replace(status, capacity={**status.capacity, "storage": _capacity_before_resize(volume)})
    elif (
        "storage" not in status.capacity
        or storage_of(volume.spec.capacity).nanos != storage_of(status.capacity).nanos
    ):
        status = replace(status, capacity=volume.spec.capacity)
    if attributes_classes and claim.status.phase == PENDING:
        status = replace(status, currentVolumeAttributesClassName=volume.spec.volumeAttributesClassName)
    return status


def _capacity_before_resize(volume: PersistentVolume) -> str | int | float:
    annotated = volume.metadata.annotations[PRE_RESIZE_CAPACITY]
    try:
        Quantity.parse(annotated)
    except ValueError:
        return volume.spec.capacity["storage"]
    return annotated


def _in_phase(status: PersistentVolumeStatus, phase: str, message: str) -> PersistentVolumeStatus:
    return replace(status, phase=phase, message=message)
