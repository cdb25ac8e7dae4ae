"""Looking on from the outside."""

from __future__ import annotations

import asyncio

import pytest

from steersman.api.kinds import NAMESPACES, Namespace, ObjectMeta
from steersman.client.api import Api, EventType
from steersman.sim.world import World
from tests.harness.follow import beside, follow, until


async def create(api: Api, name: str) -> None:
    await api.create(NAMESPACES, "", Namespace(metadata=ObjectMeta(name=name)))


def test_what_is_there_comes_first_and_then_what_changes() -> None:
    async def story() -> list[tuple[EventType, str]]:
        api = world.api()
        await create(api, "early")
        seen = []
        async for event, found in follow(api, NAMESPACES):
            seen.append((event, found.metadata.name))
            if found.metadata.name == "early" and event is EventType.ADDED:
                await create(api, "late")
            if found.metadata.name == "late":
                return seen
        raise AssertionError

    with World() as world:
        seen = world.run(story())
    assert (EventType.ADDED, "early") in seen
    assert seen[-1] == (EventType.ADDED, "late")


def test_waiting_for_an_object_ends_when_it_is_as_wished() -> None:
    async def label(api: Api) -> None:
        await create(api, "here")
        await api.patch(NAMESPACES, "", "here", {"metadata": {"labels": {"ready": "yes"}}})

    async def story() -> Namespace:
        api = world.api()
        world.spawn(label(api))
        return await until(api, NAMESPACES, "", "here", lambda found: "ready" in found.metadata.labels)

    with World() as world:
        assert world.run(story()).metadata.labels["ready"] == "yes"


async def test_what_runs_beside_the_body_is_ended_with_it() -> None:
    ended = asyncio.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with beside(forever()):
        await asyncio.sleep(0)
    assert ended.is_set()


async def test_what_fails_beside_the_body_fails_it() -> None:
    async def broken() -> None:
        raise ValueError("no")

    with pytest.RaisesGroup(ValueError):
        async with beside(broken()):
            await asyncio.Event().wait()


async def test_what_ends_early_beside_the_body_fails_it() -> None:
    async def short() -> None:
        return

    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="has ended")):
        async with beside(short()):
            await asyncio.Event().wait()
