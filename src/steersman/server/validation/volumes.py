"""Sources of volumes that pods and persistent volumes have in common: a disk, a share, a directory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from steersman.server.validation import names as text
from steersman.server.validation.field_errors import FieldErrors

Check: TypeAlias = Callable[[FieldErrors, str, Any], None]

MORE_THAN_ONE = "may not specify more than 1 volume type"
MODES = "must be a number between 0 and 0777 (octal), both inclusive"
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
_BYTE = text.between(0, 255)
_PARTITION = text.between(1, 255)
_IQN = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}


def needs(*names: str) -> Check:
    """A source with fields that must not be empty."""

    def check(errors: FieldErrors, path: str, source: Any) -> None:
        for name in names:
            if not getattr(source, name):
                errors.required(f"{path}.{name}")

    return check


def only_one(errors: FieldErrors, path: str, volume: Any, checks: Mapping[str, Check]) -> str:
    """Exactly one source; of several, only the first is looked into. Answers which one it is."""
    first = ""
    for name, check in checks.items():
        source = getattr(volume, name)
        if source is None:
            continue
        if first:
            errors.forbidden(f"{path}.{_MISSPELT.get(name, name)}", MORE_THAN_ONE)
        else:
            first = name
            check(errors, f"{path}.{_RENAMED.get(name, name)}", source)
    if not first:
        errors.required(path, "must specify a volume type")
    return first


# As the real server has it.
_MISSPELT = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_RENAMED = {"gcePersistentDisk": "persistentDisk"}


def mode(errors: FieldErrors, path: str, bits: int | None) -> None:
    """The permissions of a file."""
    if bits is not None and not 0 <= bits <= 0o777:
        errors.invalid(path, bits, MODES)


def host_path(errors: FieldErrors, path: str, source: Any) -> None:
    if not source.path:
        errors.required(f"{path}.path")
        return
    text.no_backsteps(errors, f"{path}.path", source.path)
    if source.type is not None and source.type not in _HOST_PATH_TYPES:
        errors.not_supported(f"{path}.type", source.type, _HOST_PATH_TYPES)


def nfs(errors: FieldErrors, path: str, source: Any) -> None:
    if not source.server:
        errors.required(f"{path}.server")
    if not source.path:
        errors.required(f"{path}.path")
    if not source.path.startswith("/"):
        errors.invalid(f"{path}.path", source.path, "must be an absolute path")


def iscsi(errors: FieldErrors, path: str, source: Any) -> None:
    if not source.targetPortal:
        errors.required(f"{path}.targetPortal")
    if not source.iqn:
        errors.required(f"{path}.iqn")
    else:
        _initiator(errors, f"{path}.iqn", source.iqn)
    if not 0 <= source.lun <= 255:
        errors.invalid(f"{path}.lun", source.lun, _BYTE)
    if (source.chapAuthDiscovery or source.chapAuthSession) and source.secretRef is None:
        errors.required(f"{path}.secretRef")
    if source.initiatorName is not None:
        _initiator(errors, f"{path}.initiatorname", source.initiatorName)


def _initiator(errors: FieldErrors, path: str, name: str) -> None:
    form = _IQN.get(name[:3])
    if form is None:
        errors.invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    elif not form.search(name):
        errors.invalid(path, name, "must be valid format")


def fc(errors: FieldErrors, path: str, source: Any) -> None:
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
            errors.invalid(f"{path}.lun", source.lun, _BYTE)


def disk(name: str) -> Check:
    """A disk of a cloud that may be partitioned."""

    def check(errors: FieldErrors, path: str, source: Any) -> None:
        if not getattr(source, name):
            errors.required(f"{path}.{name}")
        if not 0 <= source.partition <= 255:
            errors.invalid(f"{path}.partition", source.partition, _PARTITION)

    return check


def flocker(errors: FieldErrors, path: str, source: Any) -> None:
    if not source.datasetName and not source.datasetUUID:
        errors.required(path, "one of datasetName and datasetUUID is required")
    if source.datasetName and source.datasetUUID:
        both = "datasetName and datasetUUID can not be specified simultaneously"
        errors.invalid(path, "resource", both)
    if "/" in source.datasetName:
        errors.invalid(f"{path}.datasetName", source.datasetName, "must not contain '/'")


def quobyte(errors: FieldErrors, path: str, source: Any) -> None:
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


def flex(errors: FieldErrors, path: str, source: Any) -> None:
    if not source.driver:
        errors.required(f"{path}.driver")
    for key in source.options:
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            reserved = "kubernetes.io and k8s.io namespaces are reserved"
            errors.invalid(f"{path}.options[{key}]", key, reserved)


def cinder(errors: FieldErrors, path: str, source: Any) -> None:
    if not source.volumeID:
        errors.required(f"{path}.volumeID")
    secret(errors, path, source)


def storageos(errors: FieldErrors, path: str, source: Any) -> None:
    if not source.volumeName:
        errors.required(f"{path}.volumeName")
    else:
        errors.invalid_each(f"{path}.volumeName", source.volumeName, text.label(source.volumeName))
    if source.volumeNamespace:
        errors.invalid_each(
            f"{path}.volumeNamespace", source.volumeNamespace, text.label(source.volumeNamespace)
        )
    secret(errors, path, source)


def secret(errors: FieldErrors, path: str, source: Any) -> None:
    """The secret a source refers to has a name, and a namespace where it can have one."""
    reference = source.secretRef
    if reference is not None:
        for name in ("name", "namespace"):
            if hasattr(reference, name) and not getattr(reference, name):
                errors.required(f"{path}.secretRef.{name}")


_CACHING = ("None", "ReadOnly", "ReadWrite")
_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
)
_BLOB = ("https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",)


def azure_disk(errors: FieldErrors, path: str, source: Any) -> None:
    if not source.diskName:
        errors.required(f"{path}.diskName")
    if not source.diskURI:
        errors.required(f"{path}.diskURI")
    if source.cachingMode is not None and source.cachingMode not in _CACHING:
        errors.not_supported(f"{path}.cachingMode", source.cachingMode, _CACHING)
    kind = source.kind
    if kind is not None and kind not in _KINDS:
        errors.not_supported(f"{path}.kind", kind, _KINDS)
    if kind == "Managed" and not source.diskURI.startswith("/subscriptions/"):
        errors.not_supported(f"{path}.diskURI", source.diskURI, _MANAGED)
    if kind not in (None, "Managed") and not source.diskURI.startswith("https://"):
        errors.not_supported(f"{path}.diskURI", source.diskURI, _BLOB)


def driver_name(errors: FieldErrors, path: str, name: str) -> None:
    """The name of a CSI driver."""
    if not name:
        errors.required(path)
        return
    if len(name) > 63:
        errors.too_long(path, 63)
    errors.invalid_each(path, name, text.subdomain(name.lower()))


SHARED: Mapping[str, Check] = {
    "awsElasticBlockStore": disk("volumeID"),
    "azureDisk": azure_disk,
    "azureFile": needs("secretName", "shareName"),
    "cephfs": needs("monitors"),
    "cinder": cinder,
    "fc": fc,
    "flexVolume": flex,
    "flocker": flocker,
    "gcePersistentDisk": disk("pdName"),
    "glusterfs": needs("endpoints", "path"),
    "hostPath": host_path,
    "iscsi": iscsi,
    "nfs": nfs,
    "photonPersistentDisk": needs("pdID"),
    "portworxVolume": needs("volumeID"),
    "quobyte": quobyte,
    "rbd": needs("monitors", "image"),
    "scaleIO": needs("gateway", "system", "volumeName"),
    "storageos": storageos,
    "vsphereVolume": needs("volumePath"),
}
"""By field, in no particular order: whoever uses them brings their own."""
