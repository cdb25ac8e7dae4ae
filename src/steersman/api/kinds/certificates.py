"""Views of CertificateSigningRequests, ClusterTrustBundles and PodCertificateRequests."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.kinds import EMPTY, Condition, Object, Struct
from steersman.api.scheme import Kind, register

GROUP = "certificates.k8s.io"


class CertificateSigningRequestSpec(Struct, frozen=True):
    request: str = ""
    """PEM, encoded as base64."""
    signerName: str = ""
    expirationSeconds: int | None = None
    usages: tuple[str, ...] = ()
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = EMPTY


class CertificateSigningRequestStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()
    certificate: str = ""
    """PEM, encoded as base64; empty until the certificate is issued."""


class CertificateSigningRequest(Object, frozen=True):
    spec: CertificateSigningRequestSpec = CertificateSigningRequestSpec()
    status: CertificateSigningRequestStatus = CertificateSigningRequestStatus()


class ClusterTrustBundleSpec(Struct, frozen=True):
    signerName: str = ""
    trustBundle: str = ""


class ClusterTrustBundle(Object, frozen=True):
    """All fields."""

    spec: ClusterTrustBundleSpec = ClusterTrustBundleSpec()


class PodCertificateRequest(Object, frozen=True):
    pass


CERTIFICATESIGNINGREQUESTS = register(
    Kind(
        GROUP,
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        False,
        CertificateSigningRequest,
    )
)
CLUSTERTRUSTBUNDLES = register(
    Kind(GROUP, "v1beta1", "ClusterTrustBundle", "clustertrustbundles", False, ClusterTrustBundle)
)
PODCERTIFICATEREQUESTS = register(
    Kind(GROUP, "v1beta1", "PodCertificateRequest", "podcertificaterequests", True, PodCertificateRequest)
)
