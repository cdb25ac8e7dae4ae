"""The recorder against a small API server, under virtual time."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import random
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.errors import (
    AlreadyExists,
    ApiError,
    Cause,
    Forbidden,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
    Unreachable,
)
from steersman.api.kinds import Namespace, Object, ObjectMeta, ObjectReference, Pod, ReplicaSet
from steersman.api.scheme import Kind, encode
from steersman.runtime.event_correlator import COMBINED
from steersman.runtime.event_recorder import HOLD, PACE, QUEUED, TRIES, Recorder
from steersman.sim.loop import VirtualLoop
from tests.harness.fake_clock import LoopClock

DAWN = datetime(2026, 1, 1, tzinfo=UTC)

web = ReplicaSet(metadata=ObjectMeta(name="web", namespace="default", uid="u1", resourceVersion="5"))


Fault = Callable[[str, str], ApiError | None]


class Server:
    """Stores events as documents. A fault refuses a request; an uncertain one after carrying it out."""

    def __init__(self, latency: float = 0.0, fault: Fault = lambda verb, name: None) -> None:
        self.events: dict[tuple[str, str], dict[str, Any]] = {}
        self.requests: list[tuple[float, str, str]] = []
        self.latency: Callable[[], float] = lambda: latency
        self.fault = fault
        self.flying: list[str] = []

    @property
    def verbs(self) -> list[str]:
        return [verb for _, verb, _ in self.requests]

    @property
    def all(self) -> list[dict[str, Any]]:
        return list(self.events.values())

    async def _carry(self, verb: str, name: str, act: Callable[[], None]) -> None:
        assert name not in self.flying, "two requests of one event at once"
        self.requests.append((asyncio.get_running_loop().time(), verb, name))
        self.flying.append(name)
        try:
            fault = self.fault(verb, name)
            await asyncio.sleep(self.latency())
            if fault is None or fault.uncertain:
                act()
            if fault is not None:
                raise fault
        finally:
            self.flying.remove(name)

    async def create(self, kind: Kind[Any], namespace: str, body: object) -> Any:
        document = json.loads(encode(kind, body))
        name = document["metadata"]["name"]

        def act() -> None:
            if (namespace, name) in self.events:
                raise AlreadyExists(f'events "{name}" already exists')
            assert document["metadata"]["namespace"] == namespace
            self.events[namespace, name] = document

        await self._carry("create", name, act)

    async def patch(
        self, kind: Kind[Any], namespace: str, name: str, body: object, *, content_type: str, **_: Any
    ) -> Any:
        assert content_type == "application/strategic-merge-patch+json"

        def act() -> None:
            if (namespace, name) not in self.events:
                raise NotFound(f'events "{name}" not found')
            self.events[namespace, name].update(json.loads(encode(kind, body)))

        await self._carry("patch", name, act)


def play(
    script: Callable[[Recorder, Server], Coroutine[Any, Any, None]], server: Server, **options: Any
) -> Recorder:
    """Run a script beside a running recorder, under virtual time."""

    async def main() -> Recorder:
        recorder = Recorder(server, LoopClock(), component="replicaset-controller", **options)  # type: ignore[arg-type]
        running = asyncio.create_task(recorder.run())
        try:
            await script(recorder, server)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        return recorder

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


def test_an_event_has_upstreams_fields() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        await asyncio.sleep(0.25)
        recorder.emit(web, "Normal", "SuccessfulCreate", "Created pod: web-x")
        await asyncio.sleep(1)

    server = Server()
    play(script, server)
    [event] = server.all
    name = event["metadata"].pop("name")
    prefix, _, stamp = name.partition(".")
    assert prefix == "web"
    assert int(stamp, 16) // 1000 == 1767225600_250_000
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "involvedObject": {
            "kind": "ReplicaSet",
            "namespace": "default",
            "name": "web",
            "uid": "u1",
            "apiVersion": "apps/v1",
            "resourceVersion": "5",
        },
        "reason": "SuccessfulCreate",
        "message": "Created pod: web-x",
        "source": {"component": "replicaset-controller"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "type": "Normal",
        "reportingComponent": "replicaset-controller",
    }


def test_events_about_a_cluster_wide_object_go_to_the_default_namespace() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        recorder.emit(Namespace(metadata=ObjectMeta(name="team")), "Normal", "Seen", "x")
        recorder.emit(ObjectReference(kind="Node", apiVersion="v1", name="n1"), "Normal", "Seen", "x")
        await asyncio.sleep(1)

    server = Server()
    play(script, server)
    assert [namespace for namespace, _ in server.events] == ["default", "default"]
    assert [event["involvedObject"]["name"] for event in server.all] == ["team", "n1"]


def test_an_object_whose_name_no_event_may_have_gets_events_with_another_name() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        for name in ("system:controller:x", "x" * 250):
            recorder.emit(Namespace(metadata=ObjectMeta(name=name)), "Normal", "Seen", "x")
        await asyncio.sleep(1)

    server = Server()
    play(script, server)
    assert [len(name) for _, name in server.events] == [36, 36]


def test_events_of_one_instant_have_different_names_also_those_of_another_component() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        other = Recorder(server, LoopClock(), component="deployment-controller")  # type: ignore[arg-type]
        for n in range(5):
            recorder.emit(web, "Normal", f"Made{n}", "x")
            other.emit(web, "Normal", f"Made{n}", "x")
        await other.close(1)
        await asyncio.sleep(1)

    server = Server()
    play(script, server)
    assert len(server.events) == 10


def test_twenty_similar_events_at_once_are_ten_requests() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        for n in range(20):
            recorder.emit(web, "Normal", "SuccessfulCreate", f"Created pod: web-{n}")
        await asyncio.sleep(10)

    server = Server(latency=0.01)
    play(script, server)
    assert server.verbs == ["create"] * 10
    assert (server.all[-1]["message"], server.all[-1]["count"]) == (f"{COMBINED}Created pod: web-19", 11)


def test_twenty_similar_events_one_after_the_other_are_about_a_dozen_requests() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        for n in range(20):
            recorder.emit(web, "Normal", "SuccessfulCreate", f"Created pod: web-{n}")
            await asyncio.sleep(0.05)
        await asyncio.sleep(10)

    server = Server(latency=0.01)
    play(script, server)
    assert server.verbs == ["create"] * 10 + ["patch"]
    assert (server.all[-1]["message"], server.all[-1]["count"]) == (f"{COMBINED}Created pod: web-19", 11)


def test_an_event_is_written_at_most_once_a_second_and_the_last_count_arrives() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        for _ in range(24):
            recorder.emit(web, "Normal", "Made", "x")
            await asyncio.sleep(0.1)
        await asyncio.sleep(10)

    server = Server(latency=0.01)
    play(script, server)
    assert server.verbs == ["create", "patch", "patch", "patch"]
    times = [at for at, _, _ in server.requests]
    assert all(after - before >= PACE for before, after in itertools.pairwise(times))
    assert (server.all[0]["count"], server.all[0]["lastTimestamp"]) == (24, "2026-01-01T00:00:02Z")
    assert server.all[0]["firstTimestamp"] == "2026-01-01T00:00:00Z"


def test_a_count_long_after_the_last_is_written_at_once() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        for _ in range(3):
            recorder.emit(web, "Normal", "Made", "x")
            await asyncio.sleep(30)

    server = Server()
    play(script, server)
    assert [(at, verb) for at, verb, _ in server.requests] == [(0, "create"), (30, "patch"), (60, "patch")]


def test_an_event_that_is_gone_is_written_anew_with_its_count() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(5)
        server.events.clear()
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(5)

    server = Server()
    play(script, server)
    assert server.verbs == ["create", "patch", "create"]
    assert [event["count"] for event in server.all] == [2]


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("connection refused"),
        ServiceUnavailable("starting"),
        TooManyRequests("slow down"),
    ],
)
def test_an_unreachable_server_is_tried_twelve_times_every_ten_seconds(error: ApiError) -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(1000)

    server = Server(fault=lambda verb, name: error)
    recorder = play(script, server)
    times = [at for at, _, _ in server.requests]
    assert len(times) == TRIES
    assert 0 < times[1] < HOLD
    assert [after - before for before, after in itertools.pairwise(times[1:])] == pytest.approx(
        [HOLD] * (TRIES - 2)
    )
    assert recorder.dropped == 1


def test_a_server_that_asks_to_wait_longer_is_left_alone_for_longer() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(31)

    server = Server(fault=lambda verb, name: TooManyRequests("slow down", retry_after=30))
    play(script, server)
    assert [at for at, _, _ in server.requests] == [0, 30]


def test_while_the_server_is_away_everything_is_held_and_nothing_is_lost() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        for n in range(50):
            recorder.emit(Pod(metadata=ObjectMeta(name=f"p{n}", namespace="default")), "Normal", "Made", "x")
        await asyncio.sleep(35)
        assert len(server.requests) <= 10
        server.fault = lambda verb, name: None
        await asyncio.sleep(20)

    server = Server(fault=lambda verb, name: Unreachable("connection refused"))
    recorder = play(script, server)
    assert len(server.events) == 50
    assert recorder.dropped == 0


def test_an_event_the_server_refuses_is_not_tried_again() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(100)

    ending = Forbidden("ending", causes=(Cause("NamespaceTerminating", "", ""),))
    for error in (Forbidden("no"), NotFound("no namespace"), ending):
        server = Server(fault=lambda verb, name, error=error: error)  # type: ignore[misc]
        recorder = play(script, server)
        assert server.verbs == ["create"]
        assert recorder.dropped == 1


def test_a_refused_event_is_created_when_it_comes_again() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        server.fault = lambda verb, name: Forbidden("not yet")
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(0.5)
        server.fault = lambda verb, name: None
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(5)

    server = Server()
    play(script, server)
    assert server.verbs == ["create", "create"]
    assert [event["count"] for event in server.all] == [2]


def test_a_create_whose_answer_was_lost_is_recognised_and_its_counts_go_on() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        server.fault = lambda verb, name: Unreachable("reset", uncertain=True)
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        server.fault = lambda verb, name: None
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(30)

    server = Server(latency=0.01)
    recorder = play(script, server)
    assert server.verbs == ["create", "create", "patch"]
    assert [event["count"] for event in server.all] == [2]
    assert recorder.dropped == 0


def test_an_event_of_somebody_else_with_our_name_is_left_alone() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        server.fault = lambda verb, name: AlreadyExists("taken")
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(5)
        server.fault = lambda verb, name: None
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(5)

    server = Server()
    play(script, server)
    assert server.verbs == ["create", "create"]
    assert server.requests[0][2] != server.requests[1][2]
    assert [event["count"] for event in server.all] == [1]


def test_too_many_events_are_dropped_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        for n in range(QUEUED + 500):
            recorder.emit(Pod(metadata=ObjectMeta(name=f"p{n}", namespace="default")), "Normal", "Made", "x")
        await asyncio.sleep(60)
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(60)

    server = Server(latency=0.001)
    with caplog.at_level(logging.ERROR):
        recorder = play(script, server)
    assert recorder.dropped == 500
    assert len(server.events) == QUEUED + 1
    assert len([record for record in caplog.records if "too many queued events" in record.message]) == 1


def test_emit_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    class Odd(Object, frozen=True):
        pass

    async def script(recorder: Recorder, server: Server) -> None:
        recorder.emit(Odd(), "Normal", "Made", "x")
        recorder.emit(None, "Normal", "Made", "x")  # type: ignore[arg-type]
        recorder.emit(web, "Odd", "Made", "x")
        recorder.emit(web, "Normal", "Made", None)  # type: ignore[arg-type]
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(1)

    server = Server()
    play(script, server)
    assert server.all[-1]["message"] == "x"


def test_an_api_that_breaks_in_an_unheard_of_way_does_not_end_the_recorder() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        def broken(verb: str, name: str) -> ApiError | None:
            raise ZeroDivisionError

        server.fault = broken
        for n in range(5):
            recorder.emit(web, "Normal", f"Made{n}", "x")
        await asyncio.sleep(1)
        server.fault = lambda verb, name: None
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(1)

    server = Server()
    recorder = play(script, server)
    assert [event["reason"] for event in server.all] == ["Made"]
    assert recorder.dropped == 5


def test_who_no_longer_leads_writes_no_events() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(1)

    server = Server()
    recorder = play(script, server, fence=lambda: False)
    assert server.requests == []
    assert recorder.dropped == 1


def test_closing_without_leading_drops_a_repeated_event_once_and_ends() -> None:
    leads = True

    async def script(recorder: Recorder, server: Server) -> None:
        nonlocal leads
        for _ in range(3):
            recorder.emit(web, "Normal", "Made", "x")
            await asyncio.sleep(0.1)
        leads = False
        await recorder.close(5)
        assert asyncio.get_running_loop().time() < 5

    server = Server(latency=0.01)
    recorder = play(script, server, fence=lambda: leads)
    assert server.verbs == ["create"]
    assert recorder.dropped == 1


def test_closing_sends_what_waits_for_its_pace() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        for _ in range(3):
            recorder.emit(web, "Normal", "Made", "x")
            await asyncio.sleep(0.1)
        await recorder.close(5)
        assert server.all[0]["count"] == 3
        assert asyncio.get_running_loop().time() == pytest.approx(0.31)
        recorder.emit(web, "Normal", "Late", "x")
        await asyncio.sleep(5)

    server = Server(latency=0.01)
    recorder = play(script, server)
    assert server.verbs == ["create", "patch"]
    assert recorder.dropped == 1


def test_closing_after_the_recorder_was_cancelled_in_the_middle_sends_the_rest_once() -> None:
    server = Server(latency=0.1)

    async def main() -> None:
        recorder = Recorder(server, LoopClock(), component="c")  # type: ignore[arg-type]
        running = asyncio.create_task(recorder.run())
        for n in range(6):
            recorder.emit(web, "Normal", f"Made{n}", "x")
        await asyncio.sleep(0.15)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await recorder.close(5)
        await recorder.close(5)
        assert len(asyncio.all_tasks()) == 1

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    assert sorted(event["reason"] for event in server.all) == [f"Made{n}" for n in range(6)]


def test_closing_gives_up_on_a_server_that_does_not_answer() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        recorder.emit(web, "Normal", "Made", "x")
        recorder.emit(web, "Normal", "Made2", "x")
        recorder.emit(web, "Normal", "Made3", "x")
        await recorder.close(5)
        assert asyncio.get_running_loop().time() == 5
        assert recorder.dropped == 3

    play(script, Server(latency=1000))


def test_closing_tries_only_once_when_the_server_is_away() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        recorder.emit(web, "Normal", "Made", "x")
        await asyncio.sleep(50)
        tried = len(server.requests)
        await recorder.close(50)
        assert len(server.requests) == tried + 1
        assert asyncio.get_running_loop().time() == 50

    recorder = play(script, Server(fault=lambda verb, name: Unreachable("refused")))
    assert recorder.dropped == 1


def test_run_ends_when_the_recorder_is_closed() -> None:
    async def main() -> None:
        recorder = Recorder(Server(), LoopClock(), component="c")  # type: ignore[arg-type]
        running = asyncio.create_task(recorder.run())
        await asyncio.sleep(1)
        await recorder.close(5)
        await running

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def test_a_series_is_created_made_a_series_refreshed_and_ended() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        for _ in range(5):
            recorder.emit(web, "Normal", "Bound", "bound it", action="Binding")
            await asyncio.sleep(10)
        await asyncio.sleep(3600)

    server = Server()
    play(script, server, sink="events.k8s.io", host="node")
    assert [(at, verb) for at, verb, _ in server.requests] == [(0, "create"), (10, "patch"), (720, "patch")]
    [event] = server.all
    assert event["metadata"].pop("name").startswith("web.")
    regarding = event.pop("regarding")
    assert (regarding["kind"], regarding["name"]) == ("ReplicaSet", "web")
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "series": {"count": 5, "lastObservedTime": "2026-01-01T00:00:40.000000Z"},
        "reportingController": "replicaset-controller",
        "reportingInstance": "replicaset-controller-node",
        "action": "Binding",
        "reason": "Bound",
        "note": "bound it",
        "type": "Normal",
    }


def test_closing_tells_the_last_count_of_a_series() -> None:
    async def script(recorder: Recorder, server: Server) -> None:
        for _ in range(5):
            recorder.emit(web, "Normal", "Bound", "bound it")
            await asyncio.sleep(0.5)
        await recorder.close(5)
        assert server.all[0]["series"]["count"] == 5

    server = Server()
    play(script, server, sink="events.k8s.io", host="node")
    assert server.verbs == ["create", "patch", "patch"]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    emits=st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 11), st.sampled_from([0.0, 0.001, 0.2, 3.0])),
        min_size=1,
        max_size=60,
    ),
    trouble=st.floats(0, 0.5),
)
def test_whatever_the_network_does_the_server_ends_with_the_right_counts(
    seed: int, emits: list[tuple[str, int, float]], trouble: float
) -> None:
    """Delays, refused connections, lost answers, vanished events: no count is lost or doubled."""
    chance = random.Random(seed)

    def fault(verb: str, name: str) -> ApiError | None:
        if chance.random() >= trouble:
            return None
        return Unreachable("reset", uncertain=chance.random() < 0.5)

    async def script(recorder: Recorder, server: Server) -> None:
        server.latency = lambda: chance.choice([0.0, 0.01, 0.5])
        server.fault = fault
        for name, reason, wait in emits:
            pod = Pod(metadata=ObjectMeta(name=name, namespace="default"))
            recorder.emit(pod, "Normal", f"Reason{reason}", "x")
            await asyncio.sleep(wait)
        await asyncio.sleep(TRIES * HOLD)
        server.fault = lambda verb, name: None
        await asyncio.sleep(TRIES * HOLD)

    server = Server()
    recorder = play(script, server)
    written = sum(event["count"] for event in server.all)
    # Spam and events that were given up are told by the next count, if there is one.
    missing = recorder.filtered + recorder.dropped
    assert len(emits) - missing <= written <= len(emits)
    if not missing:
        assert len(server.events) == len({(name, reason) for name, reason, _ in emits})
