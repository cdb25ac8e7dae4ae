"""Validation of CSIDrivers, CSINodes and VolumeAttachments."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from steersman.api.generated import storage_v1
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors, format_strings
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.storage import validate_inline_volume_spec
from steersman.server.validation.volumes import validate_csi_driver_name

_FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLE_MODES = ("Persistent", "Ephemeral")
_MAX_NODE_ID = 256
_MAX_METADATA_BYTES = 256 * 1024
_MAX_MESSAGE_BYTES = 1024


def validate_csi_driver(errors: FieldErrors, obj: storage_v1.CSIDriver) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    _validate_csi_driver_spec(errors, obj.spec)


def validate_csi_driver_update(
    errors: FieldErrors, new: storage_v1.CSIDriver, old: storage_v1.CSIDriver
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    _validate_csi_driver_spec(errors, new.spec)
    errors.immutable("spec.attachedRequired", new.spec.attachRequired, old.spec.attachRequired)
    if new.spec.volumeLifecycleModes != old.spec.volumeLifecycleModes:
        errors.invalid("spec.volumeLifecycleModes", format_strings(new.spec.volumeLifecycleModes), IMMUTABLE)


def _validate_csi_driver_spec(errors: FieldErrors, spec: storage_v1.CSIDriverSpec) -> None:
    for name, field in (
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ):
        if getattr(spec, name) is None:
            errors.required(f"spec.{field}")
    policy = spec.fsGroupPolicy
    if policy is not None and policy not in _FS_GROUP_POLICIES:
        errors.not_supported("spec.fsGroupPolicy", policy, _FS_GROUP_POLICIES)
    audiences: list[str] = []
    for i, request in enumerate(spec.tokenRequests):
        path = f"spec.tokenRequests[{i}]"
        if request.audience in audiences:
            errors.duplicate(f"{path}.audience", request.audience)
            continue
        audiences.append(request.audience)
        seconds = request.expirationSeconds
        if seconds is not None and seconds < 600:
            short = "may not specify a duration less than 10 minutes"
            errors.invalid(f"{path}.expirationSeconds", seconds, short)
        if seconds is not None and seconds > 1 << 32:
            long = "may not specify a duration larger than 2^32 seconds"
            errors.invalid(f"{path}.expirationSeconds", seconds, long)
    for mode in spec.volumeLifecycleModes:
        if mode not in _LIFECYCLE_MODES:
            errors.not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLE_MODES)
    if spec.seLinuxMount is None:
        errors.required("spec.seLinuxMount")
    period = spec.nodeAllocatableUpdatePeriodSeconds
    if period is not None and period < 10:
        least = "must be greater than or equal to 10 seconds"
        errors.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, least)
    if spec.serviceAccountTokenInSecrets is not None and not spec.tokenRequests:
        without = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.invalid("spec.serviceAccountTokenInSecrets", spec.serviceAccountTokenInSecrets, without)


# -- nodes ------------------------------------------------------------------------------------


def validate_csi_node(errors: FieldErrors, obj: storage_v1.CSINode) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    _validate_csi_node_spec(errors, obj)


def validate_csi_node_update(errors: FieldErrors, new: storage_v1.CSINode, old: storage_v1.CSINode) -> None:
    meta.validate_changed_object_meta(
        errors, new.metadata, old.metadata, names.dns1123_subdomain, namespaced=False
    )
    _validate_csi_node_spec(errors, new)
    now = {driver.name: driver for driver in new.spec.drivers or ()}
    for was in old.spec.drivers or ():
        driver = now.get(was.name)
        if driver is not None and replace(driver, allocatable=None) != replace(was, allocatable=None):
            errors.invalid("spec.drivers", replace(driver, allocatable=None), IMMUTABLE)


def _validate_csi_node_spec(errors: FieldErrors, obj: storage_v1.CSINode) -> None:
    seen: list[str] = []
    for i, driver in enumerate(obj.spec.drivers or ()):
        path = f"spec.drivers[{i}]"
        validate_csi_driver_name(errors, f"{path}.name", driver.name)
        if not driver.nodeID:
            errors.required(f"{path}.nodeID")
        if len(driver.nodeID) > _MAX_NODE_ID:
            errors.invalid(f"{path}.nodeID", driver.nodeID, f"must be {_MAX_NODE_ID} characters or less")
        if driver.allocatable is not None:
            errors.nonnegative(f"{path}.allocatable.count", driver.allocatable.count)
        if driver.name in seen:
            errors.duplicate(f"{path}.name", driver.name)
        seen.append(driver.name)
        keys = driver.topologyKeys or ()
        for j, key in enumerate(keys):
            if not key:
                errors.required(path)
            if key in keys[:j]:
                errors.duplicate(path, key)
            errors.invalid_each(path, key, names.qualified_name(key))


# -- attachments ------------------------------------------------------------------------------


def validate_volume_attachment(errors: FieldErrors, obj: storage_v1.VolumeAttachment) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    _validate_attachment(errors, obj)


def validate_volume_attachment_update(
    errors: FieldErrors, new: storage_v1.VolumeAttachment, old: storage_v1.VolumeAttachment
) -> None:
    meta.validate_changed_object_meta(
        errors, new.metadata, old.metadata, names.dns1123_subdomain, namespaced=False
    )
    _validate_attachment(errors, new)
    errors.immutable("spec", new.spec, old.spec)


def _validate_attachment(errors: FieldErrors, obj: storage_v1.VolumeAttachment) -> None:
    spec, source = obj.spec, obj.spec.source
    validate_csi_driver_name(errors, "spec.attacher", spec.attacher)
    name = source.persistentVolumeName
    exactly = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if source.inlineVolumeSpec is None and name is None:
        errors.required("spec.source", exactly)
    elif source.inlineVolumeSpec is not None and name is not None:
        errors.forbidden("spec.source", exactly)
    elif name is not None and not name:
        empty = "must specify non empty persistentVolumeName"
        errors.required("spec.source.persistentVolumeName", empty)
    elif source.inlineVolumeSpec is not None:
        validate_inline_volume_spec(errors, "spec.source.inlineVolumeSpec", source.inlineVolumeSpec)
    errors.invalid_each("spec.nodeName", spec.nodeName, names.dns1123_subdomain(spec.nodeName))
    status = obj.status
    attachment_metadata = status.attachmentMetadata
    if (
        attachment_metadata
        and sum(len(key) + len(value) for key, value in attachment_metadata.items()) > _MAX_METADATA_BYTES
    ):
        errors.too_long("status.attachmentMetadata", _MAX_METADATA_BYTES)
    error: storage_v1.VolumeError | None
    for field, error in (("attachError", status.attachError), ("detachError", status.detachError)):
        if error is None:
            continue
        if len(error.message) > _MAX_MESSAGE_BYTES:
            errors.too_long(f"status.{field}.message", _MAX_METADATA_BYTES)
        if error.errorCode is not None and error.errorCode < 0:
            at = f"status.{field}.errorCode"
            errors.invalid(at, error.errorCode, names.inclusive_range(0, 2**31 - 1))
    if name is not None:
        errors.invalid_each("spec.source.persistentVolumeName", name, names.dns1123_subdomain(name))


RULES: Mapping[GroupKind, AnyRules] = {
    ("storage.k8s.io", "CSIDriver"): Rules[storage_v1.CSIDriver](
        validate_csi_driver, validate_csi_driver_update
    ),
    ("storage.k8s.io", "CSINode"): Rules[storage_v1.CSINode](validate_csi_node, validate_csi_node_update),
    ("storage.k8s.io", "VolumeAttachment"): Rules[storage_v1.VolumeAttachment](
        validate_volume_attachment,
        validate_volume_attachment_update,
        status=validate_volume_attachment_update,
    ),
}
