"""TLS at a manager's door: certificates by name, renewed with their files, and clients nobody vouches for."""

from __future__ import annotations

import asyncio
import os
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from steersman.api.clock import RealClock
from steersman.http.client_certs import MAX_TRUSTED
from steersman.manager.flags import UsageError
from steersman.manager.serving import ciphers as suites
from steersman.manager.serving import serving_certs
from steersman.manager.serving.authentication import Authenticator
from steersman.manager.serving.tls import SniCert, TlsContexts
from steersman.server.auth.ca import CertificateAuthority, CertificatePair, self_signed
from steersman.server.auth.cert_verify import authorities


def now() -> datetime:
    return datetime.now(UTC)


def serving(name: str, *hosts: str) -> CertificatePair:
    return CertificateAuthority(self_signed("serving", now()), now).serving(hosts, ("127.0.0.1",), name=name)


def fixed(name: str, *hosts: str) -> serving_certs.StaticCert:
    return serving_certs.StaticCert(serving(name, *hosts))


def written(folder: Path, pair: CertificatePair) -> tuple[str, str]:
    """The pair in files."""
    paths = (folder / "tls.crt", folder / "tls.key")
    for path, data in zip(paths, (pair.cert, pair.key), strict=True):
        path.write_bytes(data)
    return str(paths[0]), str(paths[1])


async def shown(port: int, name: str = "localhost", context: ssl.SSLContext | None = None) -> str:
    """The common name of the certificate a server shows to who asks for a name."""
    context = context or ssl._create_unverified_context()
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    der = writer.get_extra_info("ssl_object").getpeercert(True)
    writer.close()
    subject = x509.load_der_x509_certificate(der).subject
    return str(next(iter(subject)).value)


# -- files ------------------------------------------------------------------------------------


async def test_a_certificate_in_files_is_shown_anew_once_they_change(opened: Any, tmp_path: Path) -> None:
    files = serving_certs.CertFiles(*written(tmp_path, serving("first")))
    client = await opened(contexts=TlsContexts(files))
    assert await shown(client.port) == "first"
    written(tmp_path, serving("second"))
    assert await shown(client.port) == "second"


async def test_files_that_break_later_change_nothing_and_are_told_of_once(
    opened: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pair = serving("first")
    cert, key = written(tmp_path, pair)
    client = await opened(contexts=TlsContexts(serving_certs.CertFiles(cert, key)))
    Path(cert).write_text("half a certific")
    for _ in range(3):
        assert await shown(client.port) == "first"
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        f"the certificate is not reloaded: {cert} and {key}: not a PEM certificate with its unencrypted key"
    ]
    os.unlink(key)
    assert await shown(client.port) == "first"
    written(tmp_path, serving("mended"))
    assert await shown(client.port) == "mended"
    assert pair.key.decode().splitlines()[1] not in caplog.text


# -- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("told.example", "told"),
        ("TOLD.example", "told"),
        ("any.wild.example", "wild"),
        ("deep.any.wild.example", "default"),
        ("exact.wild.example", "exact"),
        ("inside.example", "inside"),
        ("elsewhere.example", "default"),
        ("both.example", "told"),
    ],
)
async def test_each_name_gets_the_certificate_for_it(opened: Any, name: str, expected: str) -> None:
    reviewed_user = [
        SniCert(fixed("told"), ("told.example", "both.example")),
        SniCert(fixed("wild"), ("*.wild.example",)),
        SniCert(fixed("exact"), ("exact.wild.example",)),
        SniCert(fixed("inside", "inside.example", "both.example")),
    ]
    client = await opened(contexts=TlsContexts(fixed("default"), reviewed_user))
    assert await shown(client.port, name) == expected


# -- versions and ciphers ---------------------------------------------------------------------


async def test_older_versions_than_the_oldest_are_refused(opened: Any) -> None:
    client = await opened(contexts=TlsContexts(fixed("it"), minimum=suites.version("VersionTLS13")))
    old = ssl._create_unverified_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await shown(client.port, context=old)
    assert await shown(client.port) == "it"


async def test_only_the_given_ciphers_are_spoken(opened: Any) -> None:
    ciphers = suites.ciphers(["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"])
    client = await opened(contexts=TlsContexts(fixed("it"), ciphers=ciphers))
    for cipher, heard in (("ECDHE-ECDSA-AES128-GCM-SHA256", False), ("ECDHE-ECDSA-AES256-GCM-SHA384", True)):
        context = ssl._create_unverified_context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(cipher)
        if heard:
            assert await shown(client.port, context=context) == "it"
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await shown(client.port, context=context)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["TLS_NO_SUCH"], "--tls-cipher-suites: Cipher suite TLS_NO_SUCH not supported or doesn't exist"),
        (
            ["TLS_RSA_WITH_RC4_128_SHA"],
            "--tls-cipher-suites: TLS_RSA_WITH_RC4_128_SHA is not supported by OpenSSL",
        ),
    ],
)
def test_a_cipher_nobody_has_is_refused_by_name(names: list[str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        suites.ciphers(names)
    assert str(caught.value).startswith(words)


def test_a_version_nobody_knows_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match='--tls-min-version: unknown tls version "TLS13"'):
        suites.version("TLS13")


# -- clients ----------------------------------------------------------------------------------


@pytest.fixture
async def asking(opened: Any, authority: CertificateAuthority) -> Any:
    """A door that recognises the authority's clients."""
    roots = authorities(authority.pair.cert)
    return await opened(Authenticator(RealClock(), clients=lambda: roots))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_whoever_shows_a_bad_certificate_is_heard_and_refused(
    asking: Any,
    authority: CertificateAuthority,
    stranger: CertificateAuthority,
    expired: CertificateAuthority,
    version: ssl.TLSVersion,
) -> None:
    asking.version = version
    masters = ("system:masters",)
    assert (await asking.get("/metrics", pair=authority.client("me", masters))).status == 200
    assert (await asking.get("/metrics")).status == 403
    for refused in (stranger, expired):
        answer = await asking.get("/healthz", pair=refused.client("me", masters))
        assert (answer.status, '"Unauthorized"' in answer.body) == (401, True)


async def test_what_strangers_show_is_not_kept(
    opened: Any, authority: CertificateAuthority, stranger: CertificateAuthority
) -> None:
    roots = authorities(authority.pair.cert)
    contexts = TlsContexts(fixed("it"), request_certificates=True)
    client = await opened(Authenticator(RealClock(), clients=lambda: roots), contexts=contexts)
    for number in range(MAX_TRUSTED + 1):
        assert (await client.get("/healthz", pair=stranger.client(f"s{number}"))).status == 401
    trusted = [len(context.get_ca_certs()) for _, context in contexts._contexts.values()]
    held = [context.cert_store_stats()["x509"] for _, context in contexts._contexts.values()]
    assert (trusted, held) == ([0], [1])


async def test_a_server_that_knows_no_authority_asks_for_no_certificate(
    opened: Any, stranger: CertificateAuthority
) -> None:
    client = await opened()
    assert (await client.get("/healthz", pair=stranger.client("me"))).status == 200
