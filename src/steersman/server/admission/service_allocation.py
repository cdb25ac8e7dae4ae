"""What services are given: addresses inside the cluster, and ports on its nodes.

A service has what its stored object says; a pool is the index of that. So nothing is ever leaked, and
what is released by an update or a deletion is free as soon as that is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, ip_address, ip_network
from itertools import chain
from random import Random
from typing import Any, ClassVar

from steersman.api.generated.core_v1 import Service, ServicePort, ServiceSpec
from steersman.server import status_errors
from steersman.server.admission.plugin import Lookups, Plugin
from steersman.server.admission.service_update import kept, wants_health, wants_ports, wiped
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import Attributes
from steersman.server.storage.store import object_key

CIDR = "10.0.0.0/16"
FIRST_PORT, LAST_PORT = 30000, 32767
NONE = "None"
"""The address of a headless service."""

SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"


def holds(service: Service) -> tuple[tuple[str, Any], ...]:
    """What of the pools a stored service has."""
    spec = service.spec
    ips = [("ips", ip) for ip in spec.clusterIPs if ip and ip != NONE]
    ports = [("ports", port.nodePort) for port in spec.ports if port.nodePort]
    if spec.healthCheckNodePort:
        ports.append(("ports", spec.healthCheckNodePort))
    return (*ips, *ports)


@dataclass(frozen=True, slots=True)
class Services(Plugin):
    """Allocates cluster addresses and node ports, and fills in the address families.

    differs: one range and one family, IPv4; upstream lets ServiceCIDR objects add ranges.
    """

    cidr: str = CIDR
    first_port: int = FIRST_PORT
    last_port: int = LAST_PORT

    name: ClassVar[str] = "Services"
    mutates: ClassVar[tuple[str, ...]] = ("services",)

    def mutate(self, request: Attributes, look: Lookups) -> Any:
        new: Service = request.obj
        old: Service | None = request.old
        spec = new.spec
        if old is not None:
            spec = wiped(kept(spec, old.spec), old.spec)
        if spec.type == "ExternalName":
            spec = put(spec, internalTrafficPolicy=None)
        desk = _Desk(self, look, request, spec)
        spec = desk.families(spec, old.spec if old is not None else None)
        if (
            spec.type != "ExternalName"
            and spec.clusterIP != NONE
            and (old is None or not old.spec.clusterIPs)
        ):
            spec = desk.address(spec)
        spec = desk.ports(spec, old.spec if old is not None else None)
        new = put(new, spec=spec)
        if old is not None and spec.type != "LoadBalancer" and new.status.loadBalancer.ingress:
            new = put(new, status=put(new.status, loadBalancer=type(new.status.loadBalancer)()))
        return new


# -- allocation -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Desk:
    """Where one request is given what it asks for."""

    pools: Services
    look: Lookups
    request: Attributes
    asked: ServiceSpec

    def families(self, spec: ServiceSpec, old: ServiceSpec | None) -> ServiceSpec:
        """Which address families the service has, and how it came to them."""
        if spec.type == "ExternalName":
            return spec
        if spec.clusterIP and not spec.clusterIPs:
            spec = put(spec, clusterIPs=(spec.clusterIP,))
        alone = spec.clusterIP == NONE and not spec.selector
        if spec.ipFamilyPolicy is None:
            policy = old.ipFamilyPolicy if old is not None else None
            spec = put(spec, ipFamilyPolicy=policy or (REQUIRE if alone else SINGLE))
        if not spec.ipFamilies:
            told = tuple(_family(ip) for ip in spec.clusterIPs if ip and ip != NONE)
            spec = put(spec, ipFamilies=told or ("IPv4",))
        if alone:
            if len(spec.ipFamilies) < 2 and spec.ipFamilyPolicy != SINGLE:
                other = "IPv6" if spec.ipFamilies[0] == "IPv4" else "IPv4"
                spec = put(spec, ipFamilies=(*spec.ipFamilies, other))
            return spec
        wrong = []
        if spec.ipFamilyPolicy == REQUIRE:
            wrong.append(
                status_errors.field_invalid(
                    "spec.ipFamilyPolicy", REQUIRE, "this cluster is not configured for dual-stack services"
                )
            )
        for i, family in enumerate(spec.ipFamilies):
            if family != "IPv4":
                wrong.append(
                    status_errors.field_invalid(
                        f"spec.ipFamilies[{i}]", family, "not configured on this cluster"
                    )
                )
        if wrong:
            raise self._invalid(wrong)
        return spec

    def address(self, spec: ServiceSpec) -> ServiceSpec:
        """The cluster address asked for, or any."""
        asked = spec.clusterIPs[0] if spec.clusterIPs else ""
        network = _network(self.pools.cidr)
        if not asked:
            low, size = _band(network.num_addresses - 2, 256, 16, 16), network.num_addresses - 2
            base = int(network.network_address) + 1

            def free(offset: int) -> bool:
                return not self.look.taken("ips", str(ip_address(base + offset)))

            offset = _draw(self.look.names, low, size, free)
            if offset is None:
                raise status_errors.internal(
                    f'failed to allocate a serviceIP for Service "{self._name}": range is full'
                )
            ip = str(ip_address(base + offset))
            return put(spec, clusterIP=ip, clusterIPs=(ip,))
        why = self._why_not(asked, network)
        if why:
            says = f"failed to allocate IP {asked}: {why}"
            raise self._invalid([status_errors.field_invalid("spec.clusterIPs", list(spec.clusterIPs), says)])
        return spec

    def _why_not(self, asked: str, network: IPv4Network) -> str:
        try:
            address = ip_address(asked)
        except ValueError:
            return ""  # no address at all is for validation to refuse
        if address not in network or address in (network.network_address, network.broadcast_address):
            return "the provided network does not match the current range"
        return "provided IP is already allocated" if self._foreign("ips", asked) else ""

    def ports(self, spec: ServiceSpec, old: ServiceSpec | None) -> ServiceSpec:
        """Node ports where the type has them, each as asked for or any; and one to ask for health."""
        new: dict[int, None] = {}
        if wants_ports(spec):
            by_port: dict[int, int] = {}
            always = spec.type == "NodePort" or spec.allocateLoadBalancerNodePorts is not False
            ports: list[ServicePort] = []
            for i, port in enumerate(spec.ports):
                if not port.nodePort and not always:
                    ports.append(port)
                    continue
                # The same port over two protocols is one port on the nodes, too.
                wanted = port.nodePort or by_port.get(port.port, 0)
                if not wanted and old is None:
                    wanted = next(
                        (p.nodePort for p in spec.ports[i:] if p.port == port.port and p.nodePort), 0
                    )
                if not wanted:
                    wanted = self._any_port(new)
                elif wanted not in new:
                    why = self._port_fault(wanted)
                    if why:
                        raise self._invalid(
                            [status_errors.field_invalid(f"spec.ports[{i}].nodePort", wanted, why)]
                        )
                new[wanted] = None
                by_port[port.port] = wanted
                ports.append(put(port, nodePort=wanted))
            spec = put(spec, ports=tuple(ports))
        if wants_health(spec):
            wanted = spec.healthCheckNodePort
            if not wanted:
                spec = put(spec, healthCheckNodePort=self._any_port(new))
            else:
                why = self._port_fault(wanted) or (
                    "provided port is already allocated" if wanted in new else ""
                )
                if why:
                    raise status_errors.internal(
                        f"failed to allocate requested HealthCheck NodePort {wanted}: {why}"
                    )
        return spec

    def _port_fault(self, port: int) -> str:
        pools = self.pools
        if not pools.first_port <= port <= pools.last_port:
            return (
                "provided port is not in the valid range. "
                f"The range of valid ports is {pools.first_port}-{pools.last_port}"
            )
        return "provided port is already allocated" if self._foreign("ports", port) else ""

    def _any_port(self, new: dict[int, None]) -> int:
        first, size = self.pools.first_port, self.pools.last_port - self.pools.first_port + 1

        def free(offset: int) -> bool:
            port = first + offset
            return port not in new and not self.look.taken("ports", port)

        offset = _draw(self.look.names, _band(size, 128, 16, 32), size, free)
        if offset is None:
            raise status_errors.internal("failed to allocate a nodePort: range is full")
        return first + offset

    def _foreign(self, pool: str, key: Any) -> bool:
        """Whether another service has it."""
        own = object_key(self.request.namespace, self._name)
        return self.look.taken(pool, key) not in ("", own if self.request.old is not None else "")

    @property
    def _name(self) -> str:
        return self.request.name or str(self.request.obj.metadata.name)

    def _invalid(self, wrong: list[status_errors.FieldError]) -> Exception:
        return status_errors.invalid("", "Service", self._name, wrong)


def _band(size: int, most: int, least: int, step: int) -> int:
    """How much at the beginning of a range is left to those who ask for something in particular."""
    return 0 if size < least else min(max(least, size // step), most)


def _draw(random: Random, low: int, size: int, free: Callable[[int], bool]) -> int | None:
    """A free place of a range: by chance in its upper part, and only then in the lower."""
    for begin, end in ((low, size), (0, low)):
        if begin == end:
            continue
        start = random.randrange(begin, end)
        for offset in chain(range(start, end), range(begin, start)):
            if free(offset):
                return offset
    return None


@lru_cache(maxsize=8)
def _network(cidr: str) -> IPv4Network:
    network = ip_network(cidr)
    if not isinstance(network, IPv4Network):
        raise ValueError(f"{cidr} is no range of IPv4 addresses")
    return network


def _family(ip: str) -> str:
    return "IPv6" if ":" in ip else "IPv4"
