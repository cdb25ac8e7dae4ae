"""Sets of node CIDRs: rows of upstream's tables, and that no index is given away twice."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as some

from steersman.controllers.nodeipam.cidr_set import CidrSet, NoCIDRsLeft, OutOfRange


def cidr_set(cluster: str, size: int) -> CidrSet:
    return CidrSet(ip_network(cluster, strict=False), size)


def occupied(cidrs: CidrSet) -> list[int]:
    return [index for index in range(cidrs.max_cidrs) if cidrs.used >> index & 1]


@pytest.mark.parametrize("cluster", ["127.123.234.0/30", "beef:1234::/30"])
def test_a_set_of_one_is_used_up_and_released(cluster: str) -> None:
    cidrs = cidr_set(cluster, 30)
    for _ in range(2):
        index, _ = cidrs.allocate_next()
        assert str(cidrs.block(index)) == cluster
        with pytest.raises(NoCIDRsLeft):
            cidrs.allocate_next()
        cidrs.release(cidrs.indexes(cidrs.block(index)))


@pytest.mark.parametrize(
    ("cluster", "size", "index", "block"),
    [
        ("127.123.3.0/16", 24, 0, "127.123.0.0/24"),
        ("127.123.0.0/16", 24, 15, "127.123.15.0/24"),
        ("192.168.5.219/28", 32, 5, "192.168.5.213/32"),
        ("2001:0db8:1234:3::/48", 64, 0, "2001:db8:1234::/64"),
        ("2001:0db8:1234::/48", 64, 15, "2001:db8:1234:f::/64"),
        ("2001:0db8:85a3::8a2e:0370:7334/50", 63, 6425, "2001:db8:85a3:3232::/63"),
        ("2001:0db8::/32", 48, 0, "2001:db8::/48"),
        ("2001:0db8::/32", 48, 15, "2001:db8:f::/48"),
        ("2001:0db8:85a3::8a2e:0370:7334/32", 48, 6425, "2001:db8:1919::/48"),
        ("2001:0db8:1234:ff00::/56", 72, 0, "2001:db8:1234:ff00::/72"),
        ("2001:0db8:1234:ff00::/56", 72, 15, "2001:db8:1234:ff00:f00::/72"),
        ("2001:0db8:1234:ff00::0370:7334/56", 72, 6425, "2001:db8:1234:ff19:1900::/72"),
        ("2001:0db8:1234:0:1234::/80", 96, 0, "2001:db8:1234:0:1234::/96"),
        ("2001:0db8:1234:0:1234::/80", 96, 15, "2001:db8:1234:0:1234:f::/96"),
        ("2001:0db8:1234:ff00::0370:7334/80", 96, 6425, "2001:db8:1234:ff00:0:1919::/96"),
    ],
)
def test_each_index_has_its_block(cluster: str, size: int, index: int, block: str) -> None:
    cidrs = cidr_set(cluster, size)
    assert str(cidrs.block(index)) == block
    assert cidrs.indexes(cidrs.block(index)) == range(index, index + 1)


@pytest.mark.parametrize("cluster", ["127.123.234.0/16", "beef:1234::/16"])
def test_released_blocks_are_allocated_again_in_the_same_order(cluster: str) -> None:
    cidrs = cidr_set(cluster, 24)
    first = [cidrs.allocate_next()[0] for _ in range(256)]
    with pytest.raises(NoCIDRsLeft):
        cidrs.allocate_next()
    cidrs.release(range(256))
    assert [cidrs.allocate_next()[0] for _ in range(256)] == first


@pytest.mark.parametrize("cluster", ["127.123.234.0/16", "beef:1234::/16"])
def test_occupied_blocks_are_not_allocated(cluster: str) -> None:
    cidrs = cidr_set(cluster, 24)
    first = [cidrs.allocate_next()[0] for _ in range(256)]
    cidrs.release(range(256))
    assert cidrs.occupy(range(128, 256)) == 128
    assert cidrs.occupy(range(128, 129)) == 0
    assert [cidrs.allocate_next()[0] for _ in range(128)] == first[:128]
    with pytest.raises(NoCIDRsLeft):
        cidrs.allocate_next()


def test_what_is_occupied_or_released_twice_counts_once() -> None:
    cidrs = cidr_set("10.42.0.0/16", 24)
    for block, operation, allocated in (
        ("10.42.5.0/24", "occupy", 1),
        ("10.42.9.0/24", "occupy", 2),
        ("10.42.8.0/22", "occupy", 5),
        ("10.42.9.0/24", "occupy", 5),
        ("10.42.9.0/24", "release", 4),
        ("10.42.9.0/24", "release", 4),
        ("10.42.4.0/22", "release", 3),
    ):
        indexes = cidrs.indexes(ip_network(block))
        if operation == "occupy":
            cidrs.occupy(indexes)
        else:
            cidrs.release(indexes)
        assert cidrs.allocated == allocated
    for _ in range(256 - 3):
        cidrs.allocate_next()
    with pytest.raises(NoCIDRsLeft):
        cidrs.allocate_next()


@pytest.mark.parametrize(
    ("cluster", "size", "address", "index"),
    [
        ("127.0.0.0/8", 16, "127.0.0.0", 0),
        ("be00::/8", 16, "be00::", 0),
        ("127.0.0.0/8", 16, "127.123.0.0", 123),
        ("be00::/8", 16, "beef::", 0xEF),
        ("127.0.0.0/8", 16, "127.168.0.0", 168),
        ("be00::/8", 16, "be68::", 0x68),
        ("127.0.0.0/8", 16, "127.224.0.0", 224),
        ("be00::/8", 16, "be24::", 0x24),
        ("192.168.0.0/16", 24, "192.168.12.0", 12),
        ("beef::/16", 24, "beef:1200::", 0x12),
        ("192.168.0.0/16", 24, "192.168.151.0", 151),
        ("beef::/16", 24, "beef:9700::", 0x97),
        ("192.168.0.0/16", 24, "127.168.224.0", None),
        ("beef::/16", 24, "2001:db00::", None),
        ("192.168.0.0/16", 24, "beef::", None),
    ],
)
def test_an_address_has_the_index_of_its_block(
    cluster: str, size: int, address: str, index: int | None
) -> None:
    cidrs = cidr_set(cluster, size)
    if index is None:
        with pytest.raises(OutOfRange, match="is out of the range of CIDR allocator"):
            cidrs.index(ip_address(address))
    else:
        assert cidrs.index(ip_address(address)) == index


@pytest.mark.parametrize(
    ("cluster", "size", "part", "first", "last"),
    [
        ("127.0.0.0/8", 16, "127.0.0.0/8", 0, 255),
        ("2001:beef:1200::/40", 48, "2001:beef:1200::/40", 0, 255),
        ("127.0.0.0/8", 16, "127.0.0.0/2", 0, 255),
        ("2001:beef:1200::/40", 48, "2001:beef:1234::/34", 0, 255),
        ("127.0.0.0/8", 16, "127.0.0.0/16", 0, 0),
        ("2001:beef:1200::/40", 48, "2001:beef:1200::/48", 0, 0),
        ("127.0.0.0/8", 32, "127.0.0.0/16", 0, 65535),
        ("2001:beef:1200::/48", 64, "2001:beef:1200::/48", 0, 65535),
        ("127.0.0.0/7", 16, "127.0.0.0/15", 256, 257),
        ("2001:beef:7f00::/39", 48, "2001:beef:7f00::/47", 256, 257),
        ("127.0.0.0/7", 15, "127.0.0.0/15", 128, 128),
        ("2001:beef:7f00::/39", 47, "2001:beef:7f00::/47", 128, 128),
        ("127.0.0.0/7", 18, "127.0.0.0/15", 1024, 1031),
        ("2001:beef:7f00::/39", 50, "2001:beef:7f00::/47", 1024, 1031),
        ("10.0.0.0/8", 16, "10.7.3.0/24", 7, 7),
    ],
)
def test_a_range_occupies_all_blocks_that_it_overlaps(
    cluster: str, size: int, part: str, first: int, last: int
) -> None:
    cidrs = cidr_set(cluster, size)
    indexes = cidrs.indexes(ip_network(part, strict=False))
    assert indexes == range(first, last + 1)
    cidrs.occupy(indexes)
    assert cidrs.used == ((1 << last + 1) - 1) ^ ((1 << first) - 1)


def test_a_range_elsewhere_is_refused() -> None:
    with pytest.raises(
        OutOfRange, match=r"^cidr 172\.10\.0\.0/24 is out the range of cluster cidr 10\.10\.0\.0/16$"
    ):
        cidr_set("10.10.0.0/16", 24).indexes(ip_network("172.10.0.0/24"))


@pytest.mark.parametrize(
    ("cluster", "size", "blocks"),
    [
        ("127.0.0.0/8", 32, ("127.0.0.0/32", "127.0.0.1/32")),
        ("2001:beef:1234:369b::/60", 64, ("2001:beef:1234:3690::/64", "2001:beef:1234:3691::/64")),
    ],
)
def test_blocks_are_allocated_in_order(cluster: str, size: int, blocks: tuple[str, str]) -> None:
    cidrs = cidr_set(cluster, size)
    assert tuple(str(cidrs.block(cidrs.allocate_next()[0])) for _ in blocks) == blocks


@pytest.mark.parametrize(
    ("cluster", "size"), [("beef:1234::/32", 49), ("10.0.0.0/16", 8), ("10.0.0.0/16", 33)]
)
def test_impossible_sizes_are_refused(cluster: str, size: int) -> None:
    with pytest.raises(ValueError, match="node CIDR"):
        cidr_set(cluster, size)


def test_used_blocks_are_skipped_and_counted() -> None:
    cidrs = cidr_set("10.0.0.0/16", 24)
    cidrs.occupy(cidrs.indexes(ip_network("10.0.0.0/17")))
    assert cidrs.allocate_next() == (128, 128)
    assert cidrs.allocated == 129


@given(some.lists(some.tuples(some.sampled_from(["next", "occupy", "release"]), some.integers(0, 15))))
def test_no_used_index_is_allocated(operations: list[tuple[str, int]]) -> None:
    cidrs = cidr_set("10.0.0.0/28", 32)
    used: set[int] = set()
    for operation, index in operations:
        match operation:
            case "next" if len(used) < 16:
                first = cidrs.next_candidate
                free = next(each % 16 for each in range(first, first + 16) if each % 16 not in used)
                assert cidrs.allocate_next() == (free, (free - first) % 16)
                used.add(free)
            case "next":
                with pytest.raises(NoCIDRsLeft):
                    cidrs.allocate_next()
            case "occupy":
                assert cidrs.occupy(range(index, index + 1)) == (index not in used)
                used.add(index)
            case "release":
                assert cidrs.release(range(index, index + 1)) == (index in used)
                used.discard(index)
        assert occupied(cidrs) == sorted(used)
        assert cidrs.allocated == len(used)
