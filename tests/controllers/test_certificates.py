"""Certificate requests: approved, signed and forgotten by the rules of each signer."""

from __future__ import annotations

import base64
import functools
import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.kinds import Condition, ObjectMeta
from steersman.api.kinds.certificates import (
    CertificateSigningRequest,
    CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
    PodCertificateRequest,
)
from steersman.controllers.certificates import approver, cleaner, signer
from steersman.controllers.certificates.approver import SubjectAccessReview, SubjectAccessReviewStatus
from steersman.controllers.certificates.authority import EXTENDED_USAGES, KEY_USAGES
from steersman.controllers.certificates.requests import (
    CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    LEGACY,
    RULES,
    RequestedCertificate,
)
from steersman.intent.actions import Action, CreateReview, Delete, ReadFile, Update, UpdateStatus
from steersman.intent.settings import Misconfigured, Settings
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake
from steersman.testing.decision_driver import USUAL, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
APPROVED = Condition(type="Approved", status="True", lastUpdateTime=NOW)
KUBELET_USAGES = ("digital signature", "key encipherment", "client auth")


@functools.cache
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@functools.cache
def authority(days: float = 3650) -> tuple[bytes, bytes]:
    """An authority's certificate and key in PEM."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    private = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(7)
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), False)
        .sign(private, hashes.SHA256())
    )
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), pem


@functools.cache
def pkcs10(
    common_name: str,
    organizations: tuple[str, ...] = (),
    dns: tuple[str, ...] = (),
    ips: tuple[str, ...] = (),
    emails: tuple[str, ...] = (),
    uris: tuple[str, ...] = (),
    ca: bool = False,
) -> bytes:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    if common_name:
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
    names: list[x509.GeneralName] = [
        *map(x509.DNSName, dns),
        *(x509.IPAddress(ipaddress.ip_address(ip)) for ip in ips),
        *map(x509.RFC822Name, emails),
        *map(x509.UniformResourceIdentifier, uris),
    ]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), False)
    if ca:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=3), True)
    return builder.sign(key(), hashes.SHA256()).public_bytes(Encoding.PEM)


def der(tag: int, *parts: bytes) -> bytes:
    """A value in DER."""
    body = b"".join(parts)
    size = len(body).to_bytes(1 if len(body) < 0x100 else 2)
    return bytes([tag]) + (size if len(body) < 0x80 else bytes([0x80 | len(size)]) + size) + body


def pkcs10_with(*extension_requests: tuple[str, str]) -> bytes:
    """A kubelet's request with attributes, by OID, that each ask for one DNS name."""
    nodes = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes")
    node = x509.NameAttribute(NameOID.COMMON_NAME, "system:node:n1")
    attributes = []
    for oid, dns in extension_requests:
        names = x509.SubjectAlternativeName([x509.DNSName(dns)]).public_bytes()
        extensions = der(0x30, der(0x30, bytes.fromhex("0603551d11"), der(0x04, names)))
        attributes.append(der(0x30, bytes.fromhex(oid), der(0x31, extensions)))
    info = der(
        0x30,
        der(0x02, b"\0"),
        x509.Name([nodes, node]).public_bytes(),
        key().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        der(0xA0, *sorted(attributes)),
    )
    ecdsa_with_sha256 = der(0x30, bytes.fromhex("06082a8648ce3d040302"))
    signature = key().sign(info, ec.ECDSA(hashes.SHA256()))
    body = base64.encodebytes(der(0x30, info, ecdsa_with_sha256, der(0x03, b"\0", signature)))
    return b"-----BEGIN CERTIFICATE REQUEST-----\n" + body + b"-----END CERTIFICATE REQUEST-----\n"


PKCS9 = "06092a864886f70d01090e"
"""The OID of extensionRequest, in DER."""
MICROSOFT = "060a2b06010401823702010e"
"""Microsoft's OID for the same, in DER; Go does not know it."""


def request(
    pem: bytes,
    signer: str = "",
    usages: Sequence[str] = KUBELET_USAGES,
    *,
    conditions: tuple[Condition, ...] = (),
    **spec: Any,
) -> CertificateSigningRequest:
    return CertificateSigningRequest(
        metadata=ObjectMeta(name="r", uid="u", resourceVersion="5", creationTimestamp=NOW, labels={"a": "b"}),
        spec=CertificateSigningRequestSpec(
            request=base64.b64encode(pem).decode(), signerName=signer, usages=tuple(usages), **spec
        ),
        status=CertificateSigningRequestStatus(conditions=conditions),
    )


NODE = pkcs10("system:node:n1", ("system:nodes",))
EVIL = pkcs10("evil", ("system:masters",))
JANE = pkcs10("dev-jane", ("devs",))
MANY_HEADERS = b"-----BEGIN A-----\n" + b"::\n" * 44 + b"!\n"
"""A block that never ends; a pattern that tries each split of its lines takes years."""


# -- approving --------------------------------------------------------------------------------


def approve(asked: CertificateSigningRequest, *allowed: str) -> tuple[list[Action[Any]], Verdict]:
    def answer(action: Action[Any]) -> Any:
        if not isinstance(action, CreateReview):
            return USUAL
        right = action.body["spec"]["resourceAttributes"]["subresource"]
        return SubjectAccessReview(status=SubjectAccessReviewStatus(allowed=right in allowed))

    return walk(approver.decide(asked, NOW), answer)


def test_a_node_that_asks_for_its_own_certificate_is_approved_after_a_review() -> None:
    asked = request(NODE, KUBELET_CLIENT, username="system:node:n1", groups=("system:nodes",))
    (ask, put), verdict = approve(asked, "selfnodeclient")
    assert isinstance(ask, CreateReview)
    assert isinstance(ask.body, dict)
    assert ask.body["spec"] == {
        "user": "system:node:n1",
        "uid": "",
        "groups": ["system:nodes"],
        "extra": {},
        "resourceAttributes": {
            "group": "certificates.k8s.io",
            "resource": "certificatesigningrequests",
            "verb": "create",
            "subresource": "selfnodeclient",
            "version": "*",
        },
    }
    assert isinstance(put, Update)
    assert (put.target.name, put.subresource) == ("r", "approval")
    assert put.body["metadata"]["resourceVersion"] == "5"
    assert put.body["metadata"]["labels"] == {"a": "b"}
    assert put.body["status"]["conditions"] == [
        {
            "type": "Approved",
            "status": "True",
            "reason": "AutoApproved",
            "message": "Auto approving self kubelet client certificate after SubjectAccessReview.",
        }
    ]
    assert verdict == Rest("approved")


def test_a_node_that_may_not_renew_itself_may_still_bootstrap() -> None:
    actions, verdict = approve(request(NODE, KUBELET_CLIENT, username="system:node:n1"), "nodeclient")
    assert [type(action) for action in actions] == [CreateReview, CreateReview, Update]
    assert verdict == Rest("approved")


def test_a_bootstrapper_is_not_asked_whether_it_is_the_node() -> None:
    with pytest.raises(InvalidSpec, match=r"recognized as \[nodeclient\] but subject access review"):
        approve(request(NODE, KUBELET_CLIENT, username="somebody"), "selfnodeclient")


@pytest.mark.parametrize(
    "asked",
    [
        request(NODE, CLIENT),
        request(NODE, KUBELET_CLIENT, usages=("client auth", "server auth")),
        request(pkcs10("n1", ("system:nodes",)), KUBELET_CLIENT),
        request(pkcs10("system:node:n1", ("system:masters",)), KUBELET_CLIENT),
        request(pkcs10("system:node:n1", ("system:nodes", "system:masters")), KUBELET_CLIENT),
        request(pkcs10("system:node:n1", ("system:nodes",), dns=("a.b",)), KUBELET_CLIENT),
        request(NODE, KUBELET_CLIENT, conditions=(APPROVED,)),
        request(NODE, KUBELET_CLIENT, conditions=(Condition(type="Denied", status="True"),)),
        request(b"x" + NODE + EVIL, KUBELET_CLIENT),
        request(MANY_HEADERS + JANE, CLIENT),
        request(b"of another signer, in a form of its own", "example.com/mine"),
    ],
)
def test_what_is_not_a_kubelets_or_decided_already_is_left_to_others(
    asked: CertificateSigningRequest,
) -> None:
    actions, _ = approve(asked, "selfnodeclient", "nodeclient")
    assert actions == []


def test_the_request_that_kubectl_shows_is_the_one_approved() -> None:
    for pem in (b"x" + EVIL + NODE, MANY_HEADERS + NODE, NODE + EVIL):
        _, verdict = approve(request(pem, KUBELET_CLIENT, username="system:node:n1"), "selfnodeclient")
        assert verdict == Rest("approved")


# -- the rules of the signers -----------------------------------------------------------------

NODE_ASKED = RequestedCertificate("system:node:n1", ("system:nodes",))
SERVING = RequestedCertificate("system:node:n1", ("system:nodes",), dns=("n1",), ips=("10.0.0.1",))
SERVING_USAGES = ("digital signature", "key encipherment", "server auth")


@pytest.mark.parametrize(
    ("signer", "asked", "usages", "wrong"),
    [
        (KUBELET_CLIENT, NODE_ASKED, KUBELET_USAGES, ""),
        (KUBELET_CLIENT, NODE_ASKED, ("client auth", "digital signature"), ""),
        (KUBELET_CLIENT, NODE_ASKED, ("client auth",), "usages did not match"),
        (
            KUBELET_CLIENT,
            replace(NODE_ASKED, organizations=()),
            KUBELET_USAGES,
            "subject organization is not",
        ),
        (KUBELET_CLIENT, replace(NODE_ASKED, common_name="n1"), KUBELET_USAGES, "subject common name does"),
        (KUBELET_CLIENT, replace(NODE_ASKED, dns=("a",)), KUBELET_USAGES, "DNS subjectAltNames are not"),
        (KUBELET_CLIENT, replace(NODE_ASKED, ips=("::1",)), KUBELET_USAGES, "IP subjectAltNames are not"),
        (
            KUBELET_CLIENT,
            replace(NODE_ASKED, emails=("a@b",)),
            KUBELET_USAGES,
            "Email subjectAltNames are not",
        ),
        (KUBELET_CLIENT, replace(NODE_ASKED, uris=("a:b",)), KUBELET_USAGES, "URI subjectAltNames are not"),
        (KUBELET_SERVING, SERVING, SERVING_USAGES, ""),
        (KUBELET_SERVING, SERVING, ("server auth", "digital signature"), ""),
        (KUBELET_SERVING, replace(SERVING, dns=()), SERVING_USAGES, ""),
        (KUBELET_SERVING, NODE_ASKED, SERVING_USAGES, "DNS or IP subjectAltName is required"),
        (KUBELET_SERVING, replace(SERVING, emails=("a@b",)), SERVING_USAGES, "Email subjectAltNames are not"),
        (KUBELET_SERVING, replace(SERVING, uris=("a:b",)), SERVING_USAGES, "URI subjectAltNames are not"),
        (
            KUBELET_SERVING,
            SERVING,
            KUBELET_USAGES,
            "usages did not match [digital signature key encipherment s",
        ),
        (KUBELET_SERVING, replace(SERVING, common_name="n1"), SERVING_USAGES, "subject common name does"),
        (
            KUBELET_SERVING,
            replace(SERVING, organizations=("x",)),
            SERVING_USAGES,
            "subject organization is not",
        ),
        (CLIENT, RequestedCertificate("anybody", ("any",)), ("client auth",), ""),
        (
            CLIENT,
            RequestedCertificate("anybody", ()),
            ("digital signature",),
            "missing required usage for client certificate",
        ),
        (
            CLIENT,
            RequestedCertificate("anybody", ()),
            ("client auth", "cert sign"),
            "invalid usage for client certificate: c",
        ),
        (LEGACY, RequestedCertificate("", ()), (), ""),
    ],
)
def test_each_signer_has_its_rules(
    signer: str, asked: RequestedCertificate, usages: Sequence[str], wrong: str
) -> None:
    said = RULES[signer](asked, usages)
    assert said.startswith(wrong)
    assert bool(said) == bool(wrong)


USAGES = st.lists(st.sampled_from([*KEY_USAGES, *EXTENDED_USAGES]), max_size=4)
NAMES = st.sampled_from(["system:node:n1", "n1", "system:nodes", "system:masters", ""])


@given(
    name=NAMES,
    organizations=st.lists(NAMES, max_size=2).map(tuple),
    dns=st.booleans(),
    uri=st.booleans(),
    usages=USAGES,
)
def test_no_kubelet_signer_signs_for_anything_but_a_node(
    name: str, organizations: tuple[str, ...], dns: bool, uri: bool, usages: list[str]
) -> None:
    asked = RequestedCertificate(name, organizations, dns=("d",) if dns else (), uris=("u:v",) if uri else ())
    for name_of_signer, purpose in ((KUBELET_CLIENT, "client auth"), (KUBELET_SERVING, "server auth")):
        if not RULES[name_of_signer](asked, usages):
            assert asked.organizations == ("system:nodes",)
            assert asked.common_name.startswith("system:node:")
            assert not asked.uris
            assert set(usages) - {"key encipherment"} == {"digital signature", purpose}


@given(usages=USAGES)
def test_the_client_signer_never_signs_for_servers_or_authorities(usages: list[str]) -> None:
    if not RULES[CLIENT](RequestedCertificate("x", ()), usages):
        assert "client auth" in usages
        assert not {"server auth", "any", "cert sign", "code signing"} & set(usages)


# -- signing ----------------------------------------------------------------------------------

ONE_PAIR = Settings({"cluster-signing-cert-file": "ca.crt", "cluster-signing-key-file": "ca.key"})


def issue(
    asked: CertificateSigningRequest, *, ca: tuple[bytes, bytes] | None = None, settings: Settings = ONE_PAIR
) -> tuple[list[Action[Any]], Verdict]:
    cert, private = ca or authority()
    configured = signer.controller.configured(settings)
    assert configured is not None

    def answer(action: Action[Any]) -> Any:
        return {"ca.crt": cert, "ca.key": private}[action.path] if isinstance(action, ReadFile) else USUAL

    actions, verdict = walk(configured.decide(asked, NOW), answer)
    return [action for action in actions if isinstance(action, UpdateStatus)], verdict


def issued(asked: CertificateSigningRequest, **how: Any) -> x509.Certificate:
    (update,), verdict = issue(asked, **how)
    assert isinstance(update, UpdateStatus)
    assert verdict == Rest("certificate issued")
    assert update.status.conditions == asked.status.conditions  # type: ignore[attr-defined]
    return x509.load_pem_x509_certificate(base64.b64decode(update.status.certificate))  # type: ignore[attr-defined]


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


# -- cleaning ---------------------------------------------------------------------------------


def aged(
    *conditions: Condition, certificate: str = "", ago: timedelta = timedelta()
) -> CertificateSigningRequest:
    return CertificateSigningRequest(
        metadata=ObjectMeta(name="r", uid="u", creationTimestamp=NOW - ago),
        status=CertificateSigningRequestStatus(conditions=conditions, certificate=certificate),
    )


def since(type_: str, **ago: float) -> Condition:
    return Condition(type=type_, status="True", lastUpdateTime=NOW - timedelta(**ago))


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        (aged(), timedelta(hours=24)),
        (aged(ago=timedelta(hours=24)), None),
        (aged(since("Denied", minutes=20)), timedelta(minutes=40)),
        (aged(since("Denied", hours=1)), None),
        (aged(since("Failed", hours=2)), None),
        (aged(since("Approved", hours=2)), timedelta(hours=22)),
        (aged(since("Approved", hours=24)), None),
        (aged(since("Approved", minutes=30), certificate="eA=="), timedelta(minutes=30)),
        (aged(since("Approved", hours=1), certificate="eA=="), None),
        (aged(Condition(type="Approved", status="True"), certificate="eA=="), "never"),
        (
            aged(since("Approved", minutes=1), certificate=base64.b64encode(authority(days=0)[0]).decode()),
            None,
        ),
        (
            aged(
                since("Approved", minutes=1),
                certificate=base64.b64encode(b"x" + authority(days=0)[0] + authority()[0]).decode(),
            ),
            timedelta(minutes=59),
        ),
    ],
)
def test_a_request_is_remembered_for_its_time(
    asked: CertificateSigningRequest, left: timedelta | Literal["never"] | None
) -> None:
    actions, verdict = walk(cleaner.decide(asked, NOW))
    if left is None:
        assert (actions, verdict) == ([Delete(asked)], Rest("expired: deleted"))
    elif left == "never":
        assert (actions, verdict) == ([], Rest("no expiry: the request has no time to count from"))
    else:
        assert (actions, verdict) == ([], Wake(left, "not expired"))


def test_a_pods_request_is_remembered_for_a_quarter_of_an_hour() -> None:
    made = PodCertificateRequest(metadata=ObjectMeta(name="p", creationTimestamp=NOW - timedelta(minutes=14)))
    assert walk(cleaner.decide_pod_request(made, NOW))[1] == Wake(timedelta(minutes=1), "not expired")
    assert walk(cleaner.decide_pod_request(made, NOW + timedelta(minutes=1)))[0] == [Delete(made)]
