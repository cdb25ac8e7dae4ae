"""Desired endpoints: the endpoints and ports of a Service's pods, and the slices that are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import msgspec

from steersman.api.ip_addresses import Family, canonical_ip
from steersman.api.kinds import ObjectMeta, ObjectReference, Pod
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.services import (
    SERVICES,
    Endpoint,
    EndpointConditions,
    EndpointPort,
    EndpointSlice,
    Service,
)
from steersman.api.label_syntax import MAX_SUBDOMAIN
from steersman.api.meta import owner_reference
from steersman.api.pods import is_ready
from steersman.controllers.shared.endpoint_slices import (
    HEADLESS,
    MANAGED_BY,
    SERVICE_NAME,
    Identity,
    PortsKey,
    identity,
    order_ports,
    ports_key,
)
from steersman.controllers.shared.service_pods import find_port, should_be_in_endpoints, should_set_hostname

CONTROLLER_NAME = "endpointslice-controller.k8s.io"
"""The value of the managed-by label of this controller's slices."""
ZONE = "topology.kubernetes.io/zone"
RESERVED_LABELS = (SERVICE_NAME, MANAGED_BY, HEADLESS)


# -- endpoints --------------------------------------------------------------------------------


def address_types(service: Service) -> tuple[Family, ...]:
    """The IP families of a Service's slices.

    A server that does not know ``ipFamilies`` leaves them out. Then the cluster IP tells; a headless Service is taken
    for dual-stack, so that no slice is deleted.
    """
    families = dict.fromkeys(family for family in service.spec.ipFamilies if family in ("IPv4", "IPv6"))
    if families:
        return tuple("IPv4" if family == "IPv4" else "IPv6" for family in families)
    cluster_ip = service.spec.clusterIP
    if cluster_ip and cluster_ip != "None":
        parsed = canonical_ip(cluster_ip)
        return (parsed[0] if parsed is not None else "IPv4",)
    return ("IPv4", "IPv6")


def endpoint_of(pod: Pod, node: Node | None, service: Service, family: Family) -> Endpoint:
    """The endpoint of a pod, with the pod's addresses of one IP family."""
    meta = pod.metadata
    serving = is_ready(pod)
    terminating = meta.deletionTimestamp is not None
    addresses = [canonical_ip(one.ip) for one in pod.status.podIPs]
    # A terminating pod is never ready, unless addresses are published whatever their state.
    ready = service.spec.publishNotReadyAddresses or (serving and not terminating)
    return Endpoint(
        addresses=tuple([found[1] for found in addresses if found is not None and found[0] == family]),
        conditions=_conditions(ready, serving, terminating),
        targetRef=ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid),
        nodeName=pod.spec.nodeName or None,
        zone=(node.metadata.labels.get(ZONE) or None) if node is not None else None,
        hostname=pod.spec.hostname if should_set_hostname(pod, service) else None,
    )


@cache
def _conditions(ready: bool, serving: bool, terminating: bool) -> EndpointConditions:
    """The conditions of an endpoint: one object for all endpoints in the same state."""
    return EndpointConditions(ready=ready, serving=serving, terminating=terminating)


def endpoint_ports(service: Service, pod: Pod) -> tuple[EndpointPort, ...]:
    """The ports of a Service on a pod. A named port that the pod lacks is left out."""
    ports: list[EndpointPort] = []
    for port in service.spec.ports:
        number = find_port(pod, port)
        if number is not None:
            ports.append(
                EndpointPort(
                    name=port.name, port=number, protocol=port.protocol, appProtocol=port.appProtocol
                )
            )
    return tuple(ports)


class PortGroup(msgspec.Struct):
    """The endpoints that have the same ports."""

    ports: tuple[EndpointPort, ...]
    endpoints: dict[Identity, Endpoint]


class DesiredEndpoints(msgspec.Struct, frozen=True):
    """The endpoints of a Service in one IP family."""

    groups: Mapping[PortsKey, PortGroup]
    unplaced: tuple[Pod, ...]
    """Pods that are left out because their node does not exist."""


def desired_endpoints(
    service: Service, pods: Iterable[Pod], nodes: Mapping[str, Node], family: Family
) -> DesiredEndpoints:
    """Groups the endpoints of a Service's pods by their ports."""
    groups: dict[PortsKey, PortGroup] = {}
    unplaced: list[Pod] = []
    # Only named target ports differ between pods.
    by_name = any(isinstance(port.targetPort, str) for port in service.spec.ports)
    by_numbers: dict[tuple[int | None, ...], PortGroup] = {}
    group: PortGroup | None = None
    for pod in pods:
        if not should_be_in_endpoints(pod, include_terminating=True):
            continue
        if group is None or by_name:
            numbers = tuple([find_port(pod, port) for port in service.spec.ports])
            group = by_numbers.get(numbers)
            if group is None:
                ports = order_ports(endpoint_ports(service, pod))
                group = groups.setdefault(ports_key(ports), PortGroup(ports, {}))
                by_numbers[numbers] = group
        node = nodes.get(pod.spec.nodeName)
        if node is None and not service.spec.publishNotReadyAddresses:
            unplaced.append(pod)
            continue
        endpoint = endpoint_of(pod, node, service, family)
        if endpoint.addresses:
            group.endpoints[identity(endpoint)] = endpoint
    return DesiredEndpoints(groups, tuple(unplaced))


# -- slices -----------------------------------------------------------------------------------


def slice_labels(current: Mapping[str, str], service: Service) -> tuple[dict[str, str], bool]:
    """The labels of a Service's slice, and whether those that mirror the Service differ from the current ones.

    A difference in reserved labels alone is no reason to update a slice.
    """
    mirrored = {key: value for key, value in service.metadata.labels.items() if key not in RESERVED_LABELS}
    changed = mirrored != {key: value for key, value in current.items() if key not in RESERVED_LABELS}
    labels = dict(mirrored)
    if service.spec.clusterIP in ("", "None"):
        labels[HEADLESS] = ""
    labels[SERVICE_NAME] = service.metadata.name
    labels[MANAGED_BY] = CONTROLLER_NAME
    return labels, changed


def new_slice(service: Service, family: Family, ports: tuple[EndpointPort, ...] = ()) -> EndpointSlice:
    """An empty slice for a Service. With no ports either, it is a placeholder."""
    name = service.metadata.name
    return EndpointSlice(
        metadata=ObjectMeta(
            generateName=f"{name}-" if len(name) < MAX_SUBDOMAIN else name,
            namespace=service.metadata.namespace,
            labels=slice_labels({}, service)[0],
            ownerReferences=(owner_reference(service, SERVICES),),
        ),
        addressType=family,
        endpoints=(),
        ports=ports,
    )


def is_managed(slice: EndpointSlice) -> bool:
    """Whether a slice is this controller's."""
    return slice.metadata.labels.get(MANAGED_BY) == CONTROLLER_NAME


def owned_by(slice: EndpointSlice, service: Service) -> bool:
    """Whether a Service owns a slice: this Service, not an earlier one of the same name."""
    return any(
        owner.uid == service.metadata.uid and owner.kind == "Service" and owner.apiVersion == "v1"
        for owner in slice.metadata.ownerReferences
    )


def is_placeholder(slice: EndpointSlice, placeholder: EndpointSlice) -> bool:
    """Whether a slice equals the placeholder in all that matters. A label with an empty value equals none."""
    labels, wanted = slice.metadata.labels, placeholder.metadata.labels
    return (
        not slice.endpoints
        and not slice.ports
        and slice.addressType == placeholder.addressType
        and slice.metadata.namespace == placeholder.metadata.namespace
        and all(labels.get(key, "") == wanted.get(key, "") for key in (*labels, *wanted))
    )
