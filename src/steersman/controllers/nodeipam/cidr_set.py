"""The node CIDRs that a cluster CIDR is divided into, and which of them are used."""

from __future__ import annotations

from steersman.api.ip_addresses import Address, Network

MAX_IPV6_DIFFERENCE = 16
"""Bits by which the mask of an IPv6 node CIDR may be longer than that of the cluster CIDR."""


class NoCIDRsLeft(Exception):
    """All node CIDRs are used."""

    def __init__(self) -> None:
        super().__init__(
            "CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range"
        )


class OutOfRange(ValueError):
    """A CIDR is no part of the cluster CIDR."""


class CidrSet:
    """A cluster CIDR, divided into node CIDRs by index.

    The used indexes are the bits of one integer, so that a range of any size takes one operation.
    """

    def __init__(self, cluster: Network, mask_size: int) -> None:
        """``mask_size``: the mask of a node CIDR in bits. Raises ValueError."""
        if cluster.version == 6 and mask_size - cluster.prefixlen > MAX_IPV6_DIFFERENCE:
            raise ValueError("New CIDR set failed; the node CIDR size is too big")
        if not cluster.prefixlen <= mask_size <= cluster.max_prefixlen:
            raise ValueError(f"a cluster CIDR {cluster} has no node CIDRs of /{mask_size}")
        self.cluster = cluster
        self.mask_size = mask_size
        self.max_cidrs = 1 << (mask_size - cluster.prefixlen)
        self.used = 0
        self.allocated = 0
        """The number of used indexes."""
        self.next_candidate = 0
        """Where the search for a free index begins: CIDRs of deleted nodes are used again as late as possible."""
        self._shift = cluster.max_prefixlen - mask_size

    def block(self, index: int) -> Network:
        """The node CIDR of an index."""
        base = int(self.cluster.network_address) | index << self._shift
        return type(self.cluster)((base, self.mask_size))

    def index(self, address: Address) -> int:
        """The index of the node CIDR that has an address. Raises `OutOfRange`."""
        if address not in self.cluster:
            raise OutOfRange(f"CIDR: {address}/{self.mask_size} is out of the range of CIDR allocator")
        return int(address) - int(self.cluster.network_address) >> self._shift

    def indexes(self, cidr: Network) -> range:
        """The indexes of the node CIDRs that a CIDR overlaps. Raises `OutOfRange`."""
        if not self.cluster.overlaps(cidr):
            raise OutOfRange(f"cidr {cidr} is out the range of cluster cidr {self.cluster}")
        if cidr.prefixlen <= self.cluster.prefixlen:
            return range(self.max_cidrs)
        return range(self.index(cidr.network_address), self.index(cidr.broadcast_address) + 1)

    def is_used(self, indexes: range) -> bool:
        """Whether one of the indexes is used."""
        return bool(self.used & _mask(indexes))

    def occupy(self, indexes: range) -> int:
        """Marks indexes as used; returns how many were free."""
        new = _mask(indexes) & ~self.used
        self.used |= new
        self.allocated += new.bit_count()
        return new.bit_count()

    def release(self, indexes: range, *keep: range) -> int:
        """Marks indexes as free, but for those to keep; returns how many were used."""
        old = _mask(indexes) & self.used
        for kept in keep:
            old &= ~_mask(kept)
        self.used ^= old
        self.allocated -= old.bit_count()
        return old.bit_count()

    def allocate_next(self) -> tuple[int, int]:
        """Uses the next free index; returns it, and how many used ones were skipped. Raises `NoCIDRsLeft`."""
        if self.allocated == self.max_cidrs:
            raise NoCIDRsLeft
        first = self.next_candidate
        index = first + _lowest_zero(self.used >> first)
        if index >= self.max_cidrs:
            index = _lowest_zero(self.used)
        self.occupy(range(index, index + 1))
        self.next_candidate = (index + 1) % self.max_cidrs
        return index, (index - first) % self.max_cidrs


def _mask(indexes: range) -> int:
    return ((1 << len(indexes)) - 1) << indexes.start


def _lowest_zero(bits: int) -> int:
    return (~bits & (bits + 1)).bit_length() - 1
