"""PKCS #10 certificate requests, and the rules of the Kubernetes signers for them.

`read` turns a parsed request into a plain value, so that the rules are functions of values. A controller parses a
request once (`pem.parse_csr`): the request that meets the rules is the one that is signed. cryptography is imported
with the first request, to keep it out of managers that never see one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from steersman.api.pem import InvalidCertificateRequest

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest as Pkcs10
    from cryptography.x509 import NameAttribute, ObjectIdentifier

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
LEGACY = "kubernetes.io/legacy-unknown"

MIN_BACKOFF = 0.2
"""The back-off after the first failed round of a request, in seconds."""
NODE_PREFIX = "system:node:"
NODES_GROUP = ("system:nodes",)

_EXTENSION_REQUEST = "1.2.840.113549.1.9.14"
_MICROSOFT_EXTENSION_REQUEST = "1.3.6.1.4.1.311.2.1.14"
_GO_STRINGS = ("UTF8String", "PrintableString", "IA5String", "NumericString", "T61String", "BMPString")
"""The ASN.1 types that are strings to Go. It ignores attributes of the subject that have another type."""


class RequestedCertificate(msgspec.Struct, frozen=True):
    """The subject and the alternative names of the requested certificate."""

    common_name: str
    organizations: tuple[str, ...]
    dns: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


def subject_attributes(csr: Pkcs10, oid: ObjectIdentifier) -> list[NameAttribute[str | bytes]]:
    """The attributes of the subject that Go sees, and that kubectl shows."""
    return [each for each in csr.subject.get_attributes_for_oid(oid) if each._type.name in _GO_STRINGS]


def _check_extension_requests(csr: Pkcs10) -> None:
    """Refuses a request whose extensions Go and cryptography read from different places.

    Go joins those of all extensionRequest attributes; cryptography reads the first, or Microsoft's attribute, which
    Go ignores. A request could show one list of alternative names and have another one signed.
    """
    found = [each.oid.dotted_string for each in csr.attributes]
    # differs: upstream signs such a request, with the names that Go reads.
    if _MICROSOFT_EXTENSION_REQUEST in found or found.count(_EXTENSION_REQUEST) > 1:
        raise InvalidCertificateRequest(
            "the request must have its extensions in one extensionRequest attribute"
        )


def read(csr: Pkcs10) -> RequestedCertificate:
    """Reads the requested subject and alternative names. Raises `InvalidCertificateRequest`."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        _check_extension_requests(csr)
        names = subject_attributes(csr, NameOID.COMMON_NAME)
        organizations = subject_attributes(csr, NameOID.ORGANIZATION_NAME)
        try:
            sans = csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            sans = x509.SubjectAlternativeName([])
        return RequestedCertificate(
            # The last of several common names counts, as in Go.
            common_name=str(names[-1].value) if names else "",
            organizations=tuple(str(one.value) for one in organizations),
            dns=tuple(sans.get_values_for_type(x509.DNSName)),
            ips=tuple(str(ip) for ip in sans.get_values_for_type(x509.IPAddress)),
            emails=tuple(sans.get_values_for_type(x509.RFC822Name)),
            uris=tuple(sans.get_values_for_type(x509.UniformResourceIdentifier)),
        )
    except InvalidCertificateRequest:
        raise
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise InvalidCertificateRequest("the request cannot be parsed") from None


def _usages(usages: Collection[str], purpose: str) -> str:
    """Why the usages of a kubelet's request are wrong; empty if they are not. Only RSA keys need key encipherment."""
    wanted = {"digital signature", "key encipherment", purpose}
    if set(usages) in (wanted, wanted - {"key encipherment"}):
        return ""
    return f"usages did not match [{' '.join(sorted(wanted))}]"


def _kubelet_client(requested: RequestedCertificate, usages: Collection[str]) -> str:
    if requested.organizations != NODES_GROUP:
        return "subject organization is not system:nodes"
    if requested.dns:
        return "DNS subjectAltNames are not allowed"
    if requested.emails:
        return "Email subjectAltNames are not allowed"
    if requested.ips:
        return "IP subjectAltNames are not allowed"
    if requested.uris:
        return "URI subjectAltNames are not allowed"
    if not requested.common_name.startswith(NODE_PREFIX):
        return "subject common name does not begin with system:node:"
    return _usages(usages, "client auth")


def _kubelet_serving(requested: RequestedCertificate, usages: Collection[str]) -> str:
    if requested.organizations != NODES_GROUP:
        return "subject organization is not system:nodes"
    if not requested.dns and not requested.ips:
        return "DNS or IP subjectAltName is required"
    if requested.emails:
        return "Email subjectAltNames are not allowed"
    if requested.uris:
        return "URI subjectAltNames are not allowed"
    if wrong := _usages(usages, "server auth"):
        return wrong
    return (
        ""
        if requested.common_name.startswith(NODE_PREFIX)
        else "subject common name does not begin with system:node:"
    )


def _client(requested: RequestedCertificate, usages: Collection[str]) -> str:
    for usage in usages:
        if usage not in ("digital signature", "key encipherment", "client auth"):
            return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


def _any_request(requested: RequestedCertificate, usages: Collection[str]) -> str:
    return ""


RULES = {
    CLIENT: _client,
    KUBELET_CLIENT: _kubelet_client,
    KUBELET_SERVING: _kubelet_serving,
    LEGACY: _any_request,
}
"""By signer: why it rejects a request; empty if it does not."""
