"""The server's certificates: that they chain, and say what they should."""

from __future__ import annotations

import errno
import os
import ssl
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from steersman.api.signing_keys import KeySet
from steersman.server.auth.ca import (
    YEAR,
    CertificateAuthority,
    CertificatePair,
    self_signed,
    write_private,
    write_public,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CA = self_signed("test-ca", NOW)
AUTHORITY = CertificateAuthority(CA, lambda: NOW)


def read(pair: CertificatePair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.cert)


def handshake(server: CertificatePair, client: CertificatePair | None, host: str, tmp_path: Path) -> Any:
    """Whom the server sees when a client that trusts the authority calls it by this name."""
    # What the certificates' dates say is a matter of another test: this one may run in any year.
    paths = {}
    for name, pair in (("server", server), ("client", client)):
        if pair is not None:
            paths[name] = write_private(tmp_path / f"{name}.pem", pair.cert + pair.key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(paths["server"])
    serving.verify_mode = ssl.CERT_OPTIONAL
    serving.load_verify_locations(cadata=CA_NOW.cert.decode())
    calling = ssl.create_default_context(cadata=CA_NOW.cert.decode())
    if "client" in paths:
        calling.load_cert_chain(paths["client"])
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = calling.wrap_bio(to_client, to_server, server_hostname=host)
    far = serving.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (near, far):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass  # its turn comes again
    return far.getpeercert()


TODAY = datetime.now(UTC)
CA_NOW = self_signed("test-ca", TODAY)
LIVE = CertificateAuthority(CA_NOW, lambda: TODAY)


def test_server_and_client_trust_each_other(tmp_path: Path) -> None:
    serving = LIVE.serving(["localhost"], ["127.0.0.1", "::1"])
    client = LIVE.client("ann", ["dev", "ops"])
    for host in ("localhost", "127.0.0.1", "::1"):
        seen = handshake(serving, client, host, tmp_path)
        assert seen is not None
        assert seen["subject"] == (
            (("commonName", "ann"),),
            (("organizationName", "dev"),),
            (("organizationName", "ops"),),
        )
    assert not handshake(serving, None, "localhost", tmp_path)


def test_a_server_under_another_name_is_not_trusted(tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(LIVE.serving(["localhost"], []), None, "elsewhere", tmp_path)


def test_a_client_of_another_authority_is_not_let_in(tmp_path: Path) -> None:
    stranger = CertificateAuthority(self_signed("test-ca", TODAY), lambda: TODAY).client("ann")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(LIVE.serving(["localhost"], []), stranger, "localhost", tmp_path)


def test_a_servers_certificate_is_no_clients(tmp_path: Path) -> None:
    serving = LIVE.serving(["localhost"], [])
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        handshake(serving, serving, "localhost", tmp_path)


def test_keys_are_on_the_fast_curve_and_certificates_say_what_they_are_for() -> None:
    serving, client, own = read(AUTHORITY.serving(["h"], [])), read(AUTHORITY.client("ann")), read(CA)
    for cert in (serving, client, own):
        key = cert.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert key.curve.name == "secp256r1"
        assert cert.issuer == own.subject
    for cert, purpose in (
        (serving, ExtendedKeyUsageOID.SERVER_AUTH),
        (client, ExtendedKeyUsageOID.CLIENT_AUTH),
    ):
        assert list(cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [purpose]
        assert not cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert own.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


@pytest.mark.parametrize(
    ("at", "lifetime", "end"),
    [
        (NOW, YEAR, NOW + YEAR),
        (NOW, timedelta(hours=1), NOW + timedelta(hours=1)),
        # Nothing outlives the authority itself.
        (NOW + 9.5 * YEAR, YEAR, NOW + 10 * YEAR),
    ],
)
def test_a_certificate_holds_from_a_little_before_now_for_its_lifetime(
    at: datetime, lifetime: timedelta, end: datetime
) -> None:
    cert = read(CertificateAuthority(CA, lambda: at, lifetime).client("ann"))
    assert cert.not_valid_before_utc == at - timedelta(minutes=5)
    assert cert.not_valid_after_utc == end


def test_an_authority_that_was_kept_goes_on() -> None:
    again = CertificateAuthority(CertificatePair(CA.cert, CA.key), lambda: NOW)
    read(again.client("ann")).verify_directly_issued_by(read(CA))


def test_a_key_of_another_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="elliptic curve"):
        CertificateAuthority(CertificatePair(CA.cert, KeySet.generate("RS256").pem), lambda: NOW)


# -- private files --------------------------------------------------------------------------------


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_private_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = write_private(tmp_path / "key", b"secret")
    assert path.read_bytes() == b"secret"
    assert mode(path) == 0o600
    assert mode(write_public(tmp_path / "cert", b"public")) == 0o644


def test_a_private_file_does_not_keep_the_mode_of_the_file_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(b"old, and longer than the new content")
    path.chmod(0o666)
    with path.open("rb") as opened_before:
        write_private(path, b"secret")
        assert opened_before.read() == b"old, and longer than the new content"
    assert path.read_bytes() == b"secret"
    assert mode(path) == 0o600
    assert os.listdir(tmp_path) == ["kubeconfig"]


def test_a_private_file_is_not_written_to_a_hard_link(tmp_path: Path) -> None:
    path, other = tmp_path / "key", tmp_path / "other"
    other.write_bytes(b"old")
    path.hardlink_to(other)
    write_private(path, b"secret")
    assert other.read_bytes() == b"old"


@pytest.mark.parametrize("target", ["file", "missing"])
def test_a_private_file_is_not_written_through_a_symlink(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_bytes(b"old")
    link = tmp_path / "key"
    link.symlink_to(tmp_path / target)
    with pytest.raises(OSError, match="not a regular file"):
        write_private(link, b"secret")
    assert link.is_symlink()
    assert (tmp_path / "file").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["file", "key"]


def test_a_device_or_directory_is_not_replaced_by_a_private_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    for name in ("pipe", "directory"):
        with pytest.raises(OSError, match="not a regular file"):
            write_private(tmp_path / name, b"secret")


def test_a_private_file_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_private(tmp_path / "key", b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_private(path, b"secret")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["key"]
