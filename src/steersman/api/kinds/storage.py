"""Views of PersistentVolumes, PersistentVolumeClaims, their classes and attachments, and of CSI drivers.

The views of volumes and claims have every field, because controllers that may only ``update`` them put them back
whole. Fields that no controller reads are `Unread`: they are passed on as they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from steersman.api.kinds import (
    EMPTY,
    Condition,
    LabelSelector,
    Object,
    ObjectMeta,
    ObjectReference,
    Opaque,
    Struct,
)
from steersman.api.kinds.nodes import NodeSelector
from steersman.api.kinds.volume_sources import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFilePersistentVolumeSource,
    CinderPersistentVolumeSource,
    CSIPersistentVolumeSource,
    FCVolumeSource,
    FlexPersistentVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    ISCSIPersistentVolumeSource,
    LocalVolumeSource,
    NFSVolumeSource,
    PortworxVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from steersman.api.scheme import Kind, register

Unread: TypeAlias = Any
"""None if absent; else a plain document, or a full struct of the in-process server."""

Quantities: TypeAlias = Mapping[str, str | int | float]
"""Amounts as they were written, by resource name."""


# -- volumes ----------------------------------------------------------------------------------


class VolumeNodeAffinity(Struct, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct, frozen=True):
    accessModes: tuple[str, ...] = ()
    capacity: Quantities = EMPTY
    claimRef: ObjectReference | None = None
    mountOptions: tuple[str, ...] = ()
    nodeAffinity: VolumeNodeAffinity | None = None
    persistentVolumeReclaimPolicy: str = ""
    storageClassName: str = ""
    volumeAttributesClassName: str | None = None
    volumeMode: str | None = None

    awsElasticBlockStore: AWSElasticBlockStoreVolumeSource | None = None
    azureDisk: AzureDiskVolumeSource | None = None
    azureFile: AzureFilePersistentVolumeSource | None = None
    cephfs: Unread = None
    cinder: CinderPersistentVolumeSource | None = None
    csi: CSIPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flexVolume: FlexPersistentVolumeSource | None = None
    flocker: Unread = None
    gcePersistentDisk: GCEPersistentDiskVolumeSource | None = None
    glusterfs: Unread = None
    hostPath: HostPathVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    photonPersistentDisk: Unread = None
    portworxVolume: PortworxVolumeSource | None = None
    quobyte: Unread = None
    rbd: Unread = None
    scaleIO: Unread = None
    storageos: Unread = None
    vsphereVolume: VsphereVirtualDiskVolumeSource | None = None


class PersistentVolumeStatus(Struct, frozen=True):
    phase: str = ""
    message: str = ""
    reason: str = ""
    lastPhaseTransitionTime: datetime | None = None


class PersistentVolume(Object, frozen=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


# -- claims -----------------------------------------------------------------------------------


class VolumeResourceRequirements(Struct, frozen=True):
    limits: Quantities = EMPTY
    requests: Quantities = EMPTY


class PersistentVolumeClaimSpec(Struct, frozen=True):
    accessModes: tuple[str, ...] = ()
    dataSource: Unread = None
    dataSourceRef: Unread = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    selector: LabelSelector | None = None
    storageClassName: str | None = None
    volumeAttributesClassName: str | None = None
    volumeMode: str | None = None
    volumeName: str = ""


class ModifyVolumeStatus(Struct, frozen=True):
    status: str = ""
    targetVolumeAttributesClassName: str = ""


class PersistentVolumeClaimStatus(Struct, frozen=True):
    phase: str = ""
    accessModes: tuple[str, ...] = ()
    capacity: Quantities = EMPTY
    conditions: tuple[Condition, ...] = ()
    allocatedResources: Quantities = EMPTY
    allocatedResourceStatuses: Mapping[str, str] = EMPTY
    currentVolumeAttributesClassName: str | None = None
    modifyVolumeStatus: ModifyVolumeStatus | None = None


class PersistentVolumeClaim(Object, frozen=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class NewClaim(Struct, frozen=True):
    """A claim as a controller creates it from a template: its own metadata, and the template's spec unchanged."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Opaque = Opaque(b"{}")


# -- classes ----------------------------------------------------------------------------------


class TopologySelectorLabelRequirement(Struct, frozen=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Struct, frozen=True):
    matchLabelExpressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(Object, frozen=True):
    provisioner: str = ""
    parameters: Mapping[str, str] = EMPTY
    reclaimPolicy: str | None = None
    mountOptions: tuple[str, ...] = ()
    allowVolumeExpansion: bool | None = None
    volumeBindingMode: str | None = None
    allowedTopologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeAttributesClass(Object, frozen=True):
    driverName: str = ""
    parameters: Mapping[str, str] = EMPTY


# -- attachments and CSI drivers --------------------------------------------------------------


class VolumeAttachmentSource(Struct, frozen=True):
    persistentVolumeName: str | None = None
    inlineVolumeSpec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Struct, frozen=True):
    attacher: str = ""
    nodeName: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeError(Struct, frozen=True):
    message: str = ""
    time: datetime | None = None


class VolumeAttachmentStatus(Struct, frozen=True):
    attached: bool = False
    attachError: VolumeError | None = None
    detachError: VolumeError | None = None


class VolumeAttachment(Object, frozen=True):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()


class CSIDriverSpec(Struct, frozen=True):
    attachRequired: bool | None = None
    seLinuxMount: bool | None = None


class CSIDriver(Object, frozen=True):
    spec: CSIDriverSpec = CSIDriverSpec()


class VolumeNodeResources(Struct, frozen=True):
    count: int | None = None


class CSINodeDriver(Struct, frozen=True):
    name: str = ""
    nodeID: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Struct, frozen=True):
    drivers: tuple[CSINodeDriver, ...] | None = None


class CSINode(Object, frozen=True):
    spec: CSINodeSpec = CSINodeSpec()


PERSISTENTVOLUMES = register(Kind("", "v1", "PersistentVolume", "persistentvolumes", False, PersistentVolume))
PERSISTENTVOLUMECLAIMS = register(
    Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, PersistentVolumeClaim)
)
NEW_CLAIMS = register(PERSISTENTVOLUMECLAIMS.as_(NewClaim))
STORAGECLASSES = register(Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", False, StorageClass))
VOLUMEATTRIBUTESCLASSES = register(
    Kind(
        "storage.k8s.io",
        "v1",
        "VolumeAttributesClass",
        "volumeattributesclasses",
        False,
        VolumeAttributesClass,
    )
)
VOLUMEATTACHMENTS = register(
    Kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", False, VolumeAttachment)
)
CSIDRIVERS = register(Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", False, CSIDriver))
CSINODES = register(Kind("storage.k8s.io", "v1", "CSINode", "csinodes", False, CSINode))
