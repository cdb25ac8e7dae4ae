"""Defaults of dynamic resource allocation, and the canonical form of its quantities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from steersman.api.generated import resource_v1 as v1
from steersman.api.generated.base import Quantity
from steersman.server.defaulting.missing_fields import (
    Default,
    GroupKind,
    canonical_quantity,
    default_if_zero,
    map_items,
    map_optional,
    put,
)

T = TypeVar("T")


def default_resource_claim(obj: v1.ResourceClaim) -> v1.ResourceClaim:
    return default_claim_status(put(obj, spec=_default_resource_claim_spec(obj.spec)))


def default_resource_claim_template(
    obj: v1.ResourceClaimTemplate,
) -> v1.ResourceClaimTemplate:
    return put(obj, spec=put(obj.spec, spec=_default_resource_claim_spec(obj.spec.spec)))


def _default_resource_claim_spec(spec: v1.ResourceClaimSpec) -> v1.ResourceClaimSpec:
    devices = spec.devices
    if devices is None or not devices.requests:
        return spec
    return put(spec, devices=put(devices, requests=map_items(devices.requests, _default_device_request)))


Request = TypeVar("Request", v1.ExactDeviceRequest, v1.DeviceSubRequest)


def _default_device_request(request: v1.DeviceRequest) -> v1.DeviceRequest:
    if request.exactly is not None:
        request = put(request, exactly=_default_choice(request.exactly))
    return put(request, firstAvailable=map_items(request.firstAvailable, _default_choice))


def _default_choice(request: Request) -> Request:
    """The allocation mode defaults to ExactCount, the count to one, the operator of a toleration to Equal."""
    request = put(
        request,
        capacity=map_optional(request.capacity, _canonical_requirements),
        tolerations=map_items(request.tolerations, _default_device_toleration),
    )
    if not request.allocationMode:
        request = put(request, allocationMode="ExactCount")
    return put(request, count=1) if request.allocationMode == "ExactCount" and not request.count else request


def _default_device_toleration(toleration: v1.DeviceToleration) -> v1.DeviceToleration:
    return default_if_zero(toleration, operator="Equal")


# -- quantities -------------------------------------------------------------------------------


def _canonical(amount: Quantity) -> Quantity:
    """An amount in canonical form. Those of devices are not rounded to thousandths, as those of containers are."""
    text = canonical_quantity(amount)
    return amount if text == amount else text


def _canonical_requirements(requirements: v1.CapacityRequirements) -> v1.CapacityRequirements:
    return put(requirements, requests=_map_values(requirements.requests, _canonical))


def default_claim_status(obj: v1.ResourceClaim) -> v1.ResourceClaim:
    """Defaults of an update of a claim's status."""
    allocation = map_optional(obj.status.allocation, _default_allocation)
    return put(obj, status=put(obj.status, allocation=allocation))


def _default_allocation(allocation: v1.AllocationResult) -> v1.AllocationResult:
    devices = allocation.devices
    return put(allocation, devices=put(devices, results=map_items(devices.results, _default_result)))


def _default_result(result: v1.DeviceRequestAllocationResult) -> v1.DeviceRequestAllocationResult:
    return put(
        result,
        consumedCapacity=_map_values(result.consumedCapacity, _canonical),
        tolerations=map_items(result.tolerations, _default_device_toleration),
    )


def default_resource_slice(obj: v1.ResourceSlice) -> v1.ResourceSlice:
    spec = obj.spec
    return put(
        obj,
        spec=put(
            spec,
            devices=map_items(spec.devices, _default_device),
            sharedCounters=map_items(spec.sharedCounters, _default_counters),
        ),
    )


def _default_device(device: v1.Device) -> v1.Device:
    return put(
        device,
        capacity=_map_values(device.capacity, _default_capacity),
        consumesCounters=map_items(device.consumesCounters, _default_counters),
    )


def _default_capacity(capacity: v1.DeviceCapacity) -> v1.DeviceCapacity:
    policy = map_optional(capacity.requestPolicy, _default_policy)
    return put(capacity, requestPolicy=policy, value=_canonical(capacity.value))


def _default_policy(policy: v1.CapacityRequestPolicy) -> v1.CapacityRequestPolicy:
    return put(
        policy,
        default=map_optional(policy.default, _canonical),
        validRange=map_optional(policy.validRange, _default_range),
        validValues=map_items(policy.validValues, _canonical),
    )


def _default_range(given: v1.CapacityRequestPolicyRange) -> v1.CapacityRequestPolicyRange:
    return put(
        given,
        max=map_optional(given.max, _canonical),
        min=map_optional(given.min, _canonical),
        step=map_optional(given.step, _canonical),
    )


Counters = TypeVar("Counters", v1.CounterSet, v1.DeviceCounterConsumption)


def _default_counters(counters: Counters) -> Counters:
    return put(counters, counters=_map_values(counters.counters, _default_counter))


def _default_counter(counter: v1.Counter) -> v1.Counter:
    return put(counter, value=_canonical(counter.value))


def _map_values(items: Mapping[str, T], function: Callable[[T], T]) -> Mapping[str, T]:
    """Applies a function to each value; returns the same mapping where none changes."""
    made = {key: function(value) for key, value in items.items()}
    return made if any(made[key] is not value for key, value in items.items()) else items


DEFAULTS: Mapping[GroupKind, Default] = {
    ("resource.k8s.io", "ResourceClaim"): default_resource_claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): default_resource_claim_template,
    ("resource.k8s.io", "ResourceSlice"): default_resource_slice,
}
