"""PersistentVolumes, and the classes, drivers and attachments behind them."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from steersman.api.generated import core_v1 as v1
from steersman.api.generated import storage_v1
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import claims, names, resources
from steersman.server.validation import metadata as meta
from steersman.server.validation.diff import difference
from steersman.server.validation.field_errors import FieldErrors, Verbatim
from steersman.server.validation.selectors import label_selector, node_selector
from steersman.server.validation.volumes import SHARED, Check, driver_name, needs, only_one

_RECLAIM = ("Delete", "Recycle", "Retain")


# -- PersistentVolumes ------------------------------------------------------------------------


def volume(errors: FieldErrors, obj: v1.PersistentVolume) -> None:
    meta.check(errors, obj.metadata, namespaced=False)
    _volume(errors, "spec", obj.spec)


def volume_update(errors: FieldErrors, new: v1.PersistentVolume, old: v1.PersistentVolume) -> None:
    """Where a volume is and how it is used is for ever."""
    meta.again(errors, new.metadata, old.metadata, names.subdomain, namespaced=False)
    if new.spec is not old.spec:
        _volume(errors, "spec", new.spec)
    # The real server looks twice.
    meta.again(errors, new.metadata, old.metadata, names.subdomain, namespaced=False)
    if new.spec is old.spec:
        return
    now, was = new.spec, old.spec
    _volume(errors, "spec", now)
    if _sources(now, was) != _sources(was, was):
        changed = difference(old.spec, new.spec)
        says = f"spec.persistentvolumesource is immutable after creation\n{changed}"
        errors.forbidden("spec.persistentvolumesource", says)
    errors.immutable("volumeMode", now.volumeMode, was.volumeMode)
    if was.nodeAffinity is not None and now.nodeAffinity != was.nodeAffinity:
        says = f"{IMMUTABLE}, except for updating from beta label to GA"
        errors.invalid("nodeAffinity", now.nodeAffinity, says)
    if was.volumeAttributesClassName is not None and now.volumeAttributesClassName is None:
        says = "update from non-nil value to nil is forbidden"
        errors.forbidden("spec.volumeAttributesClassName", says)


def volume_status(errors: FieldErrors, new: v1.PersistentVolume, old: v1.PersistentVolume) -> None:
    meta.check_update(errors, new.metadata, old.metadata)


def _sources(spec: v1.PersistentVolumeSpec, was: v1.PersistentVolumeSpec) -> list[Any]:
    """The sources; how a CSI volume may be expanded can still be said later."""
    csi = spec.csi
    if csi is not None and was.csi is not None and was.csi.controllerExpandSecretRef is None:
        csi = replace(csi, controllerExpandSecretRef=None)
    return [csi if name == "csi" else getattr(spec, name) for name in _CHECKS]


def _volume(errors: FieldErrors, path: str, spec: v1.PersistentVolumeSpec) -> None:
    if not spec.accessModes:
        errors.required(f"{path}.accessModes")
    claims.access_modes(errors, f"{path}.accessModes", spec.accessModes)
    capacity = spec.capacity
    if not capacity:
        errors.required(f"{path}.capacity")
    if "storage" not in capacity or len(capacity) > 1:
        shown = {name: str(resources.quantity(amount)) for name, amount in capacity.items()}
        errors.not_supported(f"{path}.capacity", shown or Verbatim("null"), ("storage",))
    for name, amount in capacity.items():
        resources.basic(errors, f"{path}.capacity[{name}]", amount)
        resources.positive(errors, f"{path}.capacity[{name}]", amount)
    policy = spec.persistentVolumeReclaimPolicy
    if policy and policy not in _RECLAIM:
        errors.not_supported(f"{path}.persistentVolumeReclaimPolicy", policy, _RECLAIM)
    if spec.nodeAffinity is not None:
        required = spec.nodeAffinity.required
        at = f"{path}.nodeAffinity.required"
        if required is None:
            errors.required(at, "must specify required node constraints")
        else:
            node_selector(errors, at, required)
    first = only_one(errors, path, spec, _CHECKS)
    if first == "local" and spec.nodeAffinity is None:
        errors.required(f"{path}.nodeAffinity", "Local volume requires node affinity")
    _rest(errors, path, spec)


def _rest(errors: FieldErrors, path: str, spec: v1.PersistentVolumeSpec) -> None:
    host = spec.hostPath
    everything = host is not None and host.path and posixpath.normpath(host.path) == "/"
    if everything and spec.persistentVolumeReclaimPolicy == "Recycle":
        says = "may not be 'recycle' for a hostPath mount of '/'"
        errors.forbidden(f"{path}.persistentVolumeReclaimPolicy", says)
    if spec.storageClassName:
        at = f"{path}.storageClassName"
        errors.invalid_each(at, spec.storageClassName, names.subdomain(spec.storageClassName))
    if spec.volumeMode is not None and spec.volumeMode not in claims.VOLUME_MODES:
        errors.not_supported(f"{path}.volumeMode", spec.volumeMode, claims.VOLUME_MODES)
    name = spec.volumeAttributesClassName
    if name is not None:
        at = f"{path}.volumeAttributesClassName"
        if not name:
            errors.required(at, "an empty string is disallowed")
        else:
            errors.invalid_each(at, name, names.subdomain(name))
        if spec.csi is None:
            errors.required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")


def _local(errors: FieldErrors, path: str, source: v1.LocalVolumeSource) -> None:
    if not source.path:
        errors.required(f"{path}.path")
    names.no_backsteps(errors, f"{path}.path", source.path)


def _csi(errors: FieldErrors, path: str, source: v1.CSIPersistentVolumeSource) -> None:
    driver_name(errors, f"{path}.driver", source.driver)
    if not source.volumeHandle:
        errors.required(f"{path}.volumeHandle")
    for name in (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ):
        reference: v1.SecretReference | None = getattr(source, name)
        if reference is None:
            continue
        for part, rule in (("name", names.subdomain), ("namespace", names.label)):
            value = getattr(reference, part)
            at = f"{path}.{name}.{part}"
            if not value:
                errors.required(at)
            else:
                errors.invalid_each(at, value, rule(value))


def _azure_file(errors: FieldErrors, path: str, source: v1.AzureFilePersistentVolumeSource) -> None:
    needs("secretName", "shareName")(errors, path, source)
    if source.secretNamespace is not None and not source.secretNamespace:
        errors.required(f"{path}.secretNamespace")


_CHECKS: Mapping[str, Check] = {
    "hostPath": SHARED["hostPath"],
    "gcePersistentDisk": SHARED["gcePersistentDisk"],
    "awsElasticBlockStore": SHARED["awsElasticBlockStore"],
    "glusterfs": SHARED["glusterfs"],
    "flocker": SHARED["flocker"],
    "nfs": SHARED["nfs"],
    "rbd": SHARED["rbd"],
    "quobyte": SHARED["quobyte"],
    "cephfs": SHARED["cephfs"],
    "iscsi": SHARED["iscsi"],
    "cinder": SHARED["cinder"],
    "fc": SHARED["fc"],
    "flexVolume": SHARED["flexVolume"],
    "azureFile": _azure_file,
    "vsphereVolume": SHARED["vsphereVolume"],
    "photonPersistentDisk": SHARED["photonPersistentDisk"],
    "portworxVolume": SHARED["portworxVolume"],
    "azureDisk": SHARED["azureDisk"],
    "scaleIO": SHARED["scaleIO"],
    "local": _local,
    "storageos": SHARED["storageos"],
    "csi": _csi,
}
"""In the order they are looked at."""


# -- classes ----------------------------------------------------------------------------------

_CLASS_RECLAIM = ("Delete", "Retain")
_BINDING = ("Immediate", "WaitForFirstConsumer")
_PARAMETERS = 512
_PARAMETERS_SIZE = 256 * 1024


def storage_class(errors: FieldErrors, obj: storage_v1.StorageClass) -> None:
    meta.check(errors, obj.metadata, namespaced=False)
    _class(errors, obj)


def storage_class_update(
    errors: FieldErrors, new: storage_v1.StorageClass, old: storage_v1.StorageClass
) -> None:
    meta.again(errors, new.metadata, old.metadata, names.subdomain, namespaced=False)
    _class(errors, new)
    meta.check_update(errors, new.metadata, old.metadata)
    if new.parameters != old.parameters:
        errors.invalid("parameters", new.parameters or Verbatim("null"), IMMUTABLE)
    for name in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
        errors.immutable(name, getattr(new, name), getattr(old, name))


def _class(errors: FieldErrors, obj: storage_v1.StorageClass) -> None:
    _provisioner(errors, "provisioner", obj.provisioner)
    _parameters(errors, obj.parameters, needed=False)
    if obj.reclaimPolicy and obj.reclaimPolicy not in _CLASS_RECLAIM:
        errors.not_supported("reclaimPolicy", obj.reclaimPolicy, _CLASS_RECLAIM)
    if obj.volumeBindingMode is None:
        errors.required("volumeBindingMode")
    elif obj.volumeBindingMode not in _BINDING:
        errors.not_supported("volumeBindingMode", obj.volumeBindingMode, _BINDING)
    known: list[dict[str, set[str]]] = []
    for i, term in enumerate(obj.allowedTopologies):
        path = f"allowedTopologies[{i}].matchLabelExpressions"
        values: dict[str, set[str]] = {}
        for j, one in enumerate(term.matchLabelExpressions):
            at = f"{path}[{j}]"
            given = one.values or ()
            if not given:
                errors.required(f"{at}.values")
            for k, value in enumerate(given):
                if value in given[:k]:
                    errors.duplicate(f"{at}.values[{k}]", value)
            errors.invalid_each(f"{at}.key", one.key, names.qualified(one.key))
            if one.key in values:
                errors.duplicate(f"{at}.key", one.key)
            values[one.key] = set(given)
        if values in known or not values:
            errors.duplicate(path, "")
        known.append(values)


def _provisioner(errors: FieldErrors, path: str, name: str) -> None:
    if not name:
        errors.required(path)
    else:
        errors.invalid_each(path, name.lower(), names.qualified(name.lower()))


def _parameters(errors: FieldErrors, given: Mapping[str, str], *, needed: bool) -> None:
    if len(given) > _PARAMETERS:
        errors.too_long("parameters", _PARAMETERS)
        return
    if "" in given:
        errors.invalid("parameters", "", "field can not be empty.")
    if sum(len(key) + len(value) for key, value in given.items()) > _PARAMETERS_SIZE:
        errors.too_long("parameters", _PARAMETERS_SIZE)
    if needed and not given:
        errors.required("parameters", "must contain at least one key/value pair")


def attributes_class(errors: FieldErrors, obj: storage_v1.VolumeAttributesClass) -> None:
    meta.check(errors, obj.metadata, namespaced=False)
    _provisioner(errors, "driverName", obj.driverName)
    _parameters(errors, obj.parameters, needed=True)


def attributes_class_update(
    errors: FieldErrors, new: storage_v1.VolumeAttributesClass, old: storage_v1.VolumeAttributesClass
) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    for name in ("driverName", "parameters"):
        if getattr(new, name) != getattr(old, name):
            errors.forbidden(name, f"updates to {name} are forbidden.")
    meta.again(errors, new.metadata, old.metadata, names.subdomain, namespaced=False)
    _provisioner(errors, "driverName", new.driverName)
    _parameters(errors, new.parameters, needed=True)


def capacity(errors: FieldErrors, obj: storage_v1.CSIStorageCapacity) -> None:
    meta.check(errors, obj.metadata)
    _capacity(errors, obj)


def capacity_update(
    errors: FieldErrors, new: storage_v1.CSIStorageCapacity, old: storage_v1.CSIStorageCapacity
) -> None:
    meta.again(errors, new.metadata, old.metadata, names.subdomain)
    _capacity(errors, new)
    meta.check_update(errors, new.metadata, old.metadata)
    for name in ("nodeTopology", "storageClassName"):
        errors.immutable(name, getattr(new, name), getattr(old, name))


def _capacity(errors: FieldErrors, obj: storage_v1.CSIStorageCapacity) -> None:
    label_selector(errors, "nodeTopology", obj.nodeTopology)
    errors.invalid_each("storageClassName", obj.storageClassName, names.subdomain(obj.storageClassName))
    if obj.capacity is not None:
        resources.nonnegative(errors, "capacity", obj.capacity)
