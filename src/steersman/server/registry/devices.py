"""Strategies of dynamic resource allocation: the times of device taints, and the status of devices that a claim has lost."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING

from msgspec.structs import replace

from steersman.api.kinds import EMPTY
from steersman.api.meta import truncate_to_seconds
from steersman.server.registry.strategy import WriteContext, update_status_only

if TYPE_CHECKING:
    from steersman.api.generated.resource_v1 import (
        AllocatedDeviceStatus,
        Device,
        DeviceRequestAllocationResult,
        ResourceClaim,
        ResourceSlice,
    )
    from steersman.api.generated.resource_v1beta2 import DeviceTaintRule

KEPT_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
_update_status = update_status_only(KEPT_METADATA)


def prepare_slice_for_create(obj: ResourceSlice, context: WriteContext) -> ResourceSlice:
    """Sets the time of taints that have none, and drops the fields of feature gates that are off."""
    devices = tuple(_without_gated(_with_times(device, context)) for device in obj.spec.devices)
    if all(map(is_, devices, obj.spec.devices)):
        return obj
    return replace(obj, spec=replace(obj.spec, devices=devices))


def prepare_slice_for_update(new: ResourceSlice, old: ResourceSlice, context: WriteContext) -> ResourceSlice:
    """Sets the time of taints that have none, be they new or not. As upstream, fields that are dropped count as a change."""
    if new.spec != old.spec:
        new = replace(new, metadata=replace(new.metadata, generation=old.metadata.generation + 1))
    return prepare_slice_for_create(new, context)


def _without_gated(device: Device) -> Device:
    """A device without attributes that are lists, and without what it takes of its node's resources."""
    if device.nodeAllocatableResourceMappings:
        device = replace(device, nodeAllocatableResourceMappings=EMPTY)
    lists = any(
        each.bools or each.ints or each.strings or each.versions for each in device.attributes.values()
    )
    if not lists:
        return device
    attributes = {
        name: replace(each, bools=(), ints=(), strings=(), versions=())
        for name, each in device.attributes.items()
    }
    return replace(device, attributes=attributes)


def _with_times(device: Device, context: WriteContext) -> Device:
    if all(taint.timeAdded is not None for taint in device.taints):
        return device
    now = truncate_to_seconds(context.now)
    taints = tuple(
        replace(taint, timeAdded=now) if taint.timeAdded is None else taint for taint in device.taints
    )
    return replace(device, taints=taints)


def prepare_rule_for_create(obj: DeviceTaintRule, context: WriteContext) -> DeviceTaintRule:
    """Clears the status, and sets the time of a taint that has none."""
    return replace(_with_time(obj, context), status=type(obj.status)())


def prepare_rule_for_update(
    new: DeviceTaintRule, old: DeviceTaintRule, context: WriteContext
) -> DeviceTaintRule:
    """Keeps the status. A new effect has a new time, since tolerations begin with it."""
    new = replace(_with_time(new, context), status=old.status)
    taint, before = new.spec.taint, old.spec.taint
    if taint.effect != before.effect and taint.timeAdded == before.timeAdded:
        taint = replace(taint, timeAdded=truncate_to_seconds(context.now))
        new = replace(new, spec=replace(new.spec, taint=taint))
    return new


def _with_time(rule: DeviceTaintRule, context: WriteContext) -> DeviceTaintRule:
    taint = rule.spec.taint
    if taint.timeAdded is not None:
        return rule
    taint = replace(taint, timeAdded=truncate_to_seconds(context.now))
    return replace(rule, spec=replace(rule.spec, taint=taint))


def prepare_claim_for_status_update(
    new: ResourceClaim, old: ResourceClaim, context: WriteContext
) -> ResourceClaim:
    """Updates the status; what drivers report of a device goes with its allocation."""
    updated: ResourceClaim = _update_status(new, old, context)
    lost = _allocated(old) - _allocated(updated)
    devices = tuple(each for each in updated.status.devices if _identity(each) not in lost)
    if len(devices) == len(updated.status.devices):
        return updated
    return replace(updated, status=replace(updated.status, devices=devices))


def _allocated(claim: ResourceClaim) -> set[tuple[str, str, str, str | None]]:
    allocation = claim.status.allocation
    return {_identity(each) for each in allocation.devices.results} if allocation is not None else set()


def _identity(
    device: AllocatedDeviceStatus | DeviceRequestAllocationResult,
) -> tuple[str, str, str, str | None]:
    """The device, and the share of it that is allocated."""
    return device.driver, device.pool, device.device, device.shareID
