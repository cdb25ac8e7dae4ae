"""Addresses of simulated pods: one of each CIDR of their node, each used by one pod at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from types import MappingProxyType
from typing import Any

from steersman.api.ip_addresses import Network, parse_cidr, parse_ip

CLUSTER_CIDR = "10.128.0.0/10"
"""The addresses of pods, 8,192 node CIDRs of 510 addresses each: a node has room for 500 pods."""
NODE_MASK_SIZE = 23
FLAGS: Mapping[str, Any] = MappingProxyType(
    {
        "allocate-node-cidrs": True,
        "cluster-cidr": CLUSTER_CIDR,
        "node-cidr-mask-size-ipv4": NODE_MASK_SIZE,
        "service-cluster-ip-range": "10.0.0.0/16",
    }
)
"""The flags of kube-controller-manager for nodes that get their CIDRs from it."""
_WITHOUT_CIDR = (10 << 24) + (244 << 16)
"""Pods of a node that has no CIDR, or a full one, get addresses after 10.244.0.0, which are in no node CIDR."""
_FIRST = 2
"""The first address of a CIDR that a pod gets: the one before it is the gateway's."""


def _written(number: int, version: int = 4) -> str:
    if version == 6:
        return str(IPv6Address(number))
    return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


class _Range:
    """The addresses of a node CIDR that pods get."""

    __slots__ = ("base", "last", "offset", "version")

    def __init__(self, network: Network) -> None:
        self.version = network.version
        self.base = int(network.network_address)
        self.last = network.num_addresses - 2
        """The offset of the last address; the one after it is the broadcast address."""
        self.offset = _FIRST
        """Where the search for a free address begins: addresses are used again as late as possible."""


class PodAddresses:
    """The addresses of the pods of all simulated nodes."""

    def __init__(self) -> None:
        self._pods: dict[str, str] = {}
        """The uid of the pod by its address."""
        self._addresses: dict[str, tuple[str, ...]] = {}
        """The addresses of a pod by its uid: one of each IP family of its node."""
        self._ranges: dict[str, _Range | None] = {}
        """By CIDR; None for a malformed one."""
        self._without_cidr = 0

    def allocate(self, uid: str, cidrs: Sequence[str]) -> tuple[str, ...]:
        """The addresses of a pod: those it has, or a free one of each of its node's CIDRs."""
        addresses = self._addresses.get(uid)
        if addresses is None:
            first = self._of_cidr(cidrs[0]) if cidrs else ""
            if not first:
                self._without_cidr += 1
                first = _written(_WITHOUT_CIDR + self._without_cidr)
            addresses = (first, *filter(None, map(self._of_cidr, cidrs[1:])))
            self._use(uid, addresses)
        return addresses

    def reserve(self, uid: str, addresses: Sequence[str]) -> None:
        """Marks the addresses of a pod that had some before as used."""
        found = parse_ip(addresses[0])
        if isinstance(found, IPv4Address) and 0 < int(found) - _WITHOUT_CIDR < 12 << 16:
            self._without_cidr = max(self._without_cidr, int(found) - _WITHOUT_CIDR)
        self._use(uid, tuple(addresses))

    def release(self, uid: str) -> None:
        """Marks the addresses of a pod as free, once its containers have ended."""
        for address in self._addresses.pop(uid, ()):
            if self._pods.get(address) == uid:
                del self._pods[address]

    def _use(self, uid: str, addresses: tuple[str, ...]) -> None:
        self._addresses[uid] = addresses
        for address in addresses:
            self._pods[address] = uid

    def _of_cidr(self, cidr: str) -> str:
        """A free address of a CIDR; empty where there is none."""
        if cidr not in self._ranges:
            network = parse_cidr(cidr)
            self._ranges[cidr] = None if network is None else _Range(network)
        found = self._ranges[cidr]
        if found is None:
            return ""
        for _ in range(min(found.last - 1, len(self._pods) + 1)):
            offset = found.offset if found.offset <= found.last else _FIRST
            found.offset = offset + 1
            address = _written(found.base + offset, found.version)
            if address not in self._pods:
                return address
        return ""
