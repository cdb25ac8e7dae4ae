"""Validation of the volume sources that pods and PersistentVolumes share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors

SourceRule: TypeAlias = Callable[[FieldErrors, str, Any], None]

MORE_THAN_ONE = "may not specify more than 1 volume type"
FILE_MODE_RANGE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_BYTE_RANGE = names.inclusive_range(0, 255)
_PARTITION_RANGE = names.inclusive_range(1, 255)
_ISCSI_NAME_FORMATS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}


def requires_fields(*names: str) -> SourceRule:
    """A rule that requires these fields of a source."""

    def rule(errors: FieldErrors, path: str, source: msgspec.Struct) -> None:
        for name in names:
            if not getattr(source, name):
                errors.required(f"{path}.{name}")

    return rule


def validate_one_source(
    errors: FieldErrors,
    path: str,
    volume: v1.Volume | v1.PersistentVolumeSpec,
    rules: Mapping[str, SourceRule],
) -> str:
    """Validates that a volume has exactly one source; returns its field. Of several only the first is validated."""
    first = ""
    for name, rule in rules.items():
        source = getattr(volume, name)
        if source is None:
            continue
        if first:
            errors.forbidden(f"{path}.{_FORBIDDEN_PATHS.get(name, name)}", MORE_THAN_ONE)
        else:
            first = name
            rule(errors, f"{path}.{_SOURCE_PATHS.get(name, name)}", source)
    if not first:
        errors.required(path, "must specify a volume type")
    return first


# Paths that upstream spells differently from the field.
_FORBIDDEN_PATHS = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_SOURCE_PATHS = {"gcePersistentDisk": "persistentDisk"}


def validate_file_mode(errors: FieldErrors, path: str, bits: int | None) -> None:
    """Validates the permission bits of a file."""
    if bits is not None and not 0 <= bits <= 0o777:
        errors.invalid(path, bits, FILE_MODE_RANGE)


def validate_host_path(errors: FieldErrors, path: str, source: v1.HostPathVolumeSource) -> None:
    if not source.path:
        errors.required(f"{path}.path")
        return
    names.validate_path_no_backsteps(errors, f"{path}.path", source.path)
    if source.type is not None and source.type not in _HOST_PATH_TYPES:
        errors.not_supported(f"{path}.type", source.type, _HOST_PATH_TYPES)


def validate_nfs(errors: FieldErrors, path: str, source: v1.NFSVolumeSource) -> None:
    if not source.server:
        errors.required(f"{path}.server")
    if not source.path:
        errors.required(f"{path}.path")
    if not source.path.startswith("/"):
        errors.invalid(f"{path}.path", source.path, "must be an absolute path")


def validate_iscsi(
    errors: FieldErrors, path: str, source: v1.ISCSIVolumeSource | v1.ISCSIPersistentVolumeSource
) -> None:
    persistent = isinstance(source, v1.ISCSIPersistentVolumeSource)
    told = "" if persistent else " starting with iqn, eui, or naa"
    if not source.targetPortal:
        errors.required(f"{path}.targetPortal")
    if not source.iqn:
        errors.required(f"{path}.iqn")
    else:
        _validate_iscsi_name(errors, f"{path}.iqn", source.iqn, told)
    if not 0 <= source.lun <= 255:
        errors.invalid(f"{path}.lun", source.lun, _BYTE_RANGE)
    if (source.chapAuthDiscovery or source.chapAuthSession) and source.secretRef is None:
        errors.required(f"{path}.secretRef")
    if persistent and source.secretRef is not None and not source.secretRef.name:
        errors.required(f"{path}.secretRef.name")
    if source.initiatorName is not None:
        _validate_iscsi_name(errors, f"{path}.initiatorname", source.initiatorName, told)


def _validate_iscsi_name(errors: FieldErrors, path: str, name: str, told: str) -> None:
    form = _ISCSI_NAME_FORMATS.get(name[:3])
    if form is None:
        errors.invalid(path, name, f"must be valid format{told}")
    elif not form.search(name):
        errors.invalid(path, name, "must be valid format")


def validate_fc(errors: FieldErrors, path: str, source: v1.FCVolumeSource) -> None:
    if not source.targetWWNs and not source.wwids:
        either = "must specify either targetWWNs or wwids, but not both"
        errors.required(f"{path}.targetWWNs", either)
    if source.targetWWNs and source.wwids:
        both = "targetWWNs and wwids can not be specified simultaneously"
        errors.invalid(f"{path}.targetWWNs", source.targetWWNs, both)
    if source.targetWWNs:
        if source.lun is None:
            errors.required(f"{path}.lun", "lun is required if targetWWNs is specified")
        elif not 0 <= source.lun <= 255:
            errors.invalid(f"{path}.lun", source.lun, _BYTE_RANGE)


def requires_disk(name: str) -> SourceRule:
    """A rule for a cloud disk: the field that identifies it, and its partition."""

    def rule(
        errors: FieldErrors,
        path: str,
        source: v1.GCEPersistentDiskVolumeSource | v1.AWSElasticBlockStoreVolumeSource,
    ) -> None:
        if not getattr(source, name):
            errors.required(f"{path}.{name}")
        if not 0 <= source.partition <= 255:
            errors.invalid(f"{path}.partition", source.partition, _PARTITION_RANGE)

    return rule


def validate_flocker(errors: FieldErrors, path: str, source: v1.FlockerVolumeSource) -> None:
    if not source.datasetName and not source.datasetUUID:
        errors.required(path, "one of datasetName and datasetUUID is required")
    if source.datasetName and source.datasetUUID:
        both = "datasetName and datasetUUID can not be specified simultaneously"
        errors.invalid(path, "resource", both)
    if "/" in source.datasetName:
        errors.invalid(f"{path}.datasetName", source.datasetName, "must not contain '/'")


def validate_quobyte(errors: FieldErrors, path: str, source: v1.QuobyteVolumeSource) -> None:
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    if not source.registry:
        errors.required(f"{path}.registry", pairs)
    elif len(source.tenant) >= 65:
        long = "must be a UUID and may not exceed a length of 64 characters"
        errors.required(f"{path}.tenant", long)
    else:
        for pair in source.registry.split(","):
            if pair.count(":") != 1 and not re.fullmatch(r"\[[^]]*\]:[^:]*", pair):
                errors.invalid(f"{path}.registry", source.registry, pairs)
    if not source.volume:
        errors.required(f"{path}.volume")


def validate_flex_volume(
    errors: FieldErrors, path: str, source: v1.FlexVolumeSource | v1.FlexPersistentVolumeSource
) -> None:
    if not source.driver:
        errors.required(f"{path}.driver")
    for key in source.options:
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            reserved = "kubernetes.io and k8s.io namespaces are reserved"
            errors.invalid(f"{path}.options[{key}]", key, reserved)


def validate_cinder(
    errors: FieldErrors, path: str, source: v1.CinderVolumeSource | v1.CinderPersistentVolumeSource
) -> None:
    if not source.volumeID:
        errors.required(f"{path}.volumeID")
    validate_secret_ref(errors, path, source.secretRef)


def validate_storageos(
    errors: FieldErrors, path: str, source: v1.StorageOSVolumeSource | v1.StorageOSPersistentVolumeSource
) -> None:
    if not source.volumeName:
        errors.required(f"{path}.volumeName")
    else:
        errors.invalid_each(f"{path}.volumeName", source.volumeName, names.dns1123_label(source.volumeName))
    if source.volumeNamespace:
        errors.invalid_each(
            f"{path}.volumeNamespace", source.volumeNamespace, names.dns1123_label(source.volumeNamespace)
        )
    validate_secret_ref(errors, path, source.secretRef)


def validate_secret_ref(
    errors: FieldErrors,
    path: str,
    reference: v1.LocalObjectReference | v1.SecretReference | v1.ObjectReference | None,
) -> None:
    """Validates a secretRef: it has a name, and a namespace where the type has that field."""
    if reference is None:
        return
    if not reference.name:
        errors.required(f"{path}.secretRef.name")
    if not isinstance(reference, v1.LocalObjectReference) and not reference.namespace:
        errors.required(f"{path}.secretRef.namespace")


_CACHING_MODES = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED_DISK_URIS = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
)
_BLOB_DISK_URIS = ("https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",)


def validate_azure_disk(errors: FieldErrors, path: str, source: v1.AzureDiskVolumeSource) -> None:
    if not source.diskName:
        errors.required(f"{path}.diskName")
    if not source.diskURI:
        errors.required(f"{path}.diskURI")
    if source.cachingMode is not None and source.cachingMode not in _CACHING_MODES:
        errors.not_supported(f"{path}.cachingMode", source.cachingMode, _CACHING_MODES)
    kind = source.kind
    if kind is not None and kind not in _DISK_KINDS:
        errors.not_supported(f"{path}.kind", kind, _DISK_KINDS)
    if kind == "Managed" and not source.diskURI.startswith("/subscriptions/"):
        errors.not_supported(f"{path}.diskURI", source.diskURI, _MANAGED_DISK_URIS)
    if kind not in (None, "Managed") and not source.diskURI.startswith("https://"):
        errors.not_supported(f"{path}.diskURI", source.diskURI, _BLOB_DISK_URIS)


def validate_csi_driver_name(errors: FieldErrors, path: str, name: str) -> None:
    """Validates the name of a CSI driver."""
    if not name:
        errors.required(path)
        return
    if len(name) > 63:
        errors.too_long(path, 63)
    errors.invalid_each(path, name, names.dns1123_subdomain(name.lower()))


SHARED_SOURCES: Mapping[str, SourceRule] = {
    "awsElasticBlockStore": requires_disk("volumeID"),
    "azureDisk": validate_azure_disk,
    "azureFile": requires_fields("secretName", "shareName"),
    "cephfs": requires_fields("monitors"),
    "cinder": validate_cinder,
    "fc": validate_fc,
    "flexVolume": validate_flex_volume,
    "flocker": validate_flocker,
    "gcePersistentDisk": requires_disk("pdName"),
    "glusterfs": requires_fields("endpoints", "path"),
    "hostPath": validate_host_path,
    "iscsi": validate_iscsi,
    "nfs": validate_nfs,
    "photonPersistentDisk": requires_fields("pdID"),
    "portworxVolume": requires_fields("volumeID"),
    "quobyte": validate_quobyte,
    "rbd": requires_fields("monitors", "image"),
    "scaleIO": requires_fields("gateway", "system", "volumeName"),
    "storageos": validate_storageos,
    "vsphereVolume": requires_fields("volumePath"),
}
"""The rules by source field; their users define the order."""
