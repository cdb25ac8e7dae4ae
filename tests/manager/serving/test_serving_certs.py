"""Certificates a manager shows: made where there are none, and kept where that is wanted."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from steersman.manager.flags import UsageError
from steersman.manager.serving import serving_certs
from steersman.manager.serving.tls import TlsContexts


def now() -> datetime:
    return datetime.now(UTC)


@pytest.mark.parametrize(
    ("address", "names"), [("0.0.0.0", ["localhost", "127.0.0.1"]), ("127.0.0.2", ["127.0.0.2", "localhost"])]
)
async def test_a_certificate_made_here_is_good_for_who_trusts_it(
    opened: Any, address: str, names: list[str]
) -> None:
    pair = serving_certs.generate(address, now())
    client = await opened(contexts=TlsContexts(serving_certs.StaticCert(pair)))
    trusting = ssl.create_default_context(cadata=pair.cert.decode())
    for name in names:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", client.port, ssl=trusting, server_hostname=name
        )
        writer.close()


def test_a_directory_keeps_what_was_made_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    first = serving_certs.from_cert_dir(str(folder), "127.0.0.1", now).current()
    assert sorted(path.name for path in folder.iterdir()) == [
        "kube-controller-manager.crt",
        "kube-controller-manager.key",
    ]
    assert (folder / "kube-controller-manager.key").stat().st_mode & 0o777 == 0o600
    assert serving_certs.from_cert_dir(str(folder), "127.0.0.1", now).current() == first


def test_what_has_expired_is_made_anew(tmp_path: Path) -> None:
    first = serving_certs.from_cert_dir(str(tmp_path), "127.0.0.1", now).current()
    later = serving_certs.from_cert_dir(
        str(tmp_path), "127.0.0.1", lambda: now() + timedelta(days=366)
    ).current()
    assert later.cert != first.cert


def test_half_a_pair_in_a_directory_is_one_line_that_names_the_other_half(tmp_path: Path) -> None:
    serving_certs.from_cert_dir(str(tmp_path), "127.0.0.1", now)
    key = tmp_path / "kube-controller-manager.key"
    key.unlink()
    with pytest.raises(UsageError, match=f"{key}: a certificate and its key must be supplied as a pair"):
        serving_certs.from_cert_dir(str(tmp_path), "127.0.0.1", now)


@pytest.mark.parametrize(
    ("cert", "key", "words"),
    [
        ("gone.crt", "good.key", "gone.crt: no such file or directory"),
        ("good.crt", "gone.key", "gone.key: no such file or directory"),
        (
            "good.crt",
            "",
            "a certificate and its key must be set together: --tls-private-key-file is missing",
        ),
        ("", "good.key", "a certificate and its key must be set together: --tls-cert-file is missing"),
        ("good.crt", "other.key", "not a PEM certificate with its unencrypted key"),
        ("good.crt", "good.crt", "not a PEM certificate with its unencrypted key"),
    ],
)
def test_files_that_cannot_be_used_are_one_line_without_what_is_in_them(
    tmp_path: Path, cert: str, key: str, words: str
) -> None:
    pair, other = serving_certs.generate("127.0.0.1", now()), serving_certs.generate("127.0.0.1", now())
    for name, data in (("good.crt", pair.cert), ("good.key", pair.key), ("other.key", other.key)):
        (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError) as caught:
        serving_certs.CertFiles(*(str(tmp_path / name) if name else "" for name in (cert, key)))
    said = str(caught.value)
    assert words in said
    assert "\n" not in said
    assert "BEGIN" not in said
