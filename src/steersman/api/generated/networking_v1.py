"""The types of networking/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import core_v1, meta_v1
from steersman.api.generated.base import Atomic, IntOrString, none
from steersman.api.generated.merge import ATOMIC, Merge
from steersman.api.kinds import Struct


class IngressBackend(Struct, frozen=True):
    resource: core_v1.TypedLocalObjectReference | None = None
    service: IngressServiceBackend | None = None


class HTTPIngressPath(Struct, frozen=True):
    backend: IngressBackend = msgspec.field(default_factory=IngressBackend)
    path: str = ""
    pathType: str | None = msgspec.field(default_factory=NoneType)


class HTTPIngressRuleValue(Struct, frozen=True):
    paths: Annotated[tuple[HTTPIngressPath, ...], ATOMIC] = msgspec.field(default_factory=none)


class IPAddressSpec(Struct, frozen=True):
    parentRef: ParentReference | None = None


class IPAddress(meta_v1.Object, frozen=True):
    spec: IPAddressSpec = msgspec.field(default_factory=IPAddressSpec)


class IPBlock(Struct, frozen=True):
    cidr: str = msgspec.field(default_factory=str)
    except_: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(name="except", default=())


class IngressSpec(Struct, frozen=True):
    defaultBackend: IngressBackend | None = None
    ingressClassName: str | None = None
    rules: Annotated[tuple[IngressRule, ...], ATOMIC] = ()
    tls: Annotated[tuple[IngressTLS, ...], ATOMIC] = ()


class IngressLoadBalancerStatus(Struct, frozen=True):
    ingress: Annotated[tuple[IngressLoadBalancerIngress, ...], ATOMIC] = ()


class IngressStatus(Struct, frozen=True):
    loadBalancer: IngressLoadBalancerStatus = msgspec.field(default_factory=IngressLoadBalancerStatus)


class Ingress(meta_v1.Object, frozen=True):
    spec: IngressSpec = msgspec.field(default_factory=IngressSpec)
    status: IngressStatus = msgspec.field(default_factory=IngressStatus)


class IngressClassSpec(Struct, frozen=True):
    controller: str = ""
    parameters: IngressClassParametersReference | None = None


class IngressClass(meta_v1.Object, frozen=True):
    spec: IngressClassSpec = msgspec.field(default_factory=IngressClassSpec)


class IngressClassParametersReference(Struct, frozen=True):
    apiGroup: str | None = None
    kind: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)
    namespace: str | None = None
    scope: str | None = msgspec.field(default_factory=NoneType)


class IngressLoadBalancerIngress(Struct, frozen=True):
    hostname: str = ""
    ip: str = ""
    ports: Annotated[tuple[IngressPortStatus, ...], ATOMIC] = ()


class IngressPortStatus(Struct, frozen=True):
    error: str | None = None
    port: int = msgspec.field(default_factory=int)
    protocol: str = msgspec.field(default_factory=str)


class IngressRule(Struct, frozen=True):
    host: str = ""
    http: HTTPIngressRuleValue | None = None


class ServiceBackendPort(Atomic, frozen=True):
    name: str = ""
    number: int = 0


class IngressServiceBackend(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    port: ServiceBackendPort = msgspec.field(default_factory=ServiceBackendPort)


class IngressTLS(Struct, frozen=True):
    hosts: Annotated[tuple[str, ...], ATOMIC] = ()
    secretName: str = ""


class NetworkPolicySpec(Struct, frozen=True):
    egress: Annotated[tuple[NetworkPolicyEgressRule, ...], ATOMIC] = ()
    ingress: Annotated[tuple[NetworkPolicyIngressRule, ...], ATOMIC] = ()
    podSelector: meta_v1.LabelSelector = msgspec.field(default_factory=meta_v1.LabelSelector)
    policyTypes: Annotated[tuple[str, ...], ATOMIC] = ()


class NetworkPolicy(meta_v1.Object, frozen=True):
    spec: NetworkPolicySpec = msgspec.field(default_factory=NetworkPolicySpec)


class NetworkPolicyEgressRule(Struct, frozen=True):
    ports: Annotated[tuple[NetworkPolicyPort, ...], ATOMIC] = ()
    to: Annotated[tuple[NetworkPolicyPeer, ...], ATOMIC] = ()


class NetworkPolicyIngressRule(Struct, frozen=True):
    from_: Annotated[tuple[NetworkPolicyPeer, ...], ATOMIC] = msgspec.field(name="from", default=())
    ports: Annotated[tuple[NetworkPolicyPort, ...], ATOMIC] = ()


class NetworkPolicyPeer(Struct, frozen=True):
    ipBlock: IPBlock | None = None
    namespaceSelector: meta_v1.LabelSelector | None = None
    podSelector: meta_v1.LabelSelector | None = None


class NetworkPolicyPort(Struct, frozen=True):
    endPort: int | None = None
    port: IntOrString | None = None
    protocol: str | None = None


class ParentReference(Struct, frozen=True):
    group: str = ""
    name: str = ""
    namespace: str = ""
    resource: str = ""


class ServiceCIDRSpec(Struct, frozen=True):
    cidrs: Annotated[tuple[str, ...], ATOMIC] = ()


class ServiceCIDRStatus(Struct, frozen=True):
    conditions: Annotated[
        tuple[meta_v1.Condition, ...], Merge(strategy="merge", key="type", list_type="map", keys=("type",))
    ] = ()


class ServiceCIDR(meta_v1.Object, frozen=True):
    spec: ServiceCIDRSpec = msgspec.field(default_factory=ServiceCIDRSpec)
    status: ServiceCIDRStatus = msgspec.field(default_factory=ServiceCIDRStatus)
