"""PKCS #10 certificate requests, and the rules of the Kubernetes signers for them.

`read` turns a request into a plain value, so that the rules are functions of values. cryptography is imported
with the first request, to keep it out of managers that never see one.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from steersman.api.kinds.certificates import CertificateSigningRequest

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest as Pkcs10

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
LEGACY = "kubernetes.io/legacy-unknown"

NODE_PREFIX = "system:node:"
NODES_GROUP = ("system:nodes",)

_PEM = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]+)-----\s*\n(?:[^\n]*:[^\n]*\n)*([A-Za-z0-9+/=\s]+)-----END \1-----"
)


class MalformedRequest(ValueError):
    """``spec.request`` is not a PKCS #10 request in PEM. The message never quotes it."""


class RequestedCertificate(msgspec.Struct, frozen=True):
    """The subject and the alternative names of the requested certificate."""

    common_name: str
    organizations: tuple[str, ...]
    dns: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


def parse(request: CertificateSigningRequest) -> Pkcs10:
    """Parses the PKCS #10 request. Raises `MalformedRequest`."""
    from cryptography import x509

    try:
        text = base64.b64decode(request.spec.request, validate=True)
    except binascii.Error:
        raise MalformedRequest("the request is not base64") from None
    found = _PEM.search(text)
    if found is None or found[1] != b"CERTIFICATE REQUEST":
        raise MalformedRequest("PEM block type must be CERTIFICATE REQUEST")
    try:
        return x509.load_der_x509_csr(base64.b64decode(found[2]))
    except (ValueError, binascii.Error):
        raise MalformedRequest("the request cannot be parsed") from None


def read(request: CertificateSigningRequest) -> RequestedCertificate:
    """Reads the requested subject and alternative names. Raises `MalformedRequest`."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    csr = parse(request)
    try:
        names = csr.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        organizations = csr.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
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
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise MalformedRequest("the request cannot be parsed") from None


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
