"""Admission of CertificateSigningRequests: signers, approvers, and no client certificates of ``system:masters``.

CertificateApproval and CertificateSigning ask the authorizer whether a user may act for a signer; without an
authorizer every user may.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from steersman.api.pem import parse_csr
from steersman.server.admission.plugin import AdmissionDenied, Listers, Plugin
from steersman.server.auth import attributes as auth
from steersman.server.auth.attributes import Authorizer
from steersman.server.auth.users import User
from steersman.server.server import AdmissionAttributes, BeforeWrite

REQUESTS = "certificatesigningrequests.certificates.k8s.io"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"

Allows: TypeAlias = Callable[[User, str, str], bool]
"""Whether a user may use a verb (``approve``, ``sign``) on a signer."""


def always_allowed(user: User, verb: str, signer: str) -> bool:
    """Allows every user every signer, where there is no authorizer."""
    return True


def allowed_by(authorizer: Authorizer) -> Allows:
    """Asks an authorizer for the signer itself, and for all signers of its domain."""

    def allows(user: User, verb: str, signer: str) -> bool:
        domain = f"{signer.partition('/')[0]}/*"
        return any(
            authorizer.authorize(
                auth.Attributes(user, verb, "certificates.k8s.io", "signers", name=name)
            ).allowed
            for name in (signer, domain)
        )

    return allows


class CertificateSubjectRestriction(Plugin):
    """Refuses requests for client certificates of cluster administrators."""

    name: ClassVar[str] = "CertificateSubjectRestriction"
    validates: ClassVar[tuple[str, ...]] = (REQUESTS,)

    def validate(self, request: AdmissionAttributes, listers: Listers) -> BeforeWrite | None:
        spec = request.obj.spec
        if request.operation != "CREATE" or spec.signerName != CLIENT_SIGNER:
            return None
        try:
            organizations = _organizations(spec.request)
        except ValueError as error:
            raise AdmissionDenied(f"failed to parse CSR: {error}") from None
        if "system:masters" in organizations:
            raise AdmissionDenied(f"use of {CLIENT_SIGNER} signer with system:masters group is not allowed")
        return None


def _organizations(request: str) -> list[str]:
    # Costly to import, and seldom needed.
    from cryptography import x509

    subject = parse_csr(request).subject
    return [str(each.value) for each in subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)]


@dataclass(frozen=True, slots=True)
class CertificateApproval(Plugin):
    """Denies approvals by users without the verb ``approve`` on the signer."""

    allows: Allows = always_allowed

    name: ClassVar[str] = "CertificateApproval"
    validates: ClassVar[tuple[str, ...]] = (REQUESTS,)
    subresources: ClassVar[tuple[str, ...]] = ("approval",)

    def validate(self, request: AdmissionAttributes, listers: Listers) -> BeforeWrite | None:
        signer = request.old.spec.signerName if request.old is not None else ""
        if not self.allows(request.user, "approve", signer):
            raise AdmissionDenied(f'user not permitted to approve requests with signerName "{signer}"')
        return None


@dataclass(frozen=True, slots=True)
class CertificateSigning(Plugin):
    """Denies certificates by users without the verb ``sign`` on the signer."""

    allows: Allows = always_allowed

    name: ClassVar[str] = "CertificateSigning"
    validates: ClassVar[tuple[str, ...]] = (REQUESTS,)
    subresources: ClassVar[tuple[str, ...]] = ("status",)

    def validate(self, request: AdmissionAttributes, listers: Listers) -> BeforeWrite | None:
        new, old = request.obj, request.old
        if old is None or new.status.certificate == old.status.certificate:
            return None
        if not self.allows(request.user, "sign", old.spec.signerName):
            raise AdmissionDenied(
                f'user not permitted to sign requests with signerName "{old.spec.signerName}"'
            )
        return None
