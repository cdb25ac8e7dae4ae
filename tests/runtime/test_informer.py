"""Informers against a small server that can be cut, compacted, paged, overloaded and restored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.errors import (
    Cause,
    Expired,
    Forbidden,
    Invalid,
    ServerError,
    ServerTimeout,
    ServiceUnavailable,
    TooManyRequests,
    Unreachable,
)
from steersman.api.kinds import NAMESPACES, PODS, REPLICASETS, Object, ObjectMeta, Pod, PodSpec
from steersman.api.scheme import Key, Kind
from steersman.client.api import EventType, Page, UndecodableObject, WatchEvent
from steersman.client.capabilities import REMOTE, Capabilities
from steersman.intent.controller import Caches, Change
from steersman.runtime.informer import Informer, Informers, NotSynced
from steersman.runtime.metrics import Metrics
from steersman.sim.loop import VirtualLoop
from tests.harness.fake_clock import LoopClock

T = TypeVar("T")
DAWN = datetime(2026, 1, 1, tzinfo=UTC)


def pod(name: str, version: int | str = 1, *, uid: str = "", node: str = "") -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="d", uid=uid or name, resourceVersion=str(version)),
        spec=PodSpec(nodeName=node),
    )


def key(name: str) -> Key:
    return Key("d", name)


@dataclass(frozen=True)
class Event:
    revision: int
    type: EventType
    obj: Pod
    bad: bool


@dataclass
class Server:
    """Pods with revisions, a history that can be compacted, and streams that can be cut.

    ``faults`` are thrown at the next requests, one each.
    """

    revision: int = 10
    pods: dict[Key, Pod] = field(default_factory=dict)
    bad: set[Key] = field(default_factory=set)
    history: list[Event] = field(default_factory=list)
    compacted: int = 0
    streams: bool = True
    capabilities: Capabilities = REMOTE
    page: int = 500
    pages: dict[str, tuple[int, list[Any]]] = field(default_factory=dict)
    faults: list[Exception] = field(default_factory=list)
    watchers: list[asyncio.Queue[Any]] = field(default_factory=list)
    born: int = 0
    requests: int = 0

    # -- what others do to it

    def put(self, name: str, *, node: str = "", bad: bool = False) -> None:
        self.revision += 1
        old = self.pods.get(key(name))
        self.born += old is None
        uid = old.metadata.uid if old else f"{name}-{self.born}"
        self._write(
            EventType.MODIFIED if old else EventType.ADDED, pod(name, self.revision, uid=uid, node=node), bad
        )

    def delete(self, name: str) -> None:
        old = self.pods.get(key(name))
        if old is not None:
            self.revision += 1
            last = pod(name, self.revision, uid=old.metadata.uid, node=old.spec.nodeName)
            self._write(EventType.DELETED, last, key(name) in self.bad)

    def _write(self, type: EventType, obj: Pod, bad: bool) -> None:
        if type is EventType.DELETED:
            del self.pods[obj.key]
            self.bad.discard(obj.key)
        else:
            self.pods[obj.key] = obj
            (self.bad.add if bad else self.bad.discard)(obj.key)
        event = Event(self.revision, type, obj, bad)
        self.history.append(event)
        for watcher in self.watchers:
            watcher.put_nowait(event)

    def elsewhere(self) -> None:
        """Something else in the cluster changed."""
        self.revision += 1

    def bookmark(self) -> None:
        for watcher in self.watchers:
            watcher.put_nowait(WatchEvent(EventType.BOOKMARK, None, str(self.revision)))

    def cut(self, error: Exception | None = None) -> None:
        """End all streams, properly or with an error."""
        for watcher in self.watchers:
            watcher.put_nowait(error or StopAsyncIteration())
        self.watchers = []

    def compact(self) -> None:
        self.compacted = self.revision
        self.history = []
        self.pages = {}

    # -- what it answers

    def _begin(self) -> None:
        self.requests += 1
        if self.faults:
            raise self.faults.pop(0)

    def _shown(self, obj: Pod, bad: bool) -> Pod | UndecodableObject:
        return UndecodableObject(obj.metadata, "Expected `int`, got `str`") if bad else obj

    def _everything(self) -> list[Any]:
        return [self._shown(obj, place in self.bad) for place, obj in self.pods.items()]

    async def list(
        self,
        kind: Kind[Any],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_: str = "",
        resource_version: str = "",
        resource_version_match: Literal["", "Exact", "NotOlderThan"] = "",
    ) -> Page[Any]:
        await asyncio.sleep(0.01)
        self._begin()
        revision, rest = self.revision, self._everything()
        if continue_:
            if continue_ not in self.pages:
                raise Expired("The provided continue parameter is too old")
            revision, rest = self.pages.pop(continue_)
        size = min(limit, self.page) if limit else len(rest)
        token = ""
        if len(rest) > size:
            token = f"page-{self.requests}"
            self.pages[token] = (revision, rest[size:])
        return Page(rest[:size], str(revision), token)

    async def watch(
        self,
        kind: Kind[Any],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        send_initial_events: bool = False,
        timeout_seconds: int | None = None,
        level_triggered: bool = False,
    ) -> AsyncIterator[WatchEvent[Any]]:
        await asyncio.sleep(0.01)
        self._begin()
        queue: asyncio.Queue[Any] = asyncio.Queue()
        if send_initial_events:
            if not self.streams:
                raise Invalid("sendInitialEvents is forbidden")
            for item in self._everything():
                queue.put_nowait(WatchEvent(EventType.ADDED, item, item.metadata.resourceVersion))
            queue.put_nowait(WatchEvent(EventType.BOOKMARK, None, str(self.revision), initial_end=True))
        else:
            since = int(resource_version)
            if since < self.compacted:
                raise Expired(f"too old resource version: {since} ({self.compacted})")
            if since > self.revision:
                cause = Cause("ResourceVersionTooLarge", "Too large resource version", "")
                raise ServerTimeout("Too large resource version", causes=(cause,))
            for event in self.history:
                if event.revision > since:
                    queue.put_nowait(event)
        self.watchers.append(queue)
        end = asyncio.get_running_loop().time() + (timeout_seconds or 1e9)
        try:
            while True:
                try:
                    async with asyncio.timeout_at(end):
                        item = await queue.get()
                except TimeoutError:
                    return
                if isinstance(item, StopAsyncIteration):
                    return
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, Event):
                    yield WatchEvent(item.type, self._shown(item.obj, item.bad), str(item.revision))
                else:
                    yield item
        finally:
            if queue in self.watchers:
                self.watchers.remove(queue)

    def __getattr__(self, verb: str) -> Any:
        raise AssertionError(f"an informer does not {verb}")


def word(obj: Object | None) -> str:
    return f"{obj.metadata.name}@{obj.metadata.resourceVersion}" if obj is not None else "-"


class Diary:
    """A handler that writes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, change: Change[Pod]) -> None:
        self.lines.append(f"{word(change.old)} {word(change.new)}")

    def take(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


def play(
    script: Callable[[Server, Informer[Pod]], Coroutine[Any, Any, T]],
    server: Server | None = None,
    *,
    running: bool = True,
    **options: Any,
) -> T:
    """Run a script with a server and a running informer, under virtual time."""

    async def main() -> T:
        there = server or Server()
        informer = Informer(PODS, there, LoopClock(), **options)  # type: ignore[arg-type]
        task = asyncio.create_task(informer.run() if running else asyncio.sleep(1e9))
        try:
            return await script(there, informer)
        finally:
            assert not task.done(), "the informer ended by itself"
            task.cancel()
            await asyncio.wait([task])
            assert not there.watchers, "a stream was left open"

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


# -- one informer


def test_handlers_are_told_what_came_what_changed_and_what_went() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        diary = Diary()
        informer.subscribe(diary)
        server.put("a")
        assert (informer.synced, informer.store.revision) == (False, 0)
        await informer.wait_synced()
        assert informer.synced
        server.put("b")
        server.put("a", node="n1")
        server.delete("b")
        await asyncio.sleep(1)
        assert diary.lines == ["- a@11", "- b@12", "a@11 a@13", "b@14 -"]
        assert [word(obj) for obj in informer.store.list()] == ["a@13"]
        assert informer.store.revision == 14

    play(script)


def test_handlers_are_called_after_the_store_has_changed() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        seen = []
        informer.subscribe(
            lambda change: seen.append((word(informer.store.get(key("a"))), informer.store.revision))
        )
        server.put("a")
        await informer.wait_synced()
        server.put("a")
        server.delete("a")
        await asyncio.sleep(1)
        assert seen == [("a@11", 11), ("a@12", 12), ("-", 13)]

    play(script)


def test_a_late_subscriber_is_shown_what_is_there() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        server.put("a")
        server.put("b")
        await informer.wait_synced()
        diary = Diary()
        informer.subscribe(diary)
        assert diary.take() == ["- a@11", "- b@12"]
        server.put("b")
        await asyncio.sleep(1)
        assert diary.take() == ["b@12 b@13"]

    play(script)


def test_whoever_subscribes_while_others_are_told_is_told_once() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        late = Diary()

        def first(change: Change[Pod]) -> None:
            if change.obj.metadata.name == "a":
                informer.subscribe(late)

        informer.subscribe(first)
        server.put("a")
        server.put("b")
        await informer.wait_synced()
        assert late.lines == ["- a@11", "- b@12"]

    play(script)


def test_a_handler_that_fails_does_not_keep_others_from_being_told(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()

    async def script(server: Server, informer: Informer[Pod]) -> None:
        def clumsy(change: Change[Pod]) -> None:
            raise ZeroDivisionError("clumsy")

        diary = Diary()
        informer.subscribe(clumsy)
        informer.subscribe(diary)
        server.put("a")
        await informer.wait_synced()
        server.put("a")
        await asyncio.sleep(1)
        assert diary.lines == ["- a@11", "a@11 a@12"]
        assert informer.handler_failures == 2

    play(script, metrics=metrics)
    assert "ZeroDivisionError: clumsy" in caplog.text
    assert 'steersman_handler_errors_total{resource="pods"} 2' in metrics.render().decode()


def test_progress_is_told_after_the_handlers_and_at_bookmarks_and_at_the_end_of_a_sync() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        told: list[object] = []
        informer.subscribe(lambda change: told.append(word(change.new)))
        informer.on_progress(told.append)
        server.put("a")
        await informer.wait_synced()
        assert told == ["a@11", 11]
        server.put("b")
        await asyncio.sleep(1)
        server.elsewhere()
        server.bookmark()
        server.bookmark()
        await asyncio.sleep(1)
        assert told == ["a@11", 11, "b@12", 12, 13]

    play(script)


def test_a_progress_handler_that_fails_is_survived() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        told: list[int] = []
        informer.on_progress(lambda revision: 1 / 0)  # type: ignore[arg-type]
        informer.on_progress(told.append)
        await informer.wait_synced()
        assert told == [10]

    play(script)


def test_a_new_list_tells_only_what_is_different() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        diary = Diary()
        informer.subscribe(diary)
        for name in ("kept", "gone", "changed", "reborn"):
            server.put(name)
        await informer.wait_synced()
        kept = informer.store.get(key("kept"))
        diary.take()
        server.cut(Unreachable("reset"))
        server.put("changed")
        server.delete("gone")
        server.delete("reborn")
        server.put("reborn")
        server.put("new")
        server.compact()
        await asyncio.sleep(10)
        assert diary.take() == [
            "gone@12 -",
            "changed@13 changed@15",
            "reborn@14 -",
            "- reborn@18",
            "- new@19",
        ]
        assert informer.store.get(key("kept")) is kept

    play(script)


def test_what_a_broken_watch_missed_is_told_as_it_happened() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        diary = Diary()
        informer.subscribe(diary)
        server.put("a")
        await informer.wait_synced()
        server.cut(Unreachable("reset"))
        server.put("a")
        server.delete("a")
        server.put("a")
        await asyncio.sleep(10)
        assert diary.lines == ["- a@11", "a@11 a@12", "a@13 -", "- a@14"]

    play(script)


def test_an_error_never_means_that_there_is_nothing() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        diary = Diary()
        server.put("a")
        await informer.wait_synced()
        informer.subscribe(diary)
        diary.take()
        server.cut(Unreachable("reset"))
        server.compact()
        server.faults = [Expired("old"), *[Forbidden("no"), ServiceUnavailable("down")] * 20]
        await asyncio.sleep(120)
        assert (diary.lines, len(informer.store), informer.synced) == ([], 1, True)

    play(script)


def test_a_server_restored_from_a_backup_is_believed(caplog: pytest.LogCaptureFixture) -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        diary = Diary()
        informer.subscribe(diary)
        server.put("a")
        backup = (dict(server.pods), server.revision)
        server.put("a")
        server.put("b")
        await informer.wait_synced()
        diary.take()
        server.pods, server.revision = dict(backup[0]), backup[1]
        server.history = []
        server.cut(Unreachable("reset"))
        await asyncio.sleep(10)
        assert diary.take() == ["b@13 -", "a@12 a@11"]
        assert informer.store.revision == 11
        server.put("c")
        await asyncio.sleep(1)
        assert diary.take() == ["- c@12"]

    play(script)
    assert "the server went back from 13 to 11" in caplog.text


@pytest.mark.parametrize("again", [pod("a", 11, uid="a-1"), pod("a", 9, uid="a-1")], ids=["same", "older"])
def test_a_version_that_is_not_news_is_not_told(again: Pod) -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        diary = Diary()
        informer.subscribe(diary)
        server.put("a")
        await informer.wait_synced()
        mine = informer.store.get(key("a"))
        informer.changed(again, "", "20")
        assert diary.lines == ["- a@11"]
        assert informer.store.get(key("a")) is mine
        assert informer.store.revision == 20

    play(script)


def test_another_object_under_the_same_name_is_two_changes() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        diary = Diary()
        informer.subscribe(diary)
        informer.changed(pod("a", 5, uid="one"), "", "5")
        informer.changed(pod("a", 6, uid="two"), "", "6")
        assert diary.lines == ["- a@5", "a@5 -", "- a@6"]

    play(script, running=False)


def test_versions_that_are_no_numbers_are_told_all_the_same() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        diary = Diary()
        told: list[int] = []
        informer.subscribe(diary)
        informer.on_progress(told.append)
        for version in ("x", "b", "b", ""):
            informer.changed(pod("a", version), "", version)
        assert diary.lines == ["- a@x", "a@x a@b", "a@b a@"]
        assert told == [1, 2, 3]

    play(script, running=False)


def test_an_object_nobody_was_told_of_goes_unannounced() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        diary = Diary()
        informer.subscribe(diary)
        informer.removed(pod("a", 5), "", "5")
        assert (diary.lines, informer.store.revision) == ([], 5)

    play(script, running=False)


# -- what cannot be read


def test_what_cannot_be_read_is_known_by_its_metadata_until_it_can(caplog: pytest.LogCaptureFixture) -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        diary = Diary()
        informer.subscribe(diary)
        server.put("a", node="n1", bad=True)
        server.put("b")
        await informer.wait_synced()
        assert informer.store.unreadable == {key("a"): "Expected `int`, got `str`"}
        assert informer.store.get(key("a")) == Pod(metadata=server.pods[key("a")].metadata)
        server.put("b", bad=True)
        server.put("a")
        await asyncio.sleep(1)
        assert list(informer.store.unreadable) == [key("b")]
        server.delete("b")
        await asyncio.sleep(1)
        assert informer.store.unreadable == {}
        assert diary.lines == ["- a@11", "- b@12", "b@12 b@13", "a@11 a@14", "b@13 -"]

    play(script)
    complaints = [r.getMessage() for r in caplog.records if "only its metadata" in r.getMessage()]
    assert len(complaints) == 2
    assert "d/a: only its metadata can be read: Expected `int`, got `str`" in complaints[0]


@pytest.mark.parametrize("end", ["deleted", "decodable", "another", "listed anew"])
def test_handlers_get_the_last_state_that_could_be_decoded(end: str) -> None:
    """In the metadata alone they would find neither the node of a pod nor its volumes."""

    async def script(server: Server, informer: Informer[Pod]) -> None:
        told: list[tuple[str, str]] = []
        repaired: list[float] = []

        def handler(change: Change[Pod]) -> None:
            states = (change.old, change.new)
            told.append(tuple(each.spec.nodeName if each else "-" for each in states))  # type: ignore[arg-type]

        informer.subscribe(handler)
        informer.on_decodable(lambda: repaired.append(asyncio.get_running_loop().time()))
        server.put("a", node="n1")
        await informer.wait_synced()
        for _ in range(2):
            server.put("a", node="n2", bad=True)
            await asyncio.sleep(1)
        assert (told, repaired) == ([("-", "n1"), ("n1", ""), ("n1", "")], [])
        if end == "decodable":
            server.put("a", node="n3")
        elif end == "listed anew":
            informer.replaced({}, {}, "99")
        else:
            server.delete("a")
        if end == "another":
            server.put("a", node="n4")
        await asyncio.sleep(1)
        after = {"decodable": [("n1", "n3")], "another": [("n1", "-"), ("-", "n4")]}
        assert told[3:] == after.get(end, [("n1", "-")])
        assert len(repaired) == 1
        assert not informer.store.unreadable

    play(script)


def test_what_cannot_be_read_is_complained_about_once_for_each_version(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        server.put("a", bad=True)
        await informer.wait_synced()
        for _ in range(3):
            server.cut(Unreachable("reset"))
            server.elsewhere()
            server.compact()
            await asyncio.sleep(60)
        server.put("a", bad=True)
        await asyncio.sleep(1)

    play(script)
    assert len([r for r in caplog.records if "only its metadata" in r.getMessage()]) == 2


# -- resync


def test_a_resync_shows_everything_again_between_one_and_two_periods() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        shown: list[float] = []

        def handler(change: Change[Pod]) -> None:
            if change.old is change.new:
                assert change.new is informer.store.get(key("a"))
                shown.append(asyncio.get_running_loop().time())

        informer.subscribe(handler)
        server.put("a")
        await asyncio.sleep(10_000)
        gaps = [b - a for a, b in zip([0.0, *shown], shown, strict=False)]
        assert 8 <= len(gaps) <= 16
        assert all(600 <= gap <= 1200 for gap in gaps)
        assert len(set(gaps)) == len(gaps)

    play(script, resync=600.0)


def test_without_a_resync_period_nothing_is_shown_twice() -> None:
    async def script(server: Server, informer: Informer[Pod]) -> None:
        diary = Diary()
        informer.subscribe(diary)
        server.put("a")
        await asyncio.sleep(100_000)
        assert diary.lines == ["- a@11"]

    play(script)


# -- all of them


def all_of_them(script: Callable[[Server, Informers], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def main() -> None:
        server = Server()
        await script(server, Informers(server, LoopClock(), **options))  # type: ignore[arg-type]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def test_there_is_one_informer_for_each_resource() -> None:
    async def script(server: Server, informers: Informers) -> None:
        caches: Caches = informers
        assert informers.informer(PODS) is informers.informer(PODS)
        assert caches[PODS] is informers.informer(PODS).store
        one: object = informers.informer(NAMESPACES)
        assert one is not informers.informer(PODS)
        assert [informer.kind for informer in informers] == [PODS, NAMESPACES]

    all_of_them(script)


def test_the_same_resource_as_another_type_is_a_mistake() -> None:
    class Slim(Object, frozen=True):
        pass

    async def script(server: Server, informers: Informers) -> None:
        informers.informer(PODS)
        with pytest.raises(
            TypeError, match=r"pods is read as v1 Pod already, and cannot be read as v1 .*Slim too"
        ):
            informers.informer(PODS.as_(Slim))
        with pytest.raises(TypeError, match="cannot be read as v2 Pod too"):
            informers.informer(replace(PODS, version="v2"))
        assert informers.informer(PODS.as_(Object)) is informers.informer(PODS)

    all_of_them(script)


def test_metadata_alone_does_not_serve_who_wants_more() -> None:
    async def script(server: Server, informers: Informers) -> None:
        informers.informer(PODS.as_(Object))
        with pytest.raises(TypeError, match="read as v1 Object already"):
            informers.informer(PODS)

    all_of_them(script)


def test_they_run_together_and_say_when_all_are_filled() -> None:
    async def script(server: Server, informers: Informers) -> None:
        informers.informer(PODS)
        informers.informer(NAMESPACES)
        server.put("a")
        assert len(informers.unsynced()) == 2
        await informers.start()
        await informers.wait_synced(5)
        assert informers.unsynced() == ()
        assert len(informers[PODS]) == 1
        await informers.stop()
        assert server.watchers == []

    all_of_them(script)


def test_a_cache_nobody_asked_for_before_the_start_is_not_empty_but_a_mistake() -> None:
    async def script(server: Server, informers: Informers) -> None:
        informers.informer(PODS)
        await informers.start()
        with pytest.raises(LookupError, match=r"no informer watches replicasets\.apps"):
            informers[REPLICASETS]
        await informers.stop()

    all_of_them(script)


def test_a_resource_may_come_and_go_while_they_run() -> None:
    async def script(server: Server, informers: Informers) -> None:
        informers.informer(PODS)
        await informers.start()
        late = informers.informer(NAMESPACES)
        await asyncio.wait_for(late.wait_synced(), 1)
        assert len(server.watchers) == 2
        informers.drop(NAMESPACES)
        informers.drop(NAMESPACES)
        await asyncio.sleep(1)
        assert len(server.watchers) == 1
        assert [informer.kind for informer in informers] == [PODS]
        assert informers.informer(NAMESPACES) is not late
        await informers.stop()
        assert server.watchers == []

    all_of_them(script)


def test_caches_that_are_not_filled_in_time_are_named_with_their_trouble(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Half(Server):
        async def list(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Page[Any]:
            if kind is NAMESPACES:
                raise Forbidden("namespaces is forbidden")
            return await super().list(kind, namespace, **options)

    async def main() -> None:
        server = Half(streams=False)
        informers = Informers(server, LoopClock())  # type: ignore[arg-type]
        informers.informer(PODS)
        informers.informer(NAMESPACES)
        await informers.start()
        with pytest.raises(
            NotSynced, match=r"^caches not synced after 30 s: namespaces \(namespaces is forbidden\)$"
        ):
            await informers.wait_synced(30)
        assert asyncio.get_running_loop().time() == pytest.approx(30, abs=0.1)
        await informers.stop()

    with caplog.at_level(logging.INFO), asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    assert "waiting for caches: namespaces (namespaces is forbidden)" in caplog.text


def test_an_informer_counts_itself() -> None:
    metrics = Metrics()

    async def script(server: Server, informer: Informer[Pod]) -> None:
        await informer.wait_synced()
        server.put("a", bad=True)
        server.delete("b")
        await asyncio.sleep(1)

    play(script, metrics=metrics)
    text = metrics.render().decode()
    labels = 'group="",name="kube-controller-manager",resource="pods",version="v1"'
    assert f"informer_store_resource_version{{{labels}}} 11" in text
    assert f"informer_processing_latency_seconds_count{{{labels}}} 1" in text
    assert 'steersman_unreadable_objects{resource="pods"} 1' in text


# -- whatever happens

names = st.sampled_from("abcd")
errors = st.sampled_from(
    [
        Unreachable("refused"),
        Unreachable("reset", uncertain=True),
        TooManyRequests("later", retry_after=3.0),
        ServerError("oops"),
        ServiceUnavailable("down"),
        Forbidden("no"),
        Expired("too old"),
        Invalid("no"),
        ZeroDivisionError("a bug"),
    ]
)
steps = st.one_of(
    st.tuples(st.just("put"), names, st.sampled_from(["", "n1", "n2"]), st.booleans()),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("reborn"), names),
    st.tuples(st.just("elsewhere")),
    st.tuples(st.just("bookmark")),
    st.tuples(st.just("cut"), st.one_of(st.none(), errors)),
    st.tuples(st.just("compact")),
    st.tuples(st.just("fault"), errors),
    st.tuples(st.just("streams"), st.booleans()),
    st.tuples(st.just("page"), st.integers(1, 5)),
    st.tuples(st.just("sleep"), st.sampled_from([0.0, 0.005, 0.02, 1.0, 20.0, 400.0])),
)


def node_of(obj: Pod) -> Iterable[Hashable]:
    return (obj.spec.nodeName,) if obj.spec.nodeName else ()


class Witness:
    """Checks that what a handler is told is a history that could have happened."""

    def __init__(self, informer: Informer[Pod]) -> None:
        self.informer = informer
        self.known: dict[Key, Pod] = {}
        self.progress: list[int] = []

    def changed(self, change: Change[Pod]) -> None:
        place = change.obj.key
        before = self.known.get(place)
        if change.old is None:
            assert before is None, "came twice"
        elif change.new is None:
            assert before is not None, "went without having come"
            assert before.metadata.uid == change.old.metadata.uid, "another one went"
        else:
            assert change.old is before, "changed from something nobody was told of"
            assert change.new.metadata.uid == before.metadata.uid
            assert int(change.new.metadata.resourceVersion) > int(before.metadata.resourceVersion), (
                "went back"
            )
        if change.new is None:
            del self.known[place]
        else:
            self.known[place] = change.new

    def progressed(self, revision: int) -> None:
        assert revision == self.informer.store.revision
        assert not self.progress or revision >= self.progress[-1], "progress went back"
        self.progress.append(revision)
        # Whoever is told of progress has been told of all that led to it.
        assert {id(obj) for obj in self.known.values()} == {id(obj) for obj in self.informer.store.list()}


@settings(max_examples=250, deadline=None)
@given(st.lists(steps, max_size=40), st.integers(0, 3))
def test_a_store_ends_equal_to_the_server_and_its_handlers_saw_a_history_that_led_there(
    story: list[tuple[Any, ...]], seed: int
) -> None:
    async def main() -> None:
        server = Server()
        informer = Informer(PODS, server, LoopClock(seed))  # type: ignore[arg-type]
        informer.store.add_index("node", node_of)
        witness, late = Witness(informer), Witness(informer)
        informer.subscribe(witness.changed)
        informer.on_progress(witness.progressed)
        task = asyncio.create_task(informer.run())
        for number, (what, *details) in enumerate(story):
            match what, details:
                case "put", [name, node, bad]:
                    server.put(name, node=node, bad=bad)
                case "delete", [name]:
                    server.delete(name)
                case "reborn", [name]:
                    server.delete(name)
                    server.put(name)
                case "elsewhere", []:
                    server.elsewhere()
                case "bookmark", []:
                    server.bookmark()
                case "cut", [error]:
                    server.cut(error)
                case "compact", []:
                    server.compact()
                case "fault", [error]:
                    server.faults.append(error)
                case "streams", [able]:
                    server.streams = able
                case "page", [size]:
                    server.page = size
                case "sleep", [seconds]:
                    await asyncio.sleep(seconds)
            if number == len(story) // 2:
                informer.subscribe(late.changed)
        if not story:
            informer.subscribe(late.changed)

        # The trouble ends; a while later all is well.
        server.faults = []
        requests = server.requests
        await asyncio.sleep(900)
        assert server.requests - requests < 60, "asks too often"
        server.elsewhere()
        for _ in range(2):  # the first may find nobody listening, between two watches
            server.bookmark()
            await asyncio.sleep(1)

        store = informer.store
        there = {place: (o.metadata.uid, o.metadata.resourceVersion) for place, o in server.pods.items()}
        assert informer.synced
        assert {o.key: (o.metadata.uid, o.metadata.resourceVersion) for o in store.list()} == there
        assert set(store.unreadable) == server.bad
        assert store.revision == server.revision == witness.progress[-1]
        for node in ("n1", "n2"):
            wanted = {p for p, o in server.pods.items() if o.spec.nodeName == node and p not in server.bad}
            assert {o.key for o in store.by("node", node)} == wanted
        for each in (witness, late):
            assert {place: id(obj) for place, obj in each.known.items()} == {
                o.key: id(o) for o in store.list()
            }
        assert informer.handler_failures == 0
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
