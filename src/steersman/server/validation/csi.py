"""CSI: drivers, the nodes they run on, and the volumes attached there."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated import storage_v1
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import metadata as meta
from steersman.server.validation import names as text
from steersman.server.validation.field_errors import FieldErrors, format_strings
from steersman.server.validation.volumes import driver_name

_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_MODES = ("Persistent", "Ephemeral")
_NODE_ID = 256
_METADATA_SIZE = 256 * 1024
_MESSAGE_SIZE = 1024


def driver(errors: FieldErrors, obj: storage_v1.CSIDriver) -> None:
    meta.check(errors, obj.metadata, namespaced=False)
    _driver(errors, obj.spec)


def driver_update(errors: FieldErrors, new: storage_v1.CSIDriver, old: storage_v1.CSIDriver) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    _driver(errors, new.spec)
    errors.immutable("spec.attachedRequired", new.spec.attachRequired, old.spec.attachRequired)
    if new.spec.volumeLifecycleModes != old.spec.volumeLifecycleModes:
        errors.invalid("spec.volumeLifecycleModes", format_strings(new.spec.volumeLifecycleModes), IMMUTABLE)


def _driver(errors: FieldErrors, spec: storage_v1.CSIDriverSpec) -> None:
    for name, called in (
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ):
        if getattr(spec, name) is None:
            errors.required(f"spec.{called}")
    policy = spec.fsGroupPolicy
    if policy is not None and policy not in _GROUP_POLICIES:
        errors.not_supported("spec.fsGroupPolicy", policy, _GROUP_POLICIES)
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
        if mode not in _MODES:
            errors.not_supported("spec.volumeLifecycleModes", mode, _MODES)
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


def node(errors: FieldErrors, obj: storage_v1.CSINode) -> None:
    meta.check(errors, obj.metadata, namespaced=False)
    _node(errors, obj)


def node_update(errors: FieldErrors, new: storage_v1.CSINode, old: storage_v1.CSINode) -> None:
    meta.again(errors, new.metadata, old.metadata, text.subdomain, namespaced=False)
    _node(errors, new)
    now = {one.name: one for one in new.spec.drivers or ()}
    for was in old.spec.drivers or ():
        one = now.get(was.name)
        if one is not None and replace(one, allocatable=None) != replace(was, allocatable=None):
            errors.invalid("spec.drivers", replace(one, allocatable=None), IMMUTABLE)


def _node(errors: FieldErrors, obj: storage_v1.CSINode) -> None:
    names: list[str] = []
    for i, one in enumerate(obj.spec.drivers or ()):
        path = f"spec.drivers[{i}]"
        driver_name(errors, f"{path}.name", one.name)
        if not one.nodeID:
            errors.required(f"{path}.nodeID")
        if len(one.nodeID) > _NODE_ID:
            errors.invalid(f"{path}.nodeID", one.nodeID, f"must be {_NODE_ID} characters or less")
        if one.allocatable is not None:
            errors.nonnegative(f"{path}.allocatable.count", one.allocatable.count)
        if one.name in names:
            errors.duplicate(f"{path}.name", one.name)
        names.append(one.name)
        keys = one.topologyKeys or ()
        for j, key in enumerate(keys):
            if not key:
                errors.required(path)
            if key in keys[:j]:
                errors.duplicate(path, key)
            errors.invalid_each(path, key, text.qualified(key))


# -- attachments ------------------------------------------------------------------------------


def attachment(errors: FieldErrors, obj: storage_v1.VolumeAttachment) -> None:
    meta.check(errors, obj.metadata, namespaced=False)
    _attachment(errors, obj)


def attachment_update(
    errors: FieldErrors, new: storage_v1.VolumeAttachment, old: storage_v1.VolumeAttachment
) -> None:
    meta.again(errors, new.metadata, old.metadata, text.subdomain, namespaced=False)
    _attachment(errors, new)
    errors.immutable("spec", new.spec, old.spec)


def _attachment(errors: FieldErrors, obj: storage_v1.VolumeAttachment) -> None:
    spec, source = obj.spec, obj.spec.source
    driver_name(errors, "spec.attacher", spec.attacher)
    name = source.persistentVolumeName
    exactly = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if source.inlineVolumeSpec is None and name is None:
        errors.required("spec.source", exactly)
    elif source.inlineVolumeSpec is not None and name is not None:
        errors.forbidden("spec.source", exactly)
    elif name is not None and not name:
        empty = "must specify non empty persistentVolumeName"
        errors.required("spec.source.persistentVolumeName", empty)
    errors.invalid_each("spec.nodeName", spec.nodeName, text.subdomain(spec.nodeName))
    status = obj.status
    said = status.attachmentMetadata
    if said and sum(len(key) + len(value) for key, value in said.items()) > _METADATA_SIZE:
        errors.too_long("status.attachmentMetadata", _METADATA_SIZE)
    for field in ("attachError", "detachError"):
        error: storage_v1.VolumeError | None = getattr(status, field)
        if error is None:
            continue
        if len(error.message) > _MESSAGE_SIZE:
            errors.too_long(f"status.{field}.message", _METADATA_SIZE)
        if error.errorCode is not None and error.errorCode < 0:
            at = f"status.{field}.errorCode"
            errors.invalid(at, error.errorCode, text.between(0, 2**31 - 1))
    if name is not None:
        errors.invalid_each("spec.source.persistentVolumeName", name, text.subdomain(name))
