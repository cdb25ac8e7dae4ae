"""CSI: drivers, the nodes they run on, and the volumes attached there."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated import storage_v1
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import metadata as meta
from steersman.server.validation import names as text
from steersman.server.validation.field_errors import Found, strings
from steersman.server.validation.volumes import driver_name

_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_MODES = ("Persistent", "Ephemeral")
_NODE_ID = 256
_METADATA_SIZE = 256 * 1024
_MESSAGE_SIZE = 1024


def driver(found: Found, obj: storage_v1.CSIDriver) -> None:
    meta.check(found, obj.metadata, namespaced=False)
    _driver(found, obj.spec)


def driver_update(found: Found, new: storage_v1.CSIDriver, old: storage_v1.CSIDriver) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    _driver(found, new.spec)
    found.changed("spec.attachedRequired", new.spec.attachRequired, old.spec.attachRequired)
    if new.spec.volumeLifecycleModes != old.spec.volumeLifecycleModes:
        found.invalid("spec.volumeLifecycleModes", strings(new.spec.volumeLifecycleModes), IMMUTABLE)


def _driver(found: Found, spec: storage_v1.CSIDriverSpec) -> None:
    for name, called in (
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ):
        if getattr(spec, name) is None:
            found.required(f"spec.{called}")
    policy = spec.fsGroupPolicy
    if policy is not None and policy not in _GROUP_POLICIES:
        found.unsupported("spec.fsGroupPolicy", policy, _GROUP_POLICIES)
    audiences: list[str] = []
    for i, request in enumerate(spec.tokenRequests):
        path = f"spec.tokenRequests[{i}]"
        if request.audience in audiences:
            found.duplicate(f"{path}.audience", request.audience)
            continue
        audiences.append(request.audience)
        seconds = request.expirationSeconds
        if seconds is not None and seconds < 600:
            short = "may not specify a duration less than 10 minutes"
            found.invalid(f"{path}.expirationSeconds", seconds, short)
        if seconds is not None and seconds > 1 << 32:
            long = "may not specify a duration larger than 2^32 seconds"
            found.invalid(f"{path}.expirationSeconds", seconds, long)
    for mode in spec.volumeLifecycleModes:
        if mode not in _MODES:
            found.unsupported("spec.volumeLifecycleModes", mode, _MODES)
    if spec.seLinuxMount is None:
        found.required("spec.seLinuxMount")
    period = spec.nodeAllocatableUpdatePeriodSeconds
    if period is not None and period < 10:
        least = "must be greater than or equal to 10 seconds"
        found.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, least)
    if spec.serviceAccountTokenInSecrets is not None and not spec.tokenRequests:
        without = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        found.invalid("spec.serviceAccountTokenInSecrets", spec.serviceAccountTokenInSecrets, without)


# -- nodes ------------------------------------------------------------------------------------


def node(found: Found, obj: storage_v1.CSINode) -> None:
    meta.check(found, obj.metadata, namespaced=False)
    _node(found, obj)


def node_update(found: Found, new: storage_v1.CSINode, old: storage_v1.CSINode) -> None:
    meta.again(found, new.metadata, old.metadata, text.subdomain, namespaced=False)
    _node(found, new)
    now = {one.name: one for one in new.spec.drivers or ()}
    for was in old.spec.drivers or ():
        one = now.get(was.name)
        if one is not None and replace(one, allocatable=None) != replace(was, allocatable=None):
            found.invalid("spec.drivers", replace(one, allocatable=None), IMMUTABLE)


def _node(found: Found, obj: storage_v1.CSINode) -> None:
    names: list[str] = []
    for i, one in enumerate(obj.spec.drivers or ()):
        path = f"spec.drivers[{i}]"
        driver_name(found, f"{path}.name", one.name)
        if not one.nodeID:
            found.required(f"{path}.nodeID")
        if len(one.nodeID) > _NODE_ID:
            found.invalid(f"{path}.nodeID", one.nodeID, f"must be {_NODE_ID} characters or less")
        if one.allocatable is not None:
            found.negative(f"{path}.allocatable.count", one.allocatable.count)
        if one.name in names:
            found.duplicate(f"{path}.name", one.name)
        names.append(one.name)
        keys = one.topologyKeys or ()
        for j, key in enumerate(keys):
            if not key:
                found.required(path)
            if key in keys[:j]:
                found.duplicate(path, key)
            found.each(path, key, text.qualified(key))


# -- attachments ------------------------------------------------------------------------------


def attachment(found: Found, obj: storage_v1.VolumeAttachment) -> None:
    meta.check(found, obj.metadata, namespaced=False)
    _attachment(found, obj)


def attachment_update(
    found: Found, new: storage_v1.VolumeAttachment, old: storage_v1.VolumeAttachment
) -> None:
    meta.again(found, new.metadata, old.metadata, text.subdomain, namespaced=False)
    _attachment(found, new)
    found.changed("spec", new.spec, old.spec)


def _attachment(found: Found, obj: storage_v1.VolumeAttachment) -> None:
    spec, source = obj.spec, obj.spec.source
    driver_name(found, "spec.attacher", spec.attacher)
    name = source.persistentVolumeName
    exactly = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if source.inlineVolumeSpec is None and name is None:
        found.required("spec.source", exactly)
    elif source.inlineVolumeSpec is not None and name is not None:
        found.forbidden("spec.source", exactly)
    elif name is not None and not name:
        empty = "must specify non empty persistentVolumeName"
        found.required("spec.source.persistentVolumeName", empty)
    found.each("spec.nodeName", spec.nodeName, text.subdomain(spec.nodeName))
    status = obj.status
    said = status.attachmentMetadata
    if said and sum(len(key) + len(value) for key, value in said.items()) > _METADATA_SIZE:
        found.too_long("status.attachmentMetadata", _METADATA_SIZE)
    for field in ("attachError", "detachError"):
        error: storage_v1.VolumeError | None = getattr(status, field)
        if error is None:
            continue
        if len(error.message) > _MESSAGE_SIZE:
            found.too_long(f"status.{field}.message", _METADATA_SIZE)
        if error.errorCode is not None and error.errorCode < 0:
            at = f"status.{field}.errorCode"
            found.invalid(at, error.errorCode, text.between(0, 2**31 - 1))
    if name is not None:
        found.each("spec.source.persistentVolumeName", name, text.subdomain(name))
