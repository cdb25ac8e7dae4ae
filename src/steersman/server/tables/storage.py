"""Storage: volumes, claims, classes and drivers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from steersman.server.tables import cells
from steersman.server.tables.age import since
from steersman.server.tables.printer import (
    NAME,
    Cell,
    Column,
    Printer,
    Printers,
    boolean,
    columns,
    integer,
    wide,
)

if TYPE_CHECKING:
    from steersman.api.generated.core_v1 import PersistentVolume, PersistentVolumeClaim
    from steersman.api.generated.storage_v1 import (
        CSIDriver,
        CSINode,
        StorageClass,
        VolumeAttachment,
        VolumeAttributesClass,
    )

_CLASS = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named the class before there was a field, and still comes first."""
_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def volume(volume: PersistentVolume, now: datetime) -> tuple[Cell, ...]:
    spec, metadata = volume.spec, volume.metadata
    claim = spec.claimRef
    return (
        metadata.name,
        cells.quantity(spec.capacity.get("storage")),
        cells.access_modes(spec.accessModes),
        spec.persistentVolumeReclaimPolicy,
        "Terminating" if metadata.deletionTimestamp is not None else volume.status.phase,
        "" if claim is None else f"{claim.namespace}/{claim.name}",
        metadata.annotations.get(_CLASS, spec.storageClassName),
        _set(spec.volumeAttributesClassName),
        volume.status.reason,
        since(metadata.creationTimestamp, now),
        _set(spec.volumeMode),
    )


def claim(claim: PersistentVolumeClaim, now: datetime) -> tuple[Cell, ...]:
    spec, status, metadata = claim.spec, claim.status, claim.metadata
    bound = spec.volumeName != ""
    return (
        metadata.name,
        "Terminating" if metadata.deletionTimestamp is not None else status.phase,
        spec.volumeName,
        cells.quantity(status.capacity.get("storage")) if bound else "",
        cells.access_modes(status.accessModes) if bound else "",
        metadata.annotations.get(_CLASS, spec.storageClassName or ""),
        _set(spec.volumeAttributesClassName),
        since(metadata.creationTimestamp, now),
        _set(spec.volumeMode),
    )


def _set(value: str | None) -> str:
    return "<unset>" if value is None else value


def storage_class(found: StorageClass, now: datetime) -> tuple[Cell, ...]:
    metadata = found.metadata
    default = any(metadata.annotations.get(key) == "true" for key in _DEFAULT)
    return (
        f"{metadata.name} (default)" if default else metadata.name,
        found.provisioner,
        "Delete" if found.reclaimPolicy is None else found.reclaimPolicy,
        "Immediate" if found.volumeBindingMode is None else found.volumeBindingMode,
        bool(found.allowVolumeExpansion),
        since(metadata.creationTimestamp, now),
    )


def attributes_class(found: VolumeAttributesClass, now: datetime) -> tuple[Cell, ...]:
    return found.metadata.name, found.driverName, since(found.metadata.creationTimestamp, now)


def attachment(found: VolumeAttachment, now: datetime) -> tuple[Cell, ...]:
    return (
        found.metadata.name,
        found.spec.attacher,
        found.spec.source.persistentVolumeName or "",
        found.spec.nodeName,
        found.status.attached,
        since(found.metadata.creationTimestamp, now),
    )


def csi_node(node: CSINode, now: datetime) -> tuple[Cell, ...]:
    return node.metadata.name, len(node.spec.drivers or ()), since(node.metadata.creationTimestamp, now)


def csi_driver(driver: CSIDriver, now: datetime) -> tuple[Cell, ...]:
    spec = driver.spec
    return (
        driver.metadata.name,
        spec.attachRequired is not False,
        bool(spec.podInfoOnMount),
        bool(spec.storageCapacity),
        ",".join(each.audience for each in spec.tokenRequests) if spec.tokenRequests else "<unset>",
        bool(spec.requiresRepublish),
        ",".join(spec.volumeLifecycleModes) or "<none>",
        since(driver.metadata.creationTimestamp, now),
    )


PRINTERS: Printers = {
    "persistentvolumes": Printer(
        columns(
            NAME,
            "Capacity",
            "Access Modes",
            "Reclaim Policy",
            "Status",
            "Claim",
            "StorageClass",
            "VolumeAttributesClass",
            "Reason",
            "Age",
            wide("VolumeMode"),
        ),
        volume,
    ),
    "persistentvolumeclaims": Printer(
        columns(
            NAME,
            "Status",
            "Volume",
            "Capacity",
            "Access Modes",
            "StorageClass",
            "VolumeAttributesClass",
            "Age",
            wide("VolumeMode"),
        ),
        claim,
    ),
    "storageclasses.storage.k8s.io": Printer(
        columns(NAME, "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
        storage_class,
    ),
    "volumeattributesclasses.storage.k8s.io": Printer(columns(NAME, "DriverName", "Age"), attributes_class),
    "volumeattachments.storage.k8s.io": Printer(
        columns(NAME, Column("Attacher", format="name"), "PV", "Node", boolean("Attached"), "Age"), attachment
    ),
    "csinodes.storage.k8s.io": Printer(columns(NAME, integer("Drivers"), "Age"), csi_node),
    "csidrivers.storage.k8s.io": Printer(
        columns(
            NAME,
            boolean("AttachRequired"),
            boolean("PodInfoOnMount"),
            boolean("StorageCapacity"),
            "TokenRequests",
            boolean("RequiresRepublish"),
            "Modes",
            "Age",
        ),
        csi_driver,
    ),
}
