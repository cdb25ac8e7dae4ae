"""Verification of client certificates against CAs, by the rules of Go's crypto/x509."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from steersman.api.bounded_cache import BoundedCache
from steersman.api.jwt import InvalidCredential
from steersman.api.pem import parse_certificates

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

MAX_INTERMEDIATES = 8
"""Intermediate certificates of a chain that are considered."""


RECHECKED = timedelta(minutes=1)
"""The time after which a certificate is verified again, for it may have expired."""


class ClientCAs:
    """Verifies the client certificates of a server. Results are cached: a client sends many requests."""

    def __init__(self, pem: bytes) -> None:
        self._pem = pem
        self._roots: tuple[Certificate, ...] = ()
        self._known: BoundedCache[tuple[bytes, ...], tuple[datetime, InvalidCredential | None]] = (
            BoundedCache(1024, 4 * 1024 * 1024)
        )

    def check(self, chain: tuple[bytes, ...], now: datetime) -> None:
        """Verify a chain, the client's own certificate first. Raises `InvalidCredential`."""
        known = self._known.get(chain)
        if known is None or not known[0] <= now < known[0] + RECHECKED:
            self._roots = self._roots or authorities(self._pem)
            error = None
            try:
                verify(chain, self._roots, now)
            except InvalidCredential as refused:
                error = refused
            known = (now, error)
            self._known.put(chain, known, sum(map(len, chain)))
        if known[1] is not None:
            raise InvalidCredential(*known[1].errors)


def authorities(pem: bytes) -> tuple[Certificate, ...]:
    """The certificates of a CA bundle in PEM. Raises `ValueError` where there are none."""
    return parse_certificates(pem)


def verify(chain: Sequence[bytes], roots: Iterable[Certificate], now: datetime) -> None:
    """Verify the first certificate of a chain against roots, with the others as intermediates. Raises `InvalidCredential`."""
    from cryptography import x509

    try:
        own, *others = (x509.load_der_x509_certificate(one) for one in chain[: MAX_INTERMEDIATES + 1])
        _check(own, now)
        if not _chains_to(own, others, tuple(roots), now):
            raise InvalidCredential("certificate signed by unknown authority")
    except ValueError:
        # cryptography parses extensions only when they are read.
        raise InvalidCredential("the certificate cannot be read") from None


def _chains_to(
    own: Certificate, others: Sequence[Certificate], roots: Sequence[Certificate], now: datetime
) -> bool:
    reached, left = [own], list(others)
    # Breadth first from the client's own, each certificate once: a long chain costs no more than its length.
    for depth in range(len(others) + 1):
        for certificate in reached:
            if certificate in roots:
                return True
            if any(_issued(certificate, root, depth) and _valid(root, now) for root in roots):
                return True
        reached = [
            issuer
            for issuer in left
            if _valid(issuer, now) and any(_issued(certificate, issuer, depth) for certificate in reached)
        ]
        left = [one for one in left if one not in reached]
    return False


def _valid(certificate: Certificate, now: datetime) -> bool:
    try:
        _check(certificate, now)
    except InvalidCredential:
        return False
    return True


def _check(certificate: Certificate, now: datetime) -> None:
    """Check what must hold for each certificate of a chain. Raises `InvalidCredential`."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID

    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise InvalidCredential("certificate has expired or is not yet valid")
    known = (
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.KEY_USAGE,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
    )
    for extension in certificate.extensions:
        if extension.critical and extension.oid not in known:
            # differs: upstream supports name constraints; here a CA that has them is not trusted.
            raise InvalidCredential("unhandled critical extension")
        if isinstance(extension.value, x509.ExtendedKeyUsage):
            usages = (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)
            if not any(usage in usages for usage in extension.value):
                raise InvalidCredential("certificate specifies an incompatible key usage")


def _issued(certificate: Certificate, issuer: Certificate, depth: int) -> bool:
    """Whether a CA signed a certificate that is ``depth`` intermediates above the client's own."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        constraints = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return False
    if not constraints.ca or (constraints.path_length is not None and constraints.path_length < depth):
        return False
    try:
        if not issuer.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign:
            return False
    except x509.ExtensionNotFound:
        pass  # without the extension every usage is allowed
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
