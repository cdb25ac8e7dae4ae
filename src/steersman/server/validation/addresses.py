"""Validation of IP addresses and CIDRs, as strict as upstream's."""

from __future__ import annotations

from collections.abc import Container, Sequence
from ipaddress import IPv4Address, IPv6Address

from steersman.api.ip_addresses import LEADING_ZEROS, Address, is_plain_ipv4, parse_cidr, parse_ip
from steersman.server.validation.field_errors import FieldErrors

_NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_A_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def _is_ipv4_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def validate_ip(errors: FieldErrors, path: str, text: str, existing: Container[str] = ()) -> bool:
    """Validates an IP address, unless it is among the existing ones; returns whether it is valid."""
    if text in existing or is_plain_ipv4(text):
        return True
    before = len(errors)
    address = parse_ip(text)
    if address is None:
        errors.invalid(path, text, _NOT_AN_IP)
        return False
    if _has_leading_zeros(text):
        errors.invalid(path, text, "must not have leading 0s")
    if _is_ipv4_mapped(address):
        errors.invalid(path, text, "must not be an IPv4-mapped IPv6 address")
    return len(errors) == before


def validate_canonical_ip(errors: FieldErrors, path: str, text: str) -> bool:
    """Validates an IP address in canonical form; returns whether it is valid."""
    if not validate_ip(errors, path, text):
        return False
    address = str(parse_ip(text))
    if text != address:
        errors.invalid(path, text, f'must be in canonical form ("{address}")')
        return False
    return True


def validate_cidr(errors: FieldErrors, path: str, text: str, existing: Container[str] = ()) -> None:
    """Validates a CIDR, unless it is among the existing ones."""
    if text in existing:
        return
    block = parse_cidr(text)
    if block is None:
        errors.invalid(path, text, _NOT_A_CIDR)
        return
    address, _, length = text.partition("/")
    base = parse_ip(address)
    assert base is not None
    if _has_leading_zeros(address) or (len(length) > 1 and length.startswith("0")):
        errors.invalid(path, text, "must not have leading 0s in IP or prefix length")
    elif _is_ipv4_mapped(base):
        errors.invalid(path, text, "must not have an IPv4-mapped IPv6 address")
    elif base != block.network_address:
        errors.invalid(path, text, "must not have bits set beyond the prefix length")


def validate_canonical_cidr(errors: FieldErrors, path: str, text: str) -> None:
    before = len(errors)
    validate_cidr(errors, path, text)
    block = parse_cidr(text)
    if len(errors) == before and str(block) != text:
        errors.invalid(path, text, f'must be in canonical form ("{block}")')


def validate_endpoint_ip(errors: FieldErrors, path: str, text: str) -> None:
    """Validates an IP address that traffic can be sent to."""
    address = parse_ip(text)
    if address is None:
        errors.invalid(path, text, "must be a valid IP address")
        return
    if address.is_unspecified:
        errors.invalid(path, text, f"may not be unspecified ({text})")
    if address.is_loopback:
        errors.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        errors.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if _is_link_local_multicast(address):
        errors.invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return address.packed[:3] == b"\xe0\x00\x00"
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _has_leading_zeros(text: str) -> bool:
    return "." in text and LEADING_ZEROS.search(text) is not None


def is_ipv4(text: str) -> bool:
    return isinstance(parse_ip(text), IPv4Address)


def is_ipv6(text: str) -> bool:
    return isinstance(parse_ip(text), IPv6Address)


def one_per_family(texts: Sequence[str]) -> bool:
    """Whether there is at most one address or CIDR of each IP family."""
    versions = [(parse_ip(text) or parse_cidr(text)) for text in texts]
    return len({network.version for network in versions if network is not None}) == len(texts)
