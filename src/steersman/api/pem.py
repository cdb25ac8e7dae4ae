"""PEM as Go's ``encoding/pem`` reads it, with the requests, certificates and keys in it.

kube-apiserver, kubectl and kube-controller-manager all find the block of a CertificateSigningRequest with Go's
``pem.Decode``. Its rules are its own: a block begins at the start of a line, the last BEGIN before an END counts, and
a malformed block is skipped. A reader with other rules signs another request than the approved one, so all of this
program reads PEM here.

Reading takes linear time: each attempt ends behind the END line that it looked at. cryptography is imported when the
first certificate or key is parsed, to keep it out of managers that never see one.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate, CertificateSigningRequest

CERTIFICATE = "CERTIFICATE"
CERTIFICATE_REQUEST = "CERTIFICATE REQUEST"
PRIVATE_KEYS = ("EC PRIVATE KEY", "RSA PRIVATE KEY", "PRIVATE KEY")
"""The types of blocks with an unencrypted private key."""

_BEGIN = b"-----BEGIN "
_END = b"\n-----END "
_DASHES = b"-----"
_NEWLINE = ord("\n")
_CARRIAGE_RETURN = ord("\r")
_GO_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""The characters that Go's ``bytes.TrimSpace`` removes."""


_EC_KEY = bytes.fromhex("06072a8648ce3d0201")
"""The OID of keys on elliptic curves, in DER."""
_GO_CURVES = ("secp224r1", "secp256r1", "secp384r1", "secp521r1")
_PSS = "1.2.840.113549.1.1.10"
_GO_SIGNATURES = (
    *(f"1.2.840.113549.1.1.{number}" for number in (11, 12, 13)),
    *(f"1.2.840.10045.4.3.{number}" for number in (2, 3, 4)),
    "1.3.101.112",
    _PSS,
)
"""The algorithms that Go verifies: RSA and ECDSA with SHA-256, SHA-384 and SHA-512, Ed25519 and PSS."""
_INSECURE = {
    "1.2.840.113549.1.1.4": "MD5-RSA",
    # differs: upstream accepts requests that are signed with SHA-1; cryptography does not verify them.
    "1.2.840.113549.1.1.5": "SHA1-RSA",
    "1.2.840.10045.4.1": "ECDSA-SHA1",
}
_MIN_RSA_BITS = 1024
_UNKNOWN_CURVE = "x509: unsupported elliptic curve"
_UNIMPLEMENTED = "x509: cannot verify signature: algorithm unimplemented"


class InvalidCertificateRequest(ValueError):
    """A request that is not PKCS #10 in PEM. The message never quotes it."""


class Block(msgspec.Struct, frozen=True):
    """A PEM block."""

    type: str
    """The text between BEGIN and the dashes, such as ``CERTIFICATE REQUEST``."""
    headers: Mapping[str, str]
    content: bytes
    """The decoded bytes, usually DER."""


# -- blocks -----------------------------------------------------------------------------------


def decode(data: bytes, start: int = 0) -> tuple[Block, int] | None:
    """Return the first block at or after an offset, and the offset behind its END line; None if there is none."""
    position = start
    while True:
        end = data.find(_END, position)
        if end < 0:
            return None
        trailer = end + len(_END)
        # The last BEGIN before the END, so that a BEGIN without an END of its own is skipped.
        begin = data.rfind(_BEGIN, position, end)
        if begin < 0 or (begin > position and data[begin - 1] != _NEWLINE):
            position = trailer
            continue
        type_line, cursor = _line(data, begin + len(_BEGIN))
        if not type_line.endswith(_DASHES):
            position = trailer
            continue
        type_ = type_line[: -len(_DASHES)]
        headers: dict[str, str] = {}
        while True:
            if cursor >= len(data):
                return None
            line, following = _line(data, cursor)
            key, colon, value = line.partition(b":")
            if not colon:
                break
            headers[_trimmed(key)] = _trimmed(value)
            cursor = following
        if trailer < cursor:
            # The END line has a colon and was taken for a header: Go gives up on the whole input.
            return None
        position = trailer
        if headers and end < cursor:
            # The END line must not follow the headers directly.
            continue
        closing = type_ + _DASHES
        if not data.startswith(closing, trailer) or _line(data, trailer + len(closing))[0]:
            continue
        try:
            content = _base64(data[cursor:end]) if end > cursor else b""
        except binascii.Error:
            continue
        _, behind = _line(data, trailer - 1)
        return Block(_text(type_), headers, content), behind


def blocks(data: bytes) -> Iterator[Block]:
    """Yield every block, in order."""
    position = 0
    while (found := decode(data, position)) is not None:
        block, position = found
        yield block


def _line(data: bytes, start: int) -> tuple[bytes, int]:
    """The line at an offset without its end and trailing blanks, and the offset of the next one."""
    end = data.find(b"\n", start)
    if end < 0:
        return data[start:].rstrip(b" \t"), len(data)
    stop = end - 1 if end > start and data[end - 1] == _CARRIAGE_RETURN else end
    return data[start:stop].rstrip(b" \t"), end + 1


def _base64(text: bytes) -> bytes:
    """Decode padded base64 with blanks and line ends anywhere. Raises `binascii.Error`."""
    return binascii.a2b_base64(text.translate(None, b" \t\r\n"), strict_mode=True)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _trimmed(raw: bytes) -> str:
    return _text(raw).strip(_GO_SPACE)


# -- their contents ---------------------------------------------------------------------------


def parse_csr(request: str) -> CertificateSigningRequest:
    """Parse ``spec.request`` of a CertificateSigningRequest, PEM in base64, as upstream's ``ParseCSR``.

    The first block counts. Raises `InvalidCertificateRequest`, also for a key on a curve that Go does not know.
    """
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

    try:
        block = next(blocks(b64decode(request, validate=True)), None)
    except ValueError:
        raise InvalidCertificateRequest("the request is not base64") from None
    if block is None or block.type != CERTIFICATE_REQUEST:
        raise InvalidCertificateRequest("PEM block type must be CERTIFICATE REQUEST")
    try:
        csr = x509.load_der_x509_csr(block.content)
        key = csr.public_key()
    except (ValueError, x509.InvalidVersion):
        # differs: upstream says where in the encoding the error is, and accepts any version.
        raise InvalidCertificateRequest("asn1: structure error") from None
    except UnsupportedAlgorithm:
        if _EC_KEY in csr.tbs_certrequest_bytes:
            raise InvalidCertificateRequest(_UNKNOWN_CURVE) from None
        return csr
    if isinstance(key, EllipticCurvePublicKey) and key.curve.name not in _GO_CURVES:
        raise InvalidCertificateRequest(_UNKNOWN_CURVE)
    return csr


def signature_error(csr: CertificateSigningRequest) -> str:
    """Return why Go's ``CheckSignature`` refuses the signature of a request; empty if it is valid."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    algorithm = csr.signature_algorithm_oid.dotted_string
    if algorithm in _INSECURE:
        return f"x509: cannot verify signature: insecure algorithm {_INSECURE[algorithm]}"
    if algorithm not in _GO_SIGNATURES or (algorithm == _PSS and not _is_go_pss(csr)):
        return _UNIMPLEMENTED
    try:
        key, valid = csr.public_key(), csr.is_signature_valid
    except (ValueError, UnsupportedAlgorithm):
        return _UNIMPLEMENTED
    match key:
        case rsa.RSAPublicKey() if key.key_size < _MIN_RSA_BITS:
            see = "https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size"
            return f"crypto/rsa: {key.key_size}-bit keys are insecure (see {see})"
        case rsa.RSAPublicKey():
            return "" if valid else "crypto/rsa: verification error"
        case ec.EllipticCurvePublicKey():
            return "" if valid else "x509: ECDSA verification failure"
        case ed25519.Ed25519PublicKey():
            return "" if valid else "x509: Ed25519 verification failure"
        case _:
            return _UNIMPLEMENTED


def _is_go_pss(csr: CertificateSigningRequest) -> bool:
    """Report whether Go knows the parameters of a PSS signature: one hash for all, and a salt of its size."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS

    try:
        algorithm, parameters = csr.signature_hash_algorithm, csr.signature_algorithm_parameters
    except (ValueError, UnsupportedAlgorithm):
        return False
    if not isinstance(algorithm, hashes.SHA256 | hashes.SHA384 | hashes.SHA512):
        return False
    return parameters == PSS(MGF1(algorithm), algorithm.digest_size)


def parse_certificate(der: bytes) -> Certificate:
    """Parse a certificate in DER. Raises `ValueError`."""
    from cryptography import x509

    try:
        return x509.load_der_x509_certificate(der)
    except x509.InvalidVersion as error:
        raise ValueError(str(error)) from None


def parse_certificates(data: bytes) -> tuple[Certificate, ...]:
    """Parse all certificates, as client-go's ``ParseCertsPEM``. Raises `ValueError` where there are none.

    Blocks of other types, and blocks with headers, are skipped.
    """
    found = tuple(parse_certificate(block.content) for block in blocks(data) if is_certificate(block))
    if not found:
        raise ValueError("data does not contain any valid RSA or ECDSA certificates")
    return found


def is_certificate(block: Block) -> bool:
    """Report whether a block holds a certificate, for `parse_certificates`."""
    return block.type == CERTIFICATE and not block.headers


def parse_private_key(data: bytes) -> PrivateKeyTypes:
    """Parse the first valid private key, as client-go's ``ParsePrivateKeyPEM``. Raises `ValueError` where there is none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    for block in blocks(data):
        if block.type in PRIVATE_KEYS:
            try:
                return load_der_private_key(block.content, None)
            except (ValueError, TypeError, UnsupportedAlgorithm):
                continue
    raise ValueError("data does not contain a valid RSA or ECDSA private key")
