"""Validation of CertificateSigningRequests."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from functools import lru_cache

from steersman.api.generated import certificates_v1
from steersman.api.go_quote import quote
from steersman.api.pem import (
    CERTIFICATE,
    InvalidCertificateRequest,
    blocks,
    parse_certificate,
    parse_csr,
    signature_error,
)
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors, format_diff
from steersman.server.validation.rules import AnyRules, GroupKind, Rules

_LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
_TRUE_ONLY_TYPES = ("Approved", "Denied", "Failed")
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


def validate_csr(errors: FieldErrors, csr: certificates_v1.CertificateSigningRequest) -> None:
    meta.validate_object_meta(errors, csr.metadata, names.any_name, namespaced=False)
    _validate_csr_spec(errors, csr)


def _validate_csr_spec(errors: FieldErrors, csr: certificates_v1.CertificateSigningRequest) -> None:
    spec = csr.spec
    detail = pem_csr_error(spec.request)
    if detail:
        errors.invalid("spec.request", spec.request, detail)
    if not spec.usages:
        errors.required("spec.usages")
    for i, usage in enumerate(spec.usages):
        if usage not in _USAGES:
            errors.not_supported(f"spec.usages[{i}]", usage, _USAGES)
    for i, usage in enumerate(spec.usages):
        if usage in spec.usages[:i]:
            errors.duplicate(f"spec.usages[{i}]", usage)
    if spec.signerName == _LEGACY_SIGNER:
        message = "the legacy signerName is not allowed via this API version"
        errors.invalid("spec.signerName", spec.signerName, message)
    else:
        validate_signer_name(errors, "spec.signerName", spec.signerName)
    seconds = spec.expirationSeconds
    if seconds is not None and seconds < 600:
        short = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.invalid("spec.expirationSeconds", seconds, short)
    _validate_csr_conditions(errors, csr)


def _validate_csr_conditions(errors: FieldErrors, csr: certificates_v1.CertificateSigningRequest) -> None:
    path = "status.conditions"
    seen: list[str] = []
    for i, condition in enumerate(csr.status.conditions):
        type_ = condition.type
        if not type_:
            errors.required(f"{path}[{i}].type")
        errors.enum(
            f"{path}[{i}].status", condition.status, ("True",) if type_ in _TRUE_ONLY_TYPES else _STATUSES
        )
        other = {"Approved": "Denied", "Denied": "Approved"}.get(type_)
        if other in seen:
            errors.invalid(path, type_, _EXCLUSIVE)
        if type_ in seen:
            errors.duplicate(f"{path}[{i}].type", type_)
        seen.append(type_)


@lru_cache(maxsize=8)
def pem_csr_error(request: str) -> str:
    """The message for an invalid request, which is PEM in base64; empty where it is valid."""
    try:
        return signature_error(parse_csr(request))
    except InvalidCertificateRequest as error:
        return str(error)


_MAX_DOMAIN_BYTES = 253
_MAX_NAME_BYTES = 571


def validate_signer_name(errors: FieldErrors, path: str, name: str) -> None:
    """Validates the name of a signer: a domain and a path, such as ``example.com/signer-name``."""
    if not name:
        errors.required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        form = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errors.invalid(path, name, form)
        return
    if len(domain) > _MAX_DOMAIN_BYTES:
        errors.too_long(path, _MAX_DOMAIN_BYTES)
    parts = domain.split(".")
    _validate_signer_labels(errors, path, domain, parts, names.dns1123_label)
    if len(parts) < 2:
        errors.invalid(path, domain, "should be a domain with at least two segments separated by dots")
    _validate_signer_labels(errors, path, rest, rest.split("."), names.dns1123_subdomain)
    if len(name) > _MAX_NAME_BYTES:
        errors.too_long(path, _MAX_NAME_BYTES)


def _validate_signer_labels(
    errors: FieldErrors, path: str, name: str, parts: list[str], rule: names.NameRule
) -> None:
    for part in parts:
        if messages := rule(part):
            for detail in messages:
                errors.invalid(path, name, f'validating label "{part}": {detail}')
            return


# -- updates ----------------------------------------------------------------------------------


def validate_csr_update(
    errors: FieldErrors,
    new: certificates_v1.CertificateSigningRequest,
    old: certificates_v1.CertificateSigningRequest,
) -> None:
    _validate_csr_change(errors, new, old, may_approve=False, may_certify=False)


def validate_csr_approval(
    errors: FieldErrors,
    new: certificates_v1.CertificateSigningRequest,
    old: certificates_v1.CertificateSigningRequest,
) -> None:
    """Validates an update of the approval subresource."""
    _validate_csr_change(errors, new, old, may_approve=True, may_certify=False)


def validate_csr_status(
    errors: FieldErrors,
    new: certificates_v1.CertificateSigningRequest,
    old: certificates_v1.CertificateSigningRequest,
) -> None:
    """Validates an update of the status, by which a signer sets the certificate once."""
    _validate_csr_change(errors, new, old, may_approve=False, may_certify=True)


def _validate_csr_change(
    errors: FieldErrors,
    new: certificates_v1.CertificateSigningRequest,
    old: certificates_v1.CertificateSigningRequest,
    *,
    may_approve: bool,
    may_certify: bool,
) -> None:
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.any_name, namespaced=False)
    _validate_csr_spec(errors, new)
    path = "status.conditions"
    for type_ in _TRUE_ONLY_TYPES:
        if len(_conditions_of(new, type_)) < len(_conditions_of(old, type_)):
            errors.forbidden(path, f'updates may not remove a condition of type "{type_}"')
    for type_ in ("Approved", "Denied") if not may_approve else ():
        now, was = _conditions_of(new, type_), _conditions_of(old, type_)
        if len(now) > len(was):
            errors.forbidden(path, f'updates may not add a condition of type "{type_}"')
        elif len(now) == len(was) and now != was:
            changed = format_diff(was[0], now[0])
            errors.forbidden(path, f'updates may not modify a condition of type "{type_}"\n{changed}')
    if new.status.certificate != old.status.certificate:
        if not may_certify:
            errors.forbidden("status.certificate", "updates may not set certificate content")
        elif old.status.certificate:
            errors.forbidden("status.certificate", "updates may not modify existing certificate content")
        elif detail := _certificate_error(new.status.certificate):
            errors.invalid("status.certificate", "<certificate data>", detail)
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)


def _certificate_error(text: str | None) -> str:
    """The message for an invalid certificate chain; empty where it is valid. Text between the blocks is allowed."""
    try:
        chain = b64decode(text or "", validate=True)
    except ValueError:
        chain = b""
    found = list(blocks(chain))
    for block in found:
        if block.type != CERTIFICATE:
            return f"only CERTIFICATE PEM blocks are allowed, found {quote(block.type)}"
        if block.headers:
            return "no PEM block headers are permitted"
        if not block.content:
            return "found CERTIFICATE PEM block containing 0 certificates"
        try:
            # differs: upstream accepts several certificates in one block.
            parse_certificate(block.content)
        except ValueError as error:
            # differs: upstream says where in the encoding the error is.
            return str(error)
    return "" if found else "must contain at least one CERTIFICATE PEM block"


def _conditions_of(
    csr: certificates_v1.CertificateSigningRequest, type_: str
) -> list[certificates_v1.CertificateSigningRequestCondition]:
    return [condition for condition in csr.status.conditions if condition.type == type_]


RULES: Mapping[GroupKind, AnyRules] = {
    ("certificates.k8s.io", "CertificateSigningRequest"): Rules[certificates_v1.CertificateSigningRequest](
        validate_csr,
        validate_csr_update,
        status=validate_csr_status,
        subresources={"approval": validate_csr_approval},
    ),
}
