"""IP addresses and CIDRs as Go's parsers read them."""

from __future__ import annotations

import pytest

from steersman.api.ip_addresses import canonical_ip, parse_cidr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1", ("IPv4", "10.0.0.1")),
        ("010.000.00.001", ("IPv4", "10.0.0.1")),
        ("2001:DB8:0:0::1", ("IPv6", "2001:db8::1")),
        ("::ffff:10.0.0.1", ("IPv4", "10.0.0.1")),
        ("fe80::1%eth0", None),
        ("10.0.0", None),
        ("", None),
    ],
)
def test_an_address_has_a_family_and_one_canonical_form(text: str, expected: tuple[str, str] | None) -> None:
    assert canonical_ip(text) == expected


def test_a_cidr_may_have_host_bits() -> None:
    assert str(parse_cidr("10.1.2.3/16")) == "10.1.0.0/16"
    assert parse_cidr("10.1.2.3/33") is None
    assert parse_cidr("10.1.2.3") is None
