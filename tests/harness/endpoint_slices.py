"""Services, pods, nodes and EndpointSlices for the rows of the controllers of endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from steersman.api.ip_addresses import Family
from steersman.api.kinds import Condition, Container, ObjectMeta, Pod, PodIP, PodSpec, PodStatus
from steersman.api.kinds.nodes import Node, NodeCondition, NodeStatus
from steersman.api.kinds.services import (
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointSlice,
    ForNode,
    ForZone,
    Service,
    ServicePort,
    ServiceSpec,
)
from steersman.controllers.endpointslice.endpoints import endpoint_of, endpoint_ports, new_slice

NAMESPACE = "test"
CREATED = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 1, tzinfo=UTC)


def a_service(name: str = "foo", *, labels: Mapping[str, str] | None = None, **spec: Any) -> Service:
    """A Service that selects the pods of `a_pod`, with one port, in IPv4."""
    meta = ObjectMeta(
        name=name,
        namespace=NAMESPACE,
        uid=f"{NAMESPACE}-{name}",
        labels=labels or {},
        annotations=spec.pop("annotations", {}),
        creationTimestamp=CREATED,
        deletionTimestamp=spec.pop("deleted", None),
    )
    usual: dict[str, Any] = {
        "ports": (ServicePort(name=name, targetPort=80, protocol="TCP"),),
        "selector": {"foo": "bar"},
        "ipFamilies": ("IPv4",),
    }
    return Service(metadata=meta, spec=ServiceSpec(**{**usual, **spec}))


def a_pod(
    number: int,
    *,
    ready: bool = True,
    terminating: bool = False,
    ips: Iterable[str] = (),
    phase: str = "",
    containers: tuple[Container, ...] = (),
    **spec: Any,
) -> Pod:
    """A pod on node-1, with the address 1.2.3.(4 + number); beyond 250, in the next network."""
    at = spec.pop("at", None)
    addresses = tuple(ips) or (f"1.2.{3 + (4 + number) // 256}.{(4 + number) % 256}",)
    return Pod(
        metadata=ObjectMeta(
            name=f"pod{number}",
            namespace=NAMESPACE,
            uid=f"uid-{number}",
            labels={"foo": "bar"},
            deletionTimestamp=LATER if terminating else None,
        ),
        spec=PodSpec(nodeName=spec.pop("nodeName", "node-1"), containers=containers, **spec),
        status=PodStatus(
            phase=phase,
            podIP=addresses[0],
            podIPs=tuple(PodIP(ip=ip) for ip in addresses),
            conditions=(Condition(type="Ready", status="True" if ready else "False", lastTransitionTime=at),),
        ),
    )


def pods(count: int) -> list[Pod]:
    """Pods of which every third is not ready."""
    return [a_pod(number, ready=number % 3 != 0) for number in range(count)]


def a_node(name: str = "node-1", zone: str = "", cpu: str = "", *, ready: bool = True, **labels: str) -> Node:
    """A node, in a zone where one is given."""
    zoned = {"topology.kubernetes.io/zone": zone, **labels} if zone else labels
    return Node(
        metadata=ObjectMeta(name=name, labels=zoned),
        status=NodeStatus(
            allocatable={"cpu": cpu} if cpu else {},
            conditions=(NodeCondition(type="Ready", status="True" if ready else "False"),),
        ),
    )


def a_slice(
    service: Service,
    number: int = 1,
    of: Iterable[Pod] = (),
    *,
    family: Family = "IPv4",
    node: Node | None = None,
    labels: Mapping[str, str] | None = None,
    **meta: Any,
) -> EndpointSlice:
    """The slice of a Service that has the endpoints of these pods."""
    members = tuple(of)
    ports = endpoint_ports(service, members[0] if members else a_pod(0))
    slice = new_slice(service, family, ports)
    name = f"{service.metadata.name}-{number}"
    usual: dict[str, Any] = {"name": name, "uid": name, "resourceVersion": "1", "generation": 1}
    if labels is not None:
        usual["labels"] = labels
    return EndpointSlice(
        metadata=replace(slice.metadata, **{**usual, **meta}),
        addressType=family,
        endpoints=tuple(endpoint_of(pod, node, service, family) for pod in members),
        ports=ports,
    )


def placeholder(service: Service, number: int = 1, family: Family = "IPv4") -> EndpointSlice:
    """The slice of a Service without endpoints."""
    slice = new_slice(service, family)
    name = f"{service.metadata.name}-{number}"
    return replace(slice, metadata=replace(slice.metadata, name=name, uid=name))


def an_endpoint(
    address: str = "10.0.0.1",
    zone: str | None = None,
    node: str | None = None,
    *,
    ready: bool | None = True,
    hint: str | None = None,
    node_hint: str | None = None,
) -> Endpoint:
    """An endpoint for the rows of hints."""
    zones = (ForZone(name=hint),) if hint is not None else ()
    nodes = (ForNode(name=node_hint),) if node_hint is not None else ()
    return Endpoint(
        addresses=(address,),
        zone=zone,
        nodeName=node,
        conditions=EndpointConditions(ready=ready),
        hints=EndpointHints(forZones=zones, forNodes=nodes) if zones or nodes else None,
    )


def slice_of(*endpoints: Endpoint, name: str = "") -> EndpointSlice:
    """A slice with these endpoints, and nothing else."""
    return EndpointSlice(metadata=ObjectMeta(name=name), addressType="IPv4", endpoints=endpoints, ports=())
