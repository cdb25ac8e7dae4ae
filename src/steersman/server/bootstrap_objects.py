"""Bootstrap objects: PriorityClasses, the Service ``kubernetes``, roles and bindings that a server creates for itself."""

from __future__ import annotations

from ipaddress import ip_network

from steersman.api.errors import AlreadyExists
from steersman.api.generated.core_v1 import Service, ServicePort, ServiceSpec
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.generated.scheduling_v1 import PriorityClass
from steersman.api.scheme import kind_of
from steersman.server.admission.service_allocation import CIDR
from steersman.server.rest.create import create_as_server
from steersman.server.server import Server
from steersman.server.storage.store import object_key

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
    """The Service by which pods reach the server: the first address of the range."""
    first = str(next(ip_network(cidr).hosts()))
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


def create_bootstrap_objects(server: Server, *, cidr: str = CIDR, port: int = 6443) -> None:
    """Creates those that are missing. The namespace ``default`` must exist."""
    classes = server.registry.find("scheduling.k8s.io", "v1", "priorityclasses")
    for each in CLASSES:
        try:
            create_as_server(server, classes, "", each)
        except AlreadyExists:
            continue
    services = server.registry.find("", "v1", "services")
    if server.table(services).get("default/kubernetes") is None:
        create_as_server(server, services, "default", kubernetes_service(cidr, port))


def install_roles(server: Server) -> None:
    """Creates what is missing of the roles and bindings that a fresh server has."""
    # Imported when needed: worlds without RBAC have no use for the rules.
    from steersman.server.auth.bootstrap_policy import reconcile
    from steersman.server.auth.rbac import GROUP, Policy

    def find(obj: Policy) -> Policy | None:
        resource = server.registry.find(GROUP, "v1", kind_of(obj).plural)
        found: Policy | None = server.table(resource).get(
            object_key(obj.metadata.namespace, obj.metadata.name)
        )
        return found

    for operation, obj in reconcile(find):
        resource = server.registry.find(GROUP, "v1", kind_of(obj).plural)
        namespace, name = obj.metadata.namespace, obj.metadata.name
        if operation == "update":
            server.rewrite(resource, namespace, name, lambda old, new=obj: new)  # type: ignore[misc]
            continue
        if operation == "recreate":
            server.remove(resource, object_key(namespace, name))
        create_as_server(server, resource, namespace, obj)
