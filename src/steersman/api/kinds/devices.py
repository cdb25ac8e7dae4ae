"""Views of the kinds of dynamic resource allocation: ResourceClaims, their templates, ResourceSlices, DeviceClasses,
DeviceTaintRules and ResourcePoolStatusRequests."""

from __future__ import annotations

from datetime import datetime

from steersman.api.kinds import Condition, Object, ObjectMeta, Opaque, Struct
from steersman.api.scheme import Kind, register

DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"
"""The finalizer of a claim that is allocated."""
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim made from a template: the name that the pod gives it in ``spec.resourceClaims``."""
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that the scheduler makes for the extended resources of a pod: "true"."""


# -- claims -----------------------------------------------------------------------------------


class ExactDeviceRequest(Struct, frozen=True):
    deviceClassName: str = ""
    allocationMode: str = ""
    count: int = 0
    adminAccess: bool | None = None


class DeviceSubRequest(Struct, frozen=True):
    deviceClassName: str = ""
    allocationMode: str = ""
    count: int = 0


class DeviceRequest(Struct, frozen=True):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    firstAvailable: tuple[DeviceSubRequest, ...] = ()


class DeviceClaim(Struct, frozen=True):
    requests: tuple[DeviceRequest, ...] | None = None


class ResourceClaimSpec(Struct, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class DeviceToleration(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    tolerationSeconds: int | None = None


class DeviceRequestAllocationResult(Struct, frozen=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    tolerations: tuple[DeviceToleration, ...] = ()


class DeviceAllocationResult(Struct, frozen=True):
    results: tuple[DeviceRequestAllocationResult, ...] = ()


class AllocationResult(Struct, frozen=True):
    devices: DeviceAllocationResult = DeviceAllocationResult()


class ResourceClaimConsumerReference(Struct, frozen=True):
    apiGroup: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Struct, frozen=True):
    allocation: AllocationResult | None = None
    reservedFor: tuple[ResourceClaimConsumerReference, ...] = ()


class ResourceClaim(Object, frozen=True):
    """Change it with `Patch`: an allocation has fields that this view lacks."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Opaque = Opaque(b"{}")


class ResourceClaimTemplate(Object, frozen=True):
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class NewResourceClaim(Struct, frozen=True):
    """A claim as it is made from a template: its own metadata, and the template's spec unchanged."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Opaque = Opaque(b"{}")


# -- devices ----------------------------------------------------------------------------------


class DeviceTaint(Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    timeAdded: datetime | None = None


class Device(Struct, frozen=True):
    name: str = ""
    taints: tuple[DeviceTaint, ...] = ()


class ResourcePool(Struct, frozen=True):
    name: str = ""
    generation: int = 0
    resourceSliceCount: int = 0


class ResourceSliceSpec(Struct, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    nodeName: str | None = None
    devices: tuple[Device, ...] = ()


class ResourceSlice(Object, frozen=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceClassSpec(Struct, frozen=True):
    extendedResourceName: str | None = None


class DeviceClass(Object, frozen=True):
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(Struct, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Struct, frozen=True):
    deviceSelector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRuleStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(Object, frozen=True):
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()


# -- pools ------------------------------------------------------------------------------------


class ResourcePoolStatusRequestSpec(Struct, frozen=True):
    driver: str = ""
    poolName: str | None = None
    limit: int | None = None


class PoolStatus(Struct, frozen=True):
    """All fields, because the status is updated as a whole."""

    driver: str = ""
    poolName: str = ""
    generation: int = 0
    resourceSliceCount: int | None = None
    totalDevices: int | None = None
    allocatedDevices: int | None = None
    availableDevices: int | None = None
    unavailableDevices: int | None = None
    nodeName: str | None = None
    validationError: str | None = None


class ResourcePoolStatusRequestStatus(Struct, frozen=True):
    """All fields, as above."""

    poolCount: int | None = None
    pools: tuple[PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


class ResourcePoolStatusRequest(Object, frozen=True):
    spec: ResourcePoolStatusRequestSpec = ResourcePoolStatusRequestSpec()
    status: ResourcePoolStatusRequestStatus | None = None
    """None until the request is answered."""


RESOURCECLAIMS = register(
    Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", True, ResourceClaim)
)
NEW_RESOURCECLAIMS = register(RESOURCECLAIMS.as_(NewResourceClaim))
RESOURCECLAIMTEMPLATES = register(
    Kind(
        "resource.k8s.io",
        "v1",
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        True,
        ResourceClaimTemplate,
    )
)
RESOURCESLICES = register(
    Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", False, ResourceSlice)
)
DEVICECLASSES = register(Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", False, DeviceClass))
DEVICETAINTRULES = register(
    Kind("resource.k8s.io", "v1beta2", "DeviceTaintRule", "devicetaintrules", False, DeviceTaintRule)
)
RESOURCEPOOLSTATUSREQUESTS = register(
    Kind(
        "resource.k8s.io",
        "v1alpha3",
        "ResourcePoolStatusRequest",
        "resourcepoolstatusrequests",
        False,
        ResourcePoolStatusRequest,
    )
)
