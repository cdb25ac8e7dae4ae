"""What becomes of a service's allocated fields when it is updated: kept where left out, wiped where useless."""

from __future__ import annotations

from steersman.api.generated.core_v1 import ServiceSpec
from steersman.server.defaulting.missing_fields import put


def wants_ports(spec: ServiceSpec) -> bool:
    """Whether the type has ports on nodes."""
    return spec.type in ("NodePort", "LoadBalancer")


def wants_health(spec: ServiceSpec) -> bool:
    """Whether a balancer must ask each node whether it has endpoints."""
    return spec.type == "LoadBalancer" and spec.externalTrafficPolicy == "Local"


def kept(new: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    """An update that leaves out what was allocated keeps it."""
    if old.type != "ExternalName" and new.type != "ExternalName":
        if not new.clusterIP:
            new = put(new, clusterIP=old.clusterIP)
        if not new.clusterIPs and new.clusterIP == old.clusterIP:
            new = put(new, clusterIPs=old.clusterIPs)
        elif new.clusterIP != old.clusterIP and new.clusterIPs == old.clusterIPs:
            new = put(new, clusterIPs=(new.clusterIP,))
    if wants_ports(old) and wants_ports(new):
        said = [port.nodePort for port in new.ports]
        known = {port.name: port.nodePort for port in old.ports if port.nodePort not in said}
        ports = tuple(
            port if port.nodePort or port.name not in known else put(port, nodePort=known[port.name])
            for port in new.ports
        )
        new = put(new, ports=ports)
    if wants_health(old) and wants_health(new) and not new.healthCheckNodePort:
        new = put(new, healthCheckNodePort=old.healthCheckNodePort)
    return new


def wiped(new: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    """A change of type takes away what the new type has no use for, unless it was changed as well."""
    if old.type != "ExternalName" and new.type == "ExternalName":
        if new.clusterIP == old.clusterIP and new.clusterIPs == old.clusterIPs:
            new = put(new, clusterIP="", clusterIPs=())
        if new.ipFamilies == old.ipFamilies:
            new = put(new, ipFamilies=())
        if new.ipFamilyPolicy == old.ipFamilyPolicy:
            new = put(new, ipFamilyPolicy=None)
    known = [port.nodePort for port in old.ports]
    if wants_ports(old) and not wants_ports(new) and all(p.nodePort in (0, *known) for p in new.ports):
        new = put(new, ports=tuple(put(port, nodePort=0) for port in new.ports))
    if wants_health(old) and not wants_health(new) and new.healthCheckNodePort == old.healthCheckNodePort:
        new = put(new, healthCheckNodePort=0)
    if old.type == "LoadBalancer" and new.type != "LoadBalancer":
        if new.allocateLoadBalancerNodePorts == old.allocateLoadBalancerNodePorts:
            new = put(new, allocateLoadBalancerNodePorts=None)
        if new.loadBalancerClass == old.loadBalancerClass:
            new = put(new, loadBalancerClass=None)
    if _outside(old) and not _outside(new) and new.externalTrafficPolicy == old.externalTrafficPolicy:
        new = put(new, externalTrafficPolicy="")
    return new


def _outside(spec: ServiceSpec) -> bool:
    return wants_ports(spec) or (spec.type == "ClusterIP" and bool(spec.externalIPs))
