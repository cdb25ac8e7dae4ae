"""What a certificate request asks for, and the rules of Kubernetes' own signers about it.

`read` takes a PKCS #10 request apart into a plain value, so that the rules are functions of values.
cryptography is loaded when the first request comes: a manager that never sees one does without.
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

NODE = "system:node:"
NODES = ("system:nodes",)

_PEM = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]+)-----\s*\n(?:[^\n]*:[^\n]*\n)*([A-Za-z0-9+/=\s]+)-----END \1-----"
)


class Malformed(ValueError):
    """This is not a certificate request. The message never quotes it."""


class Asked(msgspec.Struct, frozen=True):
    """What a request asks for."""

    common_name: str
    organizations: tuple[str, ...]
    dns: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


def parse(request: CertificateSigningRequest) -> Pkcs10:
    """The request as it was sent. Raises `Malformed`."""
    from cryptography import x509

    try:
        text = base64.b64decode(request.spec.request, validate=True)
    except binascii.Error:
        raise Malformed("the request is not base64") from None
    found = _PEM.search(text)
    if found is None or found[1] != b"CERTIFICATE REQUEST":
        raise Malformed("PEM block type must be CERTIFICATE REQUEST")
    try:
        return x509.load_der_x509_csr(base64.b64decode(found[2]))
    except (ValueError, binascii.Error):
        raise Malformed("the request cannot be parsed") from None


def read(request: CertificateSigningRequest) -> Asked:
    """What the request asks for. Raises `Malformed`."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    asked = parse(request)
    try:
        names = asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        organizations = asked.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        try:
            sans = asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            sans = x509.SubjectAlternativeName([])
        return Asked(
            # Of several common names the last one counts, as Go has it.
            common_name=str(names[-1].value) if names else "",
            organizations=tuple(str(one.value) for one in organizations),
            dns=tuple(sans.get_values_for_type(x509.DNSName)),
            ips=tuple(str(ip) for ip in sans.get_values_for_type(x509.IPAddress)),
            emails=tuple(sans.get_values_for_type(x509.RFC822Name)),
            uris=tuple(sans.get_values_for_type(x509.UniformResourceIdentifier)),
        )
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise Malformed("the request cannot be parsed") from None


def _usages(usages: Collection[str], purpose: str) -> str:
    """What is wrong with a kubelet's usages. Only RSA keys need key encipherment, so it may be left out."""
    wanted = {"digital signature", "key encipherment", purpose}
    if set(usages) in (wanted, wanted - {"key encipherment"}):
        return ""
    return f"usages did not match [{' '.join(sorted(wanted))}]"


def _kubelet_client(asked: Asked, usages: Collection[str]) -> str:
    if asked.organizations != NODES:
        return "subject organization is not system:nodes"
    if asked.dns:
        return "DNS subjectAltNames are not allowed"
    if asked.emails:
        return "Email subjectAltNames are not allowed"
    if asked.ips:
        return "IP subjectAltNames are not allowed"
    if asked.uris:
        return "URI subjectAltNames are not allowed"
    if not asked.common_name.startswith(NODE):
        return "subject common name does not begin with system:node:"
    return _usages(usages, "client auth")


def _kubelet_serving(asked: Asked, usages: Collection[str]) -> str:
    if asked.organizations != NODES:
        return "subject organization is not system:nodes"
    if not asked.dns and not asked.ips:
        return "DNS or IP subjectAltName is required"
    if asked.emails:
        return "Email subjectAltNames are not allowed"
    if asked.uris:
        return "URI subjectAltNames are not allowed"
    if wrong := _usages(usages, "server auth"):
        return wrong
    return (
        "" if asked.common_name.startswith(NODE) else "subject common name does not begin with system:node:"
    )


def _client(asked: Asked, usages: Collection[str]) -> str:
    for usage in usages:
        if usage not in ("digital signature", "key encipherment", "client auth"):
            return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


def _anything(asked: Asked, usages: Collection[str]) -> str:
    return ""


RULES = {
    CLIENT: _client,
    KUBELET_CLIENT: _kubelet_client,
    KUBELET_SERVING: _kubelet_serving,
    LEGACY: _anything,
}
"""What is wrong with a request for each signer; empty where nothing is."""
