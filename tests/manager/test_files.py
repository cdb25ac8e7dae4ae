"""What the settings name."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.client.connection import Pem
from steersman.intent.actions import Unreadable
from steersman.intent.settings import Settings
from steersman.manager.files import settle


def test_a_root_ca_that_is_named_is_read_from_its_file_each_time(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_text("one")
    settings, files = settle(Settings({"root-ca-file": str(path)}), Pem(data=b"kubeconfig's"))
    assert files(settings.flags["root-ca-file"]) == b"one"
    path.write_text("two")
    assert files(settings.flags["root-ca-file"]) == b"two"


def test_without_one_it_is_the_kubeconfigs(tmp_path: Path) -> None:
    settings, files = settle(Settings(), Pem(data=b"inline"))
    assert files(settings.flags["root-ca-file"]) == b"inline"
    (tmp_path / "ca.crt").write_text("in a file")
    settings, files = settle(Settings(), Pem(path=str(tmp_path / "ca.crt")))
    assert files(settings.flags["root-ca-file"]) == b"in a file"


def test_a_file_that_is_not_there_is_named() -> None:
    settings, files = settle(Settings({"root-ca-file": "/nowhere/ca.crt"}), Pem())
    with pytest.raises(Unreadable, match=r"/nowhere/ca\.crt: No such file"):
        files(settings.flags["root-ca-file"])
