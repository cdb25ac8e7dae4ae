"""The network: services, what stands behind them, and the ways to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from steersman.server.tables import cells
from steersman.server.tables.age import since
from steersman.server.tables.printer import NAME, Cell, Printer, Printers, columns, wide

if TYPE_CHECKING:
    from steersman.api.generated.core_v1 import Endpoints, Service, ServicePort
    from steersman.api.generated.discovery_v1 import EndpointSlice
    from steersman.api.generated.networking_v1 import (
        Ingress,
        IngressClass,
        IngressRule,
        IPAddress,
        NetworkPolicy,
        ServiceCIDR,
    )


def service(service: Service, now: datetime) -> tuple[Cell, ...]:
    spec = service.spec
    return (
        service.metadata.name,
        spec.type,
        spec.clusterIPs[0] if spec.clusterIPs else "<none>",
        _external(service),
        ",".join(_port(port) for port in spec.ports) or "<none>",
        since(service.metadata.creationTimestamp, now),
        cells.labels(spec.selector),
    )


def _port(port: ServicePort) -> str:
    opened = f":{port.nodePort}" if port.nodePort > 0 else ""
    return f"{port.port}{opened}/{port.protocol}"


def _external(service: Service) -> str:
    """How a service is reached from outside."""
    spec = service.spec
    match spec.type:
        case "ClusterIP" | "NodePort":
            return ",".join(spec.externalIPs) or "<none>"
        case "LoadBalancer":
            balancer = _addresses(service.status.loadBalancer.ingress)
            return ",".join((*([balancer] if balancer else ()), *spec.externalIPs)) or "<pending>"
        case "ExternalName":
            return spec.externalName
    return "<unknown>"


class _Address(Protocol):
    @property
    def ip(self) -> str: ...
    @property
    def hostname(self) -> str: ...


def _addresses(points: Iterable[_Address]) -> str:
    """Where a load balancer is reached: each address once, sorted."""
    return ",".join(sorted({each.ip or each.hostname for each in points} - {""}))


def endpoints(endpoints: Endpoints, now: datetime) -> tuple[Cell, ...]:
    return (
        endpoints.metadata.name,
        cells.some(_reachable(endpoints)) if endpoints.subsets else "<none>",
        since(endpoints.metadata.creationTimestamp, now),
    )


def _reachable(endpoints: Endpoints) -> list[str]:
    found: list[str] = []
    for subset in endpoints.subsets:
        if not subset.ports:
            # Headless services may have no ports.
            found += [address.ip for address in subset.addresses]
        for port in subset.ports:
            found += [_join(address.ip, port.port) for address in subset.addresses]
    return found


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def endpoint_slice(piece: EndpointSlice, now: datetime) -> tuple[Cell, ...]:
    ports = []
    for port in piece.ports or ():
        name = "*" if port.name is None else port.name
        ports.append(name if port.port is None else str(port.port))
    addresses = [address for endpoint in piece.endpoints or () for address in endpoint.addresses]
    return (
        piece.metadata.name,
        piece.addressType,
        cells.some(ports) or "<unset>",
        cells.some(addresses) or "<unset>",
        since(piece.metadata.creationTimestamp, now),
    )


def ingress(ingress: Ingress, now: datetime) -> tuple[Cell, ...]:
    spec = ingress.spec
    return (
        ingress.metadata.name,
        "<none>" if spec.ingressClassName is None else spec.ingressClassName,
        _hosts(spec.rules),
        _addresses(ingress.status.loadBalancer.ingress),
        "80, 443" if spec.tls else "80",
        since(ingress.metadata.creationTimestamp, now),
    )


def _hosts(rules: Sequence[IngressRule]) -> str:
    hosts = [rule.host for rule in rules if rule.host]
    if not hosts:
        return "*"
    text = ",".join(hosts[:3])
    if len(hosts) < 3:
        return text
    # Once three hosts are named, each rule that follows counts as one more, be it for a host or for all.
    third = [place for place, rule in enumerate(rules) if rule.host][2]
    return f"{text} + {len(rules) - 3} more..." if third < len(rules) - 1 else text


def ingress_class(found: IngressClass, now: datetime) -> tuple[Cell, ...]:
    default = found.metadata.annotations.get("ingressclass.kubernetes.io/is-default-class") == "true"
    parameters, text = found.spec.parameters, "<none>"
    if parameters is not None:
        group = "" if parameters.apiGroup is None else f".{parameters.apiGroup}"
        text = f"{parameters.kind}{group}/{parameters.name}"
    return (
        f"{found.metadata.name} (default)" if default else found.metadata.name,
        found.spec.controller,
        text,
        since(found.metadata.creationTimestamp, now),
    )


def network_policy(policy: NetworkPolicy, now: datetime) -> tuple[Cell, ...]:
    return (
        policy.metadata.name,
        cells.selector(policy.spec.podSelector),
        since(policy.metadata.creationTimestamp, now),
    )


def service_cidr(cidr: ServiceCIDR, now: datetime) -> tuple[Cell, ...]:
    return cidr.metadata.name, ",".join(cidr.spec.cidrs), since(cidr.metadata.creationTimestamp, now)


def ip_address(address: IPAddress, now: datetime) -> tuple[Cell, ...]:
    parent, text = address.spec.parentRef, "<none>"
    if parent is not None:
        resource = f"{parent.resource}.{parent.group}" if parent.group else parent.resource
        inside = f"/{parent.namespace}" if parent.namespace else ""
        text = f"{resource.lower()}{inside}/{parent.name}"
    return address.metadata.name, text, since(address.metadata.creationTimestamp, now)


PRINTERS: Printers = {
    "services": Printer(
        columns(NAME, "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide("Selector")), service
    ),
    "endpoints": Printer(columns(NAME, "Endpoints", "Age"), endpoints),
    "endpointslices.discovery.k8s.io": Printer(
        columns(NAME, "AddressType", "Ports", "Endpoints", "Age"), endpoint_slice
    ),
    "ingresses.networking.k8s.io": Printer(
        columns(NAME, "Class", "Hosts", "Address", "Ports", "Age"), ingress
    ),
    "ingressclasses.networking.k8s.io": Printer(
        columns(NAME, "Controller", "Parameters", "Age"), ingress_class
    ),
    "networkpolicies.networking.k8s.io": Printer(columns(NAME, "Pod-Selector", "Age"), network_policy),
    "servicecidrs.networking.k8s.io": Printer(columns(NAME, "CIDRs", "Age"), service_cidr),
    # The third cell has no column upstream either.
    "ipaddresses.networking.k8s.io": Printer(columns(NAME, "ParentRef"), ip_address),
}
