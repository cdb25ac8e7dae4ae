"""certificatesigningrequest-signing, row by row."""

from __future__ import annotations

from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.kinds import Condition
from steersman.api.kinds.certificates import (
    CertificateSigningRequest,
    CertificateSigningRequestStatus,
)
from steersman.controllers.certificates import signer
from steersman.controllers.certificates.authority import EXTENDED_USAGES, KEY_USAGES
from steersman.controllers.certificates.requests import CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY
from steersman.intent.actions import UpdateStatus
from steersman.intent.settings import Misconfigured, Settings
from steersman.intent.verdict import InvalidSpec
from tests.harness.certificate_requests import (
    APPROVED,
    EVIL,
    JANE,
    MANY_HEADERS,
    MICROSOFT,
    NODE,
    NOW,
    PKCS9,
    SERVING_USAGES,
    authority,
    issue,
    issued,
    key,
    pkcs10,
    pkcs10_with,
    request,
)

USAGES = st.lists(st.sampled_from([*KEY_USAGES, *EXTENDED_USAGES]), max_size=4)


def test_an_approved_request_is_issued_with_its_names_its_usages_and_nothing_else() -> None:
    pem = pkcs10("system:node:n1", ("system:nodes",), dns=("n1",), ips=("10.0.0.1",), ca=True)
    found = issued(request(pem, KUBELET_SERVING, SERVING_USAGES, conditions=(APPROVED,)))
    assert found.subject.rfc4514_string() == "CN=system:node:n1,O=system:nodes"
    found.verify_directly_issued_by(x509.load_pem_x509_certificate(authority()[0]))
    of = found.extensions.get_extension_for_class
    assert of(x509.BasicConstraints).value == x509.BasicConstraints(ca=False, path_length=None)
    names = of(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n1"]
    assert list(of(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.SERVER_AUTH]
    usage = of(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_encipherment, usage.key_cert_sign) == (True, True, False)


@pytest.mark.parametrize(
    ("wanted", "lives"),
    [
        (None, timedelta(days=365) - timedelta(minutes=5)),
        (86_400, timedelta(days=1) - timedelta(minutes=5)),
        (3_600, timedelta(hours=1)),
        (600, timedelta(minutes=10)),
        (1, timedelta(minutes=10)),
        (10**9, timedelta(days=365) - timedelta(minutes=5)),
    ],
)
def test_a_certificate_lives_as_long_as_was_asked_within_bounds(wanted: int | None, lives: timedelta) -> None:
    found = issued(request(NODE, KUBELET_CLIENT, conditions=(APPROVED,), expirationSeconds=wanted))
    assert found.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert found.not_valid_after_utc == NOW + lives


def test_no_certificate_outlives_its_authority() -> None:
    found = issued(request(NODE, KUBELET_CLIENT, conditions=(APPROVED,)), ca=authority(days=1))
    assert found.not_valid_after_utc == NOW + timedelta(days=1)


def test_an_authority_that_has_expired_signs_nothing() -> None:
    with pytest.raises(InvalidSpec, match="expired"):
        issue(request(NODE, KUBELET_CLIENT, conditions=(APPROVED,)), ca=authority(days=0))


def test_a_request_that_breaks_its_signers_rules_fails_for_good() -> None:
    asked = request(pkcs10("admin", ("system:masters",)), KUBELET_CLIENT, conditions=(APPROVED,))
    (update,), _ = issue(asked)
    assert isinstance(update, UpdateStatus)
    assert update.status == CertificateSigningRequestStatus(
        conditions=(
            APPROVED,
            Condition(
                type="Failed",
                status="True",
                reason="SignerValidationFailure",
                message="subject organization is not system:nodes",
                lastUpdateTime=NOW,
            ),
        )
    )


@pytest.mark.parametrize(
    "asked",
    [
        request(NODE, KUBELET_CLIENT),
        request(NODE, KUBELET_CLIENT, conditions=(APPROVED, Condition(type="Denied", status="True"))),
        request(NODE, KUBELET_CLIENT, conditions=(APPROVED, Condition(type="Failed", status="True"))),
        request(NODE, "example.com/mine", conditions=(APPROVED,)),
    ],
    ids=["not approved", "denied too", "failed", "another signer"],
)
def test_nothing_else_is_signed(asked: CertificateSigningRequest) -> None:
    assert issue(asked)[0] == []


@pytest.mark.parametrize(
    ("pem", "why"),
    [
        (b"nonsense", "PEM block type must be CERTIFICATE REQUEST"),
        (authority()[0], "PEM block type must be CERTIFICATE REQUEST"),
        (authority()[0] + NODE, "PEM block type must be CERTIFICATE REQUEST"),
        (b"x" + NODE, "PEM block type must be CERTIFICATE REQUEST"),
        (
            b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
            "asn1: structure error",
        ),
    ],
)
def test_a_request_that_is_none_fails_alone(pem: bytes, why: str) -> None:
    with pytest.raises(InvalidSpec, match=why):
        issue(request(pem, KUBELET_CLIENT, conditions=(APPROVED,)))


@pytest.mark.parametrize(
    "pem",
    [
        JANE + EVIL,
        b"x" + EVIL + JANE,
        b" " + EVIL + JANE,
        EVIL.replace(b"REQUEST-----\n", b"REQUEST----- x\n") + JANE,
        EVIL.replace(b"\n-----END", b"-----END") + JANE,
        EVIL.partition(b"-----END")[0] + JANE,
        MANY_HEADERS + JANE,
    ],
    ids=[
        "a second block",
        "a block that begins inside a line",
        "an indented block",
        "text behind BEGIN and END",
        "END inside a line",
        "no END",
        "many headers without an end",
    ],
)
def test_the_request_that_kubectl_shows_is_the_one_signed(pem: bytes) -> None:
    found = issued(request(pem, CLIENT, conditions=(APPROVED,)))
    assert found.subject.rfc4514_string() == "CN=dev-jane,O=devs"


@pytest.mark.parametrize("type_", [_ASN1Type.VisibleString, _ASN1Type.UniversalString])
def test_a_subject_that_go_does_not_see_is_not_signed(type_: _ASN1Type) -> None:
    subject = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "devs"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters", type_),
        x509.NameAttribute(NameOID.COMMON_NAME, "dev-jane"),
        x509.NameAttribute(NameOID.COMMON_NAME, "evil", type_),
    ]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    pem = builder.sign(key(), hashes.SHA256()).public_bytes(Encoding.PEM)
    found = issued(request(pem, CLIENT, conditions=(APPROVED,)))
    assert found.subject.rfc4514_string() == "CN=dev-jane,O=devs"


@pytest.mark.parametrize(
    "places",
    [
        [(MICROSOFT, "kubernetes.default.svc")],
        [(PKCS9, "n1"), (MICROSOFT, "kubernetes.default.svc")],
        [(PKCS9, "n1"), (MICROSOFT, "a")],
        [(PKCS9, "n1"), (PKCS9, "kubernetes.default.svc")],
    ],
)
def test_names_that_go_does_not_see_are_not_signed(places: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidSpec, match="in one extensionRequest attribute"):
        issue(request(pkcs10_with(*places), KUBELET_SERVING, SERVING_USAGES, conditions=(APPROVED,)))


def test_names_in_the_attribute_that_go_reads_are_signed() -> None:
    pem = pkcs10_with((PKCS9, "n1"))
    found = issued(request(pem, KUBELET_SERVING, SERVING_USAGES, conditions=(APPROVED,)))
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n1"]


def test_a_key_that_is_not_the_certificates_is_refused_and_not_quoted() -> None:
    with pytest.raises(InvalidSpec, match="does not belong") as caught:
        issue(
            request(NODE, KUBELET_CLIENT, conditions=(APPROVED,)), ca=(authority()[0], authority(days=1)[1])
        )
    assert "BEGIN" not in str(caught.value)


@given(usages=USAGES)
def test_no_request_whatever_becomes_an_authority(usages: list[str]) -> None:
    pem = pkcs10("anything", ("any",), dns=("a.b",), ca=True)
    found = issued(request(pem, LEGACY, usages, conditions=(APPROVED,)))
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_a_usage_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="unrecognized usage"):
        issue(request(NODE, LEGACY, ("world domination",), conditions=(APPROVED,)))


# -- which keys -------------------------------------------------------------------------------


def test_without_keys_nothing_signs() -> None:
    assert signer.controller.configured(Settings()) is None
    assert signer.controller.configured(Settings({"cluster-signing-cert-file": "only"})) is None


def test_keys_of_their_own_are_for_those_signers_alone() -> None:
    own = Settings({f"cluster-signing-kubelet-client-{what}-file": f"ca.{what}" for what in ("cert", "key")})
    assert list(signer.key_pairs(own)) == [KUBELET_CLIENT]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"cluster-signing-kubelet-client-key-file": "k"},
            "--cluster-signing-kubelet-client-key-file is given",
        ),
        (
            {
                "cluster-signing-cert-file": "c",
                "cluster-signing-legacy-unknown-cert-file": "c",
                "cluster-signing-legacy-unknown-key-file": "k",
            },
            "cannot specify --cluster-signing-{cert,key}-file and other",
        ),
    ],
)
def test_keys_that_contradict_each_other_are_refused(flags: dict[str, str], message: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        signer.key_pairs(Settings(flags))
    assert str(caught.value).startswith(message)


# -- upstream's tables ----------------------------------------------------------------------------

BARE_APPROVAL = Condition(type="Approved")
BARE_FAILURE = Condition(type="Failed")
CLIENT_USAGES = ("client auth", "digital signature", "key encipherment")
WORLD = pkcs10("hello-world", ("some-org",))
HELLO_NODE = pkcs10("system:node:hello-world", ("system:nodes",))
TEST_NODE = pkcs10("system:node:testnode", ("system:nodes",), dns=("example.com",))
SIGNED, FAILED, LEFT_ALONE = "signed", "failed", "left alone"


def outcome(asked: CertificateSigningRequest) -> str:
    updates, _ = issue(asked)
    if not updates:
        return LEFT_ALONE
    (update,) = updates
    assert isinstance(update, UpdateStatus)
    status = update.status
    assert isinstance(status, CertificateSigningRequestStatus)
    if status.certificate:
        assert status.conditions == asked.status.conditions
        return SIGNED
    assert status.conditions[-1].reason == "SignerValidationFailure"
    return FAILED


@pytest.mark.parametrize(
    ("signer_name", "pem", "usages", "conditions", "expected"),
    [
        (CLIENT, WORLD, CLIENT_USAGES, (BARE_APPROVAL,), SIGNED),
        (CLIENT, WORLD, CLIENT_USAGES[:2], (BARE_APPROVAL,), SIGNED),
        (CLIENT, WORLD, ("server auth", *CLIENT_USAGES), (BARE_APPROVAL,), FAILED),
        (KUBELET_CLIENT, HELLO_NODE, CLIENT_USAGES, (BARE_APPROVAL,), SIGNED),
        (KUBELET_CLIENT, HELLO_NODE, CLIENT_USAGES[:2], (BARE_APPROVAL,), SIGNED),
        (LEGACY, pkcs10(""), (), (BARE_APPROVAL,), SIGNED),
        (KUBELET_SERVING, TEST_NODE, SERVING_USAGES, (BARE_APPROVAL,), SIGNED),
        (KUBELET_SERVING, TEST_NODE, ("server auth", "digital signature"), (BARE_APPROVAL,), SIGNED),
        (KUBELET_SERVING, TEST_NODE, SERVING_USAGES, (BARE_APPROVAL, BARE_FAILURE), LEFT_ALONE),
        ("kubernetes.io/not-recognised", TEST_NODE, (), (BARE_APPROVAL,), LEFT_ALONE),
        (KUBELET_SERVING, TEST_NODE, SERVING_USAGES, (), LEFT_ALONE),
        ("example.com/sample-name", TEST_NODE, (), (BARE_APPROVAL,), LEFT_ALONE),
        # A status of False does not make a condition of approval or denial void, but it does so for a failure.
        (CLIENT, WORLD, CLIENT_USAGES, (Condition(type="Denied"),), LEFT_ALONE),
        (CLIENT, WORLD, CLIENT_USAGES, (BARE_APPROVAL, Condition(type="Denied")), LEFT_ALONE),
        (CLIENT, WORLD, CLIENT_USAGES, (Condition(type="Approved", status="False"),), SIGNED),
        (CLIENT, WORLD, CLIENT_USAGES, (BARE_APPROVAL, Condition(type="Failed", status="False")), SIGNED),
    ],
)
def test_a_request_is_signed_fails_or_is_left_alone(
    signer_name: str,
    pem: bytes,
    usages: tuple[str, ...],
    conditions: tuple[Condition, ...],
    expected: str,
) -> None:
    assert outcome(request(pem, signer_name, usages, conditions=conditions)) == expected


@pytest.mark.parametrize(
    ("private", "why"),
    [
        (ec.generate_private_key(ec.SECP256K1()), "x509: unsupported elliptic curve"),
        (
            ed448.Ed448PrivateKey.generate(),
            "unable to verify certificate request signature: x509: cannot verify signature: algorithm unimplemented",
        ),
    ],
)
def test_a_key_that_go_does_not_know_is_not_signed(
    private: ec.EllipticCurvePrivateKey | ed448.Ed448PrivateKey, why: str
) -> None:
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    algorithm = hashes.SHA256() if isinstance(private, ec.EllipticCurvePrivateKey) else None
    pem = builder.sign(private, algorithm).public_bytes(Encoding.PEM)
    with pytest.raises(InvalidSpec, match=why):
        issue(request(pem, LEGACY, (), conditions=(APPROVED,)))
