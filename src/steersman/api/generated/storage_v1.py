"""The types of storage/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import core_v1, meta_v1
from steersman.api.generated.base import Quantity, Time
from steersman.api.generated.merge import ATOMIC, SET, Merge
from steersman.api.kinds import EMPTY, Struct


class CSIDriverSpec(Struct, frozen=True):
    attachRequired: bool | None = None
    fsGroupPolicy: str | None = None
    nodeAllocatableUpdatePeriodSeconds: int | None = None
    podInfoOnMount: bool | None = None
    preventPodSchedulingIfMissing: bool | None = None
    requiresRepublish: bool | None = None
    seLinuxMount: bool | None = None
    serviceAccountTokenInSecrets: bool | None = None
    storageCapacity: bool | None = None
    tokenRequests: Annotated[tuple[TokenRequest, ...], ATOMIC] = ()
    volumeLifecycleModes: Annotated[tuple[str, ...], SET] = ()


class CSIDriver(meta_v1.Object, frozen=True):
    spec: CSIDriverSpec = msgspec.field(default_factory=CSIDriverSpec)


class CSINodeSpec(Struct, frozen=True):
    drivers: Annotated[
        tuple[CSINodeDriver, ...] | None, Merge(strategy="merge", key="name", list_type="map", keys=("name",))
    ] = msgspec.field(default_factory=NoneType)


class CSINode(meta_v1.Object, frozen=True):
    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class CSINodeDriver(Struct, frozen=True):
    allocatable: VolumeNodeResources | None = None
    name: str = msgspec.field(default_factory=str)
    nodeID: str = msgspec.field(default_factory=str)
    topologyKeys: Annotated[tuple[str, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)


class CSIStorageCapacity(meta_v1.Object, frozen=True):
    capacity: Quantity | None = None
    maximumVolumeSize: Quantity | None = None
    nodeTopology: meta_v1.LabelSelector | None = None
    storageClassName: str = msgspec.field(default_factory=str)


class StorageClass(meta_v1.Object, frozen=True):
    allowVolumeExpansion: bool | None = None
    allowedTopologies: Annotated[tuple[core_v1.TopologySelectorTerm, ...], ATOMIC] = ()
    mountOptions: Annotated[tuple[str, ...], ATOMIC] = ()
    parameters: Mapping[str, str] = EMPTY
    provisioner: str = msgspec.field(default_factory=str)
    reclaimPolicy: str | None = None
    volumeBindingMode: str | None = None


class TokenRequest(Struct, frozen=True):
    audience: str = msgspec.field(default_factory=str)
    expirationSeconds: int | None = None


class VolumeAttachmentSource(Struct, frozen=True):
    inlineVolumeSpec: core_v1.PersistentVolumeSpec | None = None
    persistentVolumeName: str | None = None


class VolumeAttachmentSpec(Struct, frozen=True):
    attacher: str = msgspec.field(default_factory=str)
    nodeName: str = msgspec.field(default_factory=str)
    source: VolumeAttachmentSource = msgspec.field(default_factory=VolumeAttachmentSource)


class VolumeAttachmentStatus(Struct, frozen=True):
    attachError: VolumeError | None = None
    attached: bool = msgspec.field(default_factory=bool)
    attachmentMetadata: Mapping[str, str] = EMPTY
    detachError: VolumeError | None = None


class VolumeAttachment(meta_v1.Object, frozen=True):
    spec: VolumeAttachmentSpec = msgspec.field(default_factory=VolumeAttachmentSpec)
    status: VolumeAttachmentStatus = msgspec.field(default_factory=VolumeAttachmentStatus)


class VolumeAttributesClass(meta_v1.Object, frozen=True):
    driverName: str = msgspec.field(default_factory=str)
    parameters: Mapping[str, str] = EMPTY


class VolumeError(Struct, frozen=True):
    errorCode: int | None = None
    message: str = ""
    time: Time | None = msgspec.field(default_factory=NoneType)


class VolumeNodeResources(Struct, frozen=True):
    count: int | None = None
