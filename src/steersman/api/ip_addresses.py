"""Parses IP addresses and CIDRs as upstream's ParseIPSloppy and ParseCIDRSloppy do, and sorts them by IP family."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal, TypeAlias

from steersman.api.bounded_cache import short_cache

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Family: TypeAlias = Literal["IPv4", "IPv6"]

is_plain_ipv4 = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(?:\.(?!\Z)|\Z)){4}").fullmatch
"""Whether a text is an IPv4 address without leading zeros: the common case."""
LEADING_ZEROS = re.compile(r"(?:(?<=^)|(?<=[.:]))0+(?=[0-9]+(?:\.|$))")
"""The leading zeros of the octets of an IPv4 address."""


@short_cache(4096)
def parse_ip(text: str) -> Address | None:
    """Parses an IP address, leading zeros allowed; None where it is invalid."""
    if "%" in text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        pass
    if "." not in text:
        return None
    try:
        return ip_address(LEADING_ZEROS.sub("", text))
    except ValueError:
        return None


def parse_cidr(text: str) -> Network | None:
    """Parses a CIDR, host bits allowed; None where it is invalid."""
    address, slash, length = text.partition("/")
    base = parse_ip(address)
    if not slash or base is None or not (length.isascii() and length.isdigit()) or len(length) > 4:
        return None
    try:
        return ip_network(f"{base}/{int(length)}", strict=False)
    except ValueError:
        return None


def canonical_ip(text: str) -> tuple[Family, str] | None:
    """Returns the IP family and the canonical form of an address; None where it is invalid.

    An IPv4-mapped IPv6 address is an IPv4 address, as Go's net.IP has it.
    """
    return ("IPv4", text) if is_plain_ipv4(text) else _canonical_ip(text)


@short_cache(4096)
def _canonical_ip(text: str) -> tuple[Family, str] | None:
    address = parse_ip(text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address is None:
        return None
    return ("IPv4" if isinstance(address, IPv4Address) else "IPv6"), str(address)
