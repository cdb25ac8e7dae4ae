"""A controller group: several controllers over one set of shared informers.

This part of a manager is the same everywhere: over a socket or in process, in real or virtual time, with one
credential or one for each controller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from typing import Any

from steersman.api.clock import Clock
from steersman.api.cloud import CloudProvider, offers
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.kinds.services import SERVICES, Service
from steersman.api.scheme import Key
from steersman.client.api import Api
from steersman.intent.controller import Controller
from steersman.intent.settings import DEFAULTS, Settings
from steersman.runtime.action_table import Directories, read_file
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

log = logging.getLogger(__name__)

CLOSING = 5.0
"""Seconds that event recorders get at the end to send their events."""
MANAGER = "kube-controller-manager"
"""The ``manager`` label of the metrics of a group."""
FILLING = 30.0
"""Seconds that a controller that follows all resources waits for its caches to sync; upstream's number."""


class CachedObjects:
    """The cached objects that a cloud provider may read; a `ClusterObjects`."""

    def __init__(self, informers: Informers) -> None:
        self._informers = informers

    def services(self) -> Iterable[Service]:
        return self._informers[SERVICES].list()

    def nodes(self) -> Iterable[Node]:
        return self._informers[NODES].list()


def _waits_for_objects(controller: Controller[Any]) -> bool:
    """Whether a controller has nothing to do before one of its watches sees an object."""
    return bool(controller.watches) and not (
        controller.initial_keys or controller.follows_all is not None or controller.cloud is not None
    )


class ControllerGroup:
    """Controller runners, and the informers they share."""

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
        cloud: CloudProvider | None = None,
        lazy: bool = False,
        directories: Directories | None = None,
    ) -> None:
        """``api`` feeds the informers; ``api_of`` gives each controller the one it writes with. Controllers that the
        ``settings`` disable are left out; ``files`` reads the keys and certificates that the settings name.

        ``workers`` overrides the number of workers by flag name. ``pause``: the shortest time, in seconds, that a
        controller waits before it starts, so that they do not all start at once. Controllers that need a part of the
        ``cloud`` provider are left out where there is none, or it lacks the part. ``lazy`` makes the runner of a controller,
        and its metrics, only when one of the kinds it works on has objects, as far as the ``api`` can tell.
        ``directories`` are those of the host where volumes are provisioned; None: none are made.
        """
        self.metrics = metrics or Metrics()
        self.trace = trace or Trace()
        self.informers = Informers(
            api, clock, resync=resync, metrics=self.metrics, streams=settings.enabled("WatchListClient")
        )
        self.dynamic_informers = DynamicInformers(self.informers, api, clock, metrics=self.metrics)
        self.runners: list[ControllerRunner[Any]] = []
        self._clock = clock
        self._workers = workers or {}
        self._files = files
        self._api = api
        self._api_of = api_of or (lambda controller: api)
        self._fence = fence
        self._settings = settings
        self._pause = pause
        self._cloud = cloud
        self._directories = directories
        self._recorders: list[Recorder] = []
        self._group: asyncio.TaskGroup | None = None
        self._lazy: list[Controller[Any]] = []
        """Controllers that have no runner until they may have something to do."""
        for controller in controllers:
            configured = controller.configured(settings)
            if configured is None or not self._has_cloud(configured):
                continue
            if lazy and _waits_for_objects(configured):
                self._lazy.append(configured)
                for watch in configured.watches:
                    self.informers.informer(watch.kind)
            else:
                self.runners.append(self._make_runner(configured))

    def _has_cloud(self, controller: Controller[Any]) -> bool:
        return controller.cloud is None or offers(self._cloud, controller.cloud)

    def _make_runner(self, controller: Controller[Any]) -> ControllerRunner[Any]:
        api = self._api_of(controller)
        kinds = tuple(watch.kind for watch in controller.watches)
        recorder = Recorder(
            api,
            self._clock,
            component=controller.event_component or controller.service_account or controller.name,
            fence=self._fence,
        )
        ledger = Ledger(stores_of(self.informers, kinds), self._clock)
        queue: WorkQueue[Key] = WorkQueue(
            self._clock,
            name=controller.name,
            metrics=self.metrics,
            backoff=ItemBackoff(controller.min_backoff, controller.max_backoff),
            min_interval=controller.coalesce_within,
        )
        shell = self._make_shell(controller, api, recorder, ledger)
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

    def _make_shell(self, controller: Controller[Any], api: Api, recorder: Recorder, ledger: Ledger) -> Shell:
        """The shell that performs the actions of a controller."""
        return Shell(
            api,
            recorder,
            ledger,
            self._clock,
            self.metrics,
            self._fence,
            self._files,
            self._api,
            self._cloud,
            self._directories,
        )

    async def _work(self, runner: ControllerRunner[Any]) -> None:
        if self._pause and not runner.controller.as_manager:
            await asyncio.sleep(jittered(self._clock.random, self._pause, 1.0))
        if runner.controller.follows_all is not None:
            await self.dynamic_informers.wait_filled(FILLING)
        running = self.metrics.running.of(runner.controller.name, MANAGER)
        running.set(1)
        try:
            await runner.run(self._workers_of(runner.controller))
        finally:
            running.set(0)

    def _workers_of(self, controller: Controller[Any]) -> int:
        if isinstance(controller.workers, int):
            return controller.workers
        return self._workers.get(controller.workers.name, controller.workers.default)

    async def run(self, synced: Callable[[], None] = lambda: None) -> None:
        """Fill the caches, call ``synced``, then let all controllers work until cancelled."""
        uses_cloud = any(runner.controller.cloud is not None for runner in self.runners)
        if uses_cloud:
            self.informers.informer(SERVICES)
            self.informers.informer(NODES)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.informers.run(), name="informers")
                for recorder in self._recorders:
                    recorder.open()
                await self.informers.wait_synced()
                if uses_cloud and not self._initialize_cloud():
                    self.runners = [each for each in self.runners if each.controller.cloud is None]
                for controller in self._lazy:
                    self._start_with_objects(controller, group)
                synced()
                if any(runner.controller.follows_all is not None for runner in self.runners):
                    group.create_task(self.dynamic_informers.run(), name="dynamic informers")
                # Controllers that service accounts depend on start first.
                for runner in sorted(self.runners, key=lambda runner: not runner.controller.as_manager):
                    group.create_task(self._work(runner), name=runner.controller.name)
                self._group = group
        finally:
            self._group = None
            await asyncio.gather(*(each.close(CLOSING) for each in self._recorders if each.busy))

    def _initialize_cloud(self) -> bool:
        """Initialize the cloud provider; returns whether it is well."""
        assert self._cloud is not None
        try:
            self._cloud.initialize(CachedObjects(self.informers))
        except Exception as error:
            # The provider is foreign code, and the other controllers do not need it.
            name, reason = self._cloud.name, f"{type(error).__name__}: {error}"
            log.error(
                "cloud provider %s cannot be initialized, so its controllers do not run: %s", name, reason
            )
            return False
        return True

    def _start_with_objects(self, controller: Controller[Any], group: asyncio.TaskGroup) -> None:
        """Start a controller once one of the kinds it works on has an object; with the others, if one has already."""
        context = copy_context()
        started = False

        def start() -> None:
            nonlocal started
            if not started:
                started = True
                runner = self._add_runner(controller)
                group.create_task(self._work(runner), name=controller.name)

        kinds = controller.works_on or tuple(watch.kind for watch in controller.watches)
        if not all(self.informers.when_not_empty(kind, lambda: context.run(start)) for kind in kinds):
            started = True
            self._add_runner(controller)

    def _add_runner(self, controller: Controller[Any]) -> ControllerRunner[Any]:
        runner = self._make_runner(controller)
        self._recorders[-1].open()
        self.runners.append(runner)
        return runner

    def join(self, controller: Controller[Any]) -> None:
        """Start a controller later, once the server serves the kinds it requires."""
        configured = controller.configured(self._settings)
        if self._group is None or configured is None:
            return
        for watch in configured.watches:
            self.dynamic_informers.release(watch.kind)
            self.informers.informer(watch.kind)
        runner = self._add_runner(configured)
        self._group.create_task(self._work_late(runner), name=configured.name)

    async def _work_late(self, runner: ControllerRunner[Any]) -> None:
        for watch in runner.controller.watches:
            await self.informers.informer(watch.kind).wait_synced()
        await self._work(runner)
