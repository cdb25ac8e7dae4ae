"""Caches of kinds that have no objects: nobody reads a watch of them until one comes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from steersman.api.generated import load
from steersman.client.capabilities import REMOTE
from steersman.runtime.informer import Informers
from steersman.sim.world import World

CONFIGMAPS = load("", "v1", "ConfigMap")
WIDGETS = replace(CONFIGMAPS, group="example.com", plural="widgets")


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=3) as world:
        yield world


def readers(world: World) -> int:
    """How many tasks follow a kind."""
    return sum(task.get_name().startswith("informer ") for task in asyncio.all_tasks(world.loop))


def body(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}}


def test_a_cache_of_nothing_is_full_without_a_reader_and_follows_once_something_comes(world: World) -> None:
    async def script() -> None:
        api = world.api()
        informers = Informers(api, world)
        store = informers[CONFIGMAPS]
        await informers.start()
        assert informers.unsynced() == ()
        assert readers(world) == 0
        await api.create(CONFIGMAPS, "default", body("a"))
        await api.create(CONFIGMAPS, "default", body("b"))
        await world.loop.idle()
        assert [obj.metadata.name for obj in store.list()] == ["a", "b"]
        assert readers(world) == 1
        await api.delete(CONFIGMAPS, "default", "a")
        await world.loop.idle()
        assert [obj.metadata.name for obj in store.list()] == ["b"]
        await informers.stop()

    world.run(script())


def test_what_is_not_selected_does_not_wake(world: World) -> None:
    async def script() -> None:
        api = world.api()
        informers = Informers(api, world)
        store = informers[CONFIGMAPS.where("metadata.name=a")]
        await informers.start()
        await api.create(CONFIGMAPS, "default", body("b"))
        await world.loop.idle()
        assert readers(world) == 0
        await api.create(CONFIGMAPS, "default", body("a"))
        await world.loop.idle()
        assert [obj.metadata.name for obj in store.list()] == ["a"]
        await informers.stop()

    world.run(script())


def test_who_ends_is_not_woken_and_leaves_nothing_behind(world: World) -> None:
    async def script() -> None:
        api = world.api()
        informers = Informers(api, world)
        informers.informer(CONFIGMAPS)
        await informers.start()
        ending = asyncio.create_task(informers.stop())
        # Ended, but it does not know yet.
        await api.create(CONFIGMAPS, "default", body("a"))
        await ending
        assert readers(world) == 0
        assert len(world.server.table(world.server.registry.of(CONFIGMAPS)).watchers) == 0

    world.run(script())


def test_a_kind_that_nobody_serves_does_not_rest(world: World) -> None:
    local = world.api().capabilities
    assert local.when_not_empty(CONFIGMAPS, lambda: None) is not None
    assert local.when_not_empty(WIDGETS, lambda: None) is None
    assert REMOTE.when_not_empty(CONFIGMAPS, lambda: None) is None
