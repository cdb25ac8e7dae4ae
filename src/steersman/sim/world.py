"""A world: the embedded API server and its clients on one virtual event loop, from one seed.

Time, random numbers, names and UIDs all come from the world, so the same seed gives the same writes::

    with World(seed=7) as world:
        world.spawn(Nodes(world.api("nodes"), world).run())
        world.run(world.api().create(DEPLOYMENTS, "default", web))
        world.run(world.settle())
        assert world.run(world.api().get(DEPLOYMENTS, "default", "web")).status.readyReplicas == 3

Spawned tasks continue whenever the world runs.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter, deque
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

import msgspec

from steersman.api.generated.core_v1 import Namespace
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.scheme import encode_hook
from steersman.server import admission, crd
from steersman.server.admission import Plugins
from steersman.server.auth.users import AUTHENTICATED, MASTERS, User
from steersman.server.bootstrap_objects import create_bootstrap_objects
from steersman.server.http.webhook_client import BlockingWebhookClient
from steersman.server.local import LocalApi
from steersman.server.rest.create import create_as_server
from steersman.server.server import Server
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Commit
from steersman.sim.deadlock import by_name
from steersman.sim.loop import VirtualLoop, background, in_background

T = TypeVar("T")

START = datetime(2026, 1, 1, tzinfo=UTC)
"""The initial time of a world."""

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
"""The namespaces that an API server creates."""

PATIENCE = 366 * 86_400.0
"""Default limit of a run in seconds, unless it lets time pass explicitly."""

QUIET = frozenset({"leases.coordination.k8s.io"})
"""Resources whose writes are background work."""


class NotSettled(AssertionError):
    """The world did not settle: writes do not end."""


class _RandomStreams(NamedTuple):
    """The random streams of a world: one for each purpose, so that they do not depend on each other."""

    own: random.Random
    names: random.Random
    order: random.Random

    @classmethod
    def of(cls, seed: int, revision: int = 0) -> _RandomStreams:
        """``revision`` is that of a fork: its new objects must not get the UIDs of existing ones."""
        begin = f"{seed}@{revision}" if revision else str(seed)
        return cls(*(random.Random(f"{begin}/{stream}") for stream in ("chance", "names", "order")))

    def copy(self) -> _RandomStreams:
        """Independent copies of the streams."""
        return _RandomStreams(*(copy(stream) for stream in self))


class World:
    """An API server under virtual time. It is the `Clock` of everything in it."""

    def __init__(
        self,
        seed: int = 0,
        *,
        start: datetime = START,
        shuffle: bool = False,
        journal: bool = False,
        store: Store | None = None,
        plugins: Plugins | None = None,
        service_cidr: str = admission.CIDR,
    ) -> None:
        """``shuffle`` runs ready tasks in an order drawn from the seed. ``journal`` keeps a line for each write.
        ``plugins`` are those of admission: by default those that need no controller, while
        ``admission.default()`` is all a real server has. ``service_cidr`` is the range of cluster IPs, or one of each IP
        family with a comma between them.
        """
        self._begin(seed, _RandomStreams.of(seed), start, shuffle, journal)
        self.server = Server(self, store=store, names=self._chance.names)
        self.server.outgoing = BlockingWebhookClient()
        self._settle_in()
        self.server.extend(plugins or admission.standalone())
        self.server.extend(crd.install)
        if store is None:
            self._found(service_cidr)

    def _begin(
        self,
        seed: int,
        chance: _RandomStreams,
        start: datetime,
        shuffle: bool,
        journal: bool,
        elapsed: float = 0.0,
    ) -> None:
        self.seed = seed
        self.random = chance.own
        self.loop = VirtualLoop(start=elapsed, shuffle=chance.order if shuffle else None)
        self.loop.set_exception_handler(self._unhandled)
        self.journal: list[str] = []
        """One line for each write: when, which revision, what happened to what, and what it is now."""
        self._chance = chance
        self._shuffle = shuffle
        self._start = start
        self._at = (-1.0, start)
        self._changed = elapsed
        self._recent: deque[tuple[str, str, asyncio.Task[Any] | None]] = deque(maxlen=200)
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._keep = journal

    def fork(self, seed: int | None = None) -> World:
        """An independent copy of this world, with the same objects and time.

        Takes well under a millisecond, since objects are shared. Tasks, watches and timers are not copied: processes are
        spawned anew, as after a restart. The journal of the fork starts empty. Random streams continue, so two forks of one
        world behave the same; with a ``seed`` of their own they differ.
        """
        fork = World.__new__(World)
        chance = self._chance.copy() if seed is None else _RandomStreams.of(seed, self.server.store.revision)
        seed = self.seed if seed is None else seed
        fork._begin(seed, chance, self._start, self._shuffle, self._keep, self.loop.time())
        fork.server = self.server.fork(fork, chance.names)
        fork._settle_in()
        return fork

    def _settle_in(self) -> None:
        store = self.server.store
        store.commit_hooks.append(self._note)
        self.loop.beats.followed = lambda resource: store.table(resource).watchers.wants_every_event

    def _found(self, service_cidr: str) -> None:
        resource = self.server.registry.find("", "v1", "namespaces")
        for name in NAMESPACES:
            create_as_server(self.server, resource, "", Namespace(metadata=ObjectMeta(name=name)))
        create_bootstrap_objects(self.server, cidr=service_cidr)

    # -- clock --------------------------------------------------------------------------------

    def now(self) -> datetime:
        """Wall time, which moves with the event loop's time."""
        elapsed = self.loop.time()
        at, now = self._at
        if at != elapsed:
            now = self._start + timedelta(microseconds=round(elapsed * 1e6))
            self._at = elapsed, now
        return now

    def monotonic(self) -> float:
        """Seconds since the world began."""
        return self.loop.time()

    # -- clients and tasks --------------------------------------------------------------------

    def api(self, user: str = "system:admin") -> LocalApi:
        """A client of the world's server, with all permissions."""
        return LocalApi(self.server, User(user, groups=(MASTERS, AUTHENTICATED)))

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Start a task that continues whenever the world runs. If it fails, the run fails."""
        task = self.loop.create_task(coroutine, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def background(self) -> AbstractContextManager[None]:
        """Tasks spawned in here are background work: neither their timers nor their writes keep the world from settling."""
        return background()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.loop.fail(error)

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Unhandled errors fail the run."""
        error = context.get("exception")
        self.loop.fail(error if error is not None else RuntimeError(context["message"]))

    # -- running ------------------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, T], *, limit: float = PATIENCE) -> T:
        """Run a coroutine to its end, and all other tasks meanwhile.

        Raises `Deadlock` with where each task waits, if it cannot end, or does not end within ``limit`` seconds besides
        explicit `advance` calls.
        """
        self.loop.limit = self.loop.time() + limit
        result = self.loop.run_until_complete(coroutine)
        self.loop.check()
        return result

    async def advance(self, seconds: float) -> None:
        """Let time pass; everything due by then happens."""
        await self.loop.until(self.loop.time() + seconds)

    async def settle(self, horizon: float = 10.0, *, limit: float = 86_400.0) -> float:
        """Let time pass until nothing is written for ``horizon`` seconds; returns the seconds that passed.

        What polls without writing does not count, nor do heartbeats: leases, and what runs in
        `background`. Time stands still where no timer goes off within the horizon. Raises `NotSettled`
        where writing does not end within ``limit`` seconds.
        """
        loop = self.loop
        begin = loop.time()
        while True:
            await loop.idle()
            due = loop.due()
            if due is None or due > max(self._changed, begin) + horizon:
                return loop.time() - begin
            if due > begin + limit:
                raise NotSettled(f"still writing after {limit:g}s: {self._busiest()}")
            await loop.until(due)

    def _busiest(self) -> str:
        counted = Counter(self._recent).most_common(5)
        total = len(self._recent)
        return ", ".join(
            f"{resource} {key} by {task.get_name() if task is not None else 'no task'} ({count}x of the last {total})"
            for (resource, key, task), count in counted
        )

    def _note(self, commit: Commit) -> None:
        if commit.resource not in QUIET and not in_background():
            self._changed = self.loop.time()
            self._recent.append((commit.resource, commit.key, asyncio.current_task(self.loop)))
        if self._keep:
            body = msgspec.json.encode(commit.obj, enc_hook=encode_hook).decode()
            what = f"{commit.event.type.value} {commit.resource} {commit.key}"
            self.journal.append(f"{self.loop.time():.6f} {commit.revision} {what} {body}")

    # -- closing ------------------------------------------------------------------------------

    def close(self) -> None:
        """Cancel all tasks in the order they were started."""
        if self.loop.is_closed():
            return
        self.loop.limit = math.inf
        started = {task: i for i, task in enumerate(self._tasks)}
        others = sorted(self.loop.tasks() - started.keys(), key=by_name)
        tasks = [*started, *others]
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
