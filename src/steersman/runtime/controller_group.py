"""A fleet: several controllers over one set of informers.

This is the part of a manager that is the same everywhere: over a socket or in process, in real or
virtual time, with one credential or one for each controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from steersman.api.clock import Clock
from steersman.api.scheme import Key
from steersman.client.api import Api
from steersman.intent.controller import Controller
from steersman.intent.settings import DEFAULTS, Settings
from steersman.runtime.action_table import read_file
from steersman.runtime.backoff import ItemBackoff, jittered
from steersman.runtime.controller_runner import ControllerRunner
from steersman.runtime.dynamic_informers import DynamicInformers
from steersman.runtime.event_recorder import Recorder
from steersman.runtime.informer import Informers
from steersman.runtime.ledger import Ledger, stores_of
from steersman.runtime.metrics import Metrics
from steersman.runtime.shell import Shell
from steersman.runtime.trace import Trace
from steersman.runtime.workqueue import WorkQueue

CLOSING = 5.0
"""Seconds that recorders have at the end to send what they hold."""
MANAGER = "kube-controller-manager"
"""What a fleet is called where it is counted."""
FILLING = 30.0
"""Seconds that a controller that roams waits for everything to be read; upstream's number."""


class ControllerGroup:
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
        pause: float = 0.0,
    ) -> None:
        """``api`` feeds the informers; ``api_of`` gives each controller the one it writes with.
        Controllers that the ``settings`` leave nothing to do are left out; ``files`` reads what those
        name: keys and certificates.

        ``workers`` sets the number of workers by flag name, where it is not the default. ``pause``: the
        shortest time, in seconds, that a controller waits before it starts, so that not all do at once.
        """
        self.metrics = metrics or Metrics()
        self.trace = trace or Trace()
        self.informers = Informers(
            api, clock, resync=resync, metrics=self.metrics, streams=settings.enabled("WatchListClient")
        )
        self.dynamic_informers = DynamicInformers(self.informers, api, clock, metrics=self.metrics)
        self.hosts: list[ControllerRunner[Any]] = []
        self._clock = clock
        self._workers = workers or {}
        self._files = files
        self._api = api
        self._api_of = api_of or (lambda controller: api)
        self._fence = fence
        self._settings = settings
        self._pause = pause
        self._recorders: list[Recorder] = []
        self._group: asyncio.TaskGroup | None = None
        for controller in controllers:
            configured = controller.configured(settings)
            if configured is not None:
                self.hosts.append(self._host(configured))

    def _host(self, controller: Controller[Any]) -> ControllerRunner[Any]:
        api, fence = self._api_of(controller), self._fence
        kinds = tuple(watch.kind for watch in controller.watches)
        recorder = Recorder(
            api,
            self._clock,
            component=controller.event_component or controller.service_account or controller.name,
            fence=fence,
        )
        ledger = Ledger(stores_of(self.informers, kinds), self._clock)
        queue: WorkQueue[Key] = WorkQueue(
            self._clock,
            name=controller.name,
            metrics=self.metrics,
            backoff=ItemBackoff(cap=controller.max_backoff),
            pace=controller.coalesce_within,
        )
        shell = Shell(api, recorder, ledger, self._clock, self.metrics, fence, self._files, self._api)
        self._recorders.append(recorder)
        return ControllerRunner(
            controller,
            self.informers,
            queue,
            ledger,
            shell,
            self._clock,
            self.metrics,
            self.trace,
            self.dynamic_informers,
        )

    async def _work(self, host: ControllerRunner[Any]) -> None:
        if self._pause and not host.controller.as_manager:
            await asyncio.sleep(jittered(self._clock.random, self._pause, 1.0))
        if host.controller.follows_all is not None:
            await self.dynamic_informers.wait_filled(FILLING)
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
                if any(host.controller.follows_all is not None for host in self.hosts):
                    group.create_task(self.dynamic_informers.run(), name="dynamic informers")
                # Those that the accounts of others depend on are at work before the others.
                for host in sorted(self.hosts, key=lambda host: not host.controller.as_manager):
                    group.create_task(self._work(host), name=host.controller.name)
                self._group = group
        finally:
            self._group = None
            await asyncio.gather(*(each.close(CLOSING) for each in self._recorders if each.busy))

    def join(self, controller: Controller[Any]) -> None:
        """Have a controller work that could not from the start: what it needs is served only now."""
        configured = controller.configured(self._settings)
        if self._group is None or configured is None:
            return
        for watch in configured.watches:
            self.dynamic_informers.release(watch.kind)
            self.informers.informer(watch.kind)
        host = self._host(configured)
        self._recorders[-1].open()
        self.hosts.append(host)
        self._group.create_task(self._work_late(host), name=configured.name)

    async def _work_late(self, host: ControllerRunner[Any]) -> None:
        for watch in host.controller.watches:
            await self.informers.informer(watch.kind).wait_synced()
        await self._work(host)
