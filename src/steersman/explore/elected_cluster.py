"""A cluster whose manager must hold a lease: it works while it leads, and restarts when it loses the lease."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman.intent.controller import Controller
from steersman.runtime.leader_election import LeaderElector, LostLease
from steersman.sim.faults.leaders import LEASE, NAMESPACE
from steersman.testing import credentials
from steersman.testing.cluster import Cluster
from steersman.testing.process import Manager

RESTART_DELAY = 1.0
"""Seconds until a manager that lost its lease is started again."""
RETRY_PERIOD = 10.0
"""Seconds between two renewals: longer than usual, since scenarios may last for months."""


def identity(incarnation: int) -> str:
    """The holder identity of a manager after ``incarnation`` restarts."""
    return f"manager-{incarnation}"


class ElectedManager(Manager):
    """A manager with leader election."""

    def __init__(self, cluster: ElectedCluster, controllers: Sequence[Controller[Any]], name: str) -> None:
        injector = cluster._injector
        assert injector is not None
        clock = injector.clock(cluster.world)
        self._cluster = cluster
        super().__init__(
            controllers,
            cluster.world,
            clock,
            cluster._history,
            through=injector.api,
            files=credentials.read,
            name=name,
            cloud=cluster.plan.cloud,
        )
        self._elector = LeaderElector(
            self._api("system:kube-controller-manager"),
            clock,
            name=LEASE,
            namespace=NAMESPACE,
            identity=identity(injector.incarnation),
            lease_duration=3 * RETRY_PERIOD + 30,
            renew_deadline=3 * RETRY_PERIOD,
            retry_period=RETRY_PERIOD,
        )

    def fence(self) -> bool:
        return self.alive and self._elector.fence()

    async def _work(self) -> None:
        try:
            await self._elector.run(self.fleet.run)
        except LostLease:
            self._cluster.lease_lost(self)


class ElectedCluster(Cluster):
    """A `Cluster` with leader election."""

    def _start(self, controllers: Sequence[Controller[Any]], name: str) -> Manager:
        # A second manager does not take part in the election.
        return (
            ElectedManager(self, controllers, name)
            if name == "manager"
            else super()._start(controllers, name)
        )

    def lease_lost(self, manager: Manager) -> None:
        """Stop a manager that lost its lease, and start it again."""
        if manager is self.manager and manager.alive:
            self.crash_manager()
            self.world.loop.call_later(RESTART_DELAY, self._restart)

    def _restart(self) -> None:
        if not self.manager.alive:
            self.start_manager()
