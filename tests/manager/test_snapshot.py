"""``steersman snapshot``: save while a server runs, restore elsewhere, refuse what is damaged."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.api.generated.core_v1 import ConfigMap
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.manager import cli
from steersman.server.storage.durable.data_dir import open_data_dir
from steersman.server.storage.store import Store


def put(store: Store, name: str) -> None:
    meta = ObjectMeta(name=name, resourceVersion=store.next_version)
    store.table("configmaps").put(name, ConfigMap(metadata=meta))


def filled(path: Path) -> Path:
    with open_data_dir(path) as data_dir:
        for n in range(10):
            put(data_dir.store, f"x{n}")
        data_dir.put_blob("ca.key", b"secret")
    return path


def snapshot(*words: object) -> int:
    return cli.main(["snapshot", *map(str, words)])


def saved(tmp_path: Path) -> Path:
    file = tmp_path / "one.snapshot"
    assert snapshot("save", "--data-dir", filled(tmp_path / "data"), file) == 0
    return file


def test_what_was_saved_is_restored_at_the_same_revision_with_the_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(tmp_path)
    assert "Saved 10 objects at revision 11" in capsys.readouterr().out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "one.snapshot"]
    assert snapshot("restore", file, "--data-dir", tmp_path / "new") == 0
    with open_data_dir(tmp_path / "new") as data_dir:
        assert data_dir.store.revision == 11
        assert data_dir.store.table("configmaps").keys() == [f"x{n}" for n in range(10)]
        assert data_dir.blob("ca.key") == b"secret"


def test_what_was_saved_is_told_to_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, data = tmp_path / "one.snapshot", filled(tmp_path / "data")
    assert snapshot("-o", "json", "save", file, "--data-dir", data) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"file": str(file), "dataDir": str(data), "objects": 10, "revision": 11}
    assert snapshot("save", file, "--force", f"--data-dir={data}", "--output=yaml") == 0
    assert yaml.safe_load(capsys.readouterr().out) == told
    assert snapshot("restore", file, "-otable", "--data-dir", tmp_path / "new") == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["FILE", "DATA", "DIRECTORY", "OBJECTS", "REVISION"]
    assert row.split() == [str(file), str(tmp_path / "new"), "10", "11"]


def test_a_running_server_is_saved_as_it_is_at_one_moment(tmp_path: Path) -> None:
    file = tmp_path / "live.snapshot"
    with open_data_dir(filled(tmp_path / "data")) as data_dir:
        put(data_dir.store, "new")
        data_dir.log.wait_durable()
        assert snapshot("save", "--data-dir", data_dir.path, file) == 0
        put(data_dir.store, "too late")
        data_dir.log.wait_durable()
        seen = data_dir.store.revision
    assert snapshot("restore", file, "--data-dir", tmp_path / "new") == 0
    with open_data_dir(tmp_path / "new") as data_dir:
        assert data_dir.store.table("configmaps").keys() == ["new", *(f"x{n}" for n in range(10))]
        # It was written on meanwhile: those revisions are in somebody's hands.
        assert data_dir.store.revision > seen


def test_the_revision_can_be_raised_for_clients_that_saw_more(tmp_path: Path) -> None:
    words = ("restore", saved(tmp_path), "--data-dir", tmp_path / "new", "--bump-revision", 1000)
    assert snapshot(*words) == 0
    with open_data_dir(tmp_path / "new") as data_dir:
        assert data_dir.store.revision == 1011


def test_a_directory_with_anything_in_it_is_not_restored_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(tmp_path)
    assert snapshot("restore", file, "--data-dir", tmp_path / "data") == 1
    assert f"{tmp_path / 'data'}: the directory is not empty; restore into" in capsys.readouterr().err
    with open_data_dir(tmp_path / "data") as data_dir:
        assert len(data_dir.store.table("configmaps")) == 10


def test_a_snapshot_takes_the_place_of_an_older_one_and_of_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(tmp_path)
    before = file.read_bytes()
    assert snapshot("save", "--data-dir", tmp_path / "data", file) == 1
    assert f"Error: {file} exists: pass another name, or --force to overwrite it" in capsys.readouterr().err
    assert file.read_bytes() == before
    assert snapshot("save", "--data-dir", tmp_path / "data", file, "--force") == 0
    file.write_text("my thesis")
    assert snapshot("save", "--force", "--data-dir", tmp_path / "data", file) == 1
    assert "not a steersman snapshot" in capsys.readouterr().err
    assert file.read_text() == "my thesis"


def _changed(data: bytes) -> bytes:
    return data[:-5000] + bytes([data[-5000] ^ 1]) + data[-4999:]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-1], "bytes of data instead of"),
        (lambda data: data + b"x", "bytes of data instead of"),
        (_changed, "its checksum differs"),
        (lambda data: data[:20], "not a steersman snapshot"),
        (lambda data: b"", "not a steersman snapshot"),
        (lambda data: data.replace(b'"format":1', b'"format":9', 1), "use the newer steersman"),
    ],
)
def test_a_damaged_snapshot_is_refused_and_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[bytes], bytes], says: str
) -> None:
    file = saved(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    new = tmp_path / "new"
    assert snapshot("restore", file, "--data-dir", new) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"Error: {file}: ")
    assert says in told
    assert told.count("\n") == 1
    assert not new.exists() or not list(new.iterdir())


def test_what_is_no_data_directory_cannot_be_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert snapshot("save", "--data-dir", tmp_path / "none", tmp_path / "file") == 1
    assert "holds no steersman data" in capsys.readouterr().err
    assert snapshot("restore", tmp_path / "none", "--data-dir", tmp_path / "new") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("verb", ["save", "restore"])
def test_a_link_that_takes_the_name_of_an_unfinished_file_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    file, other = saved(tmp_path), tmp_path / "other"
    other.write_text("precious")
    opened = os.open

    def open_and_replace(path: str | Path, flags: int, mode: int = 0o777, **rest: Any) -> int:
        descriptor = opened(path, flags, mode, **rest)
        if flags & os.O_EXCL and str(path).endswith((".partial", "fresh.db")):
            os.unlink(path)
            os.symlink(other, path)
        return descriptor

    monkeypatch.setattr(os, "open", open_and_replace)
    data = tmp_path / ("data" if verb == "save" else "new")
    assert snapshot(verb, file, "--data-dir", data) == 1
    assert other.read_text() == "precious"
    assert not file.is_symlink()
