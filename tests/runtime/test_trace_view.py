"""`/debug/rounds`: rounds with their causes, the chain from write to event to round, figures, fights, and bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.errors import BadRequest
from steersman.api.kinds import DEPLOYMENTS, PODS
from steersman.api.scheme import Key
from steersman.controllers import CONTROLLERS
from steersman.intent.verdict import Rest
from steersman.runtime.action_table import Written
from steersman.runtime.causes import RETRY, Cause, Event, Timer, add_cause, type_of
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.trace import MAX_KEPT, ROUNDS_OF_OBJECT, Ending, Failure, Round, Step, Trace
from steersman.runtime.trace_figures import OTHER_CLIENT, fights, figures
from steersman.runtime.trace_links import Links
from steersman.runtime.trace_view import MAX_LIMIT, TraceView
from steersman.sim.world import World

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
WEB = Key("default", "web")
NAMES = ("deployment-controller", "replicaset-controller", "garbage-collector-controller")


def deployment(replicas: int = 3) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


@pytest.fixture(scope="module")
def view() -> Iterator[TraceView]:
    """Of a manager that has created the three pods of a Deployment."""
    with World(seed=1) as world:
        made = TraceView(Trace(), world)
        chosen = [each for each in CONTROLLERS if each.name in NAMES]
        group = ControllerGroup(chosen, world.api("manager"), world, trace=made.trace)
        made.groups.append(group)
        world.spawn(group.run(), name="manager")
        world.run(world.api().create(DEPLOYMENTS, "default", deployment()))
        world.run(world.settle())
        yield made


def asked(view: TraceView, **query: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(view.answer({name: [value] for name, value in query.items()}))
    return answer


def test_a_round_names_the_event_that_caused_it_and_the_write_that_caused_the_event(view: TraceView) -> None:
    rounds = {each["number"]: each for each in asked(view)["rounds"]}
    created = next(
        each
        for each in rounds.values()
        if each["controller"] == "replicaset-controller" and each["steps"] and "create" in str(each["steps"])
    )
    (cause,) = (
        each for each in created["causes"] if each["type"] == "event" and each["kind"] == "ReplicaSet"
    )
    writer = rounds[cause["round"]]
    assert writer["controller"] == "deployment-controller"
    (write,) = (
        write
        for step in writer["steps"]
        for write in step.get("writes", ())
        if (write["verb"], write["resource"]) == ("create", "replicasets.apps")
    )
    assert write["resourceVersion"] == cause.get("firstResourceVersion", cause["resourceVersion"])
    pods = [
        write for step in created["steps"] for write in step.get("writes", ()) if write["resource"] == "pods"
    ]
    assert len(pods) == 3
    assert all(write["resourceVersion"].isdecimal() for write in pods)


def test_an_object_has_the_rounds_of_its_key_and_those_that_wrote_it_or_were_caused_by_it(
    view: TraceView,
) -> None:
    pod = next(
        write["name"]
        for each in asked(view)["rounds"]
        for step in each["steps"]
        for write in step.get("writes", ())
        if write["resource"] == "pods"
    )
    found = asked(view, kind="Pod", namespace="default", name=pod)["rounds"]
    assert {"replicaset-controller"} <= {each["controller"] for each in found}
    assert len(found) >= 2
    assert (
        asked(view, kind="deployments.apps", name="web")["rounds"][0]["controller"] == "deployment-controller"
    )
    assert asked(view, kind="Pod", name="web")["rounds"] == []
    assert {each["controller"] for each in asked(view, controller="replicaset-controller")["rounds"]} == {
        "replicaset-controller"
    }


def test_a_view_follows_the_trace_without_a_gap_and_without_a_repeat(view: TraceView) -> None:
    everything = [each["number"] for each in asked(view, limit=str(MAX_LIMIT))["rounds"]]
    got: list[int] = []
    after = 0
    while True:
        answer = asked(view, after=str(after), limit="3", include="rounds")
        got += [each["number"] for each in answer["rounds"]]
        after = answer["next"]
        if not answer["truncated"]:
            break
    assert got == everything
    assert asked(view, after=str(after))["rounds"] == []


def test_one_answer_has_the_figures_of_every_controller(view: TraceView) -> None:
    found = {each["name"]: each for each in asked(view)["controllers"]}
    assert list(found) == sorted(NAMES)
    replicasets = found["replicaset-controller"]
    assert replicasets["kind"] == "ReplicaSet"
    assert replicasets["rounds"] > 0
    assert replicasets["lastMinute"]["writes"]["create"] == 3
    assert replicasets["lastMinute"]["hottest"][0]["rounds"] >= 1
    assert replicasets["queue"] == {
        "ready": 0,
        "waiting": 0,
        "working": 0,
        "oldestSeconds": 0.0,
        "longestSeconds": 0.0,
    }


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ({"limit": "1001"}, "limit must be a whole number up to 1000, but got '1001'"),
        ({"after": "-1"}, "after must be a whole number"),
        ({"since": "yesterday"}, "since must be a time such as"),
        ({"include": "secrets"}, "include: unknown part 'secrets'; there are rounds, controllers, fights"),
        ({"kinds": "Pod"}, "unknown parameter 'kinds'; there are controller, kind"),
    ],
)
def test_a_wrong_filter_is_refused_with_the_way_out(
    view: TraceView, query: dict[str, str], complaint: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        asked(view, **query)
    assert refused.value.message.startswith(complaint)


def test_rounds_can_be_limited_by_time(view: TraceView) -> None:
    assert asked(view, since="1h")["rounds"]
    assert asked(view, since="2027-01-01T00:00:00Z")["rounds"] == []


# -- values -----------------------------------------------------------------------------------


def event(version: int, name: str = "web", kind: Any = DEPLOYMENTS, first: int | None = None) -> Event:
    return Event(kind, Key("default", name), "changed", str(first or version), str(version))


def round_of(
    controller: str = "a",
    key: Key = WEB,
    causes: tuple[Cause, ...] = (),
    writes: tuple[Written, ...] = (),
    ending: Ending = Rest("well"),
    at: float = 0.0,
) -> Round:
    steps = (Step("update", "", 0.01, writes),) if writes else ()
    return Round(controller, key, causes, 0.5, NOON + timedelta(seconds=at), 0.25, steps, ending)


def update(version: int, subresource: str = "") -> Written:
    return Written("update", DEPLOYMENTS, subresource, WEB, str(version))


def test_events_about_one_object_are_one_cause_from_the_first_version_to_the_last() -> None:
    causes: tuple[Cause, ...] = ()
    for version in (3, 5, 9):
        causes = add_cause(causes, event(version))
    assert add_cause(causes, event(7, "other")) == (event(9, first=3), event(7, "other"))
    assert type_of(Timer("TTL runs")) == "timer"
    assert type_of(RETRY) == "retry"


def test_a_write_among_coalesced_events_is_found() -> None:
    trace = Trace()
    trace.record(round_of(writes=(update(5),)))
    links = Links(trace)
    links.refresh()
    events = (event(5), event(9, first=3), event(9), event(5, kind=PODS))
    assert [links.writer(each, by=2) for each in events] == [1, 1, 0, 0]
    trace.record(round_of("b", causes=(event(5),)))
    assert links.caused(trace.numbered()) == {1: [2]}


def test_the_event_after_an_accepted_delete_is_linked_to_it() -> None:
    trace = Trace()
    trace.record(round_of(writes=(Written("delete", DEPLOYMENTS, "", WEB, ""),)))
    links = Links(trace)
    links.refresh()
    assert links.writer(event(8), by=2) == 1


def test_an_event_before_a_delete_is_not_linked_to_it() -> None:
    trace = Trace()
    trace.record(round_of(causes=(event(3),)))
    trace.record(round_of(writes=(Written("delete", DEPLOYMENTS, "", WEB, ""),)))
    trace.record(round_of(causes=(event(8),)))
    links = Links(trace)
    links.refresh()
    assert links.caused(trace.numbered()) == {2: [3]}


def test_the_last_rounds_of_an_object_outlive_the_ring_of_a_busy_controller() -> None:
    trace = Trace(capacity=2)
    for number in range(10):
        trace.record(round_of(at=number))
    for number in range(50):
        trace.record(round_of(key=Key("busy", str(number % 2))))
    assert len(trace.rounds("a", WEB)) == ROUNDS_OF_OBJECT
    assert len(trace.rounds("a")) == 2


def test_memory_is_bounded_however_many_objects_have_rounds() -> None:
    trace = Trace(capacity=8)
    for number in range(MAX_KEPT + 100):
        trace.record(round_of(key=Key("", str(number))))
    assert len(trace.numbered()) == MAX_KEPT
    assert trace.rounds("a", Key("", "0")) == []
    for number in range(MAX_KEPT):
        trace.record(round_of(key=Key("", str(number % 4000))))
    assert len(trace.numbered()) <= MAX_KEPT + trace.capacity


def test_a_failed_round_says_when_it_is_tried_again() -> None:
    failed = round_of(ending=Failure("quota", 403, 2.0))
    assert failed.next_wake == NOON + timedelta(seconds=2.25)


def test_figures_are_those_of_the_last_minute() -> None:
    rounds = [
        (1, round_of(at=-100, writes=(update(1),))),
        (2, round_of(at=-30, causes=(RETRY,), writes=(update(2), update(3, "status")))),
        (3, round_of(at=-1, ending=Failure("no"))),
    ]
    found = figures(rounds, NOON, 256)
    assert (found.per_second, found.writes, found.failures, found.retries) == (
        round(2 / 60, 3),
        {"update": 1, "update/status": 1},
        1,
        1,
    )
    assert found.took.p50 == 0.25
    # A full ring does not reach back a minute: the rate is that of the time it covers.
    assert figures(rounds[1:], NOON, 2).per_second == round(2 / 30, 3)


@pytest.mark.parametrize("subresource", ["", "scale"])
def test_two_actors_that_keep_undoing_each_other_are_a_fight(subresource: str) -> None:
    trace = Trace()
    for turn in range(4):
        trace.record(round_of("hpa", writes=(update(10 * turn + 1, subresource),), at=turn))
        trace.record(round_of("deployment", causes=(event(10 * turn + 5),), at=turn))
    links = Links(trace)
    links.refresh()
    (fight,) = fights(trace.numbered(), NOON + timedelta(seconds=9), links.writer)
    assert (fight.resource, fight.name, fight.actors, fight.turns) == (
        "deployments.apps",
        "web",
        (OTHER_CLIENT, "hpa"),
        7,
    )
    assert fights(trace.numbered(), NOON + timedelta(hours=1), links.writer) == []


def test_reporting_what_another_client_changes_is_no_fight() -> None:
    trace = Trace()
    for turn in range(9):
        trace.record(round_of(causes=(event(10 * turn + 5),), writes=(update(10 * turn + 6, "status"),)))
    links = Links(trace)
    links.refresh()
    assert fights(trace.numbered(), NOON, links.writer) == []


def test_an_answer_in_steps_has_the_rounds_of_its_beginning_and_says_where_to_go_on() -> None:
    with World(seed=1) as world:
        view = TraceView(Trace(), world)
        chosen = [each for each in CONTROLLERS if each.name in NAMES]
        group = ControllerGroup(chosen, world.api("manager"), world, trace=view.trace)
        world.spawn(group.run(), name="manager")
        world.run(world.api().create(DEPLOYMENTS, "default", deployment()))
        world.run(world.settle())
        before = asked(view)
        steps = view.answer_in_steps({"include": ["rounds"]})
        next(steps)
        world.run(world.api().delete(DEPLOYMENTS, "default", "web"))
        world.run(world.settle())
        assert view.trace.last > before["last"]
        while True:
            try:
                next(steps)
            except StopIteration as done:
                told = json.loads(done.value)
                break
        assert told["rounds"] == before["rounds"]
        assert told["next"] == before["next"] == before["last"]
        later = asked(view, after=str(told["next"]))["rounds"]
        assert [each["number"] for each in later] == list(range(before["last"] + 1, view.trace.last + 1))


def test_a_trace_that_is_off_records_nothing() -> None:
    with World(seed=1) as world:
        trace = Trace(enabled=False)
        group = ControllerGroup(
            [each for each in CONTROLLERS if each.name in NAMES], world.api(), world, trace=trace
        )
        world.spawn(group.run(), name="manager")
        world.run(world.api().create(DEPLOYMENTS, "default", deployment()))
        world.run(world.settle())
        assert len(world.run(world.api().list(PODS, "default")).items) == 3
        assert trace.numbered() == []
        view = TraceView(trace, world)
        assert asked(view)["enabled"] is False
