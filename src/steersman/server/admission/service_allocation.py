"""ServiceAllocation: allocates the cluster IPs and node ports of Services.

The allocations of a Service are the fields of its stored object; a pool is an index of them. So no allocation is
ever leaked, and one that an update or a deletion releases is free as soon as that is written.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from itertools import chain
from random import Random
from typing import Any, ClassVar

import msgspec

from steersman.api.generated.core_v1 import Service, ServicePort, ServiceSpec
from steersman.api.ip_addresses import Network, parse_ip
from steersman.server import status_errors
from steersman.server.admission.plugin import Listers, Plugin
from steersman.server.admission.service_ip_addresses import (
    IPADDRESSES,
    SERVICECIDRS,
    cluster_ips,
    is_taken,
    service_networks,
)
from steersman.server.admission.service_ip_families import NONE, cluster_families, set_families
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import AdmissionAttributes
from steersman.server.storage.store import object_key

CIDR = "10.0.0.0/16"
FIRST_PORT, LAST_PORT = 30000, 32767


def allocations_of(service: Service) -> tuple[tuple[str, Any], ...]:
    """The cluster IPs and node ports of a stored Service, each with its pool."""
    spec = service.spec
    ips = [("ips", ip) for ip in cluster_ips(service)]
    ports = [("ports", port.nodePort) for port in spec.ports if port.nodePort]
    if spec.healthCheckNodePort:
        ports.append(("ports", spec.healthCheckNodePort))
    return (*ips, *ports)


class ServiceAllocation(Plugin, frozen=True):
    """Allocates cluster IPs and node ports, and sets the IP families."""

    cidr: str = CIDR
    """One range, or one of each IP family with a comma between them: where there is no ServiceCIDR."""
    first_port: int = FIRST_PORT
    last_port: int = LAST_PORT

    name: ClassVar[str] = "Services"
    late: ClassVar[bool] = True
    mutates: ClassVar[tuple[str, ...]] = ("services",)
    reads: ClassVar[tuple[str, ...]] = (SERVICECIDRS,)

    def mutate(self, request: AdmissionAttributes, listers: Listers) -> Any:
        new: Service = request.obj
        old: Service | None = request.old
        spec = new.spec
        if old is not None:
            spec = drop_type_dependent(keep_allocated(spec, old.spec), old.spec)
        if spec.type == "ExternalName":
            spec = put(spec, internalTrafficPolicy=None)
        allocator = _ServiceAllocator(self, listers, request)
        spec = allocator.families(spec, old.spec if old is not None else None)
        if spec.type != "ExternalName" and spec.clusterIP != NONE:
            if old is None or not old.spec.clusterIPs:
                spec = allocator.addresses(spec)
            else:
                spec = allocator.second_address(spec, old.spec)
        spec = allocator.ports(spec, old.spec if old is not None else None)
        return put(new, spec=spec)


# -- allocation -------------------------------------------------------------------------------


class _ServiceAllocator(msgspec.Struct, frozen=True):
    """Allocates for one request."""

    pools: ServiceAllocation
    listers: Listers
    request: AdmissionAttributes

    def families(self, spec: ServiceSpec, old: ServiceSpec | None) -> ServiceSpec:
        """The spec with its IP families and family policy."""
        spec, errors = set_families(spec, old, cluster_families(self.listers, self.pools.cidr))
        if errors:
            raise self._invalid(errors)
        return spec

    def addresses(self, spec: ServiceSpec) -> ServiceSpec:
        """The spec with a cluster IP of each of its families: the requested one, or a free one."""
        ips = [
            self._address(spec, family, spec.clusterIPs[i] if i < len(spec.clusterIPs) else "")
            for i, family in enumerate(spec.ipFamilies)
        ]
        # Validation refuses two fields that do not match.
        return put(spec, clusterIP=spec.clusterIP if spec.clusterIPs else ips[0], clusterIPs=tuple(ips))

    def second_address(self, spec: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
        """The spec with a second cluster IP, where it has become dual-stack."""
        if len(old.ipFamilies) != 1 or len(spec.ipFamilies) != 2:
            return spec
        requested_ip = spec.clusterIPs[1] if len(spec.clusterIPs) > 1 else ""
        return put(
            spec, clusterIPs=(spec.clusterIPs[0], self._address(spec, spec.ipFamilies[1], requested_ip))
        )

    def _address(self, spec: ServiceSpec, family: str, requested_ip: str) -> str:
        networks = service_networks(self.listers, self.pools.cidr, family)
        if not requested_ip:
            found = (ip for network in networks if (ip := self._free_ip(network)))
            if not (ip := next(found, "")):
                raise status_errors.internal(
                    f'failed to allocate a serviceIP for Service "{self._name}": range is full'
                )
            return ip
        reason = self._ip_error(requested_ip, networks)
        if reason:
            detail = f"failed to allocate IP {requested_ip}: {reason}"
            raise self._invalid(
                [status_errors.field_invalid("spec.clusterIPs", list(spec.clusterIPs), detail)]
            )
        return requested_ip

    def _free_ip(self, network: Network) -> str:
        """A free address of a range; none if it is full."""
        # The last address of an IPv4 range is its broadcast address.
        size = network.num_addresses - (2 if network.version == 4 else 1)
        if size < 1:
            return ""
        first = network.network_address + 1

        def free(offset: int) -> bool:
            ip = str(first + offset)
            return not self.listers.allocated_to("ips", ip) and self.listers.get(IPADDRESSES, "", ip) is None

        offset = _free_offset(self.listers.random, _lower_band_size(size, 256, 16, 16), size, free)
        return str(first + offset) if offset is not None else ""

    def _ip_error(self, requested_ip: str, networks: tuple[Network, ...]) -> str:
        address = parse_ip(requested_ip)
        if address is None:
            return ""  # validation refuses a malformed address
        if not any(_is_usable(address, network) for network in networks):
            return "the provided network does not match the current range"
        ip = str(address)
        taken = self._is_others("ips", ip) or is_taken(self.listers, ip, self.request.namespace, self._name)
        return "provided IP is already allocated" if taken else ""

    def ports(self, spec: ServiceSpec, old: ServiceSpec | None) -> ServiceSpec:
        """The spec with its node ports, requested or free ones, and its health check node port."""
        new: dict[int, None] = {}
        if has_node_ports(spec):
            by_port: dict[int, int] = {}
            always = spec.type == "NodePort" or spec.allocateLoadBalancerNodePorts is not False
            ports: list[ServicePort] = []
            for i, port in enumerate(spec.ports):
                if not port.nodePort and not always:
                    ports.append(port)
                    continue
                # The same port over two protocols shares a node port.
                wanted = port.nodePort or by_port.get(port.port, 0)
                if not wanted and old is None:
                    wanted = next(
                        (p.nodePort for p in spec.ports[i:] if p.port == port.port and p.nodePort), 0
                    )
                if not wanted:
                    wanted = self._free_port(new)
                elif wanted not in new:
                    reason = self._port_error(wanted)
                    if reason:
                        raise self._invalid(
                            [status_errors.field_invalid(f"spec.ports[{i}].nodePort", wanted, reason)]
                        )
                new[wanted] = None
                by_port[port.port] = wanted
                ports.append(put(port, nodePort=wanted))
            spec = put(spec, ports=tuple(ports))
        if has_health_check_port(spec):
            wanted = spec.healthCheckNodePort
            if not wanted:
                spec = put(spec, healthCheckNodePort=self._free_port(new))
            else:
                reason = self._port_error(wanted) or (
                    "provided port is already allocated" if wanted in new else ""
                )
                if reason:
                    raise status_errors.internal(
                        f"failed to allocate requested HealthCheck NodePort {wanted}: {reason}"
                    )
        return spec

    def _port_error(self, port: int) -> str:
        pools = self.pools
        if not pools.first_port <= port <= pools.last_port:
            return (
                "provided port is not in the valid range. "
                f"The range of valid ports is {pools.first_port}-{pools.last_port}"
            )
        return "provided port is already allocated" if self._is_others("ports", port) else ""

    def _free_port(self, new: dict[int, None]) -> int:
        first, size = self.pools.first_port, self.pools.last_port - self.pools.first_port + 1

        def free(offset: int) -> bool:
            port = first + offset
            return port not in new and not self.listers.allocated_to("ports", port)

        offset = _free_offset(self.listers.random, _lower_band_size(size, 128, 16, 32), size, free)
        if offset is None:
            raise status_errors.internal("failed to allocate a nodePort: range is full")
        return first + offset

    def _is_others(self, pool: str, key: Any) -> bool:
        """Whether another Service has the address or port."""
        own = object_key(self.request.namespace, self._name)
        return self.listers.allocated_to(pool, key) not in ("", own if self.request.old is not None else "")

    @property
    def _name(self) -> str:
        return self.request.name or str(self.request.obj.metadata.name)

    def _invalid(self, errors: list[status_errors.FieldError]) -> Exception:
        return status_errors.invalid("", "Service", self._name, errors)


def _lower_band_size(size: int, most: int, least: int, step: int) -> int:
    """The size of the lower band of a range, which is left for explicitly requested values."""
    return 0 if size < least else min(max(least, size // step), most)


def _free_offset(random: Random, low: int, size: int, free: Callable[[int], bool]) -> int | None:
    """A free offset of a range: a random one in its upper band, else one in the lower."""
    for begin, end in ((low, size), (0, low)):
        if begin == end:
            continue
        start = random.randrange(begin, end)
        for offset in chain(range(start, end), range(begin, start)):
            if free(offset):
                return offset
    return None


def _is_usable(address: IPv4Address | IPv6Address, network: Network) -> bool:
    """Whether an address of a range may be a cluster IP."""
    if address not in network or address == network.network_address:
        return False
    return network.version == 6 or address != network.broadcast_address


# -- updates ----------------------------------------------------------------------------------


def has_node_ports(spec: ServiceSpec) -> bool:
    """Whether the Service type has node ports."""
    return spec.type in ("NodePort", "LoadBalancer")


def has_health_check_port(spec: ServiceSpec) -> bool:
    """Whether the Service has a health check node port."""
    return spec.type == "LoadBalancer" and spec.externalTrafficPolicy == "Local"


def keep_allocated(new: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    """The new spec with allocated fields it omits kept from the old one (upstream's ``patchAllocatedValues``)."""
    if old.type != "ExternalName" and new.type != "ExternalName":
        if not new.clusterIP:
            new = put(new, clusterIP=old.clusterIP)
        if not new.clusterIPs and new.clusterIP == old.clusterIP:
            new = put(new, clusterIPs=old.clusterIPs)
        elif new.clusterIP != old.clusterIP and new.clusterIPs == old.clusterIPs:
            new = put(new, clusterIPs=(new.clusterIP,))
    if has_node_ports(old) and has_node_ports(new):
        given = [port.nodePort for port in new.ports]
        known = {port.name: port.nodePort for port in old.ports if port.nodePort not in given}
        ports = tuple(
            port if port.nodePort or port.name not in known else put(port, nodePort=known[port.name])
            for port in new.ports
        )
        new = put(new, ports=ports)
    if has_health_check_port(old) and has_health_check_port(new) and not new.healthCheckNodePort:
        new = put(new, healthCheckNodePort=old.healthCheckNodePort)
    return new


def drop_type_dependent(new: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    """The new spec without fields its new type does not use (upstream's ``dropTypeDependentFields``)."""
    if old.type != "ExternalName" and new.type == "ExternalName":
        if new.clusterIP == old.clusterIP and new.clusterIPs == old.clusterIPs:
            new = put(new, clusterIP="", clusterIPs=())
        if new.ipFamilies == old.ipFamilies:
            new = put(new, ipFamilies=())
        if new.ipFamilyPolicy == old.ipFamilyPolicy:
            new = put(new, ipFamilyPolicy=None)
    known = [port.nodePort for port in old.ports]
    if has_node_ports(old) and not has_node_ports(new) and all(p.nodePort in (0, *known) for p in new.ports):
        new = put(new, ports=tuple(put(port, nodePort=0) for port in new.ports))
    if (
        has_health_check_port(old)
        and not has_health_check_port(new)
        and new.healthCheckNodePort == old.healthCheckNodePort
    ):
        new = put(new, healthCheckNodePort=0)
    if old.type == "LoadBalancer" and new.type != "LoadBalancer":
        if new.allocateLoadBalancerNodePorts == old.allocateLoadBalancerNodePorts:
            new = put(new, allocateLoadBalancerNodePorts=None)
        if new.loadBalancerClass == old.loadBalancerClass:
            new = put(new, loadBalancerClass=None)
    if (
        _has_external_traffic(old)
        and not _has_external_traffic(new)
        and new.externalTrafficPolicy == old.externalTrafficPolicy
    ):
        new = put(new, externalTrafficPolicy="")
    return new


def _has_external_traffic(spec: ServiceSpec) -> bool:
    return has_node_ports(spec) or (spec.type == "ClusterIP" and bool(spec.externalIPs))
