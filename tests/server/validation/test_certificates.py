"""Requests and certificate chains are read as Go reads PEM, so that the request shown is the request validated."""

from __future__ import annotations

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec.structs import replace

from steersman.api.generated.certificates_v1 import CertificateSigningRequest, CertificateSigningRequestSpec
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.validation import validate_create, validate_update
from tests.harness.ca import CertificateAuthority

KIND = ("certificates.k8s.io", "CertificateSigningRequest")
WRONG_TYPE = "PEM block type must be CERTIFICATE REQUEST"


def pkcs10() -> bytes:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ada")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    return builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)


GOOD = pkcs10()
FORGED = GOOD.replace(b"\nM", b"\nX", 1)
CERTIFICATE = CertificateAuthority("test").pair.cert
BODY = b"".join(CERTIFICATE.splitlines(keepends=True)[1:-1])


def block(type_: bytes, body: bytes) -> bytes:
    return b"-----BEGIN " + type_ + b"-----\n" + body + b"-----END " + type_ + b"-----\n"


def csr(pem: bytes) -> CertificateSigningRequest:
    spec = CertificateSigningRequestSpec(
        request=base64.b64encode(pem).decode(), signerName="example.com/it", usages=("client auth",)
    )
    return CertificateSigningRequest(metadata=ObjectMeta(name="r", resourceVersion="1"), spec=spec)


@pytest.mark.parametrize(
    ("pem", "why"),
    [
        (GOOD, ""),
        (b"a comment\n" + GOOD + b"more", ""),
        (b"x" + FORGED + GOOD, ""),
        (b"-----BEGIN A-----\n" + b"::\n" * 44 + b"!\n" + GOOD, ""),
        (b"x" + GOOD, WRONG_TYPE),
        (b" " + GOOD, WRONG_TYPE),
        (CERTIFICATE + GOOD, WRONG_TYPE),
        (GOOD.replace(b"CERTIFICATE REQUEST", b"NEW CERTIFICATE REQUEST"), WRONG_TYPE),
        (FORGED + GOOD, "asn1: structure error"),
        (b"", WRONG_TYPE),
    ],
    ids=[
        "a request",
        "text around it",
        "a block that begins inside a line is none",
        "many headers without an end",
        "only a block that begins inside a line",
        "only a block that is indented",
        "the first block is a certificate",
        "the first block has another type",
        "the first block is malformed",
        "empty",
    ],
)
def test_the_first_block_is_the_request(pem: bytes, why: str) -> None:
    found = validate_create(*KIND, csr(pem))
    assert [error.field for error in found] == (["spec.request"] if why else [])
    assert all(error.message.endswith(f": {why}") for error in found)


@pytest.mark.parametrize(
    ("chain", "why"),
    [
        (CERTIFICATE, ""),
        (b"leaf\n" + CERTIFICATE + b"root\n" + CERTIFICATE, ""),
        (CERTIFICATE + b"x" + block(b"CERTIFICATE", b"AAAA\n"), ""),
        (b"text", "must contain at least one CERTIFICATE PEM block"),
        (b"x" + CERTIFICATE, "must contain at least one CERTIFICATE PEM block"),
        (
            CERTIFICATE + block(b"PRIVATE KEY", b"AAAA\n"),
            'only CERTIFICATE PEM blocks are allowed, found "PRIVATE KEY"',
        ),
        (block(b'\xff"', b""), 'only CERTIFICATE PEM blocks are allowed, found "\\xff\\""'),
        (block(b"CERTIFICATE", b"a: b\n\n" + BODY), "no PEM block headers are permitted"),
        (block(b"CERTIFICATE", b""), "found CERTIFICATE PEM block containing 0 certificates"),
    ],
)
def test_a_chain_is_certificates_and_text_between_them(chain: bytes, why: str) -> None:
    old = csr(GOOD)
    new = replace(old, status=replace(old.status, certificate=base64.b64encode(chain).decode()))
    found = validate_update(*KIND, new, old, subresource="status")
    assert [error.field for error in found] == (["status.certificate"] if why else [])
    assert all(error.message.endswith(f": {why}") for error in found)


def test_a_certificate_that_is_malformed_is_refused() -> None:
    old = csr(GOOD)
    chain = base64.b64encode(block(b"CERTIFICATE", b"AAAA\n")).decode()
    new = replace(old, status=replace(old.status, certificate=chain))
    assert [error.field for error in validate_update(*KIND, new, old, subresource="status")] == [
        "status.certificate"
    ]
