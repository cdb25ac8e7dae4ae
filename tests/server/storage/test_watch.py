"""Watches: what each watcher is told, and when it is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.errors import Expired
from steersman.api.kinds import Object, ObjectMeta
from steersman.client.api import EventType, WatchEvent
from steersman.server.storage.store import Store, object_key
from steersman.server.storage.watch import MAX_UNREAD_EVENTS, Selection, Subscription
from steersman.sim.loop import VirtualLoop

ODD = Selection(test=lambda obj: obj.metadata.labels.get("odd") == "yes")


def put(store: Store, name: str, namespace: str = "a", **labels: str) -> Object:
    obj = Object(
        metadata=ObjectMeta(namespace=namespace, name=name, labels=labels, resourceVersion=store.next_version)
    )
    store.table("things").put(object_key(namespace, name), obj)
    return obj


def remove(store: Store, name: str, namespace: str = "a") -> None:
    store.table("things").remove(object_key(namespace, name))


def drain(watch: Subscription) -> list[WatchEvent[Object]]:
    """Everything there is to read right now."""
    events: list[WatchEvent[Object]] = []

    async def read() -> None:
        try:
            async with asyncio.timeout(1):
                async for event in watch:
                    events.append(event)
        except TimeoutError:
            pass

    loop = VirtualLoop()
    loop.run_until_complete(read())
    loop.close()
    return events


def told(events: Iterable[WatchEvent[Object]]) -> list[str]:
    return [f"{e.type.value} {e.obj.key if e.obj is not None else '-'} {e.resource_version}" for e in events]


def test_a_watch_from_a_revision_tells_what_came_after_it() -> None:
    store = Store()
    put(store, "x")
    put(store, "y")
    watch = store.table("things").watch(Selection(), since=2)
    put(store, "x")
    remove(store, "y")
    assert told(drain(watch)) == ["ADDED a/y 3", "MODIFIED a/x 4", "DELETED a/y 5"]


def test_a_deleted_object_bears_the_revision_of_its_deletion() -> None:
    store = Store()
    put(store, "x")
    watch = store.table("things").watch(Selection(), since=2)
    remove(store, "x")
    (event,) = drain(watch)
    assert event.obj is not None
    assert event.obj.metadata.resourceVersion == "3"


def test_a_watch_of_what_is_there_begins_with_it_and_marks_where_it_ends() -> None:
    store = Store()
    for name in ("y", "x"):
        put(store, name)
    watch = store.table("things").watch(Selection(), initial_end=True)
    put(store, "z")
    events = drain(watch)
    assert told(events) == ["ADDED a/x 3", "ADDED a/y 2", "BOOKMARK - 3", "ADDED a/z 4"]
    assert [event.initial_end for event in events] == [False, False, True, False]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("yes", "yes", ["MODIFIED a/x 3"]),
        ("no", "yes", ["ADDED a/x 3"]),
        ("yes", "no", ["DELETED a/x 3"]),
        ("no", "no", []),
    ],
)
def test_objects_enter_and_leave_a_selection_as_their_labels_change(
    before: str, after: str, expected: list[str]
) -> None:
    store = Store()
    put(store, "x", odd=before)
    live = store.table("things").watch(ODD, since=2)
    put(store, "x", odd=after)
    replayed = store.table("things").watch(ODD, since=2)
    assert told(drain(live)) == expected
    assert told(drain(replayed)) == expected


def test_an_object_that_left_is_told_with_the_labels_it_had_and_the_revision_it_left_at() -> None:
    store = Store()
    put(store, "x", odd="yes")
    watch = store.table("things").watch(ODD, since=2)
    put(store, "x", odd="no")
    (event,) = drain(watch)
    assert event.obj is not None
    assert dict(event.obj.metadata.labels) == {"odd": "yes"}
    assert event.obj.metadata.resourceVersion == "3"


def test_the_deletion_of_an_object_outside_the_selection_is_not_told() -> None:
    store = Store()
    put(store, "x", odd="no")
    watch = store.table("things").watch(ODD, since=2)
    remove(store, "x")
    assert drain(watch) == []


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(namespace="a"), ["ADDED a/x 2", "ADDED a/y 4"]),
        (Selection(name="x"), ["ADDED a/x 2", "ADDED b/x 3"]),
        (Selection(namespace="b", name="x"), ["ADDED b/x 3"]),
    ],
)
def test_a_watch_of_a_namespace_or_a_name_hears_of_nothing_else(
    selection: Selection, expected: list[str]
) -> None:
    store = Store()
    live = store.table("things").watch(selection, since=1)
    put(store, "x")
    put(store, "x", "b")
    put(store, "y")
    assert told(drain(live)) == expected
    assert told(drain(store.table("things").watch(selection, since=1))) == expected


def test_a_watch_from_a_forgotten_revision_is_refused_with_expired() -> None:
    store = Store(watch_window=3)
    for _ in range(20):
        put(store, "x")
    with pytest.raises(Expired, match=r"too old resource version: 2 \(\d+\)"):
        store.table("things").watch(Selection(), since=2)


def test_a_watch_from_a_revision_to_come_waits_for_what_follows_it() -> None:
    store = Store()
    watch = store.table("things").watch(Selection(), since=3)
    for name in ("x", "y", "z"):
        put(store, name)
    assert told(drain(watch)) == ["ADDED a/z 4"]


def test_a_quiet_watch_of_a_busy_resource_is_told_how_far_things_moved_on() -> None:
    store = Store(watch_window=10)
    put(store, "x", "quiet")
    watch = store.table("things").watch(Selection(namespace="quiet"), since=2)
    for _ in range(100):
        put(store, "x", "busy")
    events = drain(watch)
    assert {event.type for event in events} == {EventType.BOOKMARK}
    resumed = store.table("things").watch(
        Selection(namespace="quiet"), since=int(events[-1].resource_version)
    )
    put(store, "y", "quiet")
    assert told(drain(resumed)) == ["ADDED quiet/y 103"]


def test_a_watcher_that_does_not_read_is_cut_off_and_can_resume_where_it_was() -> None:
    store = Store(watch_window=2 * MAX_UNREAD_EVENTS)
    watch = store.table("things").watch(Selection(), since=1)
    for _ in range(MAX_UNREAD_EVENTS + 5):
        put(store, "x")
    events = drain(watch)
    assert len(events) == MAX_UNREAD_EVENTS
    assert len(store.table("things").watchers) == 0
    rest = store.table("things").watch(Selection(), since=int(events[-1].resource_version))
    assert len(drain(rest)) == 5


def test_a_reader_that_is_cancelled_leaves_no_watcher_behind() -> None:
    store = Store()
    watch = store.table("things").watch(Selection(), since=1)
    assert len(store.table("things").watchers) == 1
    drain(watch)
    assert len(store.table("things").watchers) == 0


def test_a_thousand_idle_watches_are_not_woken_by_writes_elsewhere() -> None:
    store = Store()
    woken = 0

    async def follow(namespace: str) -> None:
        nonlocal woken
        async for _ in store.table("things").watch(Selection(namespace=namespace), since=1):
            woken += 1

    async def run() -> None:
        tasks = [asyncio.create_task(follow(f"idle-{i}")) for i in range(1000)]
        await asyncio.sleep(1)
        turns = loop._turns
        for i in range(50):
            put(store, f"x{i}", "busy")
        await asyncio.sleep(0)
        assert loop._turns - turns <= 2
        put(store, "x", "idle-7")
        await asyncio.sleep(1)
        assert woken == 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    loop = VirtualLoop()
    loop.run_until_complete(run())
    loop.close()


NAMES = st.sampled_from(["w", "x", "y", "z"])
STEP = st.one_of(
    st.tuples(st.just("put"), NAMES, st.sampled_from(["yes", "no"])),
    st.tuples(st.just("remove"), NAMES, st.just("")),
    st.tuples(st.just("read"), st.just(""), st.just("")),
    st.tuples(st.just("break"), st.just(""), st.just("")),
)


@given(steps=st.lists(STEP, max_size=60), selection=st.sampled_from([Selection(), ODD]))
def test_a_watcher_that_resumes_after_any_breaks_sees_the_current_objects(
    steps: list[tuple[str, str, str]], selection: Selection
) -> None:
    store = Store(watch_window=8)
    table = store.table("things")
    view: dict[str, Object] = {}
    version = 0
    watch = table.watch(selection, initial_end=True)

    def read() -> None:
        nonlocal version
        for event in drain(watch):
            version = max(version, int(event.resource_version))
            if event.obj is None:
                continue
            key = str(event.obj.key)
            if event.type is EventType.DELETED:
                assert view.pop(key, None) is not None
            else:
                assert (key in view) == (event.type is EventType.MODIFIED)
                view[key] = event.obj

    def resume() -> Subscription:
        try:
            return table.watch(selection, since=version)
        except Expired:
            view.clear()
            return table.watch(selection, initial_end=True)

    for what, name, odd in steps:
        if what == "put":
            put(store, name, odd=odd)
        elif what == "remove" and table.get(f"a/{name}") is not None:
            remove(store, name)
        elif what == "read":
            # Reading ends the subscription, so every read is followed by a resumption.
            read()
            watch = resume()
        elif what == "break" and version:
            watch.close()
            watch = resume()
    read()
    assert view == {str(obj.key): obj for obj in table.select(selection)}
