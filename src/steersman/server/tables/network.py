"""Printers of Services, Endpoints, Ingresses and NetworkPolicies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from steersman.server.tables import cells
from steersman.server.tables.cells import age
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


def service_cells(service: Service, now: datetime) -> tuple[Cell, ...]:
    spec = service.spec
    return (
        service.metadata.name,
        spec.type,
        spec.clusterIPs[0] if spec.clusterIPs else "<none>",
        _external_ip(service),
        ",".join(_format_port(port) for port in spec.ports) or "<none>",
        age(service.metadata.creationTimestamp, now),
        cells.format_labels(spec.selector),
    )


def _format_port(port: ServicePort) -> str:
    node_port = f":{port.nodePort}" if port.nodePort > 0 else ""
    return f"{port.port}{node_port}/{port.protocol}"


def _external_ip(service: Service) -> str:
    """The External-IP cell of a Service."""
    spec = service.spec
    match spec.type:
        case "ClusterIP" | "NodePort":
            return ",".join(spec.externalIPs) or "<none>"
        case "LoadBalancer":
            balancer = _ingress_addresses(service.status.loadBalancer.ingress)
            return ",".join((*([balancer] if balancer else ()), *spec.externalIPs)) or "<pending>"
        case "ExternalName":
            return spec.externalName
    return "<unknown>"


class _Address(Protocol):
    @property
    def ip(self) -> str: ...
    @property
    def hostname(self) -> str: ...


def _ingress_addresses(ingresses: Iterable[_Address]) -> str:
    """The addresses of a load balancer, without duplicates and sorted."""
    return ",".join(sorted({ingress.ip or ingress.hostname for ingress in ingresses} - {""}))


def endpoints_cells(endpoints: Endpoints, now: datetime) -> tuple[Cell, ...]:
    return (
        endpoints.metadata.name,
        cells.format_first(_endpoint_addresses(endpoints)) if endpoints.subsets else "<none>",
        age(endpoints.metadata.creationTimestamp, now),
    )


def _endpoint_addresses(endpoints: Endpoints) -> list[str]:
    addresses: list[str] = []
    for subset in endpoints.subsets:
        if not subset.ports:
            # Headless services may have no ports.
            addresses += [address.ip for address in subset.addresses]
        for port in subset.ports:
            addresses += [_join_host_port(address.ip, port.port) for address in subset.addresses]
    return addresses


def _join_host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def endpoint_slice_cells(endpoint_slice: EndpointSlice, now: datetime) -> tuple[Cell, ...]:
    ports = []
    for port in endpoint_slice.ports or ():
        name = "*" if port.name is None else port.name
        ports.append(name if port.port is None else str(port.port))
    addresses = [address for endpoint in endpoint_slice.endpoints or () for address in endpoint.addresses]
    return (
        endpoint_slice.metadata.name,
        endpoint_slice.addressType,
        cells.format_first(ports) or "<unset>",
        cells.format_first(addresses) or "<unset>",
        age(endpoint_slice.metadata.creationTimestamp, now),
    )


def ingress_cells(ingress: Ingress, now: datetime) -> tuple[Cell, ...]:
    spec = ingress.spec
    return (
        ingress.metadata.name,
        "<none>" if spec.ingressClassName is None else spec.ingressClassName,
        _format_hosts(spec.rules),
        _ingress_addresses(ingress.status.loadBalancer.ingress),
        "80, 443" if spec.tls else "80",
        age(ingress.metadata.creationTimestamp, now),
    )


def _format_hosts(rules: Sequence[IngressRule]) -> str:
    hosts = [rule.host for rule in rules if rule.host]
    if not hosts:
        return "*"
    text = ",".join(hosts[:3])
    if len(hosts) < 3:
        return text
    # After the third host every further rule counts, with a host or without.
    third = [index for index, rule in enumerate(rules) if rule.host][2]
    return f"{text} + {len(rules) - 3} more..." if third < len(rules) - 1 else text


def ingress_class_cells(ingress_class: IngressClass, now: datetime) -> tuple[Cell, ...]:
    default = ingress_class.metadata.annotations.get("ingressclass.kubernetes.io/is-default-class") == "true"
    parameters, text = ingress_class.spec.parameters, "<none>"
    if parameters is not None:
        group = "" if parameters.apiGroup is None else f".{parameters.apiGroup}"
        text = f"{parameters.kind}{group}/{parameters.name}"
    return (
        f"{ingress_class.metadata.name} (default)" if default else ingress_class.metadata.name,
        ingress_class.spec.controller,
        text,
        age(ingress_class.metadata.creationTimestamp, now),
    )


def network_policy_cells(policy: NetworkPolicy, now: datetime) -> tuple[Cell, ...]:
    return (
        policy.metadata.name,
        cells.format_selector(policy.spec.podSelector),
        age(policy.metadata.creationTimestamp, now),
    )


def service_cidr_cells(cidr: ServiceCIDR, now: datetime) -> tuple[Cell, ...]:
    return cidr.metadata.name, ",".join(cidr.spec.cidrs), age(cidr.metadata.creationTimestamp, now)


def ip_address_cells(address: IPAddress, now: datetime) -> tuple[Cell, ...]:
    parent, text = address.spec.parentRef, "<none>"
    if parent is not None:
        resource = f"{parent.resource}.{parent.group}" if parent.group else parent.resource
        namespace = f"/{parent.namespace}" if parent.namespace else ""
        text = f"{resource.lower()}{namespace}/{parent.name}"
    return address.metadata.name, text, age(address.metadata.creationTimestamp, now)


PRINTERS: Printers = {
    "services": Printer(
        columns(NAME, "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide("Selector")), service_cells
    ),
    "endpoints": Printer(columns(NAME, "Endpoints", "Age"), endpoints_cells),
    "endpointslices.discovery.k8s.io": Printer(
        columns(NAME, "AddressType", "Ports", "Endpoints", "Age"), endpoint_slice_cells
    ),
    "ingresses.networking.k8s.io": Printer(
        columns(NAME, "Class", "Hosts", "Address", "Ports", "Age"), ingress_cells
    ),
    "ingressclasses.networking.k8s.io": Printer(
        columns(NAME, "Controller", "Parameters", "Age"), ingress_class_cells
    ),
    "networkpolicies.networking.k8s.io": Printer(columns(NAME, "Pod-Selector", "Age"), network_policy_cells),
    "servicecidrs.networking.k8s.io": Printer(columns(NAME, "CIDRs", "Age"), service_cidr_cells),
    # Upstream's third cell has no column either.
    "ipaddresses.networking.k8s.io": Printer(columns(NAME, "ParentRef"), ip_address_cells),
}
