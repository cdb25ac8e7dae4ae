"""Client certificates: who they are for."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID, ObjectIdentifier

from steersman.api.jwt import InvalidCredential
from steersman.server.auth.x509 import certificate_user

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ec.generate_private_key(ec.SECP256R1())
CN, O, UID = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, ObjectIdentifier("1.3.6.1.4.1.57683.2")


def cert(*attributes: tuple[ObjectIdentifier, str]) -> bytes:
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=1))
    )
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    ("der", "name", "groups", "uid"),
    [
        (cert((CN, "ann")), "ann", (), ""),
        (cert((O, "dev"), (CN, "ann"), (O, "ops")), "ann", ("dev", "ops"), ""),
        (cert((CN, "ann"), (UID, "u-7")), "ann", (), "u-7"),
        (cert((CN, "system:node:n1"), (O, "system:nodes")), "system:node:n1", ("system:nodes",), ""),
    ],
)
def test_the_common_name_is_the_user_and_the_organizations_are_the_groups(
    der: bytes, name: str, groups: tuple[str, ...], uid: str
) -> None:
    user = certificate_user(der)
    assert user is not None
    assert (user.name, user.groups, user.uid) == (name, groups, uid)
    fingerprint = f"X509SHA256={hashlib.sha256(der).hexdigest()}"
    assert user.extra == {"authentication.kubernetes.io/credential-id": (fingerprint,)}


def test_a_certificate_without_a_common_name_has_no_user() -> None:
    assert certificate_user(cert((O, "dev"))) is None


@pytest.mark.parametrize(
    ("der", "error"),
    [
        (cert((CN, "ann"), (UID, "a"), (UID, "b")), "expected 1 UID, but found multiple: [a b]"),
        (b"no certificate", "the client certificate cannot be read"),
    ],
)
def test_a_certificate_that_makes_no_sense_is_refused(der: bytes, error: str) -> None:
    with pytest.raises(InvalidCredential) as refused:
        certificate_user(der)
    assert refused.value.errors == (error,)
