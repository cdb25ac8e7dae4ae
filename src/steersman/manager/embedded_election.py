"""Leader election of ``steersman up``: its controllers run while it holds the manager's Lease.

A ``steersman run`` or a kube-controller-manager beside it finds the Lease held and waits, instead of writing what the
controllers of ``up`` write as well. Where another manager was there first, the controllers of ``up`` wait.

Other managers live in real time whatever the speed of the cluster's clock, so the Lease is renewed in real time, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from steersman.api.clock import Clock
from steersman.client.api import Api
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.leader_election import LeaderElector, LostLease
from steersman.sim.scaled_clock import RealMonotonicClock, ScaledLoop

log = logging.getLogger(__name__)

LEASE, NAMESPACE = "kube-controller-manager", "kube-system"
PATIENCE = 5.0
"""Seconds for the controllers to stop before the Lease is released."""

Fence: TypeAlias = Callable[[], bool]


class EmbeddedElection:
    """Runs the controllers of a control plane while it holds the manager's Lease."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        make: Callable[[Fence], ControllerGroup],
        *,
        identity: str,
        loop: ScaledLoop | None = None,
        on_other: Callable[[str], None] = lambda holder: None,
    ) -> None:
        """``make`` makes the controllers, anew for each time that the Lease is won. ``loop`` is the running loop, where its time
        is not the machine's. ``on_other`` is called with the name of another manager that holds the Lease.
        """
        self._api = api
        self._clock = clock if loop is None else RealMonotonicClock(clock)
        self._make = make
        self._identity = identity
        self._sleep = asyncio.sleep if loop is None else loop.sleep_in_real_time
        self._timeout = asyncio.timeout if loop is None else loop.timeout_in_real_time
        self._on_other = on_other

    async def run(self, synced: Callable[[], None]) -> None:
        """Lead until cancelled, and call back when the caches of the controllers have synced.

        A Lease that is lost is competed for again: the API server beside the controllers must not end with them.
        """
        while True:
            elector = LeaderElector(
                self._api,
                self._clock,
                name=LEASE,
                namespace=NAMESPACE,
                identity=self._identity,
                patience=PATIENCE,
                release_on_cancel=True,
                sleep=self._sleep,
                timeout=self._timeout,
                on_new_leader=self._notice,
            )
            controllers = partial(self._lead, elector.fence, synced)
            try:
                return await elector.run(controllers)
            except LostLease as lost:
                log.warning("%s; the controllers start again when the Lease is free", lost)

    async def _lead(self, fence: Fence, synced: Callable[[], None]) -> None:
        await self._make(fence).run(synced)

    def _notice(self, holder: str) -> None:
        if holder and holder != self._identity:
            self._on_other(holder)
