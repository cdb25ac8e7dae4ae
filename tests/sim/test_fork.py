"""Forks of worlds: begin where another is, go on alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from steersman.api.generated import load
from steersman.sim.world import START, World

CONFIGMAPS = load("", "v1", "ConfigMap")
DEFINITIONS = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
EVENTS = load("", "v1", "Event")
SERVICES = load("", "v1", "Service")


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=5, journal=True) as world:
        yield world


def make(world: World, prefix: str = "x-") -> Any:
    return world.run(
        world.api().create(CONFIGMAPS, "default", {"metadata": {"generateName": prefix}, "data": {"a": "1"}})
    )


def names(world: World) -> list[str]:
    found: list[Any] = list(world.run(world.api().list(CONFIGMAPS, "default")).items)
    return [obj.metadata.name for obj in found]


def test_a_fork_has_the_objects_and_the_time_of_its_parent(world: World) -> None:
    made = make(world)
    world.run(world.advance(90.5))
    with world.fork() as fork:
        assert fork.now() == START + timedelta(seconds=90.5)
        assert fork.monotonic() == 90.5
        assert fork.run(fork.api().get(CONFIGMAPS, "default", made.metadata.name)) is made
        assert fork.server.store.revision == world.server.store.revision


def test_neither_sees_what_happens_to_the_other(world: World) -> None:
    with world.fork() as fork:
        ours, theirs = make(world, "ours-"), make(fork, "theirs-")
        assert names(world) == [ours.metadata.name]
        assert names(fork) == [theirs.metadata.name]
        fork.run(fork.advance(3600))
        assert world.monotonic() == 0


def test_two_forks_go_the_way_the_parent_would_have_gone(world: World) -> None:
    make(world)
    world.run(world.advance(1))
    begun = len(world.journal)

    def live(world: World) -> tuple[list[str], float]:
        make(world)
        world.run(world.advance(world.random.random()))
        make(world)
        return world.journal, world.monotonic()

    with world.fork() as one, world.fork() as two:
        journal, at = live(one)
        assert (journal, at) == live(two)
        live(world)
        assert (journal, at) == (world.journal[begun:], world.monotonic())
    assert len(journal) == 2


def test_a_fork_with_a_seed_of_its_own_goes_another_way(world: World) -> None:
    with world.fork() as one, world.fork(seed=6) as two, world.fork(seed=6) as three:
        assert (one.seed, two.seed) == (5, 6)
        made = [make(each).metadata for each in (one, two, three)]
    assert made[0].name != made[1].name
    assert made[0].uid != made[1].uid
    assert made[1] == made[2]


def test_tasks_in_a_fork_are_dealt_in_the_order_of_the_parent() -> None:
    def deal(world: World) -> list[int]:
        order: list[int] = []

        async def step(number: int) -> None:
            await asyncio.sleep(1)
            order.append(number)

        for number in range(20):
            world.spawn(step(number))
        world.run(world.advance(1))
        return order

    with World(seed=3, shuffle=True) as world:
        first = deal(world)
        with world.fork() as fork:
            again = deal(fork)
            assert deal(world) == again
    assert first != again != list(range(20))


def test_nobody_lives_in_a_fork_yet_and_its_parent_goes_on(world: World) -> None:
    seen: list[str] = []

    async def follow() -> None:
        async for event in world.api().watch(CONFIGMAPS):
            if event.obj is not None:
                seen.append(event.obj.metadata.name)

    world.spawn(follow())
    world.run(world.advance(1))
    with world.fork() as fork:
        make(fork)
        fork.run(fork.advance(60))
    assert seen == []
    ours = make(world)
    world.run(world.advance(1))
    assert seen == [ours.metadata.name]


def test_a_fork_gives_no_address_out_twice(world: World) -> None:
    def serve(world: World, name: str) -> str:
        body = {"metadata": {"name": name}, "spec": {"clusterIP": "10.0.7.7", "ports": [{"port": 80}]}}
        made: Any = world.run(world.api().create(SERVICES, "default", body))
        return str(made.spec.clusterIP)

    assert serve(world, "one") == "10.0.7.7"
    with world.fork() as fork, pytest.raises(Exception, match="already allocated"):
        serve(fork, "two")


def test_custom_resources_are_served_in_a_fork_and_end_there_alone(world: World) -> None:
    names = {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "required": ["oars"]}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "sea.example", "scope": "Namespaced", "names": names, "versions": [version]}
    body = {"metadata": {"name": "boats.sea.example"}, "spec": spec}
    world.run(world.api().create(DEFINITIONS, "", body))
    boats = world.server.registry.find("sea.example", "v1", "boats")
    revision = world.server.store.revision
    with world.fork() as fork:
        assert fork.server.store.revision == revision
        assert fork.server.registry.find("sea.example", "v1", "boats").kind == boats.kind
        fork.run(fork.api().delete(DEFINITIONS, "", "boats.sea.example"))
        with pytest.raises(Exception, match="could not find"):
            fork.server.registry.find("sea.example", "v1", "boats")
    assert world.server.registry.find("sea.example", "v1", "boats") is boats


def test_what_goes_by_itself_goes_in_a_fork_at_the_time_it_would_have(world: World) -> None:
    body = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "Told"}
    world.run(world.api().create(EVENTS, "default", body))
    world.run(world.advance(3000))

    def told(world: World) -> int:
        return len(world.run(world.api().list(EVENTS)).items)

    with world.fork() as fork:
        fork.run(fork.advance(599))
        assert told(fork) == 1
        fork.run(fork.advance(1))
        assert told(fork) == 0
    assert told(world) == 1
