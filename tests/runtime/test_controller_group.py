"""A fleet starts its controllers in order."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from steersman.api.scheme import Key
from steersman.controllers import serviceaccount
from steersman.intent.controller import Caches, Controller
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Verdict
from steersman.runtime.controller_group import ControllerGroup
from steersman.server.local import LocalApi
from steersman.sim.world import World

ROUND = Key("", "round")


def recording(
    name: str, starts: list[tuple[str, float]], world: World, *, root: bool = False
) -> Controller[Any]:
    async def decide(seen: object, now: datetime) -> Verdict:
        starts.append((name, world.monotonic()))
        return Rest("looked once")

    def observe(caches: Caches, key: Key) -> object:
        return key

    return Controller(
        name=name,
        watches=(),
        decide=decide,
        observe=observe,
        workers=1,
        initial_keys=(ROUND,),
        as_manager=root,
    )


def started(pause: float) -> list[tuple[str, float]]:
    world = World(seed=5)
    starts: list[tuple[str, float]] = []
    controllers = [recording(name, starts, world, root=name == "first") for name in ("a", "b", "first", "c")]
    begin = world.monotonic()
    world.spawn(ControllerGroup(controllers, world.api(), world, pause=pause).run(), name="manager")
    world.run(world.advance(100))
    world.close()
    return [(name, at - begin) for name, at in starts]


def test_whom_the_accounts_of_others_depend_on_works_first() -> None:
    assert [name for name, _ in started(0.0)] == ["first", "a", "b", "c"]


def test_others_wait_between_once_and_twice_the_pause() -> None:
    (first, at), *others = started(10.0)
    assert first == "first"
    assert at < 1
    assert sorted(name for name, _ in others) == ["a", "b", "c"]
    waits = [wait for _, wait in others]
    assert all(10.0 <= wait <= 20.1 for wait in waits)
    assert len(set(waits)) == 3


class Counting(LocalApi):
    """Counts the lists that are asked for."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lists = 0

    async def list(self, *args: Any, **more: Any) -> Any:
        self.lists += 1
        return await super().list(*args, **more)


@pytest.mark.parametrize("streams", [True, False])
def test_caches_are_filled_by_lists_where_the_gate_says_so(streams: bool) -> None:
    world = World(seed=5)
    api = Counting(world.server, "manager")
    settings = Settings(gates={"WatchListClient": streams})
    world.spawn(
        ControllerGroup((serviceaccount.controller,), api, world, settings=settings).run(), name="manager"
    )
    world.run(world.advance(1))
    world.close()
    assert (api.lists == 0) is streams
