"""Requests that take time: how long, what has happened by then, and that it is the same every time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from steersman.api.errors import AlreadyExists
from steersman.api.kinds import PODS
from steersman.client.api import Api
from steersman.sim import faults
from steersman.sim.faults import FaultInjector
from steersman.sim.faults.requests import RequestLatency
from steersman.sim.world import World
from steersman.testing.cluster import Cluster

WRITES = faults.request_latency()
LATE_EFFECT, LATE_RESPONSE = "the effect is late", "the response is late"


def pod(name: str = "one") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    }


def deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod()["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@contextmanager
def slow(seed: int = 7, fault: RequestLatency = WRITES) -> Iterator[tuple[World, FaultInjector, Api]]:
    """A world, its injector, and a client whose requests take time."""
    with World(seed) as world:
        injector = FaultInjector(world, [fault])
        yield world, injector, injector.api(world.api("manager"))


def pods(world: World) -> list[str]:
    return [each.metadata.name for each in world.run(world.api().list(PODS)).items]


def seed_of(kind: str, number: int = 1) -> int:
    """A seed whose nth request is late in this way by more than 100 ms, and in this way only."""
    for seed in range(1000):
        effect, response = WRITES.draw(seed, number)
        late, other = (effect, response) if kind == LATE_EFFECT else (response, effect)
        if late > 0.1 and other == 0.0:
            return seed
    raise AssertionError(f"no seed of a thousand: {kind}")


def test_durations_are_within_their_range_and_split_in_every_way() -> None:
    drawn = [WRITES.draw(seed, number) for seed in range(20) for number in range(1, 51)]
    assert all(0.000999 <= effect + response <= 0.300001 for effect, response in drawn)
    assert min(map(sum, drawn)) < 0.01
    assert max(map(sum, drawn)) > 0.29
    before = [effect for effect, response in drawn if response == 0.0]
    after = [response for effect, response in drawn if effect == 0.0]
    both = [effect for effect, response in drawn if effect and response]
    assert min(len(before), len(after), len(both)) > 200
    assert drawn == [WRITES.draw(seed, number) for seed in range(20) for number in range(1, 51)]


def test_a_write_takes_the_time_that_is_drawn_for_it() -> None:
    with slow() as (world, injector, api):
        for number, name in enumerate(("one", "two", "three"), 1):
            begin = world.monotonic()
            world.run(api.create(PODS, "default", pod(name)))
            assert world.monotonic() - begin == pytest.approx(sum(WRITES.draw(7, number)))
        assert injector.injected == ["0.000 requests take 0.001 s to 0.3 s"], "said once"


@pytest.mark.parametrize("kind", [LATE_EFFECT, LATE_RESPONSE])
def test_a_write_takes_effect_before_or_after_it_is_answered_late(kind: str) -> None:
    with slow(seed_of(kind)) as (world, _, api):
        task = world.spawn(api.create(PODS, "default", pod()))
        world.run(world.advance(0.1))
        assert not task.done()
        assert pods(world) == ([] if kind == LATE_EFFECT else ["one"])
        world.run(world.advance(0.2))
        assert task.done()
        assert pods(world) == ["one"]


def test_a_watch_delivers_a_write_before_its_late_response() -> None:
    # The watch is the first request, the write the second.
    with slow(seed_of(LATE_RESPONSE, number=2)) as (world, _, api):
        seen: list[str] = []

        async def follow() -> None:
            async for event in api.watch(PODS, send_initial_events=True):
                seen.extend(() if event.obj is None else (event.obj.metadata.name,))

        world.spawn(follow())
        world.run(world.advance(0))
        task = world.spawn(api.create(PODS, "default", pod()))
        world.run(world.advance(0.05))
        assert (seen, task.done()) == (["one"], False)
        world.run(world.advance(0.25))
        assert (seen, task.done()) == (["one"], True)


def test_a_refusal_takes_as_long_as_a_success() -> None:
    with slow() as (world, _, api):
        world.run(world.api().create(PODS, "default", pod()))
        with pytest.raises(AlreadyExists):
            world.run(api.create(PODS, "default", pod()))
        assert world.monotonic() == pytest.approx(sum(WRITES.draw(7, 1)))


def test_reads_take_no_time_unless_they_are_meant_as_well() -> None:
    with slow() as (world, _, api):
        world.run(api.list(PODS))
        assert world.monotonic() == 0.0
    every = faults.request_latency(0.1, 0.1, verb="")
    with slow(7, every) as (world, _, api):
        world.run(api.list(PODS))
        assert world.monotonic() == pytest.approx(0.1)


def test_a_write_under_way_when_its_manager_dies_has_happened_or_has_not() -> None:
    found = set()
    for seed in range(20):
        with slow(seed, faults.request_latency(0.2, 0.3)) as (world, injector, api):
            task = world.spawn(api.create(PODS, "default", pod()))
            world.run(world.advance(0.1))
            injector.manager_died()
            world.run(world.advance(1))
            assert not task.done(), "no response reaches a dead manager"
            effect, _ = faults.request_latency(0.2, 0.3).draw(seed, 1)
            assert pods(world) == (["one"] if effect <= 0.1 else [])
            found.add(effect <= 0.1)
    assert found == {True, False}


def test_a_second_write_of_an_object_is_noted_while_the_first_is_under_way() -> None:
    with slow(7, faults.request_latency(0.1, 0.1)) as (world, injector, api):
        other = injector.api(world.api("another controller"))
        for name in ("one", "two"):
            world.run(world.api().create(PODS, "default", pod(name)))
        label = {"metadata": {"labels": {"a": "b"}}}
        world.spawn(api.patch(PODS, "default", "one", label))
        world.spawn(api.patch(PODS, "default", "two", label))
        world.spawn(other.patch(PODS, "default", "one", label))
        world.spawn(api.get(PODS, "default", "one"))
        world.run(world.advance(1))
        assert injector.overlapping == [], "other objects, other clients and reads do not count"
        world.run(api.patch(PODS, "default", "one", label))
        assert injector.overlapping == [], "nor does a write that was answered"
        world.spawn(api.patch(PODS, "default", "one", label))
        world.spawn(api.update_status(PODS, "default", "one", pod()))
        world.run(world.advance(1))
        first, second = "write 5: patch pods default/one", "write 6: update_status pods default/one"
        assert [each.partition(" ")[2] for each in injector.overlapping] == [
            f"{second} while {first} is under way"
        ]


# -- in a cluster -----------------------------------------------------------------------------


def journal(seed: int, latency: tuple[float, float] | None = (0.001, 0.3)) -> list[str]:
    with Cluster(seed, write_latency=latency, journal=True) as cluster:
        cluster.apply(deployment(3))
        cluster.settle()
        return cluster.world.journal


def test_the_same_seed_gives_the_same_slow_world() -> None:
    assert journal(3) == journal(3)
    assert journal(3) != journal(4)
    assert journal(3) != journal(3, None)


@pytest.mark.cluster(write_latency=(0.05, 0.2))
def test_the_trace_has_how_long_each_write_took(cluster: Cluster) -> None:
    cluster.apply(deployment(1))
    cluster.wait_until(lambda: cluster.get("Deployment", "web").status.readyReplicas == 1)
    cluster.settle()
    rounds = cluster._history.trace.rounds("deployment-controller")
    took = [step.seconds for round_ in rounds for step in round_.steps if not step.action.startswith("emit")]
    assert took
    assert all(0.049 <= seconds <= 0.201 for seconds in took), took


def test_a_fork_of_a_slow_cluster_is_slow() -> None:
    with Cluster(write_latency=(0.1, 0.1)) as cluster:
        fork = cluster.fork()
        begin = fork.world.monotonic()
        fork.apply(deployment(1))
        fork.wait_until(lambda: fork.list("replicasets"))
        fork.wait_until(lambda: fork.list("pods"))
        assert fork.world.monotonic() > begin
