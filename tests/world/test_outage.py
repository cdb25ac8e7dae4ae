"""The API server is gone for ten minutes: the manager waits, says so now and then, and goes on when it is back."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from steersman.api.kinds import DEPLOYMENTS, PODS
from steersman.controllers import CONTROLLERS
from steersman.manager.logs import RateLimit
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.leader_election import LeaderElector, LostLease
from steersman.sim.nodes import Nodes
from steersman.sim.world import World
from tests.harness.away import Away

OUTAGE = 600.0
REPLICAS = 2


class Lines(logging.Handler):
    """What would be written to the log, by the world's time."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.INFO)
        self._world = world
        self._damper = RateLimit()
        self.all = 0
        self.written: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        record.created = self._world.now().timestamp()
        self.all += 1
        if self._damper.filter(record):
            self.written.append(record.getMessage())


class Plane:
    """A manager with all controllers, some nodes, and some work."""

    def __init__(self, world: World, workloads: int) -> None:
        self.world = world
        self.api = Away(world.api("manager"))
        self.names = [f"web-{number}" for number in range(workloads)]
        with world.background():
            world.spawn(Nodes(world.api("nodes"), world, ("n1", "n2")).run(), name="nodes")
        for name in self.names:
            labels = {"app": name}
            document = {
                "metadata": {"name": name},
                "spec": {
                    "replicas": REPLICAS,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "main", "image": "app"}]},
                    },
                },
            }
            world.run(world.api().create(DEPLOYMENTS.untyped, "default", document))

    def ready(self) -> int:
        found = self.world.run(self.world.api().list(DEPLOYMENTS, "default"))
        counts: list[int] = [one.status.readyReplicas or 0 for one in found.items]
        return sum(counts)


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=11) as made:
        yield made


@pytest.fixture
def lines(world: World) -> Iterator[Lines]:
    handler = Lines(world)
    logger = logging.getLogger("steersman")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_ten_minutes_without_a_server_are_survived_in_peace(world: World, lines: Lines) -> None:
    plane = Plane(world, 30)
    manager = world.spawn(ControllerGroup(CONTROLLERS, plane.api, world).run(), name="manager")
    world.run(world.advance(60))
    assert plane.ready() == 30 * REPLICAS
    # Work that is under way when the server goes: each of these has a round that fails.
    for name in plane.names:
        world.run(world.api().patch(DEPLOYMENTS, "default", name, {"spec": {"replicas": REPLICAS + 1}}))
    plane.api.leave()
    lines.all, lines.written, plane.api.tries = 0, [], 0
    world.run(world.advance(OUTAGE))
    assert not manager.done()
    kinds = len(list(ControllerGroup(CONTROLLERS, plane.api, world).informers))
    # Caches come back after 0.8 s at first, and every 30 to 60 s in the end; so do keys.
    assert plane.api.tries < OUTAGE / 60 * (kinds + len(plane.names)) * 4
    assert len(set(lines.written)) > kinds, "each says it once, at least"
    assert len(lines.written) < OUTAGE, "and all together less than a line a second"
    plane.api.come_back()
    world.run(world.advance(90))
    assert plane.ready() == 30 * (REPLICAS + 1)
    world.run(world.api().patch(DEPLOYMENTS, "default", "web-0", {"spec": {"replicas": 0}}))
    world.run(world.advance(5))
    assert plane.ready() == 29 * (REPLICAS + 1), "as before, at once"
    assert len(world.run(world.api().list(PODS, "default")).items) == 29 * (REPLICAS + 1)


def test_a_leader_without_a_server_has_lost_after_the_renew_deadline(world: World, lines: Lines) -> None:
    plane = Plane(world, 1)
    elector = LeaderElector(
        plane.api, world, name="kube-controller-manager", namespace="kube-system", identity="a"
    )
    fleet = ControllerGroup(CONTROLLERS, plane.api, world, fence=elector.fence)

    async def lead() -> float:
        try:
            await elector.run(fleet.run)
        except LostLease:
            return world.monotonic()
        raise AssertionError("it goes on")

    manager = world.spawn(lead(), name="manager")
    world.run(world.advance(60))
    plane.api.leave()
    left, lines.written = world.monotonic(), []
    world.run(world.advance(OUTAGE))
    assert manager.result() - left <= 10.0
    assert len(lines.written) < 150
