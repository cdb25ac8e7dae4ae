"""CSI migration: translates volumes of in-tree plugins to the CSI volumes that replace them.

All seven migrations are complete in 1.36, so a translation depends on the volume alone, not on the node. Only what
attaching needs is translated: topology is the scheduler's and the provisioner's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from steersman.api.kinds import Volume
from steersman.api.kinds.storage import PersistentVolume

DRIVERS: Mapping[str, str] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""The CSI driver that replaces each in-tree plugin."""

READ_WRITE_ONCE = "ReadWriteOnce"
READ_ONLY_MANY = "ReadOnlyMany"
READ_WRITE_MANY = "ReadWriteMany"

_PLUGINS: Mapping[str, str] = {
    "awsElasticBlockStore": "kubernetes.io/aws-ebs",
    "azureDisk": "kubernetes.io/azure-disk",
    "azureFile": "kubernetes.io/azure-file",
    "cinder": "kubernetes.io/cinder",
    "gcePersistentDisk": "kubernetes.io/gce-pd",
    "portworxVolume": "kubernetes.io/portworx-volume",
    "vsphereVolume": "kubernetes.io/vsphere-volume",
}
_MANAGED = "Managed"
_UNSPECIFIED = "UNSPECIFIED"
_ACCOUNT_SECRET = re.compile(r"azure-storage-account-(.+)-secret")
_ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


class Untranslatable(Exception):
    """A volume of an in-tree plugin has no CSI form: its source is malformed, or of a kind the driver does not know."""


class TranslatedVolume(msgspec.Struct, frozen=True):
    """The CSI form of an in-tree volume."""

    driver: str
    handle: str
    access_modes: tuple[str, ...]
    name: str = ""
    """The name of the PersistentVolume that stands for an inline volume."""
    source: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The CSI source of an inline volume, as a document."""

    @property
    def inline_spec(self) -> Mapping[str, Any]:
        """The spec of the PersistentVolume that stands for an inline volume, for its VolumeAttachment."""
        return {
            "csi": {"driver": self.driver, "volumeHandle": self.handle, **self.source},
            "accessModes": list(self.access_modes),
            "volumeMode": "Filesystem",
        }


def in_tree_plugin(pv: PersistentVolume) -> str:
    """The in-tree plugin of a PersistentVolume that is migrated to CSI; empty: it is none."""
    spec = pv.spec
    if spec.csi is not None:
        return ""
    sources = (
        ("awsElasticBlockStore", spec.awsElasticBlockStore),
        ("azureDisk", spec.azureDisk),
        ("azureFile", spec.azureFile),
        ("cinder", spec.cinder),
        ("gcePersistentDisk", spec.gcePersistentDisk),
        ("portworxVolume", spec.portworxVolume),
        ("vsphereVolume", spec.vsphereVolume),
    )
    return next((_PLUGINS[name] for name, source in sources if source is not None), "")


def translate(pv: PersistentVolume) -> TranslatedVolume | None:
    """The CSI form of a PersistentVolume of an in-tree plugin; None: it has no such source.

    Raises `Untranslatable`.
    """
    plugin = in_tree_plugin(pv)
    if not plugin:
        return None
    spec = pv.spec
    modes = spec.accessModes
    if spec.awsElasticBlockStore is not None:
        handle = ebs_volume_id(spec.awsElasticBlockStore.volumeID)
    elif spec.azureDisk is not None:
        _require_managed(spec.azureDisk.kind)
        handle = spec.azureDisk.diskURI
    elif spec.azureFile is not None:
        file = spec.azureFile
        namespace = file.secretNamespace
        if namespace is None:
            namespace = spec.claimRef.namespace if spec.claimRef is not None else ""
        if not namespace:
            raise Untranslatable("could not find a secret namespace in PersistentVolumeSource or ClaimRef")
        group = pv.metadata.annotations.get("kubernetes.io/azure-file-resource-group", "")
        account = storage_account(file.secretName)
        handle = f"{group}#{account}#{file.shareName}#{pv.metadata.name}#{namespace}"
    elif spec.cinder is not None:
        handle = spec.cinder.volumeID
    elif spec.gcePersistentDisk is not None:
        handle = _disk_path(pv.metadata.labels, spec.gcePersistentDisk.pdName)
        modes = gce_access_modes(modes)
    elif spec.portworxVolume is not None:
        handle = spec.portworxVolume.volumeID
    else:
        assert spec.vsphereVolume is not None
        handle = spec.vsphereVolume.volumePath
    return TranslatedVolume(DRIVERS[plugin], handle, modes)


def is_migrated_inline(volume: Volume) -> bool:
    """Whether the volume of a pod names an in-tree source that is migrated to CSI."""
    return (
        volume.awsElasticBlockStore is not None
        or volume.azureDisk is not None
        or volume.azureFile is not None
        or volume.cinder is not None
        or volume.gcePersistentDisk is not None
        or volume.portworxVolume is not None
        or volume.vsphereVolume is not None
    )


def translate_inline(volume: Volume, namespace: str) -> TranslatedVolume | None:
    """The CSI form of a pod's inline volume; None: it has no source of an in-tree plugin. Raises `Untranslatable`."""
    if volume.awsElasticBlockStore is not None:
        ebs = volume.awsElasticBlockStore
        source: dict[str, Any] = {"volumeAttributes": {"partition": str(ebs.partition)}}
        return _inline("kubernetes.io/aws-ebs", ebs_volume_id(ebs.volumeID), ebs.fsType, ebs.readOnly, source)
    if volume.azureDisk is not None:
        disk = volume.azureDisk
        _require_managed(disk.kind)
        attributes = {"kind": _MANAGED}
        if disk.cachingMode:
            attributes["cachingmode"] = disk.cachingMode
        if disk.fsType is not None:
            attributes["fstype"] = disk.fsType
        source = {"volumeAttributes": attributes}
        return _inline(
            "kubernetes.io/azure-disk",
            disk.diskURI,
            disk.fsType or "",
            bool(disk.readOnly),
            source,
            disk.diskURI,
        )
    if volume.azureFile is not None:
        file = volume.azureFile
        namespace = namespace or "default"
        handle = f"#{storage_account(file.secretName)}#{file.shareName}#{volume.name}#{namespace}"
        source = {
            "volumeAttributes": {"sharename": file.shareName},
            "nodeStageSecretRef": {"name": file.secretName, "namespace": namespace},
        }
        return _inline("kubernetes.io/azure-file", handle, "", file.readOnly, source, handle, READ_WRITE_MANY)
    if volume.cinder is not None:
        cinder = volume.cinder
        return _inline("kubernetes.io/cinder", cinder.volumeID, cinder.fsType, cinder.readOnly, {})
    if volume.gcePersistentDisk is not None:
        gce = volume.gcePersistentDisk
        driver = DRIVERS["kubernetes.io/gce-pd"]
        source = {"volumeAttributes": {"partition": str(gce.partition) if gce.partition else ""}}
        mode = READ_ONLY_MANY if gce.readOnly else READ_WRITE_ONCE
        path = _disk_path({}, gce.pdName)
        name = f"{driver}-{gce.pdName}"
        return _inline("kubernetes.io/gce-pd", path, gce.fsType, gce.readOnly, source, name, mode)
    if volume.portworxVolume is not None:
        portworx = volume.portworxVolume
        mode = READ_ONLY_MANY if portworx.readOnly else READ_WRITE_ONCE
        return _inline(
            "kubernetes.io/portworx-volume", portworx.volumeID, portworx.fsType, False, {}, mode=mode
        )
    if volume.vsphereVolume is not None:
        vsphere = volume.vsphereVolume
        # differs: upstream stops with a nil dereference where there is a storagePolicyName.
        policy = vsphere.storagePolicyName
        source = {"volumeAttributes": {"storagepolicyname": policy}} if policy else {}
        return _inline("kubernetes.io/vsphere-volume", vsphere.volumePath, vsphere.fsType, False, source)
    return None


def _inline(
    plugin: str,
    handle: str,
    fs_type: str,
    read_only: bool,
    source: dict[str, Any],
    name: str = "",
    mode: str = READ_WRITE_ONCE,
) -> TranslatedVolume:
    driver = DRIVERS[plugin]
    if fs_type:
        source["fsType"] = fs_type
    if read_only:
        source["readOnly"] = True
    return TranslatedVolume(driver, handle, (mode,), name or f"{driver}-{handle}", source)


# -- parts of handles -----------------------------------------------------------------------------


def ebs_volume_id(volume: str) -> str:
    """The id of an EBS volume: ``aws://zone/vol-1`` and ``aws:///vol-1`` are ``vol-1``. Raises `Untranslatable`."""
    if not volume.startswith("aws://"):
        return volume
    try:
        path = urlsplit(volume).path.strip("/")
    except ValueError as error:
        raise Untranslatable(f"Invalid disk name ({volume}): {error}") from None
    if not path.startswith("vol-") or "/" in path:
        raise Untranslatable(f"Invalid format for AWS volume ({volume})")
    return path


def storage_account(secret: str) -> str:
    """The storage account that the name of an Azure File secret has; else that name itself."""
    found = _ACCOUNT_SECRET.search(secret)
    return found[1] if found else secret


def gce_access_modes(modes: tuple[str, ...]) -> tuple[str, ...]:
    """The access modes of a GCE disk: the in-tree plugin attached ReadWriteMany, and a mix, as ReadWriteOnce."""
    if not modes:
        return ()
    return (READ_ONLY_MANY,) if set(modes) == {READ_ONLY_MANY} else (READ_WRITE_ONCE,)


def _disk_path(labels: Mapping[str, str], disk: str) -> str:
    """The handle of a GCE disk: zonal, or regional where its label has several zones."""
    label = labels.get(_ZONE_LABELS[0]) or labels.get(_ZONE_LABELS[1]) or ""
    zones = label.split("__")
    if len(zones) == 1:
        return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{disk}"
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise Untranslatable(
                f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        raise Untranslatable(f"multiple or no regions gotten from zones, got: {sorted(regions)}")
    return f"projects/{_UNSPECIFIED}/regions/{regions.pop()}/disks/{disk}"


def _require_managed(kind: str | None) -> None:
    if kind is not None and kind.lower() != _MANAGED.lower():
        raise Untranslatable(f"kind({kind}) is not supported in csi migration")
