"""Certificate requests, an authority, and rounds of the controllers that approve and sign them."""

from __future__ import annotations

import base64
import functools
import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from steersman.api.kinds import Condition, ObjectMeta
from steersman.api.kinds.certificates import (
    CertificateSigningRequest,
    CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
)
from steersman.controllers.certificates import approver, signer
from steersman.controllers.certificates.approver import SubjectAccessReview, SubjectAccessReviewStatus
from steersman.intent.actions import Action, CreateReview, ReadFile, UpdateStatus
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Verdict
from steersman.testing.decision_driver import USUAL, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
APPROVED = Condition(type="Approved", status="True", lastUpdateTime=NOW)
KUBELET_USAGES = ("digital signature", "key encipherment", "client auth")
SERVING_USAGES = ("digital signature", "key encipherment", "server auth")


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


def approve(
    asked: CertificateSigningRequest,
    *allowed: str,
    update: object = USUAL,
    recorded: list[Action[Any]] | None = None,
) -> tuple[list[Action[Any]], Verdict]:
    """A round of the approver; the reviews of some subresources are allowed."""

    def answer(action: Action[Any]) -> Any:
        if not isinstance(action, CreateReview):
            return update
        right = action.body["spec"]["resourceAttributes"]["subresource"]
        return SubjectAccessReview(status=SubjectAccessReviewStatus(allowed=right in allowed))

    return walk(approver.decide(asked, NOW), answer, recorded=recorded)


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
