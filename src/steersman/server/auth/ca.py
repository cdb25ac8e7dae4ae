"""The certificate authority of a control plane: serving and client certificates.

Keys are on P-256, which are generated in less than a millisecond; RSA keys take about 100 ms.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from steersman.api.pem import parse_certificates, parse_private_key

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

YEAR = timedelta(days=365)
_CLOCK_SKEW = timedelta(minutes=5)
"""How far a client's clock may be behind ours."""


class CertificatePair(msgspec.Struct, frozen=True):
    """A certificate and its private key, both as PEM."""

    cert: bytes
    key: bytes


def self_signed(name: str, now: datetime, lifetime: timedelta = 10 * YEAR) -> CertificatePair:
    """A new self-signed authority certificate and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        _builder(subject, subject, key.public_key(), now - _CLOCK_SKEW, now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _sign(builder, key, key)


class CertificateAuthority:
    """Issues certificates signed by its own."""

    def __init__(
        self, pair: CertificatePair, now: Callable[[], datetime], lifetime: timedelta = YEAR
    ) -> None:
        """``lifetime`` is that of issued certificates; none outlives the authority's own.

        Raises `ValueError` if the key is not an elliptic curve key, as `self_signed` makes them.
        """
        from cryptography.hazmat.primitives.asymmetric import ec

        key = parse_private_key(pair.key)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key must be an elliptic curve key")
        self.pair = pair
        """The authority's own certificate and key."""
        self._cert = parse_certificates(pair.cert)[0]
        self._key = key
        self._now = now
        self._lifetime = lifetime

    def serving(
        self, hosts: Iterable[str], addresses: Iterable[str], *, name: str = "kube-apiserver"
    ) -> CertificatePair:
        """Issues a serving certificate for some host names and IP addresses."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self._issue(subject, ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(names))

    def client(self, user: str, groups: Iterable[str] = ()) -> CertificatePair:
        """Issues a client certificate: the user is the common name, the groups are the organizations."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        subject = x509.Name(
            [x509.NameAttribute(NameOID.COMMON_NAME, user)]
            + [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        )
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self, subject: x509.Name, purpose: x509.ObjectIdentifier, names: x509.SubjectAlternativeName | None
    ) -> CertificatePair:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        at = self._now()
        end = min(at + self._lifetime, self._cert.not_valid_after_utc)
        builder = (
            _builder(subject, self._cert.subject, key.public_key(), at - _CLOCK_SKEW, end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return _sign(builder, key, self._key)


def write_private(path: Path, data: bytes) -> Path:
    """Writes a key or a kubeconfig with mode 0600, whatever the mode of the file it replaces. Raises `OSError`."""
    return _replace_file(path, data, 0o600)


def write_public(path: Path, data: bytes) -> Path:
    """Writes a certificate with mode 0644. Raises `OSError`."""
    return _replace_file(path, data, 0o644)


def _replace_file(path: Path, data: bytes, mode: int) -> Path:
    """Replaces a file as a whole, flushed to disk: other processes and a crash see the old content or the new.

    The content goes to a new file, so descriptors and hard links of the old file never get to see it. Anything but a
    regular file is refused: following a symlink would write the key where the owner of the link wants it, and replacing
    it would break a link (or ``/dev/stdout``) that the user relies on.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise OSError(
                errno.EINVAL, "not a regular file (private files are not written through links)", str(path)
            )
    except FileNotFoundError:
        pass
    fresh = path.with_name(f".steersman-{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(fresh, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            # The umask may have taken permissions away.
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # A symlink made since the check above is replaced, not followed.
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Some file systems cannot fsync directories, and need not.
        with suppress(OSError):
            os.fsync(directory)
    finally:
        os.close(directory)
    return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _sign(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> CertificatePair:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return CertificatePair(
        builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()),
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=True,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
