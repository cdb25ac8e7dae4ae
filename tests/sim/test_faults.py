"""Each fault by itself: what it does to the requests of a manager, and that it reads back from its text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import (
    ApiError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    ServerTimeout,
    ServiceUnavailable,
    TooManyRequests,
    Unreachable,
)
from steersman.api.kinds import LEASES, PODS
from steersman.client.api import Api, EventType, UndecodableObject, WatchEvent
from steersman.sim import faults
from steersman.sim.faults import ALL, Fault, FaultInjector, InvalidFault
from steersman.sim.faults.lossy_watches import coalesce
from steersman.sim.world import World

T = TypeVar("T")


def pod(name: str = "one", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web", **labels}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    }


class Hands:
    """Runs no manager, and notes what a fault would have done to one."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def crash(self, down: float) -> None:
        self.done.append(f"crash for {down:g} s")

    def start_second(self, seconds: float) -> None:
        self.done.append(f"double for {seconds:g} s")


class Manager:
    """One who speaks to the server through faults."""

    def __init__(self, *active: Fault) -> None:
        self.world = World(7)
        self.hands = Hands()
        self.injector = FaultInjector(self.world, active, self.hands)
        self.api: Api = self.injector.api(self.world.api("manager"))
        self.others: Api = self.world.api("you")

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.world.run(coroutine)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Begin something that may never end, and let what can happen now happen."""
        task = self.world.loop.create_task(coroutine)
        self.do(self.world.advance(0))
        return task

    def create(self, name: str = "one") -> Any:
        return self.do(self.api.create(PODS, "default", pod(name)))

    def pods(self) -> list[str]:
        return [each.metadata.name for each in self.do(self.others.list(PODS)).items]

    def follow(self) -> list[tuple[str, str]]:
        """Watch pods from now on; the list grows as changes are told."""
        deliver: list[tuple[str, str]] = []

        async def read() -> None:
            since = (await self.others.list(PODS)).resource_version
            try:
                async for event in self.api.watch(PODS, resource_version=since):
                    deliver.append(said(event))
            except ApiError as error:
                deliver.append(("raised", type(error).__name__))
            else:
                deliver.append(("ended", ""))

        self.start(read())
        return deliver

    def change(self, *names: str) -> None:
        for name in names:
            self.do(self.others.create(PODS, "default", pod(name)))

    def close(self) -> None:
        self.world.close()


def said(event: WatchEvent[Any]) -> tuple[str, str]:
    obj = event.obj
    name = obj.metadata.name if obj is not None else event.resource_version
    return ("UNREADABLE" if isinstance(obj, UndecodableObject) else event.type.value), name


@pytest.fixture
def manager() -> Iterator[Callable[..., Manager]]:
    made: list[Manager] = []

    def make(*active: Fault) -> Manager:
        made.append(Manager(*active))
        return made[-1]

    yield make
    for each in made:
        each.close()


Make = Callable[..., Manager]

# -- as text ----------------------------------------------------------------------------------

EXAMPLES: tuple[Fault, ...] = (
    faults.crash_after_write(7),
    faults.crash_before_write(7, down=3.5),
    faults.response_lost(2, times=4),
    faults.stale_restart(20, 5),
    faults.error_response(409, "update_status", "deployments.apps", nth=3),
    faults.connection_reset("list", seconds=30),
    faults.slow_response(0.25, kind="pods"),
    faults.request_latency(0.002, 0.25, kind="pods"),
    faults.discovery_failure("apps"),
    faults.frozen_watch("pods", 30),
    faults.slow_watch("pods", 0.5, nth=2),
    faults.duplicated_events("pods"),
    faults.watch_cut("pods", 2, "expired"),
    faults.coalesced_events("pods", 5),
    faults.dropped_events("pods", 2, 3),
    faults.undecodable_events("pods"),
    faults.lease_stolen(3),
    faults.lease_deleted(3),
    faults.two_leaders(3, 10),
    faults.clock_jump(-3600, 2),
    faults.clock_rate(1.1),
    faults.corrupted_field("pods", "labels", 4),
    faults.malformed_object("replicasets", "bare"),
)


@pytest.mark.parametrize("fault", EXAMPLES, ids=lambda fault: fault.name)
def test_a_fault_reads_back_from_its_text(fault: Fault) -> None:
    assert faults.parse(str(fault)) == (fault,)


def test_there_is_an_example_of_every_fault() -> None:
    assert {type(each) for each in EXAMPLES} == set(ALL)


def test_a_list_of_faults_reads_back_from_its_text() -> None:
    assert faults.parse(faults.text(EXAMPLES)) == EXAMPLES
    assert faults.text(EXAMPLES[:2]) == "crash_after_write(7) + crash_before_write(7, down=3.5)"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("crash_after_write", "is not a list of faults"),
        ("crash(7)", "unknown fault 'crash'"),
        ("crash_after_write()", "Missing"),
        ("crash_after_write(7, 8, 9)", "Extra positional"),
        ("crash_after_write(open('x'))", "neither a number nor a word"),
        ("watch_cut(pods, 1, gently)", "cause must be one of end"),
        ("malformed_object(pods, smelly)", "form must be"),
        ("corrupted_field(pods, name)", "field must be"),
        ("request_latency(0.3, 0.1)", "minimum and maximum must be seconds in order"),
        ("request_latency(-1)", "minimum and maximum must be seconds in order"),
        ("1 + 1", "is not a list of faults"),
        ("crash_after_write(7", "is not a list of faults"),
    ],
)
def test_what_is_no_fault_is_refused_with_a_reason(words: str, why: str) -> None:
    with pytest.raises(InvalidFault, match=why):
        faults.parse(words)


# -- crashes ----------------------------------------------------------------------------------


def test_a_crash_after_a_write_leaves_the_write_and_ends_who_made_it(manager: Make) -> None:
    made = manager(faults.crash_after_write(2, down=3))
    made.create("one")
    task = made.start(made.api.create(PODS, "default", pod("two")))
    assert made.pods() == ["one", "two"]
    assert not task.done(), "whoever wrote never learns of it"
    assert made.hands.done == ["crash for 3 s"]
    with pytest.raises(Unreachable):
        made.create("three")
    task.cancel()


def test_a_crash_before_a_write_leaves_nothing(manager: Make) -> None:
    made = manager(faults.crash_before_write(2))
    made.create("one")
    task = made.start(made.api.create(PODS, "default", pod("two")))
    assert made.pods() == ["one"]
    assert not task.done()
    task.cancel()


def test_reads_events_and_leases_are_not_numbered(manager: Make) -> None:
    made = manager(faults.crash_before_write(1))
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
    made.do(made.api.create(LEASES, "default", lease))
    made.do(made.api.list(PODS))
    assert made.injector.writes == 0
    assert made.hands.done == []


def test_writes_are_numbered_through_all_lives_of_a_manager(manager: Make) -> None:
    made = manager(faults.crash_after_write(1), faults.crash_after_write(2))
    first = made.start(made.api.create(PODS, "default", pod("one")))
    made.api = made.injector.api(made.world.api("manager"))
    second = made.start(made.api.create(PODS, "default", pod("two")))
    assert len(made.hands.done) == 2
    first.cancel()
    second.cancel()


def test_an_answer_that_is_lost_is_an_uncertain_refusal_of_a_write_that_happened(manager: Make) -> None:
    made = manager(faults.response_lost(1, times=2))
    for name in ("one", "two"):
        with pytest.raises(Unreachable) as refused:
            made.create(name)
        assert refused.value.uncertain
    made.create("three")
    assert made.pods() == ["one", "three", "two"]


def test_a_stale_restart_first_reads_the_past_and_then_catches_up(manager: Make) -> None:
    made = manager(faults.stale_restart(2, seconds=5))
    made.change("one", "two", "three")
    made.injector.manager_died()
    api = made.injector.api(made.world.api("manager"))
    deliver: list[tuple[str, str]] = []

    async def read() -> None:
        since, initial = "", True
        for _ in range(2):
            try:
                async for event in api.watch(PODS, resource_version=since, send_initial_events=initial):
                    deliver.append(said(event))
                    since, initial = event.resource_version, False
            except Unreachable:
                deliver.append(("broke", ""))

    task = made.start(read())
    seen = [name for type_, name in deliver if type_ == "ADDED"]
    assert seen == ["one"], "the last two writes are not there yet"
    made.do(made.world.advance(5))
    assert [name for type_, name in deliver if type_ == "ADDED"] == ["one", "two", "three"]
    assert ("broke", "") in deliver
    task.cancel()


def test_a_first_life_is_never_stale(manager: Make) -> None:
    made = manager(faults.stale_restart(2))
    made.change("one", "two")

    async def read() -> list[str]:
        names: list[str] = []
        async for event in made.api.watch(PODS, send_initial_events=True):
            if event.obj is None:
                return names
            names.append(event.obj.metadata.name)
        return names

    assert made.do(read()) == ["one", "two"]


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (410, Expired),
        (422, Invalid),
        (429, TooManyRequests),
        (500, ServerError),
        (503, ServiceUnavailable),
        (504, ServerTimeout),
    ],
)
def test_a_request_is_answered_with_a_code_and_not_carried_out(
    manager: Make, code: int, error: type[ApiError]
) -> None:
    made = manager(faults.error_response(code, "create", "pods", nth=2))
    made.create("one")
    with pytest.raises(error) as refused:
        made.create("two")
    assert refused.value.code == code
    made.create("three")
    assert made.pods() == ["one", "three"]


@pytest.mark.parametrize(
    ("verb", "kind", "refused"),
    [
        ("", "", True),
        ("write", "", True),
        ("read", "", False),
        ("create", "pods", True),
        ("create", "deployments", False),
        ("delete", "", False),
    ],
)
def test_only_the_requests_it_is_about_are_refused(
    manager: Make, verb: str, kind: str, refused: bool
) -> None:
    made = manager(faults.error_response(500, verb, kind))
    if refused:
        with pytest.raises(ServerError):
            made.create()
    else:
        made.create()


def test_refusals_may_go_on_for_a_while(manager: Make) -> None:
    made = manager(faults.error_response(503, "create", seconds=10))
    for _ in range(3):
        with pytest.raises(ServiceUnavailable):
            made.create()
    made.do(made.world.advance(10))
    made.create()


@pytest.mark.parametrize(("code", "uncertain"), [(504, True), (500, False), (409, False)])
def test_a_write_that_timed_out_at_the_server_is_uncertain(manager: Make, code: int, uncertain: bool) -> None:
    made = manager(faults.error_response(code))
    with pytest.raises(ApiError) as refused:
        made.create()
    assert refused.value.uncertain is uncertain


def test_a_connection_that_is_reset_leaves_a_write_uncertain_and_a_read_not(manager: Make) -> None:
    made = manager(faults.connection_reset(times=2))
    with pytest.raises(Unreachable) as write:
        made.create()
    with pytest.raises(Unreachable) as read:
        made.do(made.api.list(PODS))
    assert write.value.uncertain
    assert not read.value.uncertain
    assert made.pods() == []


def test_slow_response_take_their_time(manager: Make) -> None:
    made = manager(faults.slow_response(3, "create", times=1))
    made.create("one")
    assert made.world.monotonic() == 3.0
    made.create("two")
    assert made.world.monotonic() == 3.0


def test_discovery_failure_and_then_does_not(manager: Make) -> None:
    made = manager(faults.discovery_failure(times=2))
    for _ in range(2):
        with pytest.raises(ServiceUnavailable):
            made.do(made.api.discover())
    assert made.do(made.api.discover()).resources


def test_discovery_of_one_group_fails_and_is_told_so(manager: Make) -> None:
    made = manager(faults.discovery_failure("apps", times=1))
    partly: DiscoveryResult = made.do(made.api.discover())
    assert partly.is_incomplete("apps")
    assert partly.find("v1", "Pod") is not None
    assert partly.find("apps/v1", "Deployment") is None
    assert made.do(made.api.discover()).find("apps/v1", "Deployment") is not None


# -- watches ----------------------------------------------------------------------------------


def test_a_frozen_watch_tells_nothing_and_then_everything(manager: Make) -> None:
    made = manager(faults.frozen_watch("pods", 30, nth=2))
    deliver = made.follow()
    made.change("one", "two", "three")
    made.do(made.world.advance(29))
    assert deliver == [("ADDED", "one")]
    made.do(made.world.advance(1))
    assert deliver == [("ADDED", "one"), ("ADDED", "two"), ("ADDED", "three")]


def test_a_slow_watch_tells_each_change_late(manager: Make) -> None:
    made = manager(faults.slow_watch("pods", 2, times=2))
    deliver = made.follow()
    made.change("one", "two", "three")
    made.do(made.world.advance(2))
    assert deliver == [("ADDED", "one")]
    made.do(made.world.advance(2))
    assert deliver == [("ADDED", "one"), ("ADDED", "two"), ("ADDED", "three")]


def test_a_change_may_be_told_twice(manager: Make) -> None:
    made = manager(faults.duplicated_events("pods", nth=2, times=1))
    deliver = made.follow()
    made.change("one", "two", "three")
    made.do(made.world.advance(0))
    assert deliver == [("ADDED", "one"), ("ADDED", "two"), ("ADDED", "two"), ("ADDED", "three")]


@pytest.mark.parametrize(
    ("how", "end"),
    [
        ("end", ("ended", "")),
        ("reset", ("raised", "Unreachable")),
        ("expired", ("raised", "Expired")),
        ("error", ("raised", "ServerError")),
    ],
)
def test_a_watch_is_cut_before_a_change(manager: Make, how: str, end: tuple[str, str]) -> None:
    made = manager(faults.watch_cut("pods", 2, how))
    deliver = made.follow()
    made.change("one", "two")
    made.do(made.world.advance(0))
    assert deliver == [("ADDED", "one"), end]


def test_a_watch_of_another_kind_is_left_alone(manager: Make) -> None:
    made = manager(faults.watch_cut("deployments"), faults.frozen_watch("deployments", 10))
    deliver = made.follow()
    made.change("one")
    made.do(made.world.advance(0))
    assert deliver == [("ADDED", "one")]


def test_changes_are_told_as_one(manager: Make) -> None:
    made = manager(faults.coalesced_events("pods", 5))
    deliver = made.follow()
    made.change("one", "two")
    made.do(made.others.patch(PODS, "default", "one", {"metadata": {"labels": {"a": "b"}}}))
    made.do(made.others.delete(PODS, "default", "two", grace=0))
    made.do(made.world.advance(5))
    assert deliver == [("ADDED", "one")], "what came and went in between was never there"
    made.change("three")
    made.do(made.world.advance(0))
    assert deliver[1:] == [("ADDED", "three")]


def test_an_object_that_was_replaced_in_between_has_changed() -> None:
    made = Manager()
    (old,) = [made.create("one")]
    made.close()
    new = replace(old, metadata=replace(old.metadata, uid="other"))
    gone = WatchEvent(EventType.DELETED, old, "5")
    came = WatchEvent(EventType.ADDED, new, "6")
    assert coalesce([gone, came]) == [WatchEvent(EventType.MODIFIED, new, "6")]
    assert coalesce([gone]) == [gone]
    assert coalesce([came, WatchEvent(EventType.DELETED, new, "7")]) == []


def test_a_hidden_change_is_never_told_and_the_watch_expires(manager: Make) -> None:
    made = manager(faults.dropped_events("pods", 1, times=1, seconds=5))
    deliver = made.follow()
    made.change("one", "two")
    made.do(made.world.advance(4))
    assert deliver == [("ADDED", "two")]
    made.do(made.world.advance(1))
    assert deliver == [("ADDED", "two"), ("raised", "Expired")]


def test_a_change_that_cannot_be_read_can_be_later(manager: Make) -> None:
    made = manager(faults.undecodable_events("pods", 1, seconds=5))
    deliver = made.follow()
    made.change("one", "two")
    made.do(made.world.advance(0))
    assert deliver == [("UNREADABLE", "one"), ("ADDED", "two")]
    made.do(made.world.advance(5))
    assert deliver[2:] == [("ADDED", "one")]


def test_a_change_that_cannot_be_read_can_be_when_its_watch_ends(manager: Make) -> None:
    made = manager()
    created = WatchEvent(EventType.ADDED, made.create("one"), "5")
    fault: Any = faults.undecodable_events("pods", 1, seconds=5).activate(made.injector)

    async def events() -> AsyncIterator[WatchEvent[Any]]:
        yield created

    async def delivered() -> list[WatchEvent[Any]]:
        return [event async for event in fault.changes(events())]

    assert [type(event.obj) for event in made.do(delivered())] == [UndecodableObject, type(created.obj)]


# -- clocks -----------------------------------------------------------------------------------


def test_a_clock_jumps_with_a_write_and_is_set_right_again(manager: Make) -> None:
    made = manager(faults.clock_jump(-3600, 1, heals=10))
    clock = made.injector.clock(made.world)
    assert clock.now() == made.world.now()
    made.create()
    assert (made.world.now() - clock.now()).total_seconds() == 3600
    assert clock.monotonic() == made.world.monotonic(), "time that is measured does not jump"
    made.do(made.world.advance(10))
    assert clock.now() == made.world.now()


def test_a_clock_may_run_fast(manager: Make) -> None:
    made = manager(faults.clock_rate(1.5))
    clock = made.injector.clock(made.world)
    start = clock.now()
    made.do(made.world.advance(100))
    assert (clock.now() - start).total_seconds() == 150
    assert clock.monotonic() == 100


# -- leaders ----------------------------------------------------------------------------------


def _lease(made: Manager) -> None:
    body = {
        "metadata": {"name": "kube-controller-manager"},
        "spec": {"holderIdentity": "manager", "leaseDurationSeconds": 15},
    }
    made.do(made.others.create(LEASES, "kube-system", body))


def test_a_lease_is_stolen_with_a_write(manager: Make) -> None:
    made = manager(faults.lease_stolen(1))
    _lease(made)
    made.create()
    made.do(made.world.advance(0))
    lease = made.do(made.others.get(LEASES, "kube-system", "kube-controller-manager"))
    assert lease.spec.holderIdentity == "thief"


def test_a_lease_is_deleted_with_a_write(manager: Make) -> None:
    made = manager(faults.lease_deleted(1))
    _lease(made)
    made.create()
    made.do(made.world.advance(0))
    with pytest.raises(NotFound):
        made.do(made.others.get(LEASES, "kube-system", "kube-controller-manager"))


def test_a_second_manager_begins_with_a_write(manager: Make) -> None:
    made = manager(faults.two_leaders(2, seconds=10))
    made.create("one")
    assert made.hands.done == []
    made.create("two")
    assert made.hands.done == ["double for 10 s"]


# -- objects ----------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["uid", "ownerReferences", "labels"])
def test_a_field_of_the_newest_object_is_spoilt_and_mended(manager: Make, field: str) -> None:
    made = manager(faults.corrupted_field("pods", field, 1, seconds=5))
    body = pod("one")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "abc"}
    body["metadata"]["ownerReferences"] = [owner]
    good = made.do(made.api.create(PODS, "default", body))
    made.do(made.world.advance(0))
    bad = made.do(made.others.get(PODS, "default", "one"))
    assert getattr(bad.metadata, field) != getattr(good.metadata, field)
    made.do(made.world.advance(5))
    mended = made.do(made.others.get(PODS, "default", "one"))
    assert getattr(mended.metadata, field) == getattr(good.metadata, field)


def test_a_kind_without_the_field_is_left_alone(manager: Make) -> None:
    made = manager(faults.corrupted_field("pods", "selector", 1))
    made.create()
    made.do(made.world.advance(0))
    assert made.injector.injected == []


@pytest.mark.parametrize("how", ["negative", "bare", "endless"])
def test_an_odd_object_appears_beside_the_newest_and_goes(manager: Make, how: str) -> None:
    made = manager(faults.malformed_object("pods", how, 1, seconds=5))
    made.create("one")
    made.do(made.world.advance(0))
    assert made.pods() == ["one", "one-odd"]
    made.do(made.world.advance(5))
    assert made.pods() == ["one"]


# -- together ---------------------------------------------------------------------------------


def test_faults_compose_in_the_order_they_are_listed(manager: Make) -> None:
    made = manager(
        faults.error_response(409, "create", nth=1),
        faults.response_lost(2),
        faults.slow_response(2, "create"),
    )
    with pytest.raises(Conflict):
        made.create("one")
    assert made.world.monotonic() == 0.0, "refused before it could be slow"
    with pytest.raises(Unreachable):
        made.create("two")
    assert made.world.monotonic() == 2.0
    assert made.pods() == ["two"]


def test_the_same_faults_in_the_same_world_do_the_same() -> None:
    def live() -> list[str]:
        made = Manager(
            *faults.parse("corrupted_field(pods, labels, 1) + frozen_watch(pods, 3) + response_lost(2)")
        )
        deliver = made.follow()
        for name in ("one", "two", "three"):
            try:
                made.create(name)
            except Unreachable:
                continue
        made.do(made.world.advance(30))
        made.close()
        return [*made.injector.injected, *map(str, deliver)]

    first = live()
    assert len(first) > 4
    assert first == live()
