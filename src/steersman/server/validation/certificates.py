"""Requests for certificates."""

from __future__ import annotations

import re
from base64 import b64decode
from functools import lru_cache

from steersman.api.generated import certificates_v1
from steersman.server.validation import metadata as meta
from steersman.server.validation import names, signers
from steersman.server.validation.diff import difference
from steersman.server.validation.field_errors import FieldErrors

_LEGACY = "kubernetes.io/legacy-unknown"
_ONLY_TRUE = ("Approved", "Denied", "Failed")
_STATUSES = ("False", "True", "Unknown")
_EXCLUSIVE = "Approved and Denied conditions are mutually exclusive"
_USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)


def create(errors: FieldErrors, csr: certificates_v1.CertificateSigningRequest) -> None:
    meta.check(errors, csr.metadata, names.anything, namespaced=False)
    _request(errors, csr)


def _request(errors: FieldErrors, csr: certificates_v1.CertificateSigningRequest) -> None:
    spec = csr.spec
    why = request_error(spec.request)
    if why:
        errors.invalid("spec.request", spec.request, why)
    if not spec.usages:
        errors.required("spec.usages")
    for i, usage in enumerate(spec.usages):
        if usage not in _USAGES:
            errors.not_supported(f"spec.usages[{i}]", usage, _USAGES)
    for i, usage in enumerate(spec.usages):
        if usage in spec.usages[:i]:
            errors.duplicate(f"spec.usages[{i}]", usage)
    if spec.signerName == _LEGACY:
        says = "the legacy signerName is not allowed via this API version"
        errors.invalid("spec.signerName", spec.signerName, says)
    else:
        signers.signer_name(errors, "spec.signerName", spec.signerName)
    seconds = spec.expirationSeconds
    if seconds is not None and seconds < 600:
        short = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.invalid("spec.expirationSeconds", seconds, short)
    _conditions(errors, csr)


def _conditions(errors: FieldErrors, csr: certificates_v1.CertificateSigningRequest) -> None:
    path = "status.conditions"
    seen: list[str] = []
    for i, condition in enumerate(csr.status.conditions):
        type_ = condition.type
        if not type_:
            errors.required(f"{path}[{i}].type")
        errors.enum(f"{path}[{i}].status", condition.status, ("True",) if type_ in _ONLY_TRUE else _STATUSES)
        other = {"Approved": "Denied", "Denied": "Approved"}.get(type_)
        if other in seen:
            errors.invalid(path, type_, _EXCLUSIVE)
        if type_ in seen:
            errors.duplicate(f"{path}[{i}].type", type_)
        seen.append(type_)


@lru_cache(maxsize=64)
def request_error(request: str) -> str:
    """What is wrong with a request, which is PEM in base64; empty if nothing is."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        pem = b64decode(request, validate=True)
    except ValueError:
        pem = b""
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in pem:
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        csr = x509.load_pem_x509_csr(pem)
        sound = csr.is_signature_valid
    except (ValueError, UnsupportedAlgorithm):
        # differs: the real server says where in the encoding it got lost.
        return "asn1: structure error"
    return "" if sound else "x509: signature verification failed"


# -- updates ----------------------------------------------------------------------------------


def update(
    errors: FieldErrors,
    new: certificates_v1.CertificateSigningRequest,
    old: certificates_v1.CertificateSigningRequest,
) -> None:
    _update(errors, new, old, approves=False, certifies=False)


def approval(
    errors: FieldErrors,
    new: certificates_v1.CertificateSigningRequest,
    old: certificates_v1.CertificateSigningRequest,
) -> None:
    """The subresource by which a request is approved or denied."""
    _update(errors, new, old, approves=True, certifies=False)


def status(
    errors: FieldErrors,
    new: certificates_v1.CertificateSigningRequest,
    old: certificates_v1.CertificateSigningRequest,
) -> None:
    """The signer's: it may bring the certificate, once."""
    _update(errors, new, old, approves=False, certifies=True)


def _update(
    errors: FieldErrors,
    new: certificates_v1.CertificateSigningRequest,
    old: certificates_v1.CertificateSigningRequest,
    *,
    approves: bool,
    certifies: bool,
) -> None:
    meta.again(errors, new.metadata, old.metadata, names.anything, namespaced=False)
    _request(errors, new)
    path = "status.conditions"
    for type_ in _ONLY_TRUE:
        if len(_of(new, type_)) < len(_of(old, type_)):
            errors.forbidden(path, f'updates may not remove a condition of type "{type_}"')
    for type_ in ("Approved", "Denied") if not approves else ():
        now, was = _of(new, type_), _of(old, type_)
        if len(now) > len(was):
            errors.forbidden(path, f'updates may not add a condition of type "{type_}"')
        elif len(now) == len(was) and now != was:
            changed = difference(was[0], now[0])
            errors.forbidden(path, f'updates may not modify a condition of type "{type_}"\n{changed}')
    if new.status.certificate != old.status.certificate:
        if not certifies:
            errors.forbidden("status.certificate", "updates may not set certificate content")
        elif old.status.certificate:
            errors.forbidden("status.certificate", "updates may not modify existing certificate content")
        elif why := _uncertified(new.status.certificate):
            errors.invalid("status.certificate", "<certificate data>", why)
    meta.check_update(errors, new.metadata, old.metadata)


_BLOCK = re.compile(rb"-----BEGIN ([^\n]*?)-----\n(.*?)-----END \1-----", re.DOTALL)


def _uncertified(text: str | None) -> str:
    """Why something is no chain of certificates."""
    from cryptography import x509

    try:
        pem = b64decode(text or "", validate=True)
    except ValueError:
        pem = b""
    blocks = list(_BLOCK.finditer(pem))
    for block in blocks:
        if block[1] != b"CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{block[1].decode("utf-8", "replace")}"'
        if b":" in block[2]:
            return "no PEM block headers are permitted"
        try:
            x509.load_pem_x509_certificate(block[0])
        except ValueError as error:
            # differs: the real server says where in the encoding it got lost.
            return str(error)
    return "" if blocks else "must contain at least one CERTIFICATE PEM block"


def _of(
    csr: certificates_v1.CertificateSigningRequest, type_: str
) -> list[certificates_v1.CertificateSigningRequestCondition]:
    return [condition for condition in csr.status.conditions if condition.type == type_]
