"""persistentvolume-expander-controller (a dialogue): has the volumes of claims expanded that request more than they have.

No volume plugin of 1.36 expands volumes here. A claim of an in-tree plugin is handed over to the CSI driver that replaces it,
by an annotation; other claims are left to whichever controller knows their volumes, and an event says so. FlexVolumes alone are
expanded by their kubelets, which this controller asks for in the claim's status.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypeVar

import msgspec

from steersman.api.errors import ApiError
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PersistentVolume,
    PersistentVolumeClaim,
)
from steersman.api.quantity import storage_of
from steersman.api.scheme import Key
from steersman.controllers.expand import resize
from steersman.controllers.expand.resize import PRE_RESIZE_CAPACITY, STORAGE, NodeStep, Size
from steersman.controllers.shared.csi_migration import DRIVERS, in_tree_plugin
from steersman.controllers.shared.volumes import OPERATION_SECONDS
from steersman.intent.actions import Action, Address, Emit, Patch, Read, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.metrics import Elapsed, Measure
from steersman.intent.verdict import InvalidSpec, Rest, Verdict

T = TypeVar("T")

RESIZER = "volume.kubernetes.io/storage-resizer"
"""The annotation of a claim with the name of what expands its volume."""
EXTERNAL = "ExternalExpanding"
WORKERS = 10


class Observation(msgspec.Struct, frozen=True):
    """A claim, and its volume where the cache has it."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume | None


def observe(caches: Caches, key: Key) -> Observation | None:
    claim = caches[PERSISTENTVOLUMECLAIMS].get(key)
    if claim is None:
        return None
    return Observation(claim, caches[PERSISTENTVOLUMES].get(Key("", claim.spec.volumeName)))


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is bound to a claim."""
    reference = volume.spec.claimRef
    return reference is not None and (reference.namespace, reference.uid) == (
        claim.metadata.namespace,
        claim.metadata.uid,
    )


async def decide(seen: Observation, now: datetime) -> Verdict:
    claim, cached = seen.claim, seen.volume
    # differs: upstream reads the volume of every claim from the API server, of which there is one request a claim at start.
    if cached is not None and is_bound_to(cached, claim) and not resize.needs_expansion(claim, cached):
        return Rest("claim has all that it requests")
    volume = await _read_volume(claim)
    if not is_bound_to(volume, claim):
        raise InvalidSpec(f"persistent Volume is not bound to PVC being updated : {claim.key}")
    if not resize.needs_expansion(claim, volume):
        return Rest("claim has all that it requests")
    plugin = in_tree_plugin(volume)
    if plugin:
        return await _hand_over(claim, plugin)
    if volume.spec.flexVolume is None:
        await Emit(claim, "Normal", EXTERNAL, "waiting for an external controller to expand this PVC")
        return Rest("claim is expanded by an external controller")
    return await _expand(claim, volume, volume.spec.flexVolume.driver, now)


async def _read_volume(claim: PersistentVolumeClaim) -> PersistentVolume:
    name = claim.spec.volumeName
    if not name:
        raise InvalidSpec(f"claim {claim.key} is bound and names no volume")
    return await _explained(Read(Address(PERSISTENTVOLUMES, "", name)), f'failed to get PV "{name}"')


async def _hand_over(claim: PersistentVolumeClaim, plugin: str) -> Verdict:
    """Names the CSI driver that expands a volume of an in-tree plugin."""
    message = f"CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc"
    await Emit(claim, "Normal", EXTERNAL, message)
    annotations = {**claim.metadata.annotations, RESIZER: DRIVERS[plugin]}
    failure = f"error setting resizer annotation to pvc {claim.key}, with error {_not_patched(claim)}"
    try:
        await _explained(UpdateStatus(claim, claim.status, annotations), failure)
    except ApiError as error:
        await Emit(claim, "Warning", EXTERNAL, str(error))
        raise
    return Rest(f"claim is expanded by {DRIVERS[plugin]}")


# -- FlexVolumes ----------------------------------------------------------------------------------


async def _expand(
    claim: PersistentVolumeClaim, volume: PersistentVolume, driver: str, now: datetime
) -> Verdict:
    """Expands a FlexVolume: all but its file system, which is left to the kubelet."""
    if resize.is_complete(claim, volume) and PRE_RESIZE_CAPACITY in volume.metadata.annotations:
        await Patch(volume, _annotated(volume, None))
        return Rest("claim has been expanded")
    began = await Elapsed()
    try:
        verdict = await _resize(claim, volume, driver, now)
    except ApiError as error:
        await Emit(claim, "Warning", "VolumeResizeFailed", str(error))
        await _measure(driver, "fail-unknown", began)
        raise
    await _measure(driver, "success", began)
    return verdict


async def _measure(driver: str, status: str, began: float) -> None:
    labels = (driver, "expand_volume", status, "false")
    await Measure(OPERATION_SECONDS, await Elapsed() - began, labels)


async def _resize(
    claim: PersistentVolumeClaim, volume: PersistentVolume, driver: str, now: datetime
) -> Verdict:
    size = resize.next_size(claim, volume)
    if size is NodeStep.WAIT:
        # differs: upstream never writes the old capacity where a manager ended just before it.
        await _remember_capacity(claim, volume)
        return Rest(size.value)
    if size is NodeStep.MARK_PENDING:
        await _mark_pending(claim, volume, now)
        return Rest(size.value)
    assert not isinstance(size, NodeStep)
    annotations = {**claim.metadata.annotations, RESIZER: driver}
    begun = resize.in_progress(claim, size, now)
    failure = f"error updating pvc {claim.key} with resize in progress: {_not_patched(claim)}"
    claim = await _explained(UpdateStatus(claim, begun, annotations), failure)
    if volume.spec.capacity.get(STORAGE) != size:
        failure = f"error updating pv for pvc {claim.key}: {_not_patched_volume(volume)}"
        volume = await _explained(Patch(volume, _resized(volume, size)), failure)
    if volume.spec.volumeMode == "Block":
        failure = f"error marking pvc {claim.key} as resized: {_not_patched(claim)}"
        await _explained(UpdateStatus(claim, resize.finished(claim, size)), failure)
        message = f"ExpandVolume succeeded for volume {claim.key}"
        await Emit(claim, "Normal", "VolumeResizeSuccessful", message)
        return Rest("claim has been expanded")
    await _mark_pending(claim, volume, now, f"error marking pvc {claim.key} for node expansion: ")
    return Rest("the node resizes the file system")


async def _mark_pending(
    claim: PersistentVolumeClaim, volume: PersistentVolume, now: datetime, during: str = ""
) -> None:
    """Asks the kubelet to resize the file system."""
    failure = f"{during}error marking pvc {claim.key} for node expansion: {_not_patched(claim)}"
    claim = await _explained(UpdateStatus(claim, resize.node_pending(claim, now)), failure)
    await _remember_capacity(claim, volume, during)


async def _remember_capacity(
    claim: PersistentVolumeClaim, volume: PersistentVolume, during: str = ""
) -> None:
    """Writes the capacity before the resize to the volume, where it is needed if the claim is deleted meanwhile."""
    if PRE_RESIZE_CAPACITY not in volume.metadata.annotations:
        capacity = str(claim.status.capacity.get(STORAGE, "0"))
        failure = (
            f"{during}error updating pv {volume.metadata.name} annotation ({PRE_RESIZE_CAPACITY}) "
            f"with pre-resize capacity {capacity}: {_not_patched_volume(volume)}"
        )
        await _explained(Patch(volume, _annotated(volume, capacity)), failure)


def _resized(volume: PersistentVolume, size: Size) -> dict[str, object]:
    return {"metadata": {"uid": volume.metadata.uid}, "spec": {"capacity": {STORAGE: size}}}


def _annotated(volume: PersistentVolume, capacity: str | None) -> dict[str, object]:
    annotations = {PRE_RESIZE_CAPACITY: capacity}
    return {"metadata": {"uid": volume.metadata.uid, "annotations": annotations}}


# -- errors ---------------------------------------------------------------------------------------


async def _explained(action: Action[T], failure: str) -> T:
    """Performs an action; an error of the server gets upstream's words in front."""
    try:
        return await action
    except ApiError as error:
        raise type(error)(f"{failure}: {error}", code=error.code) from error


def _not_patched(claim: PersistentVolumeClaim) -> str:
    return f'patchPVCStatus failed to patch PVC "{claim.metadata.name}"'


def _not_patched_volume(volume: PersistentVolume) -> str:
    return f'error Patching PV "{volume.metadata.name}" with error '


# -- enqueue --------------------------------------------------------------------------------------


def _claim_changed(caches: Caches, change: Change[PersistentVolumeClaim]) -> Iterable[Key]:
    """A bound claim that is new, requests more than before, or got more."""
    old, new = change.old, change.new
    if new is None or new.status.phase != "Bound":
        return ()
    if (
        old is not None
        and storage_of(new.spec.resources.requests) <= storage_of(old.spec.resources.requests)
        and storage_of(new.status.capacity) <= storage_of(old.status.capacity)
    ):
        return ()
    return (new.key,)


controller = Controller(
    name="persistentvolume-expander-controller",
    aliases=("persistentvolume-expander",),
    service_account="expand-controller",
    event_component="volume_expand",
    watches=(
        Watch(PERSISTENTVOLUMECLAIMS, to=_claim_changed),
        Watch(PERSISTENTVOLUMES, to=lambda caches, change: ()),
    ),
    works_on=(PERSISTENTVOLUMECLAIMS,),
    workers=WORKERS,
    observe=observe,
    decide=decide,
    metrics=(OPERATION_SECONDS,),
)
