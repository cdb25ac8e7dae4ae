"""A fleet: several controllers over one set of informers.

This is the part of a manager that is the same everywhere: over a socket or in process, in real or
virtual time, with one credential or one for each controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from steersman.api.scheme import Key
from steersman.client.api import Api
from steersman.intent.controller import Controller
from steersman.intent.settings import DEFAULTS, Settings
from steersman.runtime.backoff import ItemBackoff
from steersman.runtime.clock import Clock
from steersman.runtime.freshness import Ledger, stores_of
from steersman.runtime.host import Host
from steersman.runtime.informer import Informers
from steersman.runtime.metrics import Metrics
from steersman.runtime.recorder import Recorder
from steersman.runtime.roaming import Roaming
from steersman.runtime.shell import Shell, read_file
from steersman.runtime.trace import Trace
from steersman.runtime.workqueue import WorkQueue

CLOSING = 5.0
"""Seconds that recorders have at the end to send what they hold."""
MANAGER = "kube-controller-manager"
"""What a fleet is called where it is counted."""
FILLING = 30.0
"""Seconds that a controller that roams waits for everything to be read; upstream's number."""


class Fleet:
    """Hosts, and the informers they share."""

    def __init__(
        self,
        controllers: Iterable[Controller[Any]],
        api: Api,
        clock: Clock,
        *,
        api_of: Callable[[Controller[Any]], Api] | None = None,
        workers: Mapping[str, int] | None = None,
        fence: Callable[[], bool] = lambda: True,
        metrics: Metrics | None = None,
        trace: Trace | None = None,
        resync: float = 0.0,
        settings: Settings = DEFAULTS,
        files: Callable[[str], bytes] = read_file,
    ) -> None:
        """``api`` feeds the informers; ``api_of`` gives each controller the one it writes with.
        Controllers that the ``settings`` leave nothing to do are left out; ``files`` reads what those
        name: keys and certificates.

        ``workers`` sets the number of workers by flag name, where it is not the default.
        """
        self.metrics = metrics or Metrics()
        self.trace = trace or Trace()
        self.informers = Informers(api, clock, resync=resync, metrics=self.metrics)
        self.roaming = Roaming(self.informers, api, clock, metrics=self.metrics)
        self.hosts: list[Host[Any]] = []
        self._clock = clock
        self._workers = workers or {}
        self._files = files
        self._api = api
        self._recorders: list[Recorder] = []
        configured = (controller.configured(settings) for controller in controllers)
        for controller in (one for one in configured if one is not None):
            self.hosts.append(self._host(controller, api_of(controller) if api_of else api, fence))

    def _host(self, controller: Controller[Any], api: Api, fence: Callable[[], bool]) -> Host[Any]:
        kinds = tuple(watch.kind for watch in controller.watches)
        recorder = Recorder(
            api,
            self._clock,
            component=controller.source or controller.account or controller.name,
            fence=fence,
        )
        ledger = Ledger(stores_of(self.informers, kinds), self._clock)
        queue: WorkQueue[Key] = WorkQueue(
            self._clock,
            name=controller.name,
            metrics=self.metrics,
            backoff=ItemBackoff(cap=controller.patience),
            pace=controller.pace,
        )
        shell = Shell(api, recorder, ledger, self._clock, self.metrics, fence, self._files, self._api)
        self._recorders.append(recorder)
        return Host(
            controller,
            self.informers,
            queue,
            ledger,
            shell,
            self._clock,
            self.metrics,
            self.trace,
            self.roaming,
        )

    async def _work(self, host: Host[Any]) -> None:
        if host.controller.roams is not None:
            await self.roaming.wait_filled(FILLING)
        running = self.metrics.running.of(host.controller.name, MANAGER)
        running.set(1)
        try:
            await host.run(self._workers_of(host.controller))
        finally:
            running.set(0)

    def _workers_of(self, controller: Controller[Any]) -> int:
        if isinstance(controller.workers, int):
            return controller.workers
        return self._workers.get(controller.workers.name, controller.workers.default)

    async def run(self, synced: Callable[[], None] = lambda: None) -> None:
        """Fill the caches, call ``synced``, then let all controllers work until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.informers.run(), name="informers")
                for recorder in self._recorders:
                    recorder.open()
                await self.informers.wait_synced()
                synced()
                if any(host.controller.roams is not None for host in self.hosts):
                    group.create_task(self.roaming.run(), name="roaming")
                for host in self.hosts:
                    group.create_task(self._work(host), name=host.controller.name)
        finally:
            await asyncio.gather(*(each.close(CLOSING) for each in self._recorders if each.busy))
