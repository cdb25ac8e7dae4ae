"""Validation of PersistentVolumes, StorageClasses, VolumeAttributesClasses and CSIStorageCapacities."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from msgspec.structs import replace

from steersman.api.generated import core_v1 as v1
from steersman.api.generated import storage_v1
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import claims, names, resources
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors, Verbatim, format_diff
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.selectors import validate_label_selector, validate_node_selector
from steersman.server.validation.volumes import (
    SHARED_SOURCES,
    SourceRule,
    requires_fields,
    validate_csi_driver_name,
    validate_one_source,
)

_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_MOUNTED_WITH_OPTIONS = (
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
)
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")


# -- PersistentVolumes ------------------------------------------------------------------------


def validate_persistent_volume(errors: FieldErrors, obj: v1.PersistentVolume) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    validate_persistent_volume_spec(errors, "spec", obj.spec)
    _validate_mount_options(errors, obj)


def _validate_mount_options(errors: FieldErrors, obj: v1.PersistentVolume) -> None:
    """Only some sources have mount options by an annotation; others must use the field."""
    if _MOUNT_OPTIONS not in obj.metadata.annotations:
        return
    if all(getattr(obj.spec, name) is None for name in _MOUNTED_WITH_OPTIONS):
        why = "may not specify mount options for this volume type"
        errors.forbidden(f"metadata.annotations.{_MOUNT_OPTIONS}", why)


def validate_persistent_volume_update(
    errors: FieldErrors, new: v1.PersistentVolume, old: v1.PersistentVolume
) -> None:
    """The source, the volume mode and a set node affinity are immutable."""
    meta.validate_changed_object_meta(
        errors, new.metadata, old.metadata, names.dns1123_subdomain, namespaced=False
    )
    if new.spec is not old.spec:
        validate_persistent_volume_spec(errors, "spec", new.spec)
    # Upstream validates the object twice.
    meta.validate_changed_object_meta(
        errors, new.metadata, old.metadata, names.dns1123_subdomain, namespaced=False
    )
    if new.spec is old.spec:
        return
    now, was = new.spec, old.spec
    validate_persistent_volume_spec(errors, "spec", now)
    if _volume_sources(now, was) != _volume_sources(was, was):
        sources = {name: getattr(now, name) for name in _SOURCES}
        changed = format_diff(was, replace(was, **sources))
        message = f"spec.persistentvolumesource is immutable after creation\n{changed}"
        errors.forbidden("spec.persistentvolumesource", message)
    errors.immutable("volumeMode", now.volumeMode, was.volumeMode)
    if was.nodeAffinity is not None and now.nodeAffinity != was.nodeAffinity:
        message = f"{IMMUTABLE}, except for updating from beta label to GA"
        errors.invalid("nodeAffinity", now.nodeAffinity, message)
    if was.volumeAttributesClassName is not None and now.volumeAttributesClassName is None:
        message = "update from non-nil value to nil is forbidden"
        errors.forbidden("spec.volumeAttributesClassName", message)


def validate_persistent_volume_status(
    errors: FieldErrors, new: v1.PersistentVolume, old: v1.PersistentVolume
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)


def _volume_sources(spec: v1.PersistentVolumeSpec, was: v1.PersistentVolumeSpec) -> list[object]:
    """The values of all source fields. A CSI source may still get its first controllerExpandSecretRef."""
    csi = spec.csi
    if csi is not None and was.csi is not None and was.csi.controllerExpandSecretRef is None:
        csi = replace(csi, controllerExpandSecretRef=None)
    return [csi if name == "csi" else getattr(spec, name) for name in _SOURCES]


def validate_persistent_volume_spec(errors: FieldErrors, path: str, spec: v1.PersistentVolumeSpec) -> None:
    _validate_volume_access_modes(errors, path, spec)
    capacity = spec.capacity
    if not capacity:
        errors.required(f"{path}.capacity")
    if "storage" not in capacity or len(capacity) > 1:
        shown = {name: str(resources.parse_quantity(amount)) for name, amount in capacity.items()}
        errors.not_supported(f"{path}.capacity", shown or Verbatim("null"), ("storage",))
    for name, amount in capacity.items():
        resources.validate_basic_resource(errors, f"{path}.capacity[{name}]", amount)
        resources.validate_positive_quantity(errors, f"{path}.capacity[{name}]", amount)
    policy = spec.persistentVolumeReclaimPolicy
    if policy and policy not in _RECLAIM_POLICIES:
        errors.not_supported(f"{path}.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES)
    if spec.nodeAffinity is not None:
        required = spec.nodeAffinity.required
        at = f"{path}.nodeAffinity.required"
        if required is None:
            errors.required(at, "must specify required node constraints")
        else:
            validate_node_selector(errors, at, required)
    source = validate_one_source(errors, path, spec, _SOURCES)
    if source == "local" and spec.nodeAffinity is None:
        errors.required(f"{path}.nodeAffinity", "Local volume requires node affinity")
    _validate_recycled_path(errors, path, spec)
    if spec.storageClassName:
        at = f"{path}.storageClassName"
        errors.invalid_each(at, spec.storageClassName, names.dns1123_subdomain(spec.storageClassName))
    if spec.volumeMode is not None and spec.volumeMode not in claims.VOLUME_MODES:
        errors.not_supported(f"{path}.volumeMode", spec.volumeMode, claims.VOLUME_MODES)
    _validate_attributes_class(errors, path, spec)


def validate_inline_volume_spec(errors: FieldErrors, path: str, spec: v1.PersistentVolumeSpec) -> None:
    """Validates the volume within a VolumeAttachment: a CSI volume of a pod, with few other fields.

    As upstream, the class of attributes is not looked at.
    """
    inline = "in the context of inline volumes"
    none = f"may not be specified {inline}"
    if spec.claimRef is not None:
        errors.forbidden(f"{path}.claimRef", none)
    if spec.capacity:
        errors.forbidden(f"{path}.capacity", none)
    if spec.csi is None:
        errors.required(f"{path}.csi", f"has to be specified {inline}")
    _validate_volume_access_modes(errors, path, spec)
    if spec.persistentVolumeReclaimPolicy not in ("", "Retain"):
        errors.forbidden(f"{path}.persistentVolumeReclaimPolicy", f"may only be Retain {inline}")
    if spec.nodeAffinity is not None:
        errors.forbidden(f"{path}.nodeAffinity", none)
    if validate_one_source(errors, path, spec, _SOURCES) == "local":
        errors.required(f"{path}.nodeAffinity", "Local volume requires node affinity")
    _validate_recycled_path(errors, path, spec)
    if spec.storageClassName:
        errors.forbidden(f"{path}.storageClassName", none)
    if spec.volumeMode not in (None, "Filesystem"):
        errors.forbidden(f"{path}.volumeMode", f"may not specify volumeMode other than Filesystem {inline}")


def _validate_volume_access_modes(errors: FieldErrors, path: str, spec: v1.PersistentVolumeSpec) -> None:
    if not spec.accessModes:
        errors.required(f"{path}.accessModes")
    claims.validate_access_modes(errors, f"{path}.accessModes", spec.accessModes)


def _validate_recycled_path(errors: FieldErrors, path: str, spec: v1.PersistentVolumeSpec) -> None:
    host = spec.hostPath
    everything = host is not None and host.path and posixpath.normpath(host.path) == "/"
    if everything and spec.persistentVolumeReclaimPolicy == "Recycle":
        message = "may not be 'recycle' for a hostPath mount of '/'"
        errors.forbidden(f"{path}.persistentVolumeReclaimPolicy", message)


def _validate_attributes_class(errors: FieldErrors, path: str, spec: v1.PersistentVolumeSpec) -> None:
    name = spec.volumeAttributesClassName
    if name is not None:
        at = f"{path}.volumeAttributesClassName"
        if not name:
            errors.required(at, "an empty string is disallowed")
        else:
            errors.invalid_each(at, name, names.dns1123_subdomain(name))
        if spec.csi is None:
            errors.required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")


def _validate_local_source(errors: FieldErrors, path: str, source: v1.LocalVolumeSource) -> None:
    if not source.path:
        errors.required(f"{path}.path")
    names.validate_path_no_backsteps(errors, f"{path}.path", source.path)


def _validate_csi_source(errors: FieldErrors, path: str, source: v1.CSIPersistentVolumeSource) -> None:
    validate_csi_driver_name(errors, f"{path}.driver", source.driver)
    if not source.volumeHandle:
        errors.required(f"{path}.volumeHandle")
    reference: v1.SecretReference | None
    for name, reference in (
        ("controllerPublishSecretRef", source.controllerPublishSecretRef),
        ("controllerExpandSecretRef", source.controllerExpandSecretRef),
        ("nodePublishSecretRef", source.nodePublishSecretRef),
        ("nodeExpandSecretRef", source.nodeExpandSecretRef),
    ):
        if reference is None:
            continue
        for part, rule in (("name", names.dns1123_subdomain), ("namespace", names.dns1123_label)):
            value = getattr(reference, part)
            at = f"{path}.{name}.{part}"
            if not value:
                errors.required(at)
            else:
                errors.invalid_each(at, value, rule(value))


def _validate_azure_file(errors: FieldErrors, path: str, source: v1.AzureFilePersistentVolumeSource) -> None:
    requires_fields("secretName", "shareName")(errors, path, source)
    if source.secretNamespace is not None and not source.secretNamespace:
        errors.required(f"{path}.secretNamespace")


_SOURCES: Mapping[str, SourceRule] = {
    "hostPath": SHARED_SOURCES["hostPath"],
    "gcePersistentDisk": SHARED_SOURCES["gcePersistentDisk"],
    "awsElasticBlockStore": SHARED_SOURCES["awsElasticBlockStore"],
    "glusterfs": SHARED_SOURCES["glusterfs"],
    "flocker": SHARED_SOURCES["flocker"],
    "nfs": SHARED_SOURCES["nfs"],
    "rbd": SHARED_SOURCES["rbd"],
    "quobyte": SHARED_SOURCES["quobyte"],
    "cephfs": SHARED_SOURCES["cephfs"],
    "iscsi": SHARED_SOURCES["iscsi"],
    "cinder": SHARED_SOURCES["cinder"],
    "fc": SHARED_SOURCES["fc"],
    "flexVolume": SHARED_SOURCES["flexVolume"],
    "azureFile": _validate_azure_file,
    "vsphereVolume": SHARED_SOURCES["vsphereVolume"],
    "photonPersistentDisk": SHARED_SOURCES["photonPersistentDisk"],
    "portworxVolume": SHARED_SOURCES["portworxVolume"],
    "azureDisk": SHARED_SOURCES["azureDisk"],
    "scaleIO": SHARED_SOURCES["scaleIO"],
    "local": _validate_local_source,
    "storageos": SHARED_SOURCES["storageos"],
    "csi": _validate_csi_source,
}
"""The volume sources, in upstream's order of validation."""


# -- classes ----------------------------------------------------------------------------------

_CLASS_RECLAIM_POLICIES = ("Delete", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_MAX_PARAMETERS = 512
_MAX_PARAMETERS_BYTES = 256 * 1024


def validate_storage_class(errors: FieldErrors, obj: storage_v1.StorageClass) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    _validate_storage_class_fields(errors, obj)


def validate_storage_class_update(
    errors: FieldErrors, new: storage_v1.StorageClass, old: storage_v1.StorageClass
) -> None:
    meta.validate_changed_object_meta(
        errors, new.metadata, old.metadata, names.dns1123_subdomain, namespaced=False
    )
    _validate_storage_class_fields(errors, new)
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.parameters != old.parameters:
        errors.invalid("parameters", new.parameters or Verbatim("null"), IMMUTABLE)
    for name, new_value, old_value in (
        ("provisioner", new.provisioner, old.provisioner),
        ("reclaimPolicy", new.reclaimPolicy, old.reclaimPolicy),
        ("volumeBindingMode", new.volumeBindingMode, old.volumeBindingMode),
    ):
        errors.immutable(name, new_value, old_value)


def _validate_storage_class_fields(errors: FieldErrors, obj: storage_v1.StorageClass) -> None:
    _validate_provisioner(errors, "provisioner", obj.provisioner)
    _validate_parameters(errors, obj.parameters, required=False)
    if obj.reclaimPolicy and obj.reclaimPolicy not in _CLASS_RECLAIM_POLICIES:
        errors.not_supported("reclaimPolicy", obj.reclaimPolicy, _CLASS_RECLAIM_POLICIES)
    if obj.volumeBindingMode is None:
        errors.required("volumeBindingMode")
    elif obj.volumeBindingMode not in _BINDING_MODES:
        errors.not_supported("volumeBindingMode", obj.volumeBindingMode, _BINDING_MODES)
    seen: list[dict[str, set[str]]] = []
    for i, term in enumerate(obj.allowedTopologies):
        path = f"allowedTopologies[{i}].matchLabelExpressions"
        values: dict[str, set[str]] = {}
        for j, requirement in enumerate(term.matchLabelExpressions):
            at = f"{path}[{j}]"
            topology_values = requirement.values or ()
            if not topology_values:
                errors.required(f"{at}.values")
            for k, value in enumerate(topology_values):
                if value in topology_values[:k]:
                    errors.duplicate(f"{at}.values[{k}]", value)
            errors.invalid_each(f"{at}.key", requirement.key, names.qualified_name(requirement.key))
            if requirement.key in values:
                errors.duplicate(f"{at}.key", requirement.key)
            values[requirement.key] = set(topology_values)
        if values in seen or not values:
            errors.duplicate(path, "")
        seen.append(values)


def _validate_provisioner(errors: FieldErrors, path: str, name: str) -> None:
    if not name:
        errors.required(path)
    else:
        errors.invalid_each(path, name.lower(), names.qualified_name(name.lower()))


def _validate_parameters(errors: FieldErrors, parameters: Mapping[str, str], *, required: bool) -> None:
    if len(parameters) > _MAX_PARAMETERS:
        errors.too_long("parameters", _MAX_PARAMETERS)
        return
    if "" in parameters:
        errors.invalid("parameters", "", "field can not be empty.")
    if sum(len(key) + len(value) for key, value in parameters.items()) > _MAX_PARAMETERS_BYTES:
        errors.too_long("parameters", _MAX_PARAMETERS_BYTES)
    if required and not parameters:
        errors.required("parameters", "must contain at least one key/value pair")


def validate_volume_attributes_class(errors: FieldErrors, obj: storage_v1.VolumeAttributesClass) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    _validate_provisioner(errors, "driverName", obj.driverName)
    _validate_parameters(errors, obj.parameters, required=True)


def validate_volume_attributes_class_update(
    errors: FieldErrors, new: storage_v1.VolumeAttributesClass, old: storage_v1.VolumeAttributesClass
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    for name, new_value, old_value in (
        ("driverName", new.driverName, old.driverName),
        ("parameters", new.parameters, old.parameters),
    ):
        if new_value != old_value:
            errors.forbidden(name, f"updates to {name} are forbidden.")
    meta.validate_changed_object_meta(
        errors, new.metadata, old.metadata, names.dns1123_subdomain, namespaced=False
    )
    _validate_provisioner(errors, "driverName", new.driverName)
    _validate_parameters(errors, new.parameters, required=True)


def validate_csi_storage_capacity(errors: FieldErrors, obj: storage_v1.CSIStorageCapacity) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_capacity(errors, obj)


def validate_csi_storage_capacity_update(
    errors: FieldErrors, new: storage_v1.CSIStorageCapacity, old: storage_v1.CSIStorageCapacity
) -> None:
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)
    _validate_capacity(errors, new)
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    for name, new_value, old_value in (
        ("nodeTopology", new.nodeTopology, old.nodeTopology),
        ("storageClassName", new.storageClassName, old.storageClassName),
    ):
        errors.immutable(name, new_value, old_value)


def _validate_capacity(errors: FieldErrors, obj: storage_v1.CSIStorageCapacity) -> None:
    validate_label_selector(errors, "nodeTopology", obj.nodeTopology)
    errors.invalid_each(
        "storageClassName", obj.storageClassName, names.dns1123_subdomain(obj.storageClassName)
    )
    if obj.capacity is not None:
        resources.validate_nonnegative_quantity(errors, "capacity", obj.capacity)


RULES: Mapping[GroupKind, AnyRules] = {
    ("", "PersistentVolume"): Rules[v1.PersistentVolume](
        validate_persistent_volume,
        validate_persistent_volume_update,
        status=validate_persistent_volume_status,
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): Rules[storage_v1.CSIStorageCapacity](
        validate_csi_storage_capacity, validate_csi_storage_capacity_update
    ),
    ("storage.k8s.io", "StorageClass"): Rules[storage_v1.StorageClass](
        validate_storage_class, validate_storage_class_update
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): Rules[storage_v1.VolumeAttributesClass](
        validate_volume_attributes_class, validate_volume_attributes_class_update
    ),
}
