"""A reflector against a scripted server, under virtual time."""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

import pytest

from steersman.api.errors import (
    Expired,
    Forbidden,
    Invalid,
    ServiceUnavailable,
    TooManyRequests,
    Unreachable,
)
from steersman.api.kinds import PODS, ObjectMeta, Pod, PodSpec
from steersman.api.scheme import Key, Kind
from steersman.client.api import EventType, Page, UndecodableObject, WatchEvent
from steersman.client.capabilities import REMOTE, Capabilities
from steersman.client.pager import PAGE_SIZE, PageRequest
from steersman.runtime.reflector import BREATH, LATE, PATIENCE, Reflector
from steersman.runtime.reflector_state import Broken, Empty, Paging, Streaming, Watching
from steersman.sim.loop import VirtualLoop
from tests.harness.fake_clock import LoopClock

DAWN = datetime(2026, 1, 1, tzinfo=UTC)
Item = Pod | UndecodableObject


@dataclass(frozen=True)
class Pause:
    """Silence in a stream, in seconds."""

    seconds: float


def pod(name: str, version: str, *, uid: str = "", node: str = "") -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="d", uid=uid or name, resourceVersion=version),
        spec=PodSpec(nodeName=node),
    )


def bad(name: str, version: str) -> UndecodableObject:
    return UndecodableObject(pod(name, version).metadata, "Expected `int`, got `str`")


def version(item: Item) -> str:
    return item.metadata.resourceVersion


def added(item: Item) -> WatchEvent[Item]:
    return WatchEvent(EventType.ADDED, item, version(item))


def modified(item: Item) -> WatchEvent[Item]:
    return WatchEvent(EventType.MODIFIED, item, version(item))


def deleted(item: Item) -> WatchEvent[Item]:
    return WatchEvent(EventType.DELETED, item, version(item))


def bookmark(version: str) -> WatchEvent[Item]:
    return WatchEvent(EventType.BOOKMARK, None, version)


def initial_end(version: str) -> WatchEvent[Item]:
    return WatchEvent(EventType.BOOKMARK, None, version, initial_end=True)


Line = WatchEvent[Item] | Exception | Pause
FOREVER = Pause(1e9)


@dataclass(frozen=True)
class Request:
    """What the reflector asked, and when."""

    at: float
    verb: str
    since: str = ""
    initial: bool = False
    limit: int = 0
    token: str = ""
    timeout: int | None = None


@dataclass
class Script:
    """An `Api` that answers lists and watches from a script, in the order they come."""

    watches: list[list[Line]] = field(default_factory=list)
    pages: list[Page[Item] | Exception] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    open: int = 0
    capabilities: ClassVar[Capabilities] = REMOTE

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
        assert (namespace, label_selector, field_selector, resource_version_match) == ("", "", "", "")
        self.requests.append(Request(now(), "list", resource_version, limit=limit, token=continue_))
        answer = self.pages.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

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
        assert (namespace, label_selector, field_selector) == ("", "", "")
        self.requests.append(
            Request(now(), "watch", resource_version, send_initial_events, timeout=timeout_seconds)
        )
        self.open += 1
        try:
            for line in self.watches.pop(0) if self.watches else [FOREVER]:
                if isinstance(line, Pause):
                    await asyncio.sleep(line.seconds)
                elif isinstance(line, Exception):
                    raise line
                else:
                    yield line
        finally:
            self.open -= 1

    def __getattr__(self, verb: str) -> Any:
        raise AssertionError(f"a reflector does not {verb}")

    def asked(self) -> builtins.list[tuple[str, str]]:
        return [(r.verb + ("+" if r.initial else ""), r.token or r.since) for r in self.requests]


class Notes:
    """A sink that writes down what it is told."""

    def __init__(self, held: Iterable[Pod] = ()) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.objects = {obj.key: obj for obj in held}

    def held(self, key: Key) -> Pod | None:
        return self.objects.get(key)

    def replaced(
        self, objects: Mapping[Key, Pod], unreadable: Mapping[Key, str], resource_version: str
    ) -> None:
        self.objects = dict(objects)
        self.told.append(
            ("replaced", [_word(o) for o in objects.values()], dict(unreadable), resource_version)
        )

    def changed(self, obj: Pod, error: str, resource_version: str) -> None:
        self.told.append(("changed", _word(obj), error, resource_version))

    def removed(self, obj: Pod, error: str, resource_version: str) -> None:
        self.told.append(("removed", _word(obj), error, resource_version))

    def reached(self, resource_version: str) -> None:
        self.told.append(("reached", resource_version))


def _word(obj: Pod) -> str:
    return f"{obj.metadata.name}@{obj.metadata.resourceVersion}"


def now() -> float:
    return asyncio.get_running_loop().time()


def play(
    script: Script,
    seconds: float = 100.0,
    *,
    sink: Notes | None = None,
    seed: int = 0,
    streams: bool = True,
) -> tuple[Any, Notes]:
    """Let a reflector run for a while; what state it is in then, and what it told its sink."""
    notes = sink or Notes()

    async def main() -> Any:
        reflector = Reflector[Pod](script, PODS, notes, LoopClock(seed), streams=streams)
        assert reflector.state == Empty()
        task = asyncio.create_task(reflector.run())
        await asyncio.sleep(seconds)
        assert not task.done()
        state = reflector.state
        task.cancel()
        await asyncio.wait([task])
        assert script.open == 0, "a stream was left open"
        return state

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main()), notes


# -- streams


def test_a_streamed_list_goes_on_as_a_watch_on_the_same_stream() -> None:
    script = Script(
        [
            [
                added(pod("a", "3")),
                added(pod("b", "1")),
                initial_end("5"),
                modified(pod("a", "6")),
                deleted(pod("b", "7")),
                bookmark("9"),
                added(pod("c", "10")),
                FOREVER,
            ]
        ]
    )
    state, notes = play(script)
    assert notes.told == [
        ("replaced", ["a@3", "b@1"], {}, "5"),
        ("changed", "a@6", "", "6"),
        ("removed", "b@7", "", "7"),
        ("reached", "9"),
        ("changed", "c@10", "", "10"),
    ]
    assert state == Watching("5")
    assert script.asked() == [("watch+", "")]


def test_where_streams_are_not_wanted_everything_is_listed_at_first_and_when_a_watch_expires() -> None:
    script = Script(
        [[bookmark("9"), Expired("too old")], [added(pod("b", "12")), FOREVER]],
        [Page([pod("a", "3")], "7", ""), Page([pod("a", "3")], "11", "")],
    )
    state, notes = play(script, streams=False)
    assert state == Watching("11")
    assert notes.told == [
        ("replaced", ["a@3"], {}, "7"),
        ("reached", "9"),
        ("replaced", ["a@3"], {}, "11"),
        ("changed", "b@12", "", "12"),
    ]
    assert [word for word, _ in script.asked()] == ["list", "watch", "list", "watch"]


def test_changes_during_the_initial_events_count() -> None:
    script = Script(
        [
            [
                added(pod("a", "3")),
                added(pod("b", "1")),
                modified(pod("a", "4")),
                deleted(pod("b", "5")),
                bookmark("5"),
                initial_end("5"),
                FOREVER,
            ]
        ]
    )
    assert play(script)[1].told == [("replaced", ["a@4"], {}, "5")]


def test_nothing_is_told_before_the_list_is_complete() -> None:
    script = Script([[added(pod("a", "3")), FOREVER]])
    state, notes = play(script, 30)
    assert (state, notes.told) == (Streaming(), [])


def test_nothing_there_is_only_said_by_a_complete_list() -> None:
    assert play(Script([[initial_end("5"), FOREVER]]))[1].told == [("replaced", [], {}, "5")]


@pytest.mark.parametrize("seed", range(5))
def test_a_watch_is_asked_to_last_between_five_and_ten_minutes(seed: int) -> None:
    script = Script([[initial_end("5"), Pause(400)], [bookmark("6"), Pause(400)]])
    play(script, 1000, seed=seed)
    times = [request.timeout for request in script.requests]
    assert all(time is not None and 300 <= time < 600 for time in times)
    assert len(set(times)) > 1


def test_a_watch_that_ends_is_begun_anew_at_once_where_it_was() -> None:
    script = Script([[initial_end("5"), added(pod("a", "6")), Pause(300)], [added(pod("b", "7")), FOREVER]])
    state, notes = play(script, 320)
    assert [(r.at, r.since, r.initial) for r in script.requests] == [(0.0, "", True), (300.0, "6", False)]
    assert notes.told[1:] == [("changed", "a@6", "", "6"), ("changed", "b@7", "", "7")]
    assert state == Watching("6")


def test_a_bookmark_moves_the_place_a_watch_goes_on_from() -> None:
    script = Script([[initial_end("5"), bookmark("50"), Pause(300)]])
    play(script, 320)
    assert script.asked() == [("watch+", ""), ("watch", "50")]


def test_the_place_never_moves_back(caplog: pytest.LogCaptureFixture) -> None:
    script = Script([[initial_end("50"), bookmark("9"), modified(pod("a", "8")), Pause(300)]])
    _, notes = play(script, 320)
    assert script.asked() == [("watch+", ""), ("watch", "50")]
    assert notes.told[1:] == [("reached", "50"), ("changed", "a@8", "", "50")]
    assert "an event at 9 came after 50" in caplog.text


def test_places_that_are_no_numbers_are_simply_followed() -> None:
    script = Script([[initial_end("x9"), bookmark("x10"), bookmark("a"), bookmark(""), Pause(300)]])
    play(script, 320)
    assert script.asked() == [("watch+", ""), ("watch", "a")]


# -- trouble with watches


def test_a_watch_without_so_much_as_a_bookmark_is_made_sure_of_by_a_new_list() -> None:
    script = Script(
        [[initial_end("50"), Pause(300)], [Pause(300)], [added(pod("a", "9")), initial_end("20"), FOREVER]]
    )
    state, notes = play(script, 700)
    assert script.asked() == [("watch+", ""), ("watch", "50"), ("watch+", "")]
    assert notes.told == [("replaced", [], {}, "50"), ("replaced", ["a@9"], {}, "20")]
    assert state == Watching("20")


def test_a_watch_that_was_cut_short_need_not_have_said_anything() -> None:
    script = Script([[initial_end("50"), Pause(300)], [Pause(100)]])
    play(script, 500)
    assert script.asked() == [("watch+", ""), ("watch", "50"), ("watch", "50")]


def test_a_broken_watch_goes_on_where_it_was_with_growing_pauses() -> None:
    gone = Unreachable("refused")
    script = Script(
        [[initial_end("5"), bookmark("6"), gone], [gone], [gone], [gone], [bookmark("7"), FOREVER]]
    )
    state, notes = play(script, 60)
    assert [(r.verb, r.since) for r in script.requests[1:]] == [("watch", "6")] * 4
    gaps = [b.at - a.at for a, b in zip(script.requests, script.requests[1:], strict=False)]
    for low, gap in zip((0.8, 1.6, 3.2, 6.4), gaps, strict=True):
        assert low <= gap <= 2 * low
    assert state == Watching("6")
    assert notes.told[-1] == ("reached", "7")


def test_the_pause_is_at_least_what_the_server_asks_for() -> None:
    script = Script([[initial_end("5"), TooManyRequests("later", retry_after=33.0)]])
    play(script, 60)
    assert [r.at for r in script.requests] == [0.0, 33.0]


def test_an_expired_watch_leads_to_a_new_list() -> None:
    script = Script(
        [
            [initial_end("5"), Expired("too old resource version")],
            [added(pod("a", "50")), initial_end("60"), FOREVER],
        ]
    )
    state, notes = play(script)
    assert script.asked() == [("watch+", ""), ("watch+", "")]
    assert notes.told == [("replaced", [], {}, "5"), ("replaced", ["a@50"], {}, "60")]
    assert state == Watching("60")


def test_watches_that_end_at_once_are_not_asked_for_in_a_tight_loop() -> None:
    script = Script([[initial_end("5"), Pause(10)], *([[]] * 1000)])
    play(script, 120)
    assert len(script.requests) < 15


def test_watches_that_only_repeat_themselves_are_not_asked_for_in_a_tight_loop() -> None:
    repeats: list[list[Line]] = [[bookmark("5")] for _ in range(1000)]
    script = Script([[initial_end("5"), Pause(10)], *repeats])
    play(script, 120)
    assert len(script.requests) < 15


def test_a_watch_the_server_never_ends_is_taken_for_dead(caplog: pytest.LogCaptureFixture) -> None:
    script = Script([[initial_end("5"), bookmark("6"), FOREVER]])
    play(script, 700)
    first, second = script.requests
    assert first.timeout is not None
    assert first.timeout + LATE <= second.at <= first.timeout + 1 + LATE + 1.6
    assert second.since == "6"
    assert "the stream went silent" in caplog.text


def test_a_mistake_of_our_own_is_logged_and_survived(caplog: pytest.LogCaptureFixture) -> None:
    script = Script([[initial_end("5"), ZeroDivisionError("a bug")], [initial_end("8"), FOREVER]])
    with caplog.at_level(logging.ERROR):
        state, _ = play(script)
    assert state == Watching("8")
    assert "ZeroDivisionError" in caplog.text
    assert "listing again" in caplog.text


# -- lists


def refused(*rest: list[Line]) -> list[list[Line]]:
    return [[Invalid("sendInitialEvents is forbidden")], *rest]


def test_a_server_that_cannot_stream_is_asked_for_pages_at_once() -> None:
    script = Script(
        refused([added(pod("d", "8")), FOREVER]),
        [
            Page([pod("a", "1"), pod("b", "2")], "7", "t1"),
            Page([pod("c", "3")], "7", ""),
        ],
    )
    state, notes = play(script)
    assert script.asked() == [("watch+", ""), ("list", ""), ("list", "t1"), ("watch", "7")]
    assert [r.limit for r in script.requests] == [0, PAGE_SIZE, PAGE_SIZE, 0]
    assert [r.at for r in script.requests] == [0.0] * 4
    assert notes.told == [("replaced", ["a@1", "b@2", "c@3"], {}, "7"), ("changed", "d@8", "", "8")]
    assert state == Watching("7")


def test_pages_that_expire_half_way_are_read_again_in_one_piece() -> None:
    script = Script(
        refused(),
        [
            Page([pod("a", "1")], "7", "t1"),
            Expired("The provided continue parameter is too old"),
            Page([pod("b", "9")], "10", ""),
        ],
    )
    state, notes = play(script)
    assert [(r.verb, r.token, r.limit) for r in script.requests[1:4]] == [
        ("list", "", PAGE_SIZE),
        ("list", "t1", PAGE_SIZE),
        ("list", "", 0),
    ]
    assert notes.told == [("replaced", ["b@9"], {}, "10")]
    assert state == Watching("10")


def test_a_list_that_breaks_half_way_goes_on_at_its_page() -> None:
    script = Script(
        refused(),
        [
            Page([pod("a", "1")], "7", "t1"),
            ServiceUnavailable("down"),
            Page([pod("b", "2")], "7", ""),
        ],
    )
    _, notes = play(script)
    assert script.asked() == [("watch+", ""), ("list", ""), ("list", "t1"), ("list", "t1"), ("watch", "7")]
    assert notes.told == [("replaced", ["a@1", "b@2"], {}, "7")]


def test_a_list_that_fails_says_nothing_about_what_is_there() -> None:
    no = Forbidden("pods is forbidden")
    script = Script([[no], [no], [initial_end("5"), FOREVER]], [no, no])
    state, notes = play(script)
    assert script.asked() == [("watch+", ""), ("list", ""), ("watch+", ""), ("list", ""), ("watch+", "")]
    assert notes.told == [("replaced", [], {}, "5")]
    assert state == Watching("5")


def test_while_nothing_works_the_state_says_why() -> None:
    no = Forbidden("pods is forbidden")
    state, notes = play(Script([[no]] * 50, [no] * 50), 300)
    assert state == Broken(no, Streaming())
    assert notes.told == []


def test_a_stream_that_goes_silent_before_it_is_complete_is_replaced_by_a_list() -> None:
    script = Script([[added(pod("a", "1")), FOREVER]], [Page([pod("a", "1")], "7")])
    state, notes = play(script)
    assert [(r.verb, r.at) for r in script.requests] == [
        ("watch", 0.0),
        ("list", PATIENCE),
        ("watch", PATIENCE),
    ]
    assert notes.told == [("replaced", ["a@1"], {}, "7")]
    assert state == Watching("7")


def test_a_slow_stream_that_makes_progress_is_waited_for() -> None:
    lines: list[Line] = []
    for part in range(5):
        lines += [added(pod(f"{part}-{n}", "1")) for n in range(BREATH)]
        lines.append(Pause(PATIENCE * 0.9))
    script = Script([[*lines, initial_end("7"), FOREVER]])
    state, _ = play(script, PATIENCE * 6)
    assert state == Watching("7")
    assert script.asked() == [("watch+", "")]


def test_a_list_without_a_resource_version_cannot_be_followed_through_a_break() -> None:
    script = Script(
        refused(
            [added(pod("b", "9")), added(pod("a", "3")), Unreachable("reset")], [initial_end("20"), FOREVER]
        ),
        [Page([], "")],
    )
    state, notes = play(script)
    assert script.asked() == [("watch+", ""), ("list", ""), ("watch", ""), ("watch+", "")]
    assert notes.told[1:3] == [("changed", "b@9", "", ""), ("changed", "a@3", "", "")]
    assert state == Watching("20")


def test_a_stream_that_is_always_ready_does_not_hog_the_loop() -> None:
    async def main() -> None:
        lines: list[Line] = [added(pod(str(n), "1")) for n in range(BREATH * 4)]
        script = Script([[*lines, initial_end("7"), *lines, FOREVER]])
        notes = Notes()
        task = asyncio.create_task(Reflector[Pod](script, PODS, notes, LoopClock()).run())
        turns = 0
        while len(notes.told) <= BREATH * 4:
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 8
        task.cancel()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


# -- what is read


def test_what_cannot_be_read_is_passed_on_by_its_metadata() -> None:
    script = Script(
        [
            [
                added(bad("a", "1")),
                added(bad("b", "2")),
                added(bad("c", "2")),
                modified(pod("b", "3")),
                deleted(bad("c", "4")),
                initial_end("5"),
                added(bad("d", "6")),
                modified(pod("a", "7")),
                deleted(bad("d", "8")),
                FOREVER,
            ]
        ]
    )
    error = "Expected `int`, got `str`"
    assert play(script)[1].told == [
        ("replaced", ["a@1", "b@3"], {Key("d", "a"): error}, "5"),
        ("changed", "d@6", error, "6"),
        ("changed", "a@7", "", "7"),
        ("removed", "d@8", error, "8"),
    ]


def test_what_cannot_be_read_on_a_page_is_passed_on_too() -> None:
    script = Script(refused(), [Page([bad("a", "1"), pod("b", "2")], "5")])
    assert play(script)[1].told[0] == (
        "replaced",
        ["a@1", "b@2"],
        {Key("d", "a"): "Expected `int`, got `str`"},
        "5",
    )


def test_a_list_lets_go_of_copies_of_what_is_held_already() -> None:
    mine, stale, reborn = pod("a", "1"), pod("b", "1"), pod("c", "1", uid="old")
    sink = Notes([mine, stale, reborn])
    fresh, newborn = pod("b", "2"), pod("c", "1", uid="new")
    script = Script([[added(pod("a", "1")), added(fresh), added(newborn), initial_end("5"), FOREVER]])
    play(script, sink=sink)
    assert sink.objects[Key("d", "a")] is mine
    assert sink.objects[Key("d", "b")] is fresh
    assert sink.objects[Key("d", "c")] is newborn


def test_while_a_list_is_under_way_the_state_says_which_page() -> None:
    class Slow(Script):
        async def list(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Page[Any]:
            page = await super().list(kind, namespace, **options)
            await asyncio.sleep(10)
            return page

    script = Slow(refused(), [Page([], "7", "t1"), Page([], "7", "")])
    assert play(script, 15)[0] == Paging(PageRequest("t1"))
