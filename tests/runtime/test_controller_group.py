"""A fleet starts its controllers in order."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from steersman.api.errors import ServerError
from steersman.api.kinds import Object
from steersman.api.kinds.config import CONFIGMAPS
from steersman.api.kinds.nodes import NODES
from steersman.api.scheme import Key
from steersman.controllers import CONTROLLERS, job, namespace, serviceaccount
from steersman.controllers.certificates import approver, signer
from steersman.intent.controller import Caches, Controller, Watch
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


def test_a_failed_round_is_retried_between_the_backoffs_that_a_controller_declares() -> None:
    world = World(seed=5)
    rounds: list[float] = []

    async def decide(seen: object, now: datetime) -> Verdict:
        rounds.append(world.monotonic())
        raise ServerError("down")

    controller = Controller(
        name="failing",
        watches=(),
        decide=decide,
        observe=lambda caches, key: key,
        workers=1,
        initial_keys=(ROUND,),
        min_backoff=1.0,
        max_backoff=4.0,
    )
    world.spawn(ControllerGroup((controller,), world.api(), world).run(), name="manager")
    world.run(world.advance(16))
    world.close()
    assert [round(b - a, 1) for a, b in pairwise(rounds)] == [1.0, 2.0, 4.0, 4.0, 4.0]


@pytest.mark.parametrize(
    ("controller", "shortest", "longest"),
    [
        (job.controller, 1.0, 60.0),
        (namespace.controller, 0.005, 60.0),
        (approver.controller, 0.2, 1000.0),
        (signer.controller, 0.2, 1000.0),
        (serviceaccount.controller, 0.005, 1000.0),
    ],
    ids=lambda value: value.name if isinstance(value, Controller) else None,
)
def test_backoffs_are_upstreams(controller: Controller[Any], shortest: float, longest: float) -> None:
    assert (controller.min_backoff, controller.max_backoff) == (shortest, longest)


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


def on_config_maps_and_nodes(rounds: list[Key]) -> Controller[Any]:
    async def decide(seen: Object, now: datetime) -> Verdict:
        rounds.append(seen.key)
        return Rest("seen")

    return Controller(
        name="lazy-controller",
        watches=(Watch(CONFIGMAPS), Watch(NODES, to=lambda caches, change: ())),
        works_on=(CONFIGMAPS,),
        decide=decide,
        workers=1,
    )


@pytest.mark.parametrize("lazy", [True, False])
def test_a_lazy_group_starts_a_controller_with_the_first_object_it_works_on(lazy: bool) -> None:
    world = World(seed=5)
    rounds: list[Key] = []
    group = ControllerGroup([on_config_maps_and_nodes(rounds)], world.api(), world, lazy=lazy)
    world.spawn(group.run(), name="manager")
    world.run(world.advance(1))
    world.run(world.api().create(NODES, "", {"metadata": {"name": "node-1"}}))
    world.run(world.advance(1))
    before = len(group.runners)
    for name in ("a", "b"):
        world.run(world.api().create(CONFIGMAPS, "default", {"metadata": {"name": name}}))
    world.run(world.advance(1))
    world.close()

    assert before == (0 if lazy else 1)
    assert len(group.runners) == 1
    assert sorted(rounds) == [Key("default", "a"), Key("default", "b")]


def test_a_lazy_group_starts_a_controller_at_once_where_there_are_objects() -> None:
    world = World(seed=5)
    rounds: list[Key] = []
    world.run(world.api().create(CONFIGMAPS, "default", {"metadata": {"name": "old"}}))
    group = ControllerGroup([on_config_maps_and_nodes(rounds)], world.api(), world, lazy=True)
    world.spawn(group.run(), name="manager")
    world.run(world.advance(1))
    world.close()

    assert rounds == [Key("default", "old")]


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda each: each.name)
def test_controllers_work_on_kinds_they_watch(controller: Controller[Any]) -> None:
    assert set(controller.works_on) <= {watch.kind for watch in controller.watches}
