"""What a real server makes for itself: the priority classes of the system, and its own service."""

from __future__ import annotations

from ipaddress import ip_network

from steersman.api.errors import AlreadyExists
from steersman.api.generated.core_v1 import Service, ServicePort, ServiceSpec
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.generated.scheduling_v1 import PriorityClass
from steersman.server.admission.service_allocation import CIDR
from steersman.server.rest import verbs
from steersman.server.server import Server

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
    """The service by which pods reach the server: the first address of the range."""
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


def bootstrap(server: Server, *, cidr: str = CIDR, port: int = 6443) -> None:
    """Make what is missing of all that. The namespace ``default`` must be there."""
    classes = server.registry.find("scheduling.k8s.io", "v1", "priorityclasses")
    for each in CLASSES:
        try:
            verbs.create(server, classes, "", each)
        except AlreadyExists:
            continue
    services = server.registry.find("", "v1", "services")
    if server.table(services).get("default/kubernetes") is None:
        verbs.create(server, services, "default", kubernetes_service(cidr, port))
