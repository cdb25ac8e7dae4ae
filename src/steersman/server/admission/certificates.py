"""Admission of CertificateSigningRequests: signers, approvers, and no client certificates of ``system:masters``.

CertificateApproval and CertificateSigning ask the server's authorizer whether a user may act for a signer; without
an authorizer every user may.
"""

from __future__ import annotations

from typing import ClassVar

from steersman.api.pem import parse_csr
from steersman.server.admission.plugin import AdmissionDenied, Listers, Plugin
from steersman.server.auth.attributes import Attributes
from steersman.server.server import AdmissionAttributes, BeforeWrite

REQUESTS = "certificatesigningrequests.certificates.k8s.io"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


def _may(request: AdmissionAttributes, listers: Listers, verb: str, signer: str) -> bool:
    """Whether a user has a verb (``approve``, ``sign``) on a signer, or on all signers of its domain."""
    if listers.authorizer is None:
        return True
    asked = Attributes(request.user, verb, "certificates.k8s.io", "signers", name=signer)
    domain = asked._replace(name=f"{signer.partition('/')[0]}/*")
    return any(listers.authorizer.authorize(each).allowed for each in (asked, domain))


class CertificateSubjectRestriction(Plugin, frozen=True):
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


class CertificateApproval(Plugin, frozen=True):
    """Denies approvals by users without the verb ``approve`` on the signer."""

    name: ClassVar[str] = "CertificateApproval"
    validates: ClassVar[tuple[str, ...]] = (REQUESTS,)
    subresources: ClassVar[tuple[str, ...]] = ("approval",)

    def validate(self, request: AdmissionAttributes, listers: Listers) -> BeforeWrite | None:
        signer = request.old.spec.signerName if request.old is not None else ""
        if not _may(request, listers, "approve", signer):
            raise AdmissionDenied(f'user not permitted to approve requests with signerName "{signer}"')
        return None


class CertificateSigning(Plugin, frozen=True):
    """Denies certificates and conditions by users without the verb ``sign`` on the signer."""

    name: ClassVar[str] = "CertificateSigning"
    validates: ClassVar[tuple[str, ...]] = (REQUESTS,)
    subresources: ClassVar[tuple[str, ...]] = ("status",)

    def validate(self, request: AdmissionAttributes, listers: Listers) -> BeforeWrite | None:
        new, old = request.obj, request.old
        if old is None:
            return None
        now, was = new.status, old.status
        if (now.certificate, now.conditions) == (was.certificate, was.conditions):
            return None
        if not _may(request, listers, "sign", old.spec.signerName):
            raise AdmissionDenied(
                f'user not permitted to sign requests with signerName "{old.spec.signerName}"'
            )
        return None
