"""The log: groups, who waits for them, and what happens when the disk says no."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from steersman.api.errors import ServerError, ServiceUnavailable
from steersman.api.generated.core_v1 import ConfigMap
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.storage.durable import log as logs
from steersman.server.storage.durable.data_dir import Disk, open_disk
from steersman.server.storage.store import Store


def put(store: Store, name: str, content: str = "") -> int:
    meta = ObjectMeta(name=name, resourceVersion=store.version)
    store.table("configmaps").put(name, ConfigMap(metadata=meta, data={"content": content}))
    return store.revision


def on_disk(disk: Disk) -> dict[str, int]:
    """What another process would read at this moment."""
    connection = sqlite3.connect(f"file:{disk.path / 'state.db'}?mode=ro", uri=True)
    try:
        return dict(connection.execute("SELECT key, revision FROM objects WHERE document IS NOT NULL"))
    finally:
        connection.close()


async def test_a_write_is_on_the_disk_when_it_is_said_to_be(tmp_path: Path) -> None:
    with open_disk(tmp_path / "data") as disk:
        for name in ("a", "b", "c"):
            revision = put(disk.store, name)
            await disk.log.durable(revision)
            assert on_disk(disk)[name] == revision


async def test_all_who_wait_for_a_group_are_woken_and_one_who_gives_up_takes_nobody_along(
    tmp_path: Path,
) -> None:
    with open_disk(tmp_path / "data") as disk:
        waiting = [asyncio.create_task(disk.log.durable(put(disk.store, f"x{n}"))) for n in range(100)]
        await asyncio.sleep(0)
        waiting[50].cancel()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [n for n, end in enumerate(ended) if end is not None] in ([50], [])
        assert len(on_disk(disk)) == 100


def test_without_a_thread_all_writes_until_somebody_waits_are_one_group(tmp_path: Path) -> None:
    with open_disk(tmp_path / "data", threaded=False) as disk:
        for n in range(30):
            put(disk.store, f"x{n % 3}")
        disk.store.table("configmaps").remove("x1")
        assert on_disk(disk) == {}
        disk.log.wait()
        assert disk.log.groups == 1
        assert on_disk(disk) == {"x0": 29, "x2": 31}


async def test_a_group_of_more_objects_than_one_statement_takes_is_still_written_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_ROWS", 7)
    with open_disk(tmp_path / "data", threaded=False) as disk:
        for n in range(50):
            put(disk.store, f"x{n}")
        await disk.log.durable()
        assert (disk.log.groups, len(on_disk(disk))) == (1, 50)


def fill(disk: Disk) -> None:
    """Let the disk have no room for anything more."""
    connection = disk._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages}")


@pytest.mark.parametrize("threaded", [True, False])
async def test_on_a_full_disk_nothing_is_acknowledged_any_more_and_what_was_is_kept(
    tmp_path: Path, threaded: bool
) -> None:
    path = tmp_path / "data"
    with open_disk(path, threaded=threaded) as disk:
        kept = put(disk.store, "kept")
        await disk.log.durable(kept)
        fill(disk)
        lost = put(disk.store, "lost", "x" * 100_000)
        with pytest.raises(ServerError, match="not safe on the disk: database or disk is full") as refusal:
            await disk.log.durable(lost)
        assert (refusal.value.code, refusal.value.uncertain) == (500, True)
        with pytest.raises(ServiceUnavailable, match="disk is full"):
            disk.log.check()
        # There may be room again: writes after a lost one must not be there without it.
        disk._connection.execute("PRAGMA max_page_count=1000000")
        with pytest.raises(ServiceUnavailable, match="disk is full"):
            put(disk.store, "later")
        with pytest.raises(ServiceUnavailable, match="disk is full"):
            disk.store.table("configmaps").remove("kept")
        assert disk.store.table("configmaps").keys() == ["kept", "lost"]
        assert disk.store.revision == lost
        with pytest.raises(ServerError):
            await disk.log.durable()
        with pytest.raises(ServerError):
            disk.log.wait()
        await disk.log.durable(kept)
    with open_disk(path) as disk:
        assert disk.store.table("configmaps").keys() == ["kept"]
        assert disk.store.revision >= lost


async def test_an_object_that_cannot_be_stored_is_not_acknowledged(tmp_path: Path) -> None:
    with open_disk(tmp_path / "data") as disk:
        strange = ConfigMap(
            metadata=ObjectMeta(name="x", resourceVersion=disk.store.version), data={"x": object()}
        )  # type: ignore[dict-item]
        disk.store.table("configmaps").put("x", strange)
        with pytest.raises(ServerError):
            await disk.log.durable()


async def test_a_write_after_the_end_is_not_acknowledged(tmp_path: Path) -> None:
    disk = open_disk(tmp_path / "data")
    disk.close()
    with pytest.raises(ServiceUnavailable, match="shutting down"):
        disk.log.check()
    with pytest.raises(ServerError, match="shutting down"):
        await disk.log.durable(put(disk.store, "late"))
    with pytest.raises(ServiceUnavailable):
        disk.keep("late", b"")


def test_memory_does_not_run_further_ahead_of_the_disk_than_revisions_are_reserved(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with open_disk(path, threaded=False) as disk:
        first = disk.store.revision
        for _ in range(logs.RESERVE + 1):
            put(disk.store, "x")
        assert disk.log.groups == 1
        assert disk.log.revision == first + logs.RESERVE
        disk.log.failure = RuntimeError("as if it had crashed")
        last = disk.store.revision
    with open_disk(path) as disk:
        assert disk.store.revision >= last


def test_what_is_left_of_deleted_objects_is_swept_and_their_revisions_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_TOMBSTONES", 2)
    path = tmp_path / "data"
    with open_disk(path, threaded=False) as disk:
        for name in ("a", "b", "c", "d"):
            put(disk.store, name)
            disk.log.wait()
        for name in ("b", "c", "d"):
            disk.store.table("configmaps").remove(name)
            disk.log.wait()
        last = disk.store.revision
        (left,) = disk._connection.execute("SELECT count(*) FROM objects").fetchone()
        assert left == 1
        disk.log.failure = RuntimeError("as if it had crashed")
    with open_disk(path) as disk:
        assert disk.store.revision >= last
        assert disk.store.table("configmaps").keys() == ["a"]
