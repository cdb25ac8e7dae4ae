"""The binding of PersistentVolumeClaims to PersistentVolumes: its annotations and classes, and whether a volume satisfies a claim."""

from __future__ import annotations

from typing import Final, TypeAlias

from steersman.api.kinds.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    Quantities,
)
from steersman.api.quantity import ZERO, Quantity

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""On a claim: its binding was once complete. The value of this and the next annotation does not matter."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""On a claim or volume: the controller chose the other one. Without it, a user did."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim: the node for which the scheduler wants a volume to be provisioned."""
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
"""On a volume: the provisioner that made it."""
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
"""On a claim or volume: the CSI driver that takes the place of an in-tree plugin."""
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
"""On a claim: the provisioner that is to make a volume for it, under two names."""
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
PRE_RESIZE_CAPACITY = "volume.alpha.kubernetes.io/pre-resize-capacity"
"""On a volume: its capacity before it was expanded, until its file system is expanded, too."""

FILESYSTEM = "Filesystem"
AccessModes: TypeAlias = tuple[str, ...]

_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The StorageClass a claim asks for; empty where it asks for none."""
    annotated = claim.metadata.annotations.get(BETA_STORAGE_CLASS)
    return annotated if annotated is not None else claim.spec.storageClassName or ""


def asks_for_class(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim says which class it wants, if only the empty one: then it never gets the default class."""
    return claim.spec.storageClassName is not None or BETA_STORAGE_CLASS in claim.metadata.annotations


def class_of_volume(volume: PersistentVolume) -> str:
    annotated = volume.metadata.annotations.get(BETA_STORAGE_CLASS)
    return annotated if annotated is not None else volume.spec.storageClassName


def mode_of(spec: PersistentVolumeSpec | PersistentVolumeClaimSpec) -> str:
    """The volume mode; ``Filesystem`` where an old server left it out."""
    return spec.volumeMode if spec.volumeMode is not None else FILESYSTEM


def storage_of(resources: Quantities) -> Quantity:
    """The amount of storage in a capacity or in requests. Raises `ValueError` for one that is no quantity."""
    return Quantity.parse(resources["storage"]) if "storage" in resources else ZERO


def access_modes(modes: AccessModes) -> AccessModes:
    """The known access modes among these, each once, in upstream's order."""
    return tuple(mode for mode in _MODES if mode in modes)


def is_claimed_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is bound to a claim, or reserved for it by a claimRef that has no uid yet."""
    ref = volume.spec.claimRef
    if ref is None:
        return False
    meta = claim.metadata
    return ref.name == meta.name and ref.namespace == meta.namespace and ref.uid in ("", meta.uid)


def mismatch(
    volume: PersistentVolume, claim: PersistentVolumeClaim, *, attributes_classes: bool = True
) -> str:
    """Why a volume that a claim names does not satisfy it; empty if it does.

    ``attributes_classes`` is the feature gate VolumeAttributesClass.
    """
    if volume.metadata.deletionTimestamp is not None:
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if storage_of(volume.spec.capacity).value() < storage_of(claim.spec.resources.requests).value():
        return "requested PV is too small"
    if class_of_volume(volume) != class_of_claim(claim):
        return "storageClassName does not match"
    wanted, given = claim.spec.volumeAttributesClassName or "", volume.spec.volumeAttributesClassName or ""
    if attributes_classes and wanted != given:
        return "volumeAttributesClassName does not match"
    if not attributes_classes and (wanted or given):
        return "volumeAttributesClassName is not supported when the feature-gate VolumeAttributesClass is disabled"
    if mode_of(volume.spec) != mode_of(claim.spec):
        return "incompatible volumeMode"
    if not set(claim.spec.accessModes) <= set(volume.spec.accessModes):
        return "incompatible accessMode"
    return ""
