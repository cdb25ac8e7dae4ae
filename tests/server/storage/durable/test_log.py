"""The transaction log: group commit, waiting for durability, and a failing disk."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from steersman.api.errors import ServerError, ServiceUnavailable
from steersman.api.generated.core_v1 import ConfigMap
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.storage.durable import log as logs
from steersman.server.storage.durable.data_dir import DataDir, open_data_dir
from steersman.server.storage.store import Store


def put(store: Store, name: str, content: str = "") -> int:
    meta = ObjectMeta(name=name, resourceVersion=store.next_version)
    store.table("configmaps").put(name, ConfigMap(metadata=meta, data={"content": content}))
    return store.revision


def on_disk(data_dir: DataDir) -> dict[str, int]:
    """What another process would read at this moment."""
    connection = sqlite3.connect(f"file:{data_dir.path / 'state.db'}?mode=ro", uri=True)
    try:
        return dict(connection.execute("SELECT key, revision FROM objects WHERE document IS NOT NULL"))
    finally:
        connection.close()


async def test_a_write_is_on_the_disk_when_it_is_said_to_be(tmp_path: Path) -> None:
    with open_data_dir(tmp_path / "data") as data_dir:
        for name in ("a", "b", "c"):
            revision = put(data_dir.store, name)
            await data_dir.log.durable(revision)
            assert on_disk(data_dir)[name] == revision


async def test_all_waiters_of_a_group_are_woken_and_a_cancelled_one_does_not_cancel_the_others(
    tmp_path: Path,
) -> None:
    with open_data_dir(tmp_path / "data") as data_dir:
        waiting = [
            asyncio.create_task(data_dir.log.durable(put(data_dir.store, f"x{n}"))) for n in range(100)
        ]
        await asyncio.sleep(0)
        waiting[50].cancel()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [n for n, end in enumerate(ended) if end is not None] in ([50], [])
        assert len(on_disk(data_dir)) == 100


def test_without_a_thread_all_writes_until_a_wait_are_one_group(tmp_path: Path) -> None:
    with open_data_dir(tmp_path / "data", threaded=False) as data_dir:
        for n in range(30):
            put(data_dir.store, f"x{n % 3}")
        data_dir.store.table("configmaps").remove("x1")
        assert on_disk(data_dir) == {}
        data_dir.log.wait_durable()
        assert data_dir.log.groups == 1
        assert on_disk(data_dir) == {"x0": 29, "x2": 31}


async def test_a_group_of_more_objects_than_one_statement_takes_is_still_written_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_MAX_ROWS_PER_STATEMENT", 7)
    with open_data_dir(tmp_path / "data", threaded=False) as data_dir:
        for n in range(50):
            put(data_dir.store, f"x{n}")
        await data_dir.log.durable()
        assert (data_dir.log.groups, len(on_disk(data_dir))) == (1, 50)


def fill(data_dir: DataDir) -> None:
    """Let the disk have no room for anything more."""
    connection = data_dir._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages}")


@pytest.mark.parametrize("threaded", [True, False])
async def test_on_a_full_disk_nothing_is_acknowledged_any_more_and_what_was_is_kept(
    tmp_path: Path, threaded: bool
) -> None:
    path = tmp_path / "data"
    with open_data_dir(path, threaded=threaded) as data_dir:
        kept = put(data_dir.store, "kept")
        await data_dir.log.durable(kept)
        fill(data_dir)
        lost = put(data_dir.store, "lost", "x" * 100_000)
        with pytest.raises(ServerError, match="not durable: database or disk is full") as refusal:
            await data_dir.log.durable(lost)
        assert (refusal.value.code, refusal.value.uncertain) == (500, True)
        with pytest.raises(ServiceUnavailable, match="disk is full"):
            data_dir.log.check()
        # There may be room again: writes after a lost one must not be there without it.
        data_dir._connection.execute("PRAGMA max_page_count=1000000")
        with pytest.raises(ServiceUnavailable, match="disk is full"):
            put(data_dir.store, "later")
        with pytest.raises(ServiceUnavailable, match="disk is full"):
            data_dir.store.table("configmaps").remove("kept")
        assert data_dir.store.table("configmaps").keys() == ["kept", "lost"]
        assert data_dir.store.revision == lost
        with pytest.raises(ServerError):
            await data_dir.log.durable()
        with pytest.raises(ServerError):
            data_dir.log.wait_durable()
        await data_dir.log.durable(kept)
    with open_data_dir(path) as data_dir:
        assert data_dir.store.table("configmaps").keys() == ["kept"]
        assert data_dir.store.revision >= lost


@pytest.mark.parametrize("threaded", [True, False])
async def test_a_failure_is_reported_before_a_write_is_refused_because_of_it(
    tmp_path: Path, threaded: bool
) -> None:
    refused: list[bool] = []
    with open_data_dir(tmp_path / "data", threaded=threaded) as data_dir:
        data_dir.log.on_failure = lambda error: refused.append(data_dir.log.failure is not None)
        fill(data_dir)
        with pytest.raises(ServerError, match="disk is full"):
            await data_dir.log.durable(put(data_dir.store, "lost", "x" * 100_000))
    assert refused == [False]


async def test_an_object_that_cannot_be_stored_is_not_acknowledged(tmp_path: Path) -> None:
    with open_data_dir(tmp_path / "data") as data_dir:
        strange = ConfigMap(
            metadata=ObjectMeta(name="x", resourceVersion=data_dir.store.next_version),
            data={"x": object()},  # type: ignore[dict-item]
        )
        data_dir.store.table("configmaps").put("x", strange)
        with pytest.raises(ServerError):
            await data_dir.log.durable()


async def test_a_write_after_the_end_is_not_acknowledged(tmp_path: Path) -> None:
    data_dir = open_data_dir(tmp_path / "data")
    data_dir.close()
    with pytest.raises(ServiceUnavailable, match="shutting down"):
        data_dir.log.check()
    with pytest.raises(ServerError, match="shutting down"):
        await data_dir.log.durable(put(data_dir.store, "late"))
    with pytest.raises(ServiceUnavailable):
        data_dir.put_blob("late", b"")


def test_memory_does_not_run_further_ahead_of_the_disk_than_revisions_are_reserved(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with open_data_dir(path, threaded=False) as data_dir:
        first = data_dir.store.revision
        for _ in range(logs.REVISION_RESERVE + 1):
            put(data_dir.store, "x")
        assert data_dir.log.groups == 1
        assert data_dir.log.revision == first + logs.REVISION_RESERVE
        data_dir.log.failure = RuntimeError("as if it had crashed")
        last = data_dir.store.revision
    with open_data_dir(path) as data_dir:
        assert data_dir.store.revision >= last


def test_what_is_left_of_deleted_objects_is_swept_and_their_revisions_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_MAX_TOMBSTONES", 2)
    path = tmp_path / "data"
    with open_data_dir(path, threaded=False) as data_dir:
        for name in ("a", "b", "c", "d"):
            put(data_dir.store, name)
            data_dir.log.wait_durable()
        for name in ("b", "c", "d"):
            data_dir.store.table("configmaps").remove(name)
            data_dir.log.wait_durable()
        last = data_dir.store.revision
        (left,) = data_dir._connection.execute("SELECT count(*) FROM objects").fetchone()
        assert left == 1
        data_dir.log.failure = RuntimeError("as if it had crashed")
    with open_data_dir(path) as data_dir:
        assert data_dir.store.revision >= last
        assert data_dir.store.table("configmaps").keys() == ["a"]
