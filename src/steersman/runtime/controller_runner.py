"""The controller runner: informers, queue and workers of one controller.

A runner subscribes to a controller's watches, turns changes into keys, and runs a round of each key: wait for the
key's own writes, observe, decide, act, record the verdict. A round that fails, fails alone: it is counted, recorded,
logged, and retried with back-off.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator, Mapping
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from steersman.api.clock import Clock
from steersman.api.errors import ApiError, Conflict
from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.api.verbosity import V, structured
from steersman.intent.all_resources import AllObjects
from steersman.intent.controller import Cache, Caches, Change, Controller, Watch
from steersman.intent.undecodable import Undecodable
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake
from steersman.runtime.causes import CACHE_TIMEOUT, DECODABLE, RESYNC, RETRY, START, CaughtUp, Event, Timer
from steersman.runtime.dynamic_informers import DynamicInformers
from steersman.runtime.heartbeat import Heartbeat, call_unless_renewed
from steersman.runtime.informer import Informers
from steersman.runtime.ledger import Ledger
from steersman.runtime.metrics import Metrics
from steersman.runtime.shell import Deposed, Shell
from steersman.runtime.trace import Failure, Round, Step, Trace
from steersman.runtime.undecodable_caches import UndecodableCaches
from steersman.runtime.worker_pool import WorkerPool
from steersman.runtime.workqueue import Taken, WorkQueue

S = TypeVar("S")
O = TypeVar("O", bound=Object)
log = logging.getLogger(__name__)

PATIENCE = 8.0
"""The interval between two rounds of a key on a busy server, as a multiple of the latency of a write."""
BREATH = 16
"""Rounds after which a worker yields to the event loop, even if none of its rounds had to wait."""


class CachesWithMemory:
    """The caches of a controller that declares a memory."""

    def __init__(self, caches: Caches, memory: object) -> None:
        self._caches = caches
        self.memory = memory

    def __getitem__(self, kind: Kind[O]) -> Cache[O]:
        return self._caches[kind]

    @property
    def all_objects(self) -> AllObjects:
        return self._caches.all_objects

    def monotonic(self) -> float:
        return self._caches.monotonic()


class ControllerRunner(Generic[S]):
    """Runs one controller."""

    def __init__(
        self,
        controller: Controller[S],
        informers: Informers,
        queue: WorkQueue[Key],
        ledger: Ledger,
        shell: Shell,
        clock: Clock,
        metrics: Metrics,
        trace: Trace,
        dynamic_informers: DynamicInformers | None = None,
    ) -> None:
        self.controller = controller
        self.queue = queue
        self._informers = informers
        self._ledger = ledger
        self._shell = shell
        self._clock = clock
        self._metrics = metrics
        self._trace = trace
        self.crashes = 0
        """Rounds in a row that ended in an unexpected exception."""
        self._renewed_timers: dict[Key, asyncio.TimerHandle] = {}
        """The timers of keys whose `Wake` is renewed by heartbeats."""
        self._forgiveness: asyncio.TimerHandle | None = None
        self._context = copy_context()
        """Its timer runs in the context of the controller, not of the round that parks a key."""
        self._pool: WorkerPool | None = None
        queue.interval = 0.0
        self._undecodable: tuple[Mapping[Key, str], ...] = tuple(
            informers.informer(watch.kind).store.unreadable for watch in controller.watches
        )
        """By watch: why objects could not be decoded."""
        self._blocked: dict[Key, None] = {}
        """The keys whose rounds were shown an object that cannot be decoded, and may end otherwise once it can be."""
        self.caches: Caches = informers
        """The caches that the controller's `observe` reads."""
        memory = controller.memory() if controller.memory is not None else None
        if controller.follows_all is not None:
            assert dynamic_informers is not None
            self.caches = dynamic_informers.join(controller.follows_all, queue.add, memory)
        elif memory is not None:
            self.caches = CachesWithMemory(informers, memory)
        metrics.declare(controller.metrics)
        # A handler may be called at once, and may read any index.
        for watch in controller.watches:
            for name, index in watch.indexes.items():
                informers.informer(watch.kind).store.add_index(name, index)
        for watch in controller.watches:
            self._follow(watch)

    def _follow(self, watch: Watch[Any]) -> None:
        informer = self._informers.informer(watch.kind)
        primary = watch is self.controller.watches[0]
        kind, resource = watch.kind, watch.kind.resource

        def changed(change: Change[Any]) -> None:
            # A resync shows the same object again: a reason to look at that object once more,
            # not at everything it is related to.
            if change.old is change.new and not primary:
                return
            if watch.measures is not None and change.old is not change.new:
                for measure in watch.measures(self.caches, change):
                    self._metrics.measure(measure)
            obj: Object = change.obj
            if watch.when is not None and not watch.when(obj):
                return
            cause: Event | None = None
            delay = 0.0
            for key in watch.to(self.caches, change):
                if cause is None:
                    # Most changes concern no key of most controllers.
                    what = "deleted" if change.new is None else "added" if change.old is None else "changed"
                    version = obj.metadata.resourceVersion
                    cause = Event(kind, obj.key, what, version, version)
                    delay = watch.delay(change, self._clock.now()) if callable(watch.delay) else watch.delay
                if delay > 0.0:
                    self.queue.add_after(key, delay, cause)
                else:
                    self.queue.add(key, cause)

        def progressed(revision: int) -> None:
            for key in self._ledger.caught_up(resource, revision):
                self.queue.add(key, CaughtUp(resource))

        def decodable() -> None:
            blocked, self._blocked = self._blocked, {}
            for key in blocked:
                self.queue.forget(key)
                self.queue.add(key, DECODABLE)

        informer.subscribe(changed)
        informer.on_decodable(decodable)
        informer.on_progress(progressed)

    async def run(self, workers: int) -> None:
        """Run workers until cancelled. Raises `Deposed` when this process no longer leads."""
        for key in self.controller.initial_keys:
            self.queue.add(key, START)
        try:
            async with asyncio.TaskGroup() as group:
                if self.controller.resync > 0.0:
                    group.create_task(self._resync(), name=f"{self.controller.name} resync")
                pool = self._pool = WorkerPool(group, self._work, workers, self.controller.name)
                self._shell.lend_workers(lambda: pool.lend(len(self.queue)))
                self.queue.on_unserved = pool.call
                pool.call(len(self.queue))
                await asyncio.get_running_loop().create_future()  # until cancelled
        finally:
            self.queue.on_unserved = None
            for silence in self._renewed_timers.values():
                silence.cancel()
            if self._forgiveness is not None:
                self._forgiveness.cancel()

    async def _resync(self) -> None:
        """Enqueue the objects of the first watch every `Controller.resync` seconds.

        Where no change can be missed, another round without a change finds nothing to do, because what depends on
        time alone ends in a `Wake`. Such a resync is left out under virtual time.
        """
        watch = self.controller.watches[0]
        store = self._informers.informer(watch.kind).store
        stores = [self._informers.informer(each.kind).store for each in self.controller.watches]
        looked, period = -1, self.controller.resync

        def progress() -> int:
            return sum(each.revision for each in stores)

        def wanted() -> Iterator[Object]:
            return (obj for obj in store.list() if watch.when is None or watch.when(obj))

        def repeatable() -> bool:
            if not self._informers.steady:
                return False
            # A controller that follows all resources reads more stores than these.
            return next(wanted(), None) is None or (
                self.controller.follows_all is None and progress() == looked
            )

        heartbeat = Heartbeat(period, self._clock.monotonic() + period, repeatable=repeatable, reads=True)
        while True:
            await heartbeat.beat()
            looked = progress()
            for obj in wanted():
                for key in watch.to(self.caches, Change(obj, obj)):
                    self.queue.add(key, RESYNC)

    async def _work(self) -> None:
        for number in itertools.count():
            if not number % BREATH:
                await asyncio.sleep(0)
            taken = await self.queue.get()
            started = self._clock.monotonic()
            try:
                if self.controller.lend_after and self._pool is not None:
                    with self._pool.lend_after(self.controller.lend_after, self.queue.__len__):
                        await self.round(taken)
                else:
                    await self.round(taken)
            finally:
                took = self._clock.monotonic() - started
                self.queue.done(taken.key, took if self.controller.rest_after_round else 0.0)
            if self._pool is not None and self._pool.retire():
                return

    async def round(self, taken: Taken[Key]) -> None:
        """Run one round of a key."""
        key = taken.key
        started, start = self._clock.now(), self._clock.monotonic()
        steps: list[Step] | None = [] if self._trace.enabled else None
        ending: Verdict | Failure
        try:
            if self._ledger.doubts(key):
                await self._shell.resolve(key)
            lagging = self._ledger.behind(key)
            if lagging is not None:
                # No decision is made on a cache that does not show the key's own writes yet.
                self._metrics.stale_skip(self.controller.name, lagging)
                self._forgive_at(self._ledger.park(key))
                return
            self._ledger.unpark(key)
            ending = await self._decide(key, steps)
        except Deposed:
            raise
        except Exception as error:
            ending = self._failed(key, error)
        else:
            self.crashes = 0
            self.queue.forget(key)
            self._wait(key, ending)
        took = self._clock.monotonic() - start
        # On an idle server every change leads to a round at once; on a busy one, several changes to one.
        self.queue.interval = min(self.controller.coalesce_within, PATIENCE * self._shell.latency)
        code = ending.code if isinstance(ending, Failure) else 200
        self._metrics.round(self.controller.name, took, code)
        if steps is not None:
            name = self.controller.name
            self._trace.record(
                Round(name, key, taken.causes, taken.waited, started, took, tuple(steps), ending)
            )

    def behind(self, key: Key) -> str:
        """The resource whose cache does not show the key's own writes yet; empty when all do."""
        return self._ledger.behind(key) or ""

    @property
    def latency(self) -> float:
        """Seconds a write takes, as a moving average."""
        return self._shell.latency

    def _forgive_at(self, deadline: float) -> None:
        """Set the one timer that returns parked keys whose cache never catches up. Debts that are paid leave it to run out."""
        if self._forgiveness is not None:
            if self._forgiveness.when() <= deadline:
                return
            self._forgiveness.cancel()
        loop = asyncio.get_running_loop()
        self._forgiveness = loop.call_at(deadline, self._forgive, deadline, context=self._context)

    def _forgive(self, called: float) -> None:
        """Enqueue keys whose debt is forgiven. The loop may call a little early; the time it was asked for counts then."""
        self._forgiveness = None
        for key in self._ledger.forgiven(max(called, self._clock.monotonic())):
            self.queue.add(key, CACHE_TIMEOUT)
        if (deadline := self._ledger.deadline) is not None:
            self._forgive_at(deadline)

    def _wait(self, key: Key, ending: Verdict) -> None:
        """Set the timer that a verdict asks for."""
        if self._renewed_timers and (before := self._renewed_timers.pop(key, None)) is not None:
            before.cancel()
        if not isinstance(ending, Wake):
            return
        after, because = ending.after.total_seconds(), ending.because
        if ending.renewed_by and self._informers.steady and after > 0.0:
            self._renewed_timers[key] = call_unless_renewed(
                after, ending.renewed_by, self.queue.add, key, Timer(because)
            )
        else:
            self.queue.add_after(key, after, Timer(because))

    async def _decide(self, key: Key, steps: list[Step] | None) -> Verdict:
        seen = self._see_undecodable(key) if any(self._undecodable) else self.controller.see(self.caches, key)
        if seen is None:
            self._ledger.forget(key)
            return Rest("gone")
        decision = self.controller.decide(seen, self._clock.now())
        return await self._shell.drive(key, decision, steps)

    def _see_undecodable(self, key: Key) -> S | None:
        """Run `Controller.see` while objects in the caches cannot be decoded. Raises `Undecodable`."""
        broken = self._undecodable[0].get(key)
        if broken is not None:
            self._blocked[key] = None
            raise Undecodable(f"cannot be decoded: {broken}")
        caches = UndecodableCaches(self.caches)
        try:
            return self.controller.see(caches, key)
        finally:
            if caches.shown:
                self._blocked[key] = None

    def _failed(self, key: Key, error: Exception) -> Failure:
        """Log an error with the level it deserves, and retry the key later."""
        name, values = self.controller.name, {"logger": self.controller.name, "key": str(key)}
        if isinstance(error, Conflict):
            # Another client wrote in between; the cache will show it in a moment.
            message = structured("Retrying after a conflict", **values, err=error)
            log.log(V[4], "%s %s: conflict, retrying: %s", name, key, error, extra=message)
        elif isinstance(error, ApiError | InvalidSpec):
            message = structured("Reconciliation failed", **values, err=error)
            log.warning("%s %s: %s", name, key, error, extra=message)
        else:
            self.crashes += 1
            message = structured("Reconciliation failed", **values)
            log.error("%s %s: reconciliation failed", name, key, exc_info=error, extra=message)
        if isinstance(error, Undecodable):
            self._blocked[key] = None
        # differs: some of upstream's controllers drop a key after 5, 10 or 15 retries, until its next event.
        delay = self.queue.retry(key, RETRY)
        why = str(error) if isinstance(error, ApiError | InvalidSpec) else f"{type(error).__name__}: {error}"
        return Failure(why, (error.code if isinstance(error, ApiError) else 0) or 500, delay)
