"""Sources of volumes, as PersistentVolumes and the volumes of pods name them."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.kinds.struct import EMPTY, Struct


class SecretReference(Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class AWSElasticBlockStoreVolumeSource(Struct, frozen=True):
    volumeID: str = ""
    fsType: str = ""
    partition: int = 0
    readOnly: bool = False


class AzureDiskVolumeSource(Struct, frozen=True):
    diskName: str = ""
    diskURI: str = ""
    cachingMode: str | None = None
    fsType: str | None = None
    kind: str | None = None
    readOnly: bool | None = None


class AzureFilePersistentVolumeSource(Struct, frozen=True):
    secretName: str = ""
    secretNamespace: str | None = None
    shareName: str = ""
    readOnly: bool = False


class CinderPersistentVolumeSource(Struct, frozen=True):
    volumeID: str = ""
    fsType: str = ""
    readOnly: bool = False
    secretRef: SecretReference | None = None


class CSIPersistentVolumeSource(Struct, frozen=True):
    driver: str = ""
    volumeHandle: str = ""
    fsType: str = ""
    readOnly: bool = False
    volumeAttributes: Mapping[str, str] = EMPTY
    controllerExpandSecretRef: SecretReference | None = None
    controllerPublishSecretRef: SecretReference | None = None
    nodeExpandSecretRef: SecretReference | None = None
    nodePublishSecretRef: SecretReference | None = None
    nodeStageSecretRef: SecretReference | None = None


class FCVolumeSource(Struct, frozen=True):
    fsType: str = ""
    lun: int | None = None
    readOnly: bool = False
    targetWWNs: tuple[str, ...] = ()
    wwids: tuple[str, ...] = ()


class FlexPersistentVolumeSource(Struct, frozen=True):
    driver: str = ""
    fsType: str = ""
    options: Mapping[str, str] = EMPTY
    readOnly: bool = False
    secretRef: SecretReference | None = None


class GCEPersistentDiskVolumeSource(Struct, frozen=True):
    pdName: str = ""
    fsType: str = ""
    partition: int = 0
    readOnly: bool = False


class HostPathVolumeSource(Struct, frozen=True):
    path: str = ""
    type: str | None = None


class ISCSIPersistentVolumeSource(Struct, frozen=True):
    targetPortal: str = ""
    iqn: str = ""
    lun: int = 0
    iscsiInterface: str = ""
    fsType: str = ""
    readOnly: bool = False
    portals: tuple[str, ...] = ()
    chapAuthDiscovery: bool = False
    chapAuthSession: bool = False
    initiatorName: str | None = None
    secretRef: SecretReference | None = None


class ISCSIVolumeSource(Struct, frozen=True):
    targetPortal: str = ""
    iqn: str = ""
    lun: int = 0


class LocalVolumeSource(Struct, frozen=True):
    path: str = ""
    fsType: str | None = None


class NFSVolumeSource(Struct, frozen=True):
    server: str = ""
    path: str = ""
    readOnly: bool = False


class PortworxVolumeSource(Struct, frozen=True):
    volumeID: str = ""
    fsType: str = ""
    readOnly: bool = False


class VsphereVirtualDiskVolumeSource(Struct, frozen=True):
    volumePath: str = ""
    fsType: str = ""
    storagePolicyID: str = ""
    storagePolicyName: str = ""


class AzureFileVolumeSource(Struct, frozen=True):
    secretName: str = ""
    shareName: str = ""
    readOnly: bool = False


class CinderVolumeSource(Struct, frozen=True):
    volumeID: str = ""
    fsType: str = ""
    readOnly: bool = False


class CSIVolumeSource(Struct, frozen=True):
    driver: str = ""
