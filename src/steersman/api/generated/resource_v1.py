"""The types of resource/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import core_v1, meta_v1
from steersman.api.generated.base import Json, Quantity, Time, zero
from steersman.api.generated.merge import ATOMIC, Merge
from steersman.api.kinds import EMPTY, Struct


class AllocatedDeviceStatus(Struct, frozen=True):
    conditions: Annotated[tuple[meta_v1.Condition, ...] | None, Merge(list_type="map", keys=("type",))] = (
        msgspec.field(default_factory=NoneType)
    )
    data: Json = None
    device: str = msgspec.field(default_factory=str)
    driver: str = msgspec.field(default_factory=str)
    networkData: NetworkDeviceData | None = None
    pool: str = msgspec.field(default_factory=str)
    shareID: str | None = None


class DeviceAllocationResult(Struct, frozen=True):
    config: Annotated[tuple[DeviceAllocationConfiguration, ...], ATOMIC] = ()
    results: Annotated[tuple[DeviceRequestAllocationResult, ...], ATOMIC] = ()


class AllocationResult(Struct, frozen=True):
    allocationTimestamp: Time | None = None
    devices: DeviceAllocationResult = msgspec.field(default_factory=DeviceAllocationResult)
    nodeSelector: core_v1.NodeSelector | None = None


class CELDeviceSelector(Struct, frozen=True):
    expression: str = msgspec.field(default_factory=str)


class CapacityRequestPolicy(Struct, frozen=True):
    default: Quantity | None = msgspec.field(default_factory=NoneType)
    validRange: CapacityRequestPolicyRange | None = None
    validValues: Annotated[tuple[Quantity, ...], ATOMIC] = ()


class CapacityRequestPolicyRange(Struct, frozen=True):
    max: Quantity | None = None
    min: Quantity | None = None
    step: Quantity | None = None


class CapacityRequirements(Struct, frozen=True):
    requests: Mapping[str, Quantity] = EMPTY


class Counter(Struct, frozen=True):
    value: Quantity = msgspec.field(default_factory=zero)


class CounterSet(Struct, frozen=True):
    counters: Mapping[str, Counter] = EMPTY
    name: str = msgspec.field(default_factory=str)


class Device(Struct, frozen=True):
    allNodes: bool | None = None
    allowMultipleAllocations: bool | None = None
    attributes: Mapping[str, DeviceAttribute] = EMPTY
    bindingConditions: Annotated[tuple[str, ...], ATOMIC] = ()
    bindingFailureConditions: Annotated[tuple[str, ...], ATOMIC] = ()
    bindsToNode: bool | None = None
    capacity: Mapping[str, DeviceCapacity] = EMPTY
    consumesCounters: Annotated[tuple[DeviceCounterConsumption, ...], ATOMIC] = ()
    name: str = msgspec.field(default_factory=str)
    nodeAllocatableResourceMappings: Mapping[str, NodeAllocatableResourceMapping] = EMPTY
    nodeName: str | None = None
    nodeSelector: core_v1.NodeSelector | None = None
    taints: Annotated[tuple[DeviceTaint, ...], ATOMIC] = ()


class DeviceAllocationConfiguration(Struct, frozen=True):
    opaque: OpaqueDeviceConfiguration | None = None
    requests: Annotated[tuple[str, ...], ATOMIC] = ()
    source: str = msgspec.field(default_factory=str)


class DeviceAttribute(Struct, frozen=True):
    bool: builtins.bool | None = None
    bools: Annotated[tuple[builtins.bool, ...], ATOMIC] = ()
    int: builtins.int | None = None
    ints: Annotated[tuple[builtins.int, ...], ATOMIC] = ()
    string: str | None = None
    strings: Annotated[tuple[str, ...], ATOMIC] = ()
    version: str | None = None
    versions: Annotated[tuple[str, ...], ATOMIC] = ()


class DeviceCapacity(Struct, frozen=True):
    requestPolicy: CapacityRequestPolicy | None = None
    value: Quantity = msgspec.field(default_factory=zero)


class DeviceClaim(Struct, frozen=True):
    config: Annotated[tuple[DeviceClaimConfiguration, ...], ATOMIC] = ()
    constraints: Annotated[tuple[DeviceConstraint, ...], ATOMIC] = ()
    requests: Annotated[tuple[DeviceRequest, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)


class DeviceClaimConfiguration(Struct, frozen=True):
    opaque: OpaqueDeviceConfiguration | None = None
    requests: Annotated[tuple[str, ...], ATOMIC] = ()


class DeviceClassSpec(Struct, frozen=True):
    config: Annotated[tuple[DeviceClassConfiguration, ...], ATOMIC] = ()
    extendedResourceName: str | None = None
    selectors: Annotated[tuple[DeviceSelector, ...], ATOMIC] = ()


class DeviceClass(meta_v1.Object, frozen=True):
    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)


class DeviceClassConfiguration(Struct, frozen=True):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceConstraint(Struct, frozen=True):
    distinctAttribute: str | None = None
    matchAttribute: str | None = None
    requests: Annotated[tuple[str, ...], ATOMIC] = ()


class DeviceCounterConsumption(Struct, frozen=True):
    counterSet: str = msgspec.field(default_factory=str)
    counters: Mapping[str, Counter] = EMPTY


class DeviceRequest(Struct, frozen=True):
    exactly: ExactDeviceRequest | None = None
    firstAvailable: Annotated[tuple[DeviceSubRequest, ...], ATOMIC] = ()
    name: str = msgspec.field(default_factory=str)


class DeviceRequestAllocationResult(Struct, frozen=True):
    adminAccess: bool | None = None
    bindingConditions: Annotated[tuple[str, ...], ATOMIC] = ()
    bindingFailureConditions: Annotated[tuple[str, ...], ATOMIC] = ()
    consumedCapacity: Mapping[str, Quantity] = EMPTY
    device: str = msgspec.field(default_factory=str)
    driver: str = msgspec.field(default_factory=str)
    pool: str = msgspec.field(default_factory=str)
    request: str = msgspec.field(default_factory=str)
    shareID: str | None = None
    tolerations: Annotated[tuple[DeviceToleration, ...], ATOMIC] = ()


class DeviceSelector(Struct, frozen=True):
    cel: CELDeviceSelector | None = None


class DeviceSubRequest(Struct, frozen=True):
    allocationMode: str = ""
    capacity: CapacityRequirements | None = None
    count: int = 0
    deviceClassName: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)
    selectors: Annotated[tuple[DeviceSelector, ...], ATOMIC] = ()
    tolerations: Annotated[tuple[DeviceToleration, ...], ATOMIC] = ()


class DeviceTaint(Struct, frozen=True):
    effect: str = msgspec.field(default_factory=str)
    key: str = msgspec.field(default_factory=str)
    timeAdded: Time | None = None
    value: str = ""


class DeviceToleration(Struct, frozen=True):
    effect: str = ""
    key: str = ""
    operator: str = ""
    tolerationSeconds: int | None = None
    value: str = ""


class ExactDeviceRequest(Struct, frozen=True):
    adminAccess: bool | None = None
    allocationMode: str = ""
    capacity: CapacityRequirements | None = None
    count: int = 0
    deviceClassName: str = msgspec.field(default_factory=str)
    selectors: Annotated[tuple[DeviceSelector, ...], ATOMIC] = ()
    tolerations: Annotated[tuple[DeviceToleration, ...], ATOMIC] = ()


class NetworkDeviceData(Struct, frozen=True):
    hardwareAddress: str = ""
    interfaceName: str = ""
    ips: Annotated[tuple[str, ...], ATOMIC] = ()


class NodeAllocatableResourceMapping(Struct, frozen=True):
    allocationMultiplier: Quantity | None = None
    capacityKey: str | None = None


class OpaqueDeviceConfiguration(Struct, frozen=True):
    driver: str = msgspec.field(default_factory=str)
    parameters: Json = msgspec.field(default_factory=NoneType)


class ResourceClaimSpec(Struct, frozen=True):
    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class ResourceClaimStatus(Struct, frozen=True):
    allocation: AllocationResult | None = None
    devices: Annotated[
        tuple[AllocatedDeviceStatus, ...],
        Merge(list_type="map", keys=("driver", "device", "pool", "shareID")),
    ] = ()
    reservedFor: Annotated[
        tuple[ResourceClaimConsumerReference, ...],
        Merge(strategy="merge", key="uid", list_type="map", keys=("uid",)),
    ] = ()


class ResourceClaim(meta_v1.Object, frozen=True):
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)


class ResourceClaimConsumerReference(Struct, frozen=True):
    apiGroup: str = ""
    name: str = msgspec.field(default_factory=str)
    resource: str = msgspec.field(default_factory=str)
    uid: str = msgspec.field(default_factory=str)


class ResourceClaimTemplateSpec(Struct, frozen=True):
    metadata: meta_v1.ObjectMeta = msgspec.field(default_factory=meta_v1.ObjectMeta)
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(meta_v1.Object, frozen=True):
    spec: ResourceClaimTemplateSpec = msgspec.field(default_factory=ResourceClaimTemplateSpec)


class ResourcePool(Struct, frozen=True):
    generation: int = msgspec.field(default_factory=int)
    name: str = msgspec.field(default_factory=str)
    resourceSliceCount: int = msgspec.field(default_factory=int)


class ResourceSliceSpec(Struct, frozen=True):
    allNodes: bool | None = None
    devices: Annotated[tuple[Device, ...], ATOMIC] = ()
    driver: str = msgspec.field(default_factory=str)
    nodeName: str | None = None
    nodeSelector: core_v1.NodeSelector | None = None
    perDeviceNodeSelection: bool | None = None
    pool: ResourcePool = msgspec.field(default_factory=ResourcePool)
    sharedCounters: Annotated[tuple[CounterSet, ...], ATOMIC] = ()


class ResourceSlice(meta_v1.Object, frozen=True):
    spec: ResourceSliceSpec = msgspec.field(default_factory=ResourceSliceSpec)
