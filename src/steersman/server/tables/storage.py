"""Printers of PersistentVolumes, PersistentVolumeClaims, storage classes and CSI kinds."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from steersman.server.tables import cells
from steersman.server.tables.cells import age
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

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""The annotation for the class that preceded the field, and still takes precedence."""
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def volume_cells(volume: PersistentVolume, now: datetime) -> tuple[Cell, ...]:
    spec, metadata = volume.spec, volume.metadata
    claim = spec.claimRef
    return (
        metadata.name,
        cells.format_quantity(spec.capacity.get("storage")),
        cells.format_access_modes(spec.accessModes),
        spec.persistentVolumeReclaimPolicy,
        "Terminating" if metadata.deletionTimestamp is not None else volume.status.phase,
        "" if claim is None else f"{claim.namespace}/{claim.name}",
        metadata.annotations.get(_CLASS_ANNOTATION, spec.storageClassName),
        _or_unset(spec.volumeAttributesClassName),
        volume.status.reason,
        age(metadata.creationTimestamp, now),
        _or_unset(spec.volumeMode),
    )


def claim_cells(claim: PersistentVolumeClaim, now: datetime) -> tuple[Cell, ...]:
    spec, status, metadata = claim.spec, claim.status, claim.metadata
    bound = spec.volumeName != ""
    return (
        metadata.name,
        "Terminating" if metadata.deletionTimestamp is not None else status.phase,
        spec.volumeName,
        cells.format_quantity(status.capacity.get("storage")) if bound else "",
        cells.format_access_modes(status.accessModes) if bound else "",
        metadata.annotations.get(_CLASS_ANNOTATION, spec.storageClassName or ""),
        _or_unset(spec.volumeAttributesClassName),
        age(metadata.creationTimestamp, now),
        _or_unset(spec.volumeMode),
    )


def _or_unset(value: str | None) -> str:
    return "<unset>" if value is None else value


def storage_class_cells(storage_class: StorageClass, now: datetime) -> tuple[Cell, ...]:
    metadata = storage_class.metadata
    default = any(metadata.annotations.get(key) == "true" for key in _DEFAULT_ANNOTATIONS)
    return (
        f"{metadata.name} (default)" if default else metadata.name,
        storage_class.provisioner,
        "Delete" if storage_class.reclaimPolicy is None else storage_class.reclaimPolicy,
        "Immediate" if storage_class.volumeBindingMode is None else storage_class.volumeBindingMode,
        bool(storage_class.allowVolumeExpansion),
        age(metadata.creationTimestamp, now),
    )


def attributes_class_cells(attributes_class: VolumeAttributesClass, now: datetime) -> tuple[Cell, ...]:
    return (
        attributes_class.metadata.name,
        attributes_class.driverName,
        age(attributes_class.metadata.creationTimestamp, now),
    )


def attachment_cells(attachment: VolumeAttachment, now: datetime) -> tuple[Cell, ...]:
    return (
        attachment.metadata.name,
        attachment.spec.attacher,
        attachment.spec.source.persistentVolumeName or "",
        attachment.spec.nodeName,
        attachment.status.attached,
        age(attachment.metadata.creationTimestamp, now),
    )


def csi_node_cells(node: CSINode, now: datetime) -> tuple[Cell, ...]:
    return node.metadata.name, len(node.spec.drivers or ()), age(node.metadata.creationTimestamp, now)


def csi_driver_cells(driver: CSIDriver, now: datetime) -> tuple[Cell, ...]:
    spec = driver.spec
    return (
        driver.metadata.name,
        spec.attachRequired is not False,
        bool(spec.podInfoOnMount),
        bool(spec.storageCapacity),
        ",".join(request.audience for request in spec.tokenRequests) if spec.tokenRequests else "<unset>",
        bool(spec.requiresRepublish),
        ",".join(spec.volumeLifecycleModes) or "<none>",
        age(driver.metadata.creationTimestamp, now),
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
        volume_cells,
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
        claim_cells,
    ),
    "storageclasses.storage.k8s.io": Printer(
        columns(NAME, "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
        storage_class_cells,
    ),
    "volumeattributesclasses.storage.k8s.io": Printer(
        columns(NAME, "DriverName", "Age"), attributes_class_cells
    ),
    "volumeattachments.storage.k8s.io": Printer(
        columns(NAME, Column("Attacher", format="name"), "PV", "Node", boolean("Attached"), "Age"),
        attachment_cells,
    ),
    "csinodes.storage.k8s.io": Printer(columns(NAME, integer("Drivers"), "Age"), csi_node_cells),
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
        csi_driver_cells,
    ),
}
