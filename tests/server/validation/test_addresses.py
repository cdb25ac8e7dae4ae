"""Validation of IP addresses and CIDRs against upstream's rules."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.server.validation import addresses
from steersman.server.validation.field_errors import FieldErrors

ips = st.ip_addresses().filter(lambda ip: getattr(ip, "ipv4_mapped", None) is None)


def whys(errors: FieldErrors) -> list[str]:
    return [problem.message.partition('": ')[2] for problem in errors]


@given(ips)
def test_an_address_as_it_is_written_is_canonical(ip: IPv4Address | IPv6Address) -> None:
    errors = FieldErrors()
    assert addresses.validate_canonical_ip(errors, "at", str(ip))
    assert not errors
    assert addresses.is_ipv6(str(ip)) is (ip.version == 6)
    assert addresses.is_ipv4(str(ip)) is (ip.version == 4)


@given(ips, st.integers(0, 128))
def test_a_block_is_canonical_where_nothing_is_set_beyond_its_length(
    ip: IPv4Address | IPv6Address, length: int
) -> None:
    length = min(length, ip.max_prefixlen)
    block = ip_network(f"{ip}/{length}", strict=False)
    errors = FieldErrors()
    addresses.validate_cidr(errors, "at", f"{ip}/{length}")
    beyond = ip != block.network_address
    assert whys(errors) == (["must not have bits set beyond the prefix length"] if beyond else [])
    errors = FieldErrors()
    addresses.validate_canonical_cidr(errors, "at", str(block))
    # Part of a mapped address may be left when the rest of it is cut off.
    assert not errors or "IPv4-mapped" in str(errors)


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ("10.1.2.3", []),
        ("10.01.2.3", ["must not have leading 0s"]),
        ("0.0.0.0", []),
        ("::ffff:1.2.3.4", ["must not be an IPv4-mapped IPv6 address"]),
        ("fe80::1%eth0", ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
        ("1.2.3", ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
        ("", ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
    ],
)
def test_an_address_is_taken_only_in_ways_all_read_alike(written: str, wrong: list[str]) -> None:
    errors = FieldErrors()
    assert addresses.validate_ip(errors, "at", written) is (not wrong)
    assert whys(errors) == wrong


def test_an_address_that_was_there_before_is_taken_as_it_is() -> None:
    errors = FieldErrors()
    assert addresses.validate_ip(errors, "at", "010.1.2.3", ("010.1.2.3",))
    assert not errors


@pytest.mark.parametrize(
    ("block", "wrong"),
    [
        ("10.0.0.0/8", []),
        ("10.0.0.0/08", ["must not have leading 0s in IP or prefix length"]),
        ("10.0.0.1/8", ["must not have bits set beyond the prefix length"]),
        ("::ffff:10.0.0.0/104", ["must not have an IPv4-mapped IPv6 address"]),
        ("10.0.0.0/33", ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
        ("10.0.0.0", ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
        ("10.0.0.0/-1", ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
    ],
)
def test_a_block_is_taken_only_in_ways_all_read_alike(block: str, wrong: list[str]) -> None:
    errors = FieldErrors()
    addresses.validate_cidr(errors, "at", block)
    assert whys(errors) == wrong


@pytest.mark.parametrize(
    ("address", "range_"),
    [
        ("10.1.2.3", ""),
        ("2001:db8::1", ""),
        ("0.0.0.0", "unspecified"),
        ("127.0.0.9", "loopback range"),
        ("::1", "loopback range"),
        ("169.254.1.1", "link-local range"),
        ("fe80::1", "link-local range"),
        ("224.0.0.5", "link-local multicast range"),
        ("ff02::1", "link-local multicast range"),
        ("224.0.1.5", ""),
    ],
)
def test_an_endpoint_may_not_be_in_a_special_range(address: str, range_: str) -> None:
    errors = FieldErrors()
    addresses.validate_endpoint_ip(errors, "at", address)
    assert len(errors) == (1 if range_ else 0)
    assert range_ in str(errors)


@pytest.mark.parametrize(
    ("texts", "fits"),
    [
        (["10.0.0.1", "::1"], True),
        (["10.0.0.1", "10.0.0.2"], False),
        (["10.0.0.0/8", "fd00::/8"], True),
        (["fd00::/8", "fd01::/16"], False),
        (["10.0.0.1"], True),
    ],
)
def test_there_is_at_most_one_address_of_a_family(texts: list[str], fits: bool) -> None:
    assert addresses.one_per_family(texts) is fits
