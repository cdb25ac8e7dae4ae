"""Nodes in one line: kubelets, and the scheduler that gives them their pods.

::

    with World(seed=7) as world:
        world.spawn(Nodes(world.api("nodes"), world, ("n1", "n2"), start_delay=1.0).run())
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from steersman.client.api import Api
from steersman.runtime.clock import Clock
from steersman.sim.kubelet import Kubelets, Settings, Shape
from steersman.sim.scheduler import Scheduler


class Nodes:
    """Some nodes, and who places pods on them."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        names: Iterable[str] = ("node-1",),
        *,
        shape: Shape = Shape(),
        parallel: int = 16,
        **settings: Any,
    ) -> None:
        """``settings`` are those of `steersman.sim.kubelet.Settings`: how kubelets take their time. At most
        ``parallel`` requests of each, the kubelets and the scheduler, are under way."""
        chosen = Settings(**settings)
        self.kubelets = Kubelets(api, clock, names, settings=chosen, shape=shape, parallel=parallel)
        self.scheduler = Scheduler(api, clock, parallel=parallel)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.kubelets.run(), name="kubelets")
            group.create_task(self.scheduler.run(), name="scheduler")
