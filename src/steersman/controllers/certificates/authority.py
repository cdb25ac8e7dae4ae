"""Certificate authority: signs a PKCS #10 request.

The certificate takes the subject, the alternative names and the key of the request, and none of its other
extensions: a request cannot ask to become a CA. The usages are those of the approved API object.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.api.pem import parse_certificates, parse_private_key, signature_error
from steersman.controllers.certificates.requests import subject_attributes

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

BACKDATE = timedelta(minutes=5)
"""Certificates are valid from five minutes ago, for machines whose clock is behind."""
SHORT_LIVED = timedelta(hours=8)
"""A shorter lifetime is counted from now, a longer one from the backdated start."""
MIN_LIFETIME = timedelta(minutes=10)

KEY_USAGES = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
EXTENDED_USAGES = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}


class SigningError(Exception):
    """The CA cannot sign the request. The message never quotes a key."""


class Authority(msgspec.Struct, frozen=True):
    """The certificate and the private key of a CA."""

    certificate: x509.Certificate
    key: CertificateIssuerPrivateKeyTypes


def load(cert: bytes, key: bytes) -> Authority:
    """Loads a CA from PEM. Raises `SigningError` unless it is one certificate and its key."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    try:
        found = parse_certificates(cert)
    except ValueError:
        raise SigningError("the CA certificate cannot be read") from None
    if len(found) != 1:
        raise SigningError(f"expected 1 CA certificate, found {len(found)}")
    try:
        private = parse_private_key(key)
    except ValueError:
        raise SigningError("the CA key cannot be read") from None
    if not isinstance(private, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey):
        raise SigningError("the CA key is of a kind that cannot sign certificates")
    if private.public_key() != found[0].public_key():
        raise SigningError("the CA key does not belong to the CA certificate")
    return Authority(found[0], private)


def lifetime(maximum: timedelta, expiration_seconds: int | None) -> timedelta:
    """The lifetime of a certificate: the requested one, within bounds."""
    if expiration_seconds is None:
        return maximum
    requested = timedelta(seconds=expiration_seconds)
    return maximum if requested > maximum else max(requested, MIN_LIFETIME)


def validity(now: datetime, ttl: timedelta, end: datetime) -> tuple[datetime, datetime]:
    """The start and end of a certificate's validity, which never exceeds that of the CA, ``end``."""
    begin = now - BACKDATE
    until = min(now + ttl if ttl < SHORT_LIVED else now + ttl - BACKDATE, end)
    if begin >= end:
        raise SigningError(f"the signer has expired: NotAfter={end}")
    if now >= end:
        raise SigningError(f"refusing to sign a certificate that expired in the past: NotAfter={end}")
    return begin, until


def sign(
    authority: Authority,
    request: x509.CertificateSigningRequest,
    usages: Collection[str],
    *,
    serial: int,
    now: datetime,
    ttl: timedelta,
) -> bytes:
    """Signs a request; returns the certificate in PEM. Raises `SigningError`."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    unknown = [usage for usage in usages if usage not in KEY_USAGES and usage not in EXTENDED_USAGES]
    if unknown:
        raise SigningError(f"unrecognized usage values: {unknown}")
    if error := signature_error(request):
        raise SigningError(f"unable to verify certificate request signature: {error}")
    begin, until = validity(now, ttl, authority.certificate.not_valid_after_utc)
    builder = (
        x509.CertificateBuilder()
        .serial_number(serial)
        .subject_name(_subject(request))
        .issuer_name(authority.certificate.subject)
        .public_key(request.public_key())
        .not_valid_before(begin.replace(microsecond=0))
        .not_valid_after(until.replace(microsecond=0))
    )
    for extension, critical in _extensions(authority, request, usages):
        builder = builder.add_extension(extension, critical)
    certificate = builder.sign(authority.key, _hash(authority.key))
    return certificate.public_bytes(Encoding.PEM)


def _subject(request: x509.CertificateSigningRequest) -> x509.Name:
    """The attributes of the subject that Go knows, in Go's order; all others are dropped."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    several = (
        NameOID.COUNTRY_NAME,
        NameOID.ORGANIZATION_NAME,
        NameOID.ORGANIZATIONAL_UNIT_NAME,
        NameOID.LOCALITY_NAME,
        NameOID.STATE_OR_PROVINCE_NAME,
        NameOID.STREET_ADDRESS,
        NameOID.POSTAL_CODE,
    )
    rdns = []
    for oid in several:
        if found := dict.fromkeys(subject_attributes(request, oid)):
            rdns.append(x509.RelativeDistinguishedName(list(found)))
    for oid in (NameOID.COMMON_NAME, NameOID.SERIAL_NUMBER):
        if last := subject_attributes(request, oid)[-1:]:
            rdns.append(x509.RelativeDistinguishedName(last))
    return x509.Name(rdns)


def _extensions(
    authority: Authority, request: x509.CertificateSigningRequest, usages: Collection[str]
) -> Iterator[tuple[x509.ExtensionType, bool]]:
    from cryptography import x509

    flags = dict.fromkeys(dict.fromkeys(KEY_USAGES.values()), False)
    flags |= {KEY_USAGES[usage]: True for usage in usages if usage in KEY_USAGES}
    if not flags["key_agreement"]:
        # differs: upstream sets these two alone as well. They are only defined together with key agreement.
        flags["encipher_only"] = flags["decipher_only"] = False
    if any(flags.values()):
        yield x509.KeyUsage(**flags), True
    # In Go's order, which is that of the table.
    extended = dict.fromkeys(oid for usage, oid in EXTENDED_USAGES.items() if usage in usages)
    if extended:
        yield x509.ExtendedKeyUsage(map(x509.ObjectIdentifier, extended)), False
    yield x509.BasicConstraints(ca=False, path_length=None), True
    try:
        parent = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        yield x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(parent), False
    except x509.ExtensionNotFound:
        pass
    names = _names(request)
    if names:
        yield x509.SubjectAlternativeName(names), not list(_subject(request))


def _names(request: x509.CertificateSigningRequest) -> list[Any]:
    from cryptography import x509

    try:
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    supported = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)
    return [name for kind in supported for name in names if isinstance(name, kind)]


def _hash(key: object) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None:
    """The hash to sign with, by the size of the key."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.key_size > 384:
        return hashes.SHA512()
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.key_size > 256:
        return hashes.SHA384()
    return hashes.SHA256()
