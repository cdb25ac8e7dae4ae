"""The provider ``local``: load balancer addresses from a pool, for bare metal and for the embedded control plane.

It assigns addresses and nothing else: that the network delivers their traffic to the nodes (by ARP or NDP on one subnet, or by BGP) is
the task of another program. The addresses that are in use are those in the status of Services, so it needs no storage of its own.
Routes are kept as a table in memory, and each node counts as an instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any, TypeAlias

import msgspec

from steersman.api.cloud import CloudError, ClusterObjects, Route
from steersman.api.ip_addresses import parse_cidr, parse_ip
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.services import LoadBalancerIngress, LoadBalancerStatus, Service

Address: TypeAlias = IPv4Address | IPv6Address
DEFAULT_POOLS = ("198.18.0.0/16", "2001:db8:ffff::/112")
"""Ranges for benchmarks and documentation, which no network uses: for simulated clusters."""
FAMILIES = {4: "IPv4", 6: "IPv6"}
POOLS = "pools"
"""The field of the configuration with the ranges."""


class Pool(msgspec.Struct, frozen=True):
    """A range of addresses, both ends included."""

    first: Address
    last: Address

    def __contains__(self, address: object) -> bool:
        return (
            isinstance(address, IPv4Address | IPv6Address)
            and address.version == self.first.version
            and int(self.first) <= int(address) <= int(self.last)
        )

    def __iter__(self) -> Iterator[Address]:
        make = type(self.first)
        return (make(number) for number in range(int(self.first), int(self.last) + 1))


def parse_pool(text: str) -> Pool:
    """Parse a CIDR or two addresses with a hyphen between them. Raises ValueError.

    The first and last address of an IPv4 CIDR, and the first of an IPv6 one, are reserved by the network and left out.
    """
    begin, hyphen, end = (part.strip() for part in text.partition("-"))
    if hyphen:
        first, last = parse_ip(begin), parse_ip(end)
        if first is None or last is None or first.version != last.version or int(first) > int(last):
            raise ValueError(f"{text!r} is not a range such as 192.0.2.10-192.0.2.20")
        return Pool(first, last)
    network = parse_cidr(text.strip())
    if network is None:
        raise ValueError(f"{text!r} is neither a CIDR nor a range such as 192.0.2.10-192.0.2.20")
    low, high = int(network[0]), int(network[-1])
    if high - low > 1:
        low += 1
        high -= network.version == 4
    make = type(network[0])
    return Pool(make(low), make(high))


class LocalLoadBalancers:
    """Assigns each Service the lowest free address of each of its IP families."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = pools
        self._cluster: ClusterObjects | None = None
        self._assigned: dict[str, tuple[Address, ...]] = {}
        """The addresses of Services, by uid."""

    def initialize(self, cluster: ClusterObjects) -> None:
        self._cluster = cluster

    async def get(self, cluster: str, service: Service) -> LoadBalancerStatus | None:
        addresses = self._assigned.get(service.metadata.uid) or self._written(service)
        return _status(addresses) if addresses else None

    async def ensure(self, cluster: str, service: Service, nodes: Sequence[Node]) -> LoadBalancerStatus:
        uid = service.metadata.uid
        addresses = tuple(self._choose(service))
        self._assigned[uid] = addresses
        return _status(addresses)

    async def update(self, cluster: str, service: Service, nodes: Sequence[Node]) -> None:
        """Addresses do not depend on the nodes."""

    async def ensure_deleted(self, cluster: str, service: Service) -> None:
        self._assigned.pop(service.metadata.uid, None)

    def _choose(self, service: Service) -> Iterator[Address]:
        used = self._used_by_others(service)
        current = self._assigned.get(service.metadata.uid) or self._written(service)
        for number, family in enumerate(service.spec.ipFamilies or ("IPv4",)):
            if service.spec.loadBalancerIP and number == 0:
                yield self._requested(service.spec.loadBalancerIP, used)
                continue
            pools = [pool for pool in self._pools if FAMILIES[pool.first.version] == family]
            if not pools and number and service.spec.ipFamilyPolicy != "RequireDualStack":
                continue
            yield _lowest_free(pools, family, current, used)

    def _requested(self, text: str, used: dict[Address, str]) -> Address:
        address = parse_ip(text)
        if address is None or not any(address in pool for pool in self._pools):
            raise CloudError(f"loadBalancerIP {text} is in no pool")
        if address in used:
            raise CloudError(f"loadBalancerIP {text} is in use by Service {used[address]}")
        return address

    def _used_by_others(self, service: Service) -> dict[Address, str]:
        """The addresses of other Services, with their keys: those assigned, and those in a status."""
        names: dict[str, str] = {}
        used: dict[Address, str] = {}
        for other in self._cluster.services() if self._cluster is not None else ():
            uid = other.metadata.uid
            if uid != service.metadata.uid:
                names[uid] = str(other.key)
                used.update(dict.fromkeys(self._written(other), names[uid]))
        for uid in list(self._assigned):
            if uid in names:
                used.update(dict.fromkeys(self._assigned[uid], names[uid]))
            elif uid != service.metadata.uid:
                # The Service is gone, without its load balancer having been deleted.
                del self._assigned[uid]
        return used

    def _written(self, service: Service) -> tuple[Address, ...]:
        """The addresses of the pools in the status of a Service."""
        found = (parse_ip(ingress.ip) for ingress in service.status.loadBalancer.ingress)
        return tuple(
            address
            for address in found
            if address is not None and any(address in pool for pool in self._pools)
        )


def _lowest_free(
    pools: Iterable[Pool], family: str, current: Iterable[Address], used: dict[Address, str]
) -> Address:
    pools = list(pools)
    for address in current:
        if FAMILIES[address.version] == family and address not in used and any(address in p for p in pools):
            return address
    for pool in pools:
        for address in pool:
            if address not in used:
                return address
    raise CloudError(f"no free {family} address in the pools" if pools else f"no pool has {family} addresses")


def _status(addresses: Iterable[Address]) -> LoadBalancerStatus:
    return LoadBalancerStatus(
        ingress=tuple(LoadBalancerIngress(ip=str(address), ipMode="VIP") for address in addresses)
    )


class LocalRoutes:
    """Keeps routes as a table."""

    def __init__(self) -> None:
        self.table: dict[str, Route] = {}

    async def list(self, cluster: str) -> Sequence[Route]:
        return tuple(self.table.values())

    async def create(self, cluster: str, name_hint: str, route: Route) -> None:
        name = f"{cluster}-{name_hint}-{route.destination_cidr}"
        self.table[name] = msgspec.structs.replace(route, name=name, enable_node_addresses=True)

    async def delete(self, cluster: str, route: Route) -> None:
        self.table.pop(route.name, None)


class LocalInstances:
    """Counts each node as an instance that exists and runs, until told otherwise."""

    def __init__(self) -> None:
        self.terminated: set[str] = set()
        self.stopped: set[str] = set()
        """Names of nodes; a test adds some."""

    async def exists(self, node: Node) -> bool:
        return node.metadata.name not in self.terminated

    async def is_shut_down(self, node: Node) -> bool:
        return node.metadata.name in self.stopped


class LocalProvider:
    """The provider ``local``; a `CloudProvider`."""

    name = "local"

    def __init__(
        self, pools: Iterable[str] = DEFAULT_POOLS, *, routes: bool = True, instances: bool = True
    ) -> None:
        """``pools`` are CIDRs and ranges. Raises ValueError.

        Routes and instances are looked at periodically, which a simulated cluster does without.
        """
        self.load_balancers = LocalLoadBalancers([parse_pool(text) for text in pools])
        self.routes = LocalRoutes() if routes else None
        self.instances = LocalInstances() if instances else None

    def initialize(self, cluster: ClusterObjects) -> None:
        self.load_balancers.initialize(cluster)


def from_config(config: bytes | None) -> LocalProvider:
    """The provider of a configuration file in YAML: ``pools: [192.0.2.10-192.0.2.99]``. Raises ValueError."""
    if config is None:
        raise ValueError("it needs a file with `pools: [192.0.2.10-192.0.2.99]` (--cloud-config)")
    import yaml

    try:
        given: Any = yaml.safe_load(config)
    except yaml.YAMLError as error:
        raise ValueError(f"its configuration is no YAML: {' '.join(str(error).split())}") from None
    fields = given if isinstance(given, dict) else {}
    pools = fields.get(POOLS)
    if not isinstance(pools, list) or not pools or not all(isinstance(text, str) for text in pools):
        raise ValueError("its configuration must have a list `pools` of CIDRs and ranges")
    if unknown := [str(field) for field in fields if field != POOLS]:
        raise ValueError(f"its configuration has an unknown field {unknown[0]!r}")
    return LocalProvider(pools)
