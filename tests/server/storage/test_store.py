"""The store: revisions, order, watch window, forks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.errors import Expired
from steersman.api.kinds import Object, ObjectMeta
from steersman.client.api import EventType
from steersman.server.storage.store import Store, object_key
from steersman.server.storage.watch import Commit, Selection


def put(store: Store, namespace: str, name: str, **labels: str) -> Object:
    obj = Object(
        metadata=ObjectMeta(namespace=namespace, name=name, labels=labels, resourceVersion=store.next_version)
    )
    store.table("things").put(object_key(namespace, name), obj)
    return obj


def names(store: Store, selection: Selection = Selection()) -> list[str]:
    return [str(obj.key) for obj in store.table("things").select(selection)]


def test_every_write_takes_the_next_revision_whatever_the_resource() -> None:
    store = Store()
    first = put(store, "a", "x")
    other = Object(metadata=ObjectMeta(name="n", resourceVersion=store.next_version))
    store.table("others").put("n", other)
    last = store.table("things").remove("a/x")
    assert [o.metadata.resourceVersion for o in (first, other, last)] == ["2", "3", "4"]
    assert store.revision == 4


def test_an_object_without_the_next_resource_version_is_refused() -> None:
    store = Store()
    with pytest.raises(ValueError, match="resourceVersion 7, not 2"):
        store.table("things").put("x", Object(metadata=ObjectMeta(name="x", resourceVersion="7")))
    assert store.revision == 1
    assert len(store.table("things")) == 0


def test_objects_come_in_the_order_of_their_paths_so_that_a_dash_sorts_before_the_slash() -> None:
    store = Store()
    for namespace, name in (("b", "z"), ("a", "z"), ("a-b", "z"), ("a", "b"), ("a.c", "z")):
        put(store, namespace, name)
    assert names(store) == ["a-b/z", "a.c/z", "a/b", "a/z", "b/z"]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), ["a-b/x", "a/x", "a/y"]),
        (Selection(namespace="a"), ["a/x", "a/y"]),
        (Selection(namespace="a", name="y"), ["a/y"]),
        (Selection(namespace="a", name="z"), []),
        (Selection(name="x"), ["a-b/x", "a/x"]),
        (Selection(namespace="nowhere"), []),
        (Selection(test=lambda obj: obj.metadata.labels.get("k") == "1"), ["a-b/x", "a/y"]),
        (Selection(namespace="a", test=lambda obj: "k" in obj.metadata.labels), ["a/x", "a/y"]),
    ],
)
def test_a_selection_finds_its_objects(selection: Selection, expected: list[str]) -> None:
    store = Store()
    put(store, "a", "y", k="1")
    put(store, "a", "x", k="2")
    put(store, "a-b", "x", k="1")
    assert names(store, selection) == expected


def test_a_cluster_scoped_object_is_found_by_its_name() -> None:
    store = Store()
    put(store, "", "one")
    put(store, "", "two")
    assert names(store, Selection(name="two")) == ["two"]


KEYS = st.sampled_from([("a", "x"), ("a", "y"), ("a-b", "x"), ("b", "x"), ("", "x")])


@given(st.lists(st.tuples(KEYS, st.booleans(), st.booleans()), max_size=40))
def test_any_sequence_of_writes_leaves_what_a_plain_dict_would_in_order(
    writes: list[tuple[tuple[str, str], bool, bool]],
) -> None:
    store = Store()
    model: dict[str, Object] = {}
    for (namespace, name), remove, look in writes:
        key = object_key(namespace, name)
        if remove:
            if key in model:
                store.table("things").remove(key)
                del model[key]
        else:
            model[key] = put(store, namespace, name)
        if look:
            assert store.table("things").keys() == sorted(model)
    assert list(store.table("things").select(Selection())) == [model[key] for key in sorted(model)]


@given(st.lists(st.tuples(KEYS, st.booleans()), min_size=1, max_size=30), st.data())
def test_the_past_is_as_it_was(writes: list[tuple[tuple[str, str], bool]], data: st.DataObject) -> None:
    store = Store()
    states: dict[int, dict[str, Object | None]] = {store.revision: {}}
    for (namespace, name), remove in writes:
        key = object_key(namespace, name)
        table = store.table("things")
        if remove and table.get(key) is None:
            continue
        if remove:
            table.remove(key)
        else:
            put(store, namespace, name)
        states[store.revision] = dict(zip(table.keys(), table.select(Selection()), strict=True))
    revision = data.draw(st.sampled_from(sorted(states)))
    keys, objects = store.table("things").at(revision)
    assert keys == sorted(states[revision])
    assert {key: objects[key] for key in keys} == states[revision]


def test_history_reaches_at_least_as_far_back_as_promised_and_then_expires() -> None:
    store = Store(watch_window=5)
    for _ in range(50):
        put(store, "a", "x")
    table = store.table("things")
    keys, _ = table.at(store.revision - 5)
    assert keys == ["a/x"]
    with pytest.raises(Expired, match="too old") as refusal:
        table.at(2)
    assert (refusal.value.code, refusal.value.reason) == (410, "Expired")


def test_a_resource_that_never_changed_has_forgotten_nothing() -> None:
    store = Store(watch_window=2)
    for _ in range(50):
        put(store, "a", "x")
    assert store.table("others").at(3) == ([], {})


def test_a_fork_shares_the_objects_and_goes_its_own_way() -> None:
    store = Store()
    kept = put(store, "a", "kept")
    put(store, "a", "gone")
    watcher = store.table("things").watch(Selection())
    fork = store.fork()
    fork.table("things").remove("a/gone")
    put(fork, "b", "new")
    assert names(store) == ["a/gone", "a/kept"]
    assert names(fork) == ["a/kept", "b/new"]
    assert fork.table("things").get("a/kept") is kept
    assert (store.revision, fork.revision) == (3, 5)
    assert watcher.resume_revision == 3
    assert len(fork.table("things").watchers) == 0


def test_a_fork_remembers_the_history_it_came_from() -> None:
    store = Store()
    for name in ("x", "y"):
        put(store, "a", name)
    assert store.fork().table("things").at(2)[0] == ["a/x"]


def test_a_tap_hears_of_every_write_once_it_is_in_place() -> None:
    store = Store()
    heard: list[Commit] = []
    store.commit_hooks.append(
        lambda commit: heard.append(commit) if store.revision == commit.revision else None
    )
    put(store, "a", "x")
    put(store, "a", "x")
    store.table("things").remove("a/x")
    assert [(c.resource, c.key, c.revision, c.event.type) for c in heard] == [
        ("things", "a/x", 2, EventType.ADDED),
        ("things", "a/x", 3, EventType.MODIFIED),
        ("things", "a/x", 4, EventType.DELETED),
    ]
