"""What the settings name."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from steersman.api.signing_keys import KeySet
from steersman.client.config import ConfigError, Pem
from steersman.intent.actions import FileUnreadable
from steersman.intent.settings import Settings
from steersman.manager.files import validate_files, with_root_ca
from steersman.manager.options import read
from steersman.server.auth.ca import self_signed


def test_a_root_ca_that_is_named_is_read_from_its_file_each_time(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_text("one")
    settings, files = with_root_ca(Settings({"root-ca-file": str(path)}), Pem(data=b"kubeconfig's"))
    assert files(settings.flags["root-ca-file"]) == b"one"
    path.write_text("two")
    assert files(settings.flags["root-ca-file"]) == b"two"


def test_without_one_it_is_the_kubeconfigs(tmp_path: Path) -> None:
    settings, files = with_root_ca(Settings(), Pem(data=b"inline"))
    assert files(settings.flags["root-ca-file"]) == b"inline"
    (tmp_path / "ca.crt").write_text("in a file")
    settings, files = with_root_ca(Settings(), Pem(path=str(tmp_path / "ca.crt")))
    assert files(settings.flags["root-ca-file"]) == b"in a file"


def test_a_file_that_is_not_there_is_named() -> None:
    settings, files = with_root_ca(Settings({"root-ca-file": "/nowhere/ca.crt"}), Pem())
    with pytest.raises(FileUnreadable, match=r"/nowhere/ca\.crt: No such file"):
        files(settings.flags["root-ca-file"])


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a CA, another one, and a key that signs tokens."""
    place = tmp_path_factory.mktemp("pki")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for name in ("ca", "other"):
        pair = self_signed(name, now)
        (place / f"{name}.crt").write_bytes(pair.cert)
        (place / f"{name}.key").write_bytes(pair.key)
    (place / "sa.key").write_bytes(KeySet.generate().pem)
    (place / "nonsense").write_text("hunter2")
    (place / "cut.key").write_text("-----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY-----\n")
    (place / "torn.key").write_bytes((place / "ca.key").read_bytes().replace(b"\nM", b"\nMAAAA"))
    return place


def look(place: Path, *argv: str) -> None:
    options = read([word.replace("@", f"{place}/") for word in argv])
    validate_files(options.settings, options.controllers)


def test_files_that_can_be_used_are_fine(good: Path) -> None:
    look(
        good,
        "--root-ca-file=@ca.crt",
        "--service-account-private-key-file=@sa.key",
        "--cluster-signing-cert-file=@ca.crt",
        "--cluster-signing-key-file=@ca.key",
    )


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--root-ca-file=@nowhere"], "/nowhere: No such file or directory"),
        (["--root-ca-file=@nonsense"], "/nonsense: not a bundle of CA certificates in PEM format"),
        (["--root-ca-file=@sa.key"], "/sa.key: not a bundle of CA certificates in PEM format"),
        (["--service-account-private-key-file=@nowhere"], "/nowhere: No such file or directory"),
        (["--service-account-private-key-file=@nonsense"], "/nonsense: no private key in PEM format"),
        (["--service-account-private-key-file=@cut.key"], "/cut.key: no private key in PEM format"),
        (["--service-account-private-key-file=@ca.crt"], "/ca.crt: no private key in PEM format"),
        (
            ["--cluster-signing-cert-file=@nowhere", "--cluster-signing-key-file=@ca.key"],
            "/nowhere: No such file",
        ),
        (
            ["--cluster-signing-cert-file=@nonsense", "--cluster-signing-key-file=@ca.key"],
            "not a bundle of CA certificates in PEM format",
        ),
        (
            ["--cluster-signing-cert-file=@ca.crt", "--cluster-signing-key-file=@nonsense"],
            "no private key in PEM format",
        ),
        (
            ["--cluster-signing-cert-file=@ca.crt", "--cluster-signing-key-file=@torn.key"],
            "the CA key cannot be read",
        ),
        (
            ["--cluster-signing-cert-file=@ca.crt", "--cluster-signing-key-file=@other.key"],
            "the CA key does not match the CA certificate",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named_before_anything_starts(
    good: Path, argv: list[str], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        look(good, *argv)
    assert words in str(caught.value)
    assert str(good) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_files_of_controllers_that_do_not_run_are_not_looked_at(good: Path) -> None:
    look(
        good,
        "--controllers=job-controller",
        "--root-ca-file=@nowhere",
        "--service-account-private-key-file=@nowhere",
    )
