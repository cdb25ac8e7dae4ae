"""Which certificates an authority vouches for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from steersman.api.jwt import InvalidCredential
from steersman.server.auth.cert_verify import authorities, verify

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH


class Signer:
    """Somebody with a key and a certificate; ``by`` has signed it."""

    def __init__(
        self,
        name: str,
        by: Signer | None = None,
        *,
        ca: bool | None = True,
        length: int | None = None,
        usages: tuple[x509.ObjectIdentifier, ...] = (),
        signs: bool = True,
        start: datetime = NOW - DAY,
        end: datetime = NOW + DAY,
        constrained: bool = False,
    ) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer = by or self
        builder = (
            x509.CertificateBuilder()
            .subject_name(self.subject)
            .issuer_name(signer.subject)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(end)
        )
        if ca is not None:
            builder = builder.add_extension(x509.BasicConstraints(ca, length if ca else None), critical=True)
        if usages:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if not signs:
            usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
            builder = builder.add_extension(usage, critical=True)
        if constrained:
            permitted = x509.NameConstraints([x509.DNSName("example.com")], None)
            builder = builder.add_extension(permitted, critical=True)
        self.certificate = builder.sign(signer.key, hashes.SHA256())
        self.der = self.certificate.public_bytes(Encoding.DER)


ROOT = Signer("root")
OTHER = Signer("root")
MIDDLE = Signer("middle", ROOT)
LOW = Signer("low", MIDDLE)
SHORT = Signer("short", ROOT, length=0)


def leaf(by: Signer, **kwargs: object) -> Signer:
    return Signer("me", by, **{"ca": False, "usages": (CLIENT,), **kwargs})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "chain",
    [
        [leaf(ROOT)],
        [leaf(ROOT, usages=())],
        [leaf(ROOT, usages=(SERVER, CLIENT))],
        [leaf(ROOT, usages=(ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,))],
        [leaf(ROOT, ca=None)],
        [leaf(MIDDLE), MIDDLE],
        [leaf(LOW), LOW, MIDDLE],
        [leaf(LOW), MIDDLE, LOW, OTHER],
        [leaf(SHORT), SHORT],
        [ROOT],
    ],
)
def test_who_can_be_traced_back_to_a_root_is_trusted(chain: list[Signer]) -> None:
    verify([one.der for one in chain], [ROOT.certificate], NOW)


UNKNOWN = "certificate signed by unknown authority"
EXPIRED = "certificate has expired or is not yet valid"


@pytest.mark.parametrize(
    ("chain", "words"),
    [
        ([leaf(OTHER)], UNKNOWN),
        ([leaf(MIDDLE)], UNKNOWN),
        ([leaf(LOW), LOW], UNKNOWN),
        ([leaf(LOW), LOW, OTHER], UNKNOWN),
        ([leaf(OTHER), OTHER], UNKNOWN),
        ([leaf(end := leaf(ROOT)), end], UNKNOWN),
        ([leaf(end := Signer("old", ROOT, ca=None)), end], UNKNOWN),
        ([leaf(end := Signer("idle", ROOT, signs=False)), end], UNKNOWN),
        ([leaf(end := Signer("late", ROOT, end=NOW - DAY / 2)), end], UNKNOWN),
        ([leaf(end := Signer("web", ROOT, usages=(SERVER,))), end], UNKNOWN),
        ([leaf(end := Signer("own", ROOT, constrained=True)), end], UNKNOWN),
        ([leaf(end := Signer("below", SHORT)), end, SHORT], UNKNOWN),
        ([leaf(ROOT, end=NOW - DAY / 2)], EXPIRED),
        ([leaf(ROOT, start=NOW + DAY / 2)], EXPIRED),
        ([leaf(ROOT, usages=(SERVER,))], "certificate specifies an incompatible key usage"),
        ([leaf(ROOT, constrained=True)], "unhandled critical extension"),
    ],
)
def test_who_cannot_is_not(chain: list[Signer], words: str) -> None:
    with pytest.raises(InvalidCredential, match=words):
        verify([one.der for one in chain], [ROOT.certificate], NOW)


def test_a_certificate_that_is_none_is_not_trusted() -> None:
    with pytest.raises(InvalidCredential, match="cannot be read"):
        verify([b"\x30\x03nay"], [ROOT.certificate], NOW)


def test_a_bundle_holds_all_its_certificates() -> None:
    pem = b"".join(one.certificate.public_bytes(Encoding.PEM) for one in (ROOT, OTHER))
    assert authorities(b"# ours\n" + pem) == (ROOT.certificate, OTHER.certificate)
    with pytest.raises(ValueError, match="does not contain any valid"):
        authorities(b"nothing")
