"""Views of Services and of what stands behind them: Endpoints, EndpointSlices, ServiceCIDRs and IPAddresses.

Endpoints and EndpointSlices have all their fields, because their controllers put them back as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType

from msgspec import field

from steersman.api.kinds import EMPTY, Condition, Object, ObjectReference, Struct
from steersman.api.scheme import Kind, register

# -- Services ---------------------------------------------------------------------------------


class ServicePort(Struct, frozen=True):
    name: str = ""
    protocol: str = ""
    appProtocol: str | None = None
    port: int = 0
    targetPort: int | str = 0
    nodePort: int = 0


class ClientIPConfig(Struct, frozen=True):
    timeoutSeconds: int | None = None


class SessionAffinityConfig(Struct, frozen=True):
    clientIP: ClientIPConfig | None = None


class ServiceSpec(Struct, frozen=True):
    type: str = ""
    selector: Mapping[str, str] = EMPTY
    ports: tuple[ServicePort, ...] = ()
    clusterIP: str = ""
    clusterIPs: tuple[str, ...] = ()
    externalIPs: tuple[str, ...] = ()
    externalName: str = ""
    externalTrafficPolicy: str = ""
    internalTrafficPolicy: str | None = None
    healthCheckNodePort: int = 0
    ipFamilies: tuple[str, ...] = ()
    ipFamilyPolicy: str | None = None
    allocateLoadBalancerNodePorts: bool | None = None
    loadBalancerClass: str | None = None
    loadBalancerIP: str = ""
    loadBalancerSourceRanges: tuple[str, ...] = ()
    publishNotReadyAddresses: bool = False
    sessionAffinity: str = ""
    sessionAffinityConfig: SessionAffinityConfig | None = None
    trafficDistribution: str | None = None


class PortStatus(Struct, frozen=True):
    port: int = 0
    protocol: str = ""
    error: str | None = None


class LoadBalancerIngress(Struct, frozen=True):
    ip: str = ""
    ipMode: str | None = None
    hostname: str = ""
    ports: tuple[PortStatus, ...] = ()


class LoadBalancerStatus(Struct, frozen=True):
    ingress: tuple[LoadBalancerIngress, ...] = ()


class ServiceStatus(Struct, frozen=True):
    loadBalancer: LoadBalancerStatus = LoadBalancerStatus()
    conditions: tuple[Condition, ...] = ()


class Service(Object, frozen=True):
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


# -- Endpoints --------------------------------------------------------------------------------


class EndpointAddress(Struct, frozen=True):
    ip: str = field(default_factory=str)
    hostname: str = ""
    nodeName: str | None = None
    targetRef: ObjectReference | None = None


class EndpointsPort(Struct, frozen=True):
    """A port of Endpoints; upstream's name, EndpointPort, is that of a slice's port here."""

    name: str = ""
    port: int = 0
    protocol: str = ""
    appProtocol: str | None = None


class EndpointSubset(Struct, frozen=True):
    addresses: tuple[EndpointAddress, ...] = ()
    notReadyAddresses: tuple[EndpointAddress, ...] = ()
    ports: tuple[EndpointsPort, ...] = ()


class Endpoints(Object, frozen=True):
    """All fields."""

    subsets: tuple[EndpointSubset, ...] = ()


# -- EndpointSlices ---------------------------------------------------------------------------


class EndpointConditions(Struct, frozen=True):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForZone(Struct, frozen=True):
    name: str = field(default_factory=str)


class ForNode(Struct, frozen=True):
    name: str = field(default_factory=str)


class EndpointHints(Struct, frozen=True):
    forZones: tuple[ForZone, ...] = ()
    forNodes: tuple[ForNode, ...] = ()


class Endpoint(Struct, frozen=True):
    addresses: tuple[str, ...] = field(default_factory=tuple)
    conditions: EndpointConditions = EndpointConditions()
    hostname: str | None = None
    targetRef: ObjectReference | None = None
    deprecatedTopology: Mapping[str, str] = EMPTY
    nodeName: str | None = None
    zone: str | None = None
    hints: EndpointHints | None = None


class EndpointPort(Struct, frozen=True):
    name: str | None = None
    protocol: str | None = None
    port: int | None = None
    appProtocol: str | None = None


class EndpointSlice(Object, frozen=True):
    """All fields. Those made by a factory are encoded even where they are empty."""

    addressType: str = field(default_factory=str)
    endpoints: tuple[Endpoint, ...] | None = field(default_factory=NoneType)
    ports: tuple[EndpointPort, ...] | None = field(default_factory=NoneType)


# -- address ranges ---------------------------------------------------------------------------


class ServiceCIDRSpec(Struct, frozen=True):
    cidrs: tuple[str, ...] = ()


class ServiceCIDRStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()


class ServiceCIDR(Object, frozen=True):
    spec: ServiceCIDRSpec = ServiceCIDRSpec()
    status: ServiceCIDRStatus = ServiceCIDRStatus()


class ParentReference(Struct, frozen=True):
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""


class IPAddressSpec(Struct, frozen=True):
    parentRef: ParentReference | None = None


class IPAddress(Object, frozen=True):
    spec: IPAddressSpec = IPAddressSpec()


SERVICES = register(Kind("", "v1", "Service", "services", True, Service))
ENDPOINTS = register(Kind("", "v1", "Endpoints", "endpoints", True, Endpoints))
ENDPOINTSLICES = register(
    Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", True, EndpointSlice)
)
SERVICECIDRS = register(Kind("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", False, ServiceCIDR))
IPADDRESSES = register(Kind("networking.k8s.io", "v1", "IPAddress", "ipaddresses", False, IPAddress))
