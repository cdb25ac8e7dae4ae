"""A cluster in a test: API server, controllers, scheduler and nodes, under virtual time, from one seed.

::

    with Cluster(seed=7) as cluster:
        cluster.apply(Path("web.yaml"))
        cluster.wait_until(lambda: cluster.get("Deployment", "web").status.readyReplicas == 3)
        cluster.node("node-1").fail()
        cluster.advance(days=30)

Reads and writes take no time: they are done when the call returns, and nothing else has happened meanwhile. Time passes only
in `wait_until`, `advance` and `settle`. A coroutine that runs in the cluster awaits them, as ``cluster.aio.advance(...)``;
everything else is the same.
"""

from __future__ import annotations

import asyncio
import builtins
import math
import warnings
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from steersman.api.scheme import Key
from steersman.api.suggestions import hint
from steersman.intent.controller import Controller
from steersman.runtime.python_gc import without_collector
from steersman.runtime.trace import Round
from steersman.server.auth.users import AUTHENTICATED, MASTERS, User, service_account_username
from steersman.server.calls import WebhookAddresses
from steersman.server.local import LocalApi
from steersman.server.server import Server
from steersman.sim.world import World
from steersman.testing.client import Client
from steersman.testing.history import Entry, History, WriteListener
from steersman.testing.node import Node
from steersman.testing.objects import Objects
from steersman.testing.options import ClusterOptions, faults, latency, plan
from steersman.testing.process import Manager, acting, user_named
from steersman.testing.template import Plan, authorizer, loaded_world, template
from steersman.testing.threaded import RealTimeWorld
from steersman.testing.waiting import Wait, WaitTimeout

if TYPE_CHECKING:
    from steersman.server.auth.rbac import RBACAuthorizer
    from steersman.sim.faults.fault import Fault
    from steersman.sim.faults.injector import FaultInjector
    from steersman.testing.serving import Serving

__all__ = [
    "AioCluster",
    "Client",
    "Cluster",
    "ClusterOptions",
    "Entry",
    "Manager",
    "Node",
    "UnusedFault",
    "WaitTimeout",
]

T = TypeVar("T")

YOU = User("you", groups=(MASTERS, AUTHENTICATED))
"""The user of a test."""
TIMEOUT = 3600.0
"""Default timeout of `Cluster.wait_until`, in seconds of cluster time."""
SERVED_TIMEOUT = 60.0
"""The same for a served cluster, in seconds of real time."""
INSIDE = "in a coroutine, await the call that lets time pass: await cluster.aio.advance(...)"
POLL_INTERVAL = 0.05
"""Seconds of real time after which a predicate is evaluated again, since it may depend on other processes."""


class UnusedFault(UserWarning):
    """A fault of a cluster never struck, so the test does not test it."""

    @classmethod
    def of(cls, faults: Sequence[Fault]) -> UnusedFault:
        """The warning about some faults."""
        return cls(f"never struck: {' + '.join(map(str, faults))}")


class Cluster(Objects):
    """A control plane with nodes. Close it, or use it in a ``with``."""

    def __init__(self, seed: int = 0, **options: Unpack[ClusterOptions]) -> None:
        """``seed`` is the origin of all random choices; `ClusterOptions` says what the cluster is made of. Raises
        `TypeError`, `ValueError` or `LookupError` for options that cannot work.
        """
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise TypeError(f"a seed is a whole number, not {seed!r}")
        made, asked = plan(options), faults(options)
        world = (
            template(made).fork(seed) if made.snapshot is None else loaded_world(made, made.snapshot, seed)
        )
        world.server.webhook_addresses = WebhookAddresses(options.get("webhooks"))
        self._begin(made, world, asked, latency(options), None)

    @classmethod
    def load(cls, path: str | Path, seed: int = 0, **options: Unpack[ClusterOptions]) -> Cluster:
        """A cluster with the objects of a file of ``steersman snapshot save``.

        The nodes, and the pods that run on them, stay as they are until something changes them. Raises `ValueError` where the
        file cannot be read.
        """
        options["snapshot"] = path
        return cls(seed, **options)

    @classmethod
    def of(cls, made: Plan, world: World) -> Cluster:
        """A cluster of some parts in a world that has them already."""
        cluster = cls.__new__(cls)
        cluster._begin(made, world, (), (), None)
        return cluster

    def follow(self, write: WriteListener, round_: Callable[[int, Round], None]) -> None:
        """Call functions with each write and its actor, except heartbeats, and with each numbered round."""
        self._history.listeners.append(write)
        self._history.trace.listeners.append(round_)

    def _begin(
        self,
        made: Plan,
        world: World,
        asked: tuple[Fault, ...],
        latency: tuple[Fault, ...],
        before: History | None,
    ) -> None:
        self.plan = made
        self._faults = asked
        self._latency = latency
        self._unused = asked
        self.aio = AioCluster(self)
        self._runtime: World | RealTimeWorld = world
        self._serving: Serving | None = None
        self._injector = self._inject(world, (*latency, *asked))
        self._authorizer = authorizer(world.server)
        self._history = History(world.server, before)
        self._others: builtins.list[Manager] = []
        self._forks: builtins.list[Cluster] = []
        self._reads: dict[tuple[str, Key], Any] = {}
        self._api = LocalApi(world.server, YOU, manager="kubectl")
        with without_collector():
            self._manager = self._start(made.configured(world.server), "manager")
            self.kubelets = made.start_nodes(world, world)
            # Let the caches sync. Their rounds say nothing about objects of the test.
            world.run(world.loop.idle())
        self._history.forget_start()

    def _inject(self, world: World, faults: tuple[Fault, ...]) -> FaultInjector | None:
        if not faults:
            return None
        from steersman.sim.faults.injector import FaultInjector

        return FaultInjector(world, faults, _Managers(self))

    @property
    def unused_faults(self) -> tuple[Fault, ...]:
        """The faults that have had no effect so far: the request, event or write they wait for never came."""
        if self._injector is not None:
            idle = self._injector.never_struck()
            self._unused = tuple(fault for fault in self._faults if fault in idle)
        return self._unused

    # -- clients and processes ----------------------------------------------------------------

    @property
    def world(self) -> World:
        """The world under virtual time. A served cluster has none."""
        if isinstance(self._runtime, World):
            return self._runtime
        raise RuntimeError("a served cluster runs in real time and has no world")

    @property
    def _server(self) -> Server:
        return self._runtime.server

    @property
    def seed(self) -> int:
        """The seed of all random choices."""
        return self._runtime.seed

    @property
    def now(self) -> datetime:
        """The cluster's time."""
        return self._runtime.now()

    @property
    def client(self) -> Client:
        """A client with all permissions, for coroutines that run in the cluster."""
        return Client(LocalApi(self._runtime.server, YOU), self.kind)

    @property
    def manager(self) -> Manager:
        """The process that runs the controllers, alive or crashed."""
        return self._manager

    def as_account(self, name: str, namespace: str = "default") -> Client:
        """A client with the permissions of a ServiceAccount. Raises `NotFound`."""
        return self.as_user(self._account(f"{namespace}/{name}"))

    def as_user(self, name: str) -> Client:
        """A client with the permissions of a user, by its roles."""
        api = acting(LocalApi(self._server, user_named(name, self._authorizer)), self._authorizer)
        return Client(api, self.kind)

    def _account(self, value: str) -> str:
        namespace, _, name = value.rpartition("/")
        found = self.get("ServiceAccount", name, namespace or "default").metadata
        return service_account_username(found.namespace, found.name)

    def _start(self, controllers: Sequence[Controller[Any]], name: str) -> Manager:
        return self._launch(controllers, name, self._authorizer)

    def _launch(
        self,
        controllers: Sequence[Controller[Any]],
        name: str,
        authorizer: RBACAuthorizer | None,
        account: str = "",
    ) -> Manager:
        runtime, injector = self._runtime, self._injector
        return Manager(
            controllers,
            runtime,
            runtime if injector is None else injector.clock(runtime),
            self._history,
            authorizer=authorizer,
            account=account,
            through=(lambda api: api) if injector is None else injector.api,
            files=self.plan.files if self._serving is None else self._serving.read,
            name=name,
            cloud=self.plan.cloud,
        )

    def crash_manager(self) -> None:
        """Kill the manager at once, without cleanup."""
        self._manager.crash()
        if self._injector is not None:
            self._injector.manager_died()

    def start_manager(self) -> None:
        """Start a new manager with empty caches."""
        if self._manager.alive:
            raise RuntimeError("the manager is running: crash_manager() first, or restart_manager()")
        self._manager = self._start(self.plan.configured(self._runtime.server), "manager")

    def restart_manager(self) -> None:
        """Kill the manager and start a new one."""
        self.crash_manager()
        self.start_manager()

    def run_controller(self, *controllers: Controller[Any], account: str = "") -> Manager:
        """Run your own controllers, in a process that can `Manager.crash` by itself.

        They have all permissions, or those of a ServiceAccount: ``account="shop/operator"``.
        """
        return self._run_own(controllers, self._account(account) if account else "")

    def _run_own(self, controllers: Sequence[Controller[Any]], account: str) -> Manager:
        name = ", ".join(each.name for each in controllers)
        started = self._launch(controllers, name, self._authorizer if account else None, account)
        self._others.append(started)
        return started

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Start a coroutine that runs whenever time passes. If it fails, the test fails."""
        return self._runtime.spawn(coroutine, name=name)

    def node(self, name: str) -> Node:
        """A node, to fail, recover, reboot, cordon or drain. Raises `LookupError`."""
        names = [node.metadata.name for node in self.list("Node")]
        if name not in names:
            raise LookupError(f"the cluster has no node {name!r}; {hint(name, names)}")
        return Node(self, name)

    def fork(self, seed: int | None = None) -> Cluster:
        """An independent copy of this cluster in its current state.

        All processes start anew in it, as after a restart. Spawned coroutines are not copied.
        """
        fork = Cluster.__new__(Cluster)
        fork._begin(self.plan, self.world.fork(seed), self._faults, self._latency, self._history)
        if not self._manager.alive:
            fork.crash_manager()
        for other in self._others:
            if other.alive:
                fork._run_own(other.controllers, other.account)
        self._forks.append(fork)
        return fork

    # -- serving ------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The URL of the API server over HTTPS. See `serve`."""
        return self.serve()

    @property
    def kubeconfig(self) -> Path:
        """An administrator's kubeconfig, for clients in other processes. See `serve`."""
        self.serve()
        assert self._serving is not None
        return self._serving.kubeconfig

    def serve(self, speed: float = 1.0) -> str:
        """Listen on loopback, and return the URL. From now on time is real, or ``speed`` times as fast.

        Cluster time moves forward to real time, and all processes start anew; spawned coroutines are gone. `advance` and
        `wait_until` still work. Other processes keep their own time.
        """
        if not 0 < speed < math.inf:
            raise ValueError(f"speed must be above 0, not {speed!r}")
        if self._is_inside:
            raise RuntimeError("a cluster cannot be served from a coroutine in it: use a plain test function")
        if self._serving is None:
            from steersman.testing.serving import Serving

            self._serving = serving = Serving(self.world, speed, self.plan)
            self.world.close()
            runtime = self._runtime = serving.runtime
            self._unused, self._injector = self.unused_faults, None
            self._authorizer = serving.authorizer
            self._history = serving.call(lambda: History(runtime.server, self._history))
            self._api = LocalApi(runtime.server, YOU, manager="kubectl")
            if self._manager.alive:
                self._manager = self._start(self.plan.configured(runtime.server), "manager")
            others, self._others = self._others, []
            for other in others:
                if other.alive:
                    self._run_own(other.controllers, other.account)
            self.kubelets = self.plan.start_nodes(runtime, runtime)
        return self._serving.url

    # -- time ---------------------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the cluster to its end; time passes as it needs."""
        if self._is_inside:
            coroutine.close()
            raise RuntimeError(INSIDE)
        return self._runtime.run(coroutine)

    @property
    def _is_inside(self) -> bool:
        """Whether the caller is a coroutine that runs in the cluster."""
        return isinstance(self._runtime, World) and self._runtime.loop.is_running()

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass; everything due by then happens."""
        self.run(self.aio.advance(days=days, hours=hours, minutes=minutes, seconds=seconds))

    def settle(self, horizon: float = 10.0, *, limit: float = 86_400.0) -> float:
        """Let time pass until nothing is written for ``horizon`` seconds; returns the seconds that passed."""
        return self.run(self.aio.settle(horizon, limit=limit))

    def wait_until(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Let time pass until the predicate is true; returns its result.

        It is evaluated after every write, before any controller has seen the write. An exception counts as "not yet".
        Raises `WaitTimeout` with a report after ``timeout`` seconds: by default an hour, or a minute of real time where the cluster
        is served.
        """
        __tracebackhide__ = True
        wait = self._wait(predicate, timeout)
        while True:
            over, evaluation = wait.over, wait.evaluate()
            if evaluation.met:
                return evaluation.value  # type: ignore[no-any-return]
            if over:
                raise wait.timeout_error(evaluation)
            if self._is_inside:
                raise RuntimeError(INSIDE)
            if isinstance(self._runtime, World):
                wait.step(self._runtime.loop)
            else:
                self._runtime.run(wait.wait_for_write(evaluation, self._due()))
            if wait.over:
                self.run(self._idle())

    def _wait(self, predicate: Callable[[], object], timeout: float | None) -> Wait:
        runtime = self._runtime
        if not callable(predicate):
            raise TypeError(
                f"wait_until needs a function that it can call again, such as a lambda, not {predicate!r}"
            )
        if timeout is not None:
            _check_seconds("timeout", timeout)
        else:
            timeout = TIMEOUT if isinstance(runtime, World) else SERVED_TIMEOUT * runtime.speed
        return Wait(predicate, runtime.loop, self._history, timeout, self._reads)

    def _due(self) -> float | None:
        """When the predicate is evaluated again, even without a write."""
        runtime = self._runtime
        if isinstance(runtime, World):
            return runtime.loop.due()
        return runtime.loop.time() + POLL_INTERVAL * runtime.speed

    async def _idle(self) -> None:
        if isinstance(self._runtime, World):
            await self._runtime.loop.idle()

    def _ask(self, request: Coroutine[Any, Any, T]) -> T:
        """Run a request that does not wait for anything, at once."""
        if self._serving is not None:
            return self._runtime.run(request)
        try:
            while request.send(None) is None:
                pass
        except StopIteration as done:
            answer: T = done.value
            return answer
        raise RuntimeError("a request to the in-process server had to wait")

    # -- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop everything, here and in all forks."""
        for fork in self._forks:
            fork.close()
        if self._serving is not None:
            self._serving.close()
        self._runtime.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, failed: type[BaseException] | None, *exception: object) -> None:
        unused = () if failed is not None else self.unused_faults
        self.close()
        if unused:
            warnings.warn(UnusedFault.of(unused), stacklevel=2)


def _check_seconds(name: str, value: float) -> None:
    """Refuses a time that is no number, negative or without end: time does not go back."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be 0 or more, not {value!r}: time only goes forward")


class AioCluster:
    """The methods that let time pass, for coroutines that run in the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Like `Cluster.advance`."""
        for name, value in (("days", days), ("hours", hours), ("minutes", minutes), ("seconds", seconds)):
            _check_seconds(name, value)
        await self._cluster._runtime.advance(((days * 24 + hours) * 60 + minutes) * 60 + seconds)

    async def settle(self, horizon: float = 10.0, *, limit: float = 86_400.0) -> float:
        """Like `Cluster.settle`."""
        _check_seconds("horizon", horizon)
        _check_seconds("limit", limit)
        return await self._cluster._runtime.settle(horizon, limit=limit)

    @overload
    async def wait_until(
        self, predicate: Callable[[], Coroutine[Any, Any, T]], timeout: float | None = None
    ) -> T: ...

    @overload
    async def wait_until(self, predicate: Callable[[], T], timeout: float | None = None) -> T: ...

    async def wait_until(
        self, predicate: Callable[[], Coroutine[Any, Any, T]] | Callable[[], T], timeout: float | None = None
    ) -> T:
        """Like `Cluster.wait_until`; the predicate may be a coroutine function."""
        __tracebackhide__ = True
        cluster, calm = self._cluster, False
        wait = cluster._wait(predicate, timeout)
        while True:
            over, evaluation = wait.over, await wait.evaluate().awaited()
            if evaluation.met:
                return evaluation.value  # type: ignore[no-any-return]
            if over:
                raise wait.timeout_error(evaluation)
            if calm:
                await wait.wait_for_write(evaluation, cluster._due())
                calm = False
            if wait.over or not wait.has_new_writes(evaluation):
                # Ready callbacks run first: they may set timers that come before the next one.
                await cluster._idle()
                calm = not wait.has_new_writes(evaluation)


class _Managers:
    """The managers of a cluster, for faults."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def crash(self, down: float) -> None:
        """Kill the manager, and start another after ``down`` seconds."""
        cluster = self._cluster
        cluster._manager.crash()
        cluster.world.loop.call_later(down, self._next)

    def _next(self) -> None:
        if not self._cluster._manager.alive:
            self._cluster.start_manager()

    def start_second(self, seconds: float) -> None:
        """Run a second manager beside the first for ``seconds``."""
        cluster = self._cluster
        second = cluster._start(cluster.plan.configured(cluster.world.server), "second manager")
        cluster.world.loop.call_later(seconds, second.crash)
