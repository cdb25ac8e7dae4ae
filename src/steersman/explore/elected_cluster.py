"""A cluster whose manager has to win a lease before it works, and ends when it loses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman.intent.controller import Controller
from steersman.runtime.leader_election import LeaderElector, LostLease
from steersman.sim.faults.leaders import LEASE, NAMESPACE
from steersman.testing import credentials
from steersman.testing.cluster import Cluster
from steersman.testing.process import Manager

AGAIN = 1.0
"""Seconds until a manager that lost its lease is started again."""
RETRY = 10.0
"""Seconds between two renewals: fewer than is usual, since scenarios may last for months."""


def identity(life: int) -> str:
    """What the manager calls itself in one of its lives."""
    return f"manager-{life}"


class Elected(Manager):
    """A manager that stands for election before it works."""

    def __init__(self, cluster: ElectedCluster, controllers: Sequence[Controller[Any]], name: str) -> None:
        stage = cluster._stage
        assert stage is not None
        clock = stage.clock(cluster.world)
        self._cluster = cluster
        super().__init__(
            controllers,
            cluster.world,
            clock,
            cluster._chronicle,
            through=stage.api,
            files=credentials.read,
            name=name,
        )
        self._elector = LeaderElector(
            self._api("system:kube-controller-manager"),
            clock,
            name=LEASE,
            namespace=NAMESPACE,
            identity=identity(stage.life),
            lease_duration=3 * RETRY + 30,
            renew_deadline=3 * RETRY,
            retry_period=RETRY,
        )

    def fence(self) -> bool:
        return self.alive and self._elector.fence()

    async def _work(self) -> None:
        try:
            await self._elector.run(self.fleet.run)
        except LostLease:
            self._cluster.lost(self)


class ElectedCluster(Cluster):
    """The same cluster, with an election."""

    def _start(self, controllers: Sequence[Controller[Any]], name: str) -> Manager:
        # A second manager is one that does not ask.
        return Elected(self, controllers, name) if name == "manager" else super()._start(controllers, name)

    def lost(self, manager: Manager) -> None:
        """A manager that does not lead any more ends, and is started again."""
        if manager is self.manager and manager.alive:
            self.crash_manager()
            self.world.loop.call_later(AGAIN, self._again)

    def _again(self) -> None:
        if not self.manager.alive:
            self.start_manager()
