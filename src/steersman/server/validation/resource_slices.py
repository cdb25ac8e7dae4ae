"""Validation of ResourceSlices: their pool, the nodes that they are for, and their devices; `slice_devices` has what is in these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steersman.api.generated import resource_v1 as v1
from steersman.api.label_syntax import value_errors
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.devices import each, validate_binding_conditions, validate_pool
from steersman.server.validation.field_errors import FieldErrors, Verbatim
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.selectors import validate_node_selector
from steersman.server.validation.slice_devices import (
    validate_consumed_counters,
    validate_contents,
    validate_shared_counters,
)
from steersman.server.validation.volumes import validate_csi_driver_name

if TYPE_CHECKING:
    from steersman.api.generated import resource_v1beta2

MAX_DEVICES = 128
MAX_TAINTED_DEVICES = 64
"""Devices of a slice in which one has taints, or consumes counters."""
MAX_ATTRIBUTES = 32
"""Attributes and capacities of a device."""
MAX_TAINTS = 16
_CHOICES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_OF = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_ONE_OF_DEVICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_NOT_PER_DEVICE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)


def validate_slice(errors: FieldErrors, obj: v1.ResourceSlice) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    _validate_spec(errors, obj.spec, None)


def validate_slice_update(errors: FieldErrors, new: v1.ResourceSlice, old: v1.ResourceSlice) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    _validate_spec(errors, new.spec, old.spec)


def _validate_spec(errors: FieldErrors, spec: v1.ResourceSliceSpec, old: v1.ResourceSliceSpec | None) -> None:
    validate_csi_driver_name(errors, "spec.driver", spec.driver)
    validate_pool(errors, "spec.pool.name", spec.pool.name)
    if spec.pool.resourceSliceCount <= 0:
        errors.invalid(
            "spec.pool.resourceSliceCount", spec.pool.resourceSliceCount, "must be greater than zero"
        )
    if spec.pool.generation < 0:
        at_least = "must be greater than or equal to zero"
        errors.invalid("spec.pool.generation", spec.pool.generation, at_least)
    if old is not None:
        errors.immutable("spec.pool.name", spec.pool.name, old.pool.name)
        errors.immutable("spec.driver", spec.driver, old.driver)
        errors.immutable("spec.nodeName", spec.nodeName, old.nodeName)
    _validate_nodes(errors, spec)
    if spec.sharedCounters and spec.devices:
        errors.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    advanced = any(device.taints or device.consumesCounters for device in spec.devices)
    per_device = bool(spec.perDeviceNodeSelection)
    known = {device.name: device for device in old.devices} if old is not None else {}

    def device(errors: FieldErrors, path: str, one: v1.Device) -> None:
        _validate_device(errors, path, one, known.get(one.name), per_device)

    most = MAX_TAINTED_DEVICES if advanced else MAX_DEVICES
    each(errors, "spec.devices", spec.devices, most, device, lambda one: one.name)
    validate_shared_counters(errors, "spec.sharedCounters", spec.sharedCounters)


def _validate_nodes(errors: FieldErrors, spec: v1.ResourceSliceSpec) -> None:
    """Validates that a slice says for which nodes it is, in one way."""
    if spec.nodeName:
        errors.invalid_each("spec.nodeName", spec.nodeName, names.dns1123_subdomain(spec.nodeName))
    elif spec.nodeName is not None:
        errors.invalid("spec.nodeName", "", "must be either unset or set to a non-empty string")
    if spec.nodeSelector is not None:
        validate_node_selector(errors, "spec.nodeSelector", spec.nodeSelector)
        terms = spec.nodeSelector.nodeSelectorTerms or ()
        if len(terms) != 1:
            errors.invalid(
                "spec.nodeSelector.nodeSelectorTerms", terms, "must have exactly one node selector term"
            )
    for name in ("allNodes", "perDeviceNodeSelection"):
        if getattr(spec, name) is False:
            errors.invalid(f"spec.{name}", False, "must be either unset or set to true")
    given = [f"`{name}`" for name in _CHOICES if getattr(spec, name)]
    if not given:
        errors.required("spec", _ONE_OF)
    elif len(given) > 1:
        errors.invalid("spec", f"{{{', '.join(given)}}}", f"{_ONE_OF}, but multiple fields are set")


def _validate_device(
    errors: FieldErrors, path: str, device: v1.Device, old: v1.Device | None, per_device: bool
) -> None:
    errors.invalid_each(f"{path}.name", device.name, names.dns1123_label(device.name))
    count = len(device.attributes) + len(device.capacity)
    if count > MAX_ATTRIBUTES:
        limit = f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}"
        errors.invalid(path, count, limit)
    validate_contents(errors, path, device)
    if old is None or old.taints != device.taints:
        each(errors, f"{path}.taints", device.taints, MAX_TAINTS, validate_taint)
    validate_consumed_counters(errors, f"{path}.consumesCounters", device.consumesCounters)
    _validate_device_nodes(errors, path, device, per_device)
    validate_binding_conditions(errors, path, device.bindingConditions, device.bindingFailureConditions)


def _validate_device_nodes(errors: FieldErrors, path: str, device: v1.Device, per_device: bool) -> None:
    choices = ("nodeName", "nodeSelector", "allNodes")
    if not per_device:
        if any(getattr(device, name) is not None for name in choices):
            errors.invalid(path, Verbatim("null"), _NOT_PER_DEVICE)
        return
    if device.nodeName:
        errors.invalid_each(f"{path}.nodeName", device.nodeName, names.dns1123_subdomain(device.nodeName))
    elif device.nodeName is not None:
        errors.invalid(f"{path}.nodeName", "", "must not be empty")
    if device.nodeSelector is not None:
        validate_node_selector(errors, f"{path}.nodeSelector", device.nodeSelector)
    if device.allNodes is False:
        errors.invalid(f"{path}.allNodes", False, "must be either unset or set to true")
    given = [f"`{name}`" for name in choices if getattr(device, name)]
    if not given:
        errors.required(path, _ONE_OF_DEVICE)
    elif len(given) > 1:
        errors.invalid(path, f"{{{', '.join(given)}}}", _ONE_OF_DEVICE)


def validate_taint(
    errors: FieldErrors, path: str, taint: v1.DeviceTaint | resource_v1beta2.DeviceTaint, old_effect: str = ""
) -> None:
    """An effect that does not change may be one of a later version."""
    errors.invalid_each(f"{path}.key", taint.key, names.qualified_name(taint.key))
    if taint.value:
        errors.invalid_each(f"{path}.value", taint.value, value_errors(taint.value))
    if not taint.effect:
        errors.required(f"{path}.effect")
    elif taint.effect != old_effect:
        errors.enum(f"{path}.effect", taint.effect, ("NoExecute", "NoSchedule", "None"))


RULES: Mapping[GroupKind, AnyRules] = {
    ("resource.k8s.io", "ResourceSlice"): Rules(validate_slice, validate_slice_update),
}
