"""The certificate authority, row by row."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from steersman.api.pem import parse_csr
from steersman.controllers.certificates.authority import (
    EXTENDED_USAGES,
    Authority,
    SigningError,
    lifetime,
    load,
    sign,
    validity,
)
from tests.harness.certificate_requests import NOW, authority, pkcs10

HOUR, MINUTE, DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)


def certificate(
    *usages: str, pem: bytes | None = None, ttl: timedelta = HOUR, days: float = 1
) -> x509.Certificate:
    csr = parse_csr(base64.b64encode(pem if pem is not None else pkcs10("test")).decode())
    made = sign(load(*authority(days)), csr, usages, serial=42, now=NOW, ttl=ttl)
    return x509.load_pem_x509_certificate(made)


@pytest.mark.parametrize(
    ("requested", "given"),
    [
        (30 * MINUTE, 30 * MINUTE),
        (3 * HOUR, HOUR),
        (-MINUTE, 10 * MINUTE),
        (10 * MINUTE - timedelta(seconds=1), 10 * MINUTE),
        (10 * MINUTE, 10 * MINUTE),
        (HOUR, HOUR),
        (None, HOUR),
    ],
)
def test_a_lifetime_is_the_requested_one_within_ten_minutes_and_the_maximum(
    requested: timedelta | None, given: timedelta
) -> None:
    seconds = None if requested is None else int(requested.total_seconds())
    assert lifetime(HOUR, seconds) == given


def test_a_maximum_below_ten_minutes_counts_for_those_who_ask_for_more() -> None:
    assert lifetime(5 * MINUTE, 600) == 5 * MINUTE
    assert lifetime(5 * MINUTE, 60) == 10 * MINUTE


@pytest.mark.parametrize(
    ("ttl", "end"),
    [
        (HOUR, HOUR),
        (MINUTE, MINUTE),
        (8 * HOUR - timedelta(seconds=1), 8 * HOUR - timedelta(seconds=1)),
        (8 * HOUR, 8 * HOUR - 5 * MINUTE),
        (DAY, DAY - 5 * MINUTE),
        (2 * DAY, DAY),
    ],
    ids=["short", "very short", "just short", "just long", "long", "longer than the authority"],
)
def test_a_certificate_is_backdated_by_five_minutes_and_a_long_one_ends_as_much_earlier(
    ttl: timedelta, end: timedelta
) -> None:
    made = certificate(ttl=ttl)
    assert made.not_valid_before_utc == NOW - 5 * MINUTE
    assert made.not_valid_after_utc == NOW + end


@pytest.mark.parametrize(
    ("until", "message"),
    [
        (NOW, "refusing to sign a certificate that expired in the past: NotAfter="),
        (NOW - 5 * MINUTE + timedelta(seconds=1), "refusing to sign a certificate that expired in the past"),
        (NOW - 5 * MINUTE, "the signer has expired: NotAfter="),
        (NOW - DAY, "the signer has expired: NotAfter="),
    ],
)
def test_an_authority_that_has_expired_signs_nothing(until: object, message: str) -> None:
    with pytest.raises(SigningError, match=message):
        validity(NOW, HOUR, until)  # type: ignore[arg-type]


def test_a_certificate_names_its_authority() -> None:
    issuer: Authority = load(*authority(1))
    made = certificate()
    assert made.issuer == issuer.certificate.subject
    parent = issuer.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    named = made.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert named.key_identifier == parent.digest
    constraints = made.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.value.ca, constraints.critical) == (False, True)


def test_alternative_names_of_all_kinds_are_taken_over_in_gos_order() -> None:
    uri = "help://me@what:8080/where/when?why=true"
    pem = pkcs10("", (), dns=("d.example",), ips=("10.0.0.1",), emails=("a@b.example",), uris=(uri,))
    names = certificate(pem=pem).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert [type(name) for name in names.value] == [
        x509.DNSName,
        x509.RFC822Name,
        x509.IPAddress,
        x509.UniformResourceIdentifier,
    ]
    assert names.value.get_values_for_type(x509.UniformResourceIdentifier) == [uri]
    # Without a subject the alternative names are all that the certificate is for.
    assert names.critical


@pytest.mark.parametrize(
    ("usages", "key_usages", "extended"),
    [
        (("signing",), {"digital_signature"}, []),
        (("client auth",), set(), [ExtendedKeyUsageOID.CLIENT_AUTH]),
        (("client auth", "client auth"), set(), [ExtendedKeyUsageOID.CLIENT_AUTH]),
        # differs: upstream sets encipher only without key agreement, too.
        (("cert sign", "encipher only"), {"key_cert_sign"}, []),
        (("key agreement", "encipher only"), {"key_agreement", "encipher_only"}, []),
        (
            ("ocsp signing", "crl sign", "s/mime", "content commitment"),
            {"crl_sign", "content_commitment"},
            [ExtendedKeyUsageOID.EMAIL_PROTECTION, ExtendedKeyUsageOID.OCSP_SIGNING],
        ),
        (
            ("signing", "key encipherment", "server auth", "client auth"),
            {"digital_signature", "key_encipherment"},
            [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
        ),
    ],
)
def test_usages_become_those_of_the_certificate(
    usages: tuple[str, ...], key_usages: set[str], extended: list[x509.ObjectIdentifier]
) -> None:
    found = certificate(*usages).extensions
    try:
        flags = found.get_extension_for_class(x509.KeyUsage).value
        names = {name.lstrip("_") for name, value in vars(flags).items() if value}
    except x509.ExtensionNotFound:
        names = set()
    try:
        purposes = list(found.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        purposes = []
    assert (names, purposes) == (key_usages, extended)


def test_extended_usages_are_in_gos_order() -> None:
    made = certificate(*reversed(EXTENDED_USAGES)).extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    found = [one.dotted_string for one in made.value]
    assert found == list(dict.fromkeys(EXTENDED_USAGES.values()))
    assert found[0] == "2.5.29.37.0"


def test_a_usage_that_is_unknown_is_refused() -> None:
    with pytest.raises(SigningError, match="unrecognized usage values"):
        certificate("unsupported string")
