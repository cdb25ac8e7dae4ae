"""Bootstrap objects that a server creates for itself: PriorityClasses, the ServiceCIDR, the Service and the endpoints
``kubernetes``, roles and bindings."""

from __future__ import annotations

import itertools
from datetime import datetime
from functools import partial
from ipaddress import ip_network
from typing import Any

from msgspec.structs import replace

from steersman.api.generated import discovery_v1
from steersman.api.generated.core_v1 import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Service,
    ServicePort,
    ServiceSpec,
)
from steersman.api.generated.discovery_v1 import Endpoint, EndpointConditions, EndpointSlice
from steersman.api.generated.meta_v1 import Condition, ObjectMeta
from steersman.api.generated.networking_v1 import ServiceCIDR, ServiceCIDRSpec, ServiceCIDRStatus
from steersman.api.generated.rbac_v1 import ClusterRole
from steersman.api.generated.scheduling_v1 import PriorityClass
from steersman.api.scheme import kind_of
from steersman.server.admission.ip_address_repair import repair_ip_addresses
from steersman.server.admission.service_allocation import CIDR
from steersman.server.admission.service_ip_addresses import sync_ip_addresses
from steersman.server.rest.create import create_as_server
from steersman.server.server import Server
from steersman.server.storage.store import Store, object_key
from steersman.server.storage.watch import Selection

ADVERTISED_ADDRESS = "172.31.255.254"
"""The address of the server in the network of simulated nodes: the endpoint of the Service ``kubernetes``."""
CRITICAL = 2_000_000_000

CLASSES = (
    PriorityClass(
        metadata=ObjectMeta(name="system-node-critical"),
        value=CRITICAL + 1000,
        description="Used for system critical pods that must not be moved from their current node.",
    ),
    PriorityClass(
        metadata=ObjectMeta(name="system-cluster-critical"),
        value=CRITICAL,
        description=(
            "Used for system critical pods that must run in the cluster, "
            "but can be moved to another node if necessary."
        ),
    ),
)


def kubernetes_service(cidr: str = CIDR, port: int = 6443) -> Service:
    """The Service by which pods reach the server: the first address of the first range."""
    first = str(next(ip_network(cidr.partition(",")[0]).hosts()))
    return Service(
        metadata=ObjectMeta(
            name="kubernetes",
            namespace="default",
            labels={"component": "apiserver", "provider": "kubernetes"},
        ),
        spec=ServiceSpec(
            type="ClusterIP",
            clusterIP=first,
            clusterIPs=(first,),
            ports=(ServicePort(name="https", port=443, protocol="TCP", targetPort=port),),
            sessionAffinity="None",
        ),
    )


def default_service_cidr(cidr: str, now: datetime) -> ServiceCIDR:
    """The ServiceCIDR of the server's own range, or two ranges with a comma between them."""
    ready = Condition(
        type="Ready",
        status="True",
        reason="",
        message="Kubernetes default Service CIDR is ready",
        lastTransitionTime=now,
    )
    return ServiceCIDR(
        metadata=ObjectMeta(name="kubernetes"),
        spec=ServiceCIDRSpec(cidrs=tuple(cidr.split(","))),
        status=ServiceCIDRStatus(conditions=(ready,)),
    )


def kubernetes_endpoints(address: str, port: int) -> tuple[Endpoints, EndpointSlice]:
    """The endpoints of the Service ``kubernetes``: the server itself."""
    subset = EndpointSubset(
        addresses=(EndpointAddress(ip=address),),
        ports=(EndpointPort(name="https", port=port, protocol="TCP"),),
    )
    endpoints = Endpoints(
        metadata=ObjectMeta(name="kubernetes", labels={"endpointslice.kubernetes.io/skip-mirror": "true"}),
        subsets=(subset,),
    )
    sliced = EndpointSlice(
        metadata=ObjectMeta(name="kubernetes", labels={"kubernetes.io/service-name": "kubernetes"}),
        addressType="IPv4",
        endpoints=(Endpoint(addresses=(address,), conditions=EndpointConditions(ready=True)),),
        ports=(discovery_v1.EndpointPort(name="https", port=port, protocol="TCP"),),
    )
    return endpoints, sliced


def create_bootstrap_objects(
    server: Server, *, cidr: str = CIDR, port: int = 6443, address: str = ADVERTISED_ADDRESS
) -> None:
    """Creates those that are missing. The namespace ``default`` must exist."""
    for each in CLASSES:
        _create_missing(server, "scheduling.k8s.io", "priorityclasses", "", each)
    default = default_service_cidr(cidr, server.now())
    if _create_missing(server, "networking.k8s.io", "servicecidrs", "", default):
        # A new object has no status.
        resource = server.registry.find("networking.k8s.io", "v1", "servicecidrs")
        server.rewrite(
            resource, "", "kubernetes", lambda old: replace(old, status=default.status), subresource="status"
        )
    _create_missing(server, "", "services", "default", kubernetes_service(cidr, port))
    for service in server.table(server.registry.find("", "v1", "services")).select(Selection()):
        # Services that were stored by a server without IPAddresses have none.
        sync_ip_addresses(server, service, ())
    repair_ip_addresses(server)
    endpoints, sliced = kubernetes_endpoints(address, port)
    _create_missing(server, "", "endpoints", "default", endpoints)
    _create_missing(server, "discovery.k8s.io", "endpointslices", "default", sliced)


def _create_missing(server: Server, group: str, plural: str, namespace: str, obj: Any) -> bool:
    """Creates an object unless there is one of its name; whether it did."""
    resource = server.registry.find(group, "v1", plural)
    if server.table(resource).get(object_key(namespace, obj.metadata.name)) is not None:
        return False
    create_as_server(server, resource, namespace, obj)
    return True


def service_cidr(store: Store) -> str:
    """The ranges of cluster IPs of the cluster, with a comma between them; empty where they are not known."""
    found = store.table("servicecidrs.networking.k8s.io").get("kubernetes")
    return "" if found is None else ",".join(found.spec.cidrs)


def create_aggregated_role(server: Server, role: ClusterRole) -> None:
    """Creates a ClusterRole, unless it exists, and adds its rules to the ClusterRoles that select it.

    differs: upstream leaves the latter to the clusterrole-aggregation controller, which finds nothing left to do here.
    """
    from steersman.server.auth.bootstrap_policy import aggregate_roles

    if not _create_missing(server, "rbac.authorization.k8s.io", "clusterroles", "", role):
        return
    resource = server.registry.find("rbac.authorization.k8s.io", "v1", "clusterroles")
    roles = tuple(server.table(resource).select(Selection()))
    for old, new in zip(roles, aggregate_roles(roles), strict=True):
        if new.rules != old.rules:
            server.rewrite(resource, "", old.metadata.name, partial(replace, rules=new.rules))


def install_roles(server: Server) -> None:
    """Creates what is missing of the roles and bindings that a fresh server has."""
    # Imported when needed: worlds without RBAC have no use for the rules.
    from steersman.server.auth.bootstrap_policy import gated_policy, reconcile
    from steersman.server.auth.rbac import GROUP, Policy

    def find(obj: Policy) -> Policy | None:
        resource = server.registry.find(GROUP, "v1", kind_of(obj).plural)
        found: Policy | None = server.table(resource).get(
            object_key(obj.metadata.namespace, obj.metadata.name)
        )
        return found

    steps = itertools.chain(reconcile(find), reconcile(find, gated_policy(server.registry.gates)))
    for operation, obj in steps:
        resource = server.registry.find(GROUP, "v1", kind_of(obj).plural)
        namespace, name = obj.metadata.namespace, obj.metadata.name
        if operation == "update":
            server.rewrite(resource, namespace, name, lambda old, new=obj: new)  # type: ignore[misc]
            continue
        if operation == "recreate":
            server.remove(resource, object_key(namespace, name))
        create_as_server(server, resource, namespace, obj)
