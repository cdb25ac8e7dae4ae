"""Data directories: what comes back, and which ones are refused."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.errors import Expired
from steersman.api.generated import load
from steersman.api.generated.core_v1 import ConfigMap
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.scheme import Kind
from steersman.server.crd import establishing
from steersman.server.crd.custom import CustomResource
from steersman.server.local import LocalApi
from steersman.server.registry.resources import Registry
from steersman.server.server import Server
from steersman.server.storage.durable.data_dir import DataDir, open_data_dir
from steersman.server.storage.durable.documents import DocumentDecoder, encode
from steersman.server.storage.durable.errors import (
    CorruptData,
    DataDirError,
    DataDirInUse,
    ForeignData,
    NewerFormat,
)
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Selection
from tests.harness.fake_clock import FakeClock

PODS = load("", "v1", "Pod")
NAMESPACES = load("", "v1", "Namespace")
EVENTS = load("", "v1", "Event")
LEASES = load("coordination.k8s.io", "v1", "Lease")
DEFINITIONS = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
WIDGETS: Kind[Any] = Kind("example.com", "v1", "Widget", "widgets", True, dict)


def serve(data_dir: DataDir, clock: FakeClock | None = None) -> LocalApi:
    server = Server(clock or FakeClock(), store=data_dir.store)
    server.extend(establishing.install)
    data_dir.restart_ttls(server)
    return LocalApi(server)


def objects(store: Store) -> dict[str, list[Any]]:
    return {table.resource: list(table.select(Selection())) for table in store.tables() if len(table)}


def put(store: Store, name: str) -> None:
    meta = ObjectMeta(name=name, resourceVersion=store.next_version)
    store.table("configmaps").put(name, ConfigMap(metadata=meta, data={"name": name}))


def filled(path: Path, count: int = 50) -> Path:
    with open_data_dir(path) as data_dir:
        for n in range(count):
            put(data_dir.store, f"x{n}")
        data_dir.log.wait_durable()
    return path


def crash(data_dir: DataDir) -> None:
    """End without what an orderly end writes."""
    data_dir.log.failure = RuntimeError("as if it had crashed")
    data_dir.close()


async def populate(api: LocalApi) -> None:
    await api.create(NAMESPACES, "", {"metadata": {"name": "default"}})
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "100m"}}}]}
    await api.create(
        PODS, "default", {"metadata": {"name": "p", "annotations": {"a": "é\u0000ü"}}, "spec": spec}
    )
    lease = {"metadata": {"name": "l"}, "spec": {"renewTime": "2026-01-01T00:00:00.123456Z"}}
    await api.create(LEASES, "default", lease)
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    await api.create(DEFINITIONS, "", definition)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    await api.create(WIDGETS, "default", {**widget, "spec": {"free": [1, 2.5, None, {"a": "b"}], "n": {}}})


async def test_a_server_goes_on_where_it_was_with_custom_resources_and_at_the_same_revision(
    tmp_path: Path,
) -> None:
    with open_data_dir(tmp_path / "data") as data_dir:
        await populate(serve(data_dir))
        before, revision = objects(data_dir.store), data_dir.store.revision
    with open_data_dir(tmp_path / "data") as data_dir:
        api = serve(data_dir)
        assert data_dir.store.revision == revision
        assert objects(data_dir.store) == before
        widget = await api.get(WIDGETS, "default", "w")
        assert widget["spec"] == {"free": [1, 2.5, None, {"a": "b"}], "n": {}}
        widget["spec"] = {"other": True}
        changed = await api.update(WIDGETS, "default", "w", widget)
        assert changed["metadata"]["resourceVersion"] == str(revision + 1)
    with open_data_dir(tmp_path / "data") as data_dir:
        assert (await serve(data_dir).get(WIDGETS, "default", "w"))["spec"] == {"other": True}


async def test_who_watches_from_before_a_restart_is_told_to_list_again_unless_nothing_was_missed(
    tmp_path: Path,
) -> None:
    revision = 51
    with open_data_dir(filled(tmp_path / "data")) as data_dir:
        assert data_dir.store.revision == revision
        for store in (data_dir.store, data_dir.store.fork()):
            for resource in ("configmaps", "never-seen"):
                with pytest.raises(Expired):
                    store.table(resource).watch(Selection(), since=revision - 1)
                store.table(resource).watch(Selection(), since=revision)


def test_after_a_crash_no_revision_is_used_again_that_anybody_may_have_seen(tmp_path: Path) -> None:
    data_dir = open_data_dir(tmp_path / "data", threaded=False)
    put(data_dir.store, "safe")
    data_dir.log.wait_durable()
    put(data_dir.store, "seen in a watch and lost")
    seen = data_dir.store.revision
    crash(data_dir)
    with open_data_dir(tmp_path / "data") as data_dir:
        assert data_dir.store.table("configmaps").keys() == ["safe"]
        assert data_dir.store.revision > seen
        with pytest.raises(Expired):
            data_dir.store.table("configmaps").watch(Selection(), since=seen)


async def test_events_begin_their_hour_anew_and_go_when_it_is_over(tmp_path: Path) -> None:
    clock = FakeClock()
    with open_data_dir(tmp_path / "data") as data_dir:
        api = serve(data_dir, clock)
        await api.create(NAMESPACES, "", {"metadata": {"name": "default"}})
        await api.create(
            EVENTS, "default", {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
        )
    clock.advance(minutes=50)
    with open_data_dir(tmp_path / "data") as data_dir:
        api = serve(data_dir, clock)
        clock.advance(minutes=50)
        assert len((await api.list(EVENTS, "default")).items) == 1
        clock.advance(minutes=11)
        assert (await api.list(EVENTS, "default")).items == []


def test_small_values_are_kept_and_replaced(tmp_path: Path) -> None:
    with open_data_dir(tmp_path / "data") as data_dir:
        assert data_dir.blob("ca.key") is None
        data_dir.put_blob("ca.key", b"one")
        data_dir.put_blob("ca.key", b"\x00two")
        data_dir.put_blob("other", b"")
        crash(data_dir)
    with open_data_dir(tmp_path / "data") as data_dir:
        assert (data_dir.blob("ca.key"), data_dir.blob("other")) == (b"\x00two", b"")


def test_everything_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.mkdir(mode=0o755)
    with open_data_dir(path) as data_dir:
        put(data_dir.store, "x")
        data_dir.log.wait_durable()
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.iterdir()}
    assert modes == dict.fromkeys(("state.db", "state.db-wal", "state.db-shm", "lock", "acknowledged"), 0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


# -- documents --------------------------------------------------------------------------------

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), _json, max_size=4))
def test_free_content_comes_back_as_it_was(content: dict[str, Any]) -> None:
    for name in ("apiVersion", "kind", "metadata"):
        content.pop(name, None)
    obj = CustomResource(metadata=ObjectMeta(name="w"), content=content, stored=content, stored_in="v1")
    raw = encode(Store(), "widgets.example.com", obj)
    again = DocumentDecoder(Registry()).decode("widgets.example.com", raw)
    assert again == obj


def test_two_versions_in_one_table_come_back_as_what_they_were() -> None:
    reader, resource = DocumentDecoder(Registry()), "horizontalpodautoscalers.autoscaling"
    for version in ("v1", "v2", "v1"):
        kind = load("autoscaling", version, "HorizontalPodAutoscaler")
        obj = kind.type(metadata=ObjectMeta(name=version))
        assert type(reader.decode(resource, encode(Store(), resource, obj))) is kind.type


def test_an_object_of_a_kind_whose_gate_is_off_now_comes_back_as_what_it_was() -> None:
    group = load("scheduling.k8s.io", "v1alpha2", "PodGroup").type(metadata=ObjectMeta(name="g"))
    resource = "podgroups.scheduling.k8s.io"
    assert DocumentDecoder(Registry()).decode(resource, encode(Store(), resource, group)) == group


def test_a_document_of_a_version_that_is_no_more_is_named() -> None:
    with pytest.raises(ValueError, match="no kind Pod in v0"):
        DocumentDecoder(Registry()).decode("pods", b'{"apiVersion":"v0","kind":"Pod","metadata":{}}')


# -- refusals ---------------------------------------------------------------------------------


def contents(path: Path) -> dict[str, bytes]:
    """Of all files but those that say nothing: SQLite's index of its log, and the name of a process."""
    return {
        each.name: each.read_bytes()
        for each in path.iterdir()
        if not each.name.endswith("-shm") and each.name != "lock" and each.stat().st_size
    }


def test_two_servers_cannot_have_one_directory(tmp_path: Path) -> None:
    words = r"data: the directory is in use by process \d+; stop that server"
    with open_data_dir(tmp_path / "data"), pytest.raises(DataDirInUse, match=words):
        open_data_dir(tmp_path / "data")
    open_data_dir(tmp_path / "data").close()


def test_a_directory_with_other_things_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(
        ForeignData, match=r"holds no steersman data \(there is 'thesis.txt'\); name an empty"
    ):
        open_data_dir(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(ForeignData, match="not a directory"):
        open_data_dir(tmp_path / "thesis.txt")


def test_a_start_that_was_cut_short_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "fresh.db").write_bytes(b"half of a database")
    with open_data_dir(tmp_path) as data_dir:
        assert data_dir.store.revision == 1


def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    with pytest.raises(ForeignData, match="is not steersman's"):
        open_data_dir(tmp_path)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_later_format_is_refused_with_the_advice_to_use_a_later_program(tmp_path: Path) -> None:
    connection = sqlite3.connect(filled(tmp_path / "data") / "state.db")
    connection.execute("PRAGMA user_version=2")
    connection.close()
    with pytest.raises(NewerFormat, match=r"format 2 .* use the newer steersman"):
        open_data_dir(tmp_path / "data")


def _cut(share: float) -> Callable[[bytes], bytes]:
    return lambda data: data[: int(len(data) * share)]


def _blank(data: bytes) -> bytes:
    return b"\0" * len(data)


def _flip_a_letter(data: bytes) -> bytes:
    """Damage within a document, which SQLite does not notice."""
    return data.replace(b'{"name":"x7"}', b'{"name":"y7"}')


@pytest.mark.parametrize(
    "damage", [_cut(0.0), _cut(0.3), _cut(0.9), _blank, _flip_a_letter, lambda data: b"nonsense" * 1000]
)
def test_a_damaged_database_is_refused_with_the_way_out_and_left_alone(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = filled(tmp_path / "data")
    database = path / "state.db"
    whole = database.read_bytes()
    database.write_bytes(damage(whole))
    assert database.read_bytes() != whole
    before = contents(path)
    with pytest.raises(DataDirError, match=rf"^{path}: ") as refusal:
        open_data_dir(path)
    assert "\n" not in str(refusal.value)
    assert contents(path) == before
    database.write_bytes(whole)
    open_data_dir(path).close()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.97])
def test_a_log_that_was_cut_off_below_what_was_acknowledged_is_refused_and_left_alone(
    tmp_path: Path, share: float
) -> None:
    with open_data_dir(tmp_path / "running") as data_dir:
        for n in range(50):
            put(data_dir.store, f"x{n}")
            data_dir.log.wait_durable()
        shutil.copytree(data_dir.path, tmp_path / "data")
    path = tmp_path / "data"
    log = path / "state.db-wal"
    log.write_bytes(log.read_bytes()[: int(log.stat().st_size * share)])
    (path / "state.db-shm").unlink()
    before = contents(path)
    with pytest.raises(
        CorruptData, match=r"writes up to 51 were acknowledged and those after \d+ are missing; "
    ):
        open_data_dir(path)
    assert contents(path) == before
    # The way out that the message names.
    (path / "acknowledged").unlink()
    open_data_dir(path).close()


@given(st.integers(0, 2**31), st.integers(1, 255))
def test_a_byte_that_changed_is_noticed_or_did_not_matter(
    tmp_path_factory: pytest.TempPathFactory, place: int, change: int
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "data"
    shutil.copytree(_sound(tmp_path_factory), path)
    data = bytearray((path / "state.db").read_bytes())
    data[place % len(data)] ^= change
    (path / "state.db").write_bytes(data)
    try:
        with open_data_dir(path, threaded=False) as data_dir:
            found = {
                obj.metadata.name: obj.data for obj in data_dir.store.table("configmaps").select(Selection())
            }
            assert found == {f"x{n}": {"name": f"x{n}"} for n in range(50)}
            assert data_dir.store.revision >= 51
    except DataDirError:
        pass
    shutil.rmtree(path)


_made: list[Path] = []


def _sound(factory: pytest.TempPathFactory) -> Path:
    if not _made:
        _made.append(filled(factory.mktemp("sound") / "data"))
    return _made[0]
