"""The locks of a manager, in a world: what runs under which, and how it all ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steersman.api.kinds import LEASES
from steersman.intent.controller import Controller
from steersman.manager.election import LeaderElection
from steersman.manager.migration import Leader, Migration
from steersman.manager.options import read
from steersman.runtime.leader_election import LostLease
from steersman.runtime.metrics import Metrics
from steersman.sim.world import World

MAIN, MOVING = "kube-controller-manager", "moving"
TABLE = Migration(leaderName=MOVING, controllerLeaders=(Leader("job-controller", "*"),))
ARGV = ("--controllers=serviceaccount-token-controller,deployment-controller,job-controller",)


class Manager:
    """One that only notes what it leads."""

    def __init__(self, world: World, *argv: str, table: Migration | None = None) -> None:
        self.world = world
        self.metrics = Metrics()
        self.leads: list[str] = []
        self.started: list[Callable[[], None]] = []
        self.fences: list[Callable[[], bool]] = []
        self.lost = ""
        self.election = LeaderElection(read([*ARGV, *argv]), table, world.api("manager"), world, self.metrics)
        self.task = world.spawn(self._run(), name="manager")

    async def _run(self) -> None:
        try:
            await self.election.run(self._lead)
        except LostLease as lost:
            self.lost = str(lost)

    async def _lead(
        self,
        controllers: tuple[Controller[Any], ...],
        fence: Callable[[], bool],
        started: Callable[[], None],
    ) -> None:
        names = [controller.name for controller in controllers]
        self.leads += names
        self.fences.append(fence)
        self.started.append(started)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.leads = [name for name in self.leads if name not in names]

    def advance(self, seconds: float) -> None:
        self.world.run(self.world.advance(seconds))

    def holder(self, name: str) -> str | None:
        leases = self.world.run(self.world.api().list(LEASES, "kube-system")).items
        return next((one.spec.holderIdentity for one in leases if one.metadata.name == name), None)

    def steal(self, name: str) -> None:
        theft = {"spec": {"holderIdentity": "thief"}}
        self.world.run(self.world.api().patch(LEASES, "kube-system", name, theft))


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=5) as made:
        yield made


def test_without_migration_there_is_one_lock_for_all(world: World) -> None:
    manager = Manager(world)
    manager.advance(1)
    assert len(manager.leads) == 3
    assert (manager.holder(MAIN), manager.holder(MOVING)) == (manager.election.identity, None)
    assert [fence() for fence in manager.fences] == [True]
    assert manager.metrics.leader.of(MAIN).value == 1


def test_the_second_lock_waits_until_the_controllers_of_the_first_have_started(world: World) -> None:
    manager = Manager(world, table=TABLE)
    manager.advance(30)
    assert manager.leads == ["serviceaccount-token-controller", "deployment-controller"]
    assert manager.holder(MOVING) is None
    manager.started[0]()
    manager.advance(1)
    assert manager.leads[2:] == ["job-controller"]
    assert manager.holder(MAIN) == manager.holder(MOVING) == manager.election.identity
    assert [fence() for fence in manager.fences] == [True, True]


@pytest.mark.parametrize("lock", [MAIN, MOVING])
def test_who_loses_one_lock_stops_everything(world: World, lock: str) -> None:
    manager = Manager(world, table=TABLE)
    manager.advance(1)
    manager.started[0]()
    manager.advance(1)
    manager.steal(lock)
    manager.advance(3)
    assert manager.lost == f"leaderelection lost: kube-system/{lock}: held by thief"
    assert manager.leads == []
    assert [fence() for fence in manager.fences] == [False, False]
    assert manager.metrics.leader.of(MAIN).value == 0


@pytest.mark.parametrize(("gate", "released"), [("true", True), ("false", False)])
def test_all_locks_are_released_when_it_is_told_to_stop_if_the_gate_says_so(
    world: World, gate: str, released: bool
) -> None:
    flag = f"--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit={gate}"
    manager = Manager(world, flag, table=TABLE)
    manager.advance(1)
    manager.started[0]()
    manager.advance(1)
    manager.task.cancel()
    manager.advance(1)
    assert manager.leads == []
    left = "" if released else manager.election.identity
    assert (manager.holder(MAIN), manager.holder(MOVING)) == (left, left)


def test_a_manager_that_leads_or_waits_is_well(world: World) -> None:
    managers = [Manager(world, table=TABLE) for _ in range(2)]
    assert [manager.election.check() for manager in managers] == [None, None]
    managers[0].advance(60)
    assert [manager.election.check() for manager in managers] == [None, None]
    assert [len(manager.leads) for manager in managers] == [2, 0]
