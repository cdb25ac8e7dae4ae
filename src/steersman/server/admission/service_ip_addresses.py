"""The ranges of cluster IPs, which are those of ServiceCIDRs, and the IPAddress object of each cluster IP.

As upstream's ipallocator, but for the order: an IPAddress is written right after its Service, in the same step, and goes with
it in the same way. So the server itself leaks none; what clients do to them is repaired (`ip_address_repair`).
"""

from __future__ import annotations

from functools import lru_cache

from steersman.api.conditions import is_condition_true
from steersman.api.generated.core_v1 import Service
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.generated.networking_v1 import IPAddress, IPAddressSpec, ParentReference
from steersman.api.ip_addresses import Network, canonical_ip, parse_cidr
from steersman.server.admission.plugin import Listers
from steersman.server.registry.object_meta import meta_for_create
from steersman.server.server import Server
from steersman.server.storage.store import object_key

GROUP = "networking.k8s.io"
SERVICECIDRS = f"servicecidrs.{GROUP}"
IPADDRESSES = f"ipaddresses.{GROUP}"
MANAGED_BY = "ipaddress.kubernetes.io/managed-by"
FAMILY = "ipaddress.kubernetes.io/ip-family"
ALLOCATOR = "ipallocator.k8s.io"


# -- ranges -----------------------------------------------------------------------------------


def service_networks(listers: Listers, default: str, family: str) -> tuple[Network, ...]:
    """The ranges of one IP family of the ServiceCIDRs that are ready; the default one where there is no ServiceCIDR at all."""
    cidrs = listers.list(SERVICECIDRS)
    if not cidrs:
        return tuple(network(text) for text in default.split(",") if family_of(text) == family)
    texts = (
        text
        for cidr in cidrs
        if cidr.metadata.deletionTimestamp is None and is_condition_true(cidr.status.conditions, "Ready")
        for text in cidr.spec.cidrs
        if family_of(text) == family
    )
    return tuple(map(network, dict.fromkeys(texts)))


@lru_cache(maxsize=64)
def network(cidr: str) -> Network:
    """A range of addresses. Raises ValueError for anything else."""
    found = parse_cidr(cidr)
    if found is None:
        raise ValueError(f"{cidr} is not a CIDR")
    return found


# -- objects ----------------------------------------------------------------------------------


def cluster_ips(service: Service | None) -> tuple[str, ...]:
    """The cluster IPs of a Service, in canonical form; none for a headless or missing one."""
    ips = service.spec.clusterIPs if service is not None else ()
    return tuple(parsed[1] for ip in ips if (parsed := canonical_ip(ip)) is not None)


def sync_ip_addresses(server: Server, service: Service, before: tuple[str, ...]) -> None:
    """Writes the IPAddresses of a Service that was written or removed, and removes those of its former cluster IPs."""
    namespace, name = service.metadata.namespace, service.metadata.name
    after = cluster_ips(server.store.table("services").get(object_key(namespace, name)))
    if after == before:
        return
    resource = server.registry.find(GROUP, "v1", "ipaddresses")
    table = server.store.table(resource.table)
    for ip in before:
        found = table.get(ip)
        if ip not in after and found is not None and is_parent(found, namespace, name):
            server.remove(resource, ip)
    for ip in after:
        if table.get(ip) is None:
            server.write(resource, ip, new_ip_address(server, ip, namespace, name))


def is_taken(listers: Listers, ip: str, namespace: str, name: str) -> bool:
    """Whether an IPAddress object says that an address belongs to another parent than this Service."""
    found: IPAddress | None = listers.get(IPADDRESSES, "", ip)
    return found is not None and not is_parent(found, namespace, name)


def is_parent(address: IPAddress, namespace: str, name: str) -> bool:
    """Whether an IPAddress says that it belongs to this Service."""
    parent = address.spec.parentRef
    return parent is not None and (parent.group, parent.resource, parent.namespace, parent.name) == (
        "",
        "services",
        namespace,
        name,
    )


def family_of(ip: str) -> str:
    """The IP family of an address or a CIDR."""
    return "IPv6" if ":" in ip else "IPv4"


def new_ip_address(server: Server, ip: str, namespace: str, name: str) -> IPAddress:
    """The IPAddress of a Service's cluster IP."""
    labels = {FAMILY: family_of(ip), MANAGED_BY: ALLOCATOR}
    return IPAddress(
        metadata=meta_for_create(
            ObjectMeta(labels=labels), name=ip, namespace="", uid=server.uid(), now=server.now(), generation=1
        ),
        spec=IPAddressSpec(
            parentRef=ParentReference(group="", resource="services", namespace=namespace, name=name)
        ),
    )
