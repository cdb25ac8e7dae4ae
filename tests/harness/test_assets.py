"""Where a real plane's binaries are looked for, and what is said when they are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.envtest import ASSETS, MissingAssets, RealPlane


def test_missing_binaries_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    binary = tmp_path / "etcd"
    binary.touch(mode=0o755)
    monkeypatch.setenv(ASSETS, str(tmp_path))
    with pytest.raises(MissingAssets, match=f"{ASSETS}=.* has no kube-apiserver$"):
        RealPlane.start()


def test_an_environment_that_names_no_binaries_is_told_how_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ASSETS, raising=False)
    with pytest.raises(MissingAssets, match=f"set {ASSETS}"):
        RealPlane.start()
