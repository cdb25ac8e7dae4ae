"""A whole cluster in a test: API server, controllers, scheduler and nodes, under virtual time, from one seed.

::

    with Cluster(seed=7) as cluster:
        cluster.apply(Path("web.yaml"))
        cluster.wait_until(lambda: cluster.get("Deployment", "web").status.readyReplicas == 3)
        cluster.node("node-1").fail()
        cluster.advance(days=30)

Reading and writing take no time: what is asked for is there when the call returns, and nothing else has
moved. Time passes in `wait_until`, `advance` and `settle` alone. In a coroutine that runs in the cluster those
are awaited, as ``cluster.aio.advance(...)``; all else is the same.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from steersman.api.scheme import Key
from steersman.client.api import Api
from steersman.controllers import CONTROLLERS
from steersman.intent.controller import Controller
from steersman.server.auth.users import AUTHENTICATED, MASTERS, User, service_account_username
from steersman.server.local import LocalApi
from steersman.server.server import Server
from steersman.sim.kubelet import KubeletSettings, Shape
from steersman.sim.world import START, World
from steersman.testing import credentials
from steersman.testing.history import Chronicle, Entry
from steersman.testing.node import Node
from steersman.testing.objects import Objects
from steersman.testing.process import Manager, acting, user_named
from steersman.testing.template import Plan, authorizer, plan, template
from steersman.testing.threaded import LiveWorld
from steersman.testing.waiting import Unmet, Wait

if TYPE_CHECKING:
    from steersman.server.auth.rbac import RBACAuthorizer
    from steersman.sim.faults.fault import Fault
    from steersman.sim.faults.injector import FaultInjector
    from steersman.testing.serving import Serving

__all__ = ["AioCluster", "Cluster", "Entry", "Manager", "Node", "Unmet"]

T = TypeVar("T")

YOU = User("you", groups=(MASTERS, AUTHENTICATED))
"""Who a test is to the server."""
PATIENCE = 3600.0
"""How long `Cluster.wait_until` waits, in seconds of the cluster."""
LIVE_PATIENCE = 60.0
"""The same where real time passes, in seconds of the wall."""
INSIDE = "in a coroutine time passes where it is awaited: await cluster.aio.advance(...)"
GLANCE = 0.05
"""Seconds of the wall after which a predicate is asked again, since it may be about things outside."""


class Cluster(Objects):
    """A control plane with nodes. Close it, or use it in a ``with``."""

    def __init__(
        self,
        seed: int = 0,
        *,
        nodes: int | Iterable[str] = 3,
        controllers: Iterable[Controller[Any] | str] = CONTROLLERS,
        faults: Sequence[Fault] = (),
        shuffle: bool = False,
        journal: bool = False,
        start: datetime = START,
        flags: Mapping[str, Any] | None = None,
        gates: Mapping[str, bool] | None = None,
        settings: KubeletSettings | None = None,
        shape: Shape = Shape(),
    ) -> None:
        """``nodes`` is how many there are, or their names; ``controllers`` those that run, or their names.
        ``faults`` stand between them and the server. ``shuffle`` runs what is ready in an order drawn from
        the seed. ``journal`` has ``world.journal`` keep a line for each write. ``flags`` and ``gates`` are
        those of kube-controller-manager. ``settings`` is how kubelets take their time, ``shape`` what nodes
        are like.
        """
        made = plan(
            nodes,
            controllers,
            flags=flags,
            gates=gates,
            shuffle=shuffle,
            journal=journal,
            start=start,
            settings=settings,
            shape=shape,
        )
        self._begin(made, template(made).fork(seed), tuple(faults), None)

    def _begin(self, made: Plan, world: World, faults: tuple[Fault, ...], before: Chronicle | None) -> None:
        self.plan = made
        self.aio = AioCluster(self)
        self._place: World | LiveWorld = world
        self._serving: Serving | None = None
        self._injector = self._inject(world, faults)
        self._authorizer = authorizer(world.server)
        self._chronicle = Chronicle(world.server, before)
        self._others: builtins.list[Manager] = []
        self._forks: builtins.list[Cluster] = []
        self._reads: dict[tuple[str, Key], Any] = {}
        self._api = LocalApi(world.server, YOU, manager="kubectl")
        self._manager = self._start(made.configured(world.server), "manager")
        made.people(world, world)
        # All that takes no time: caches are filled. That they are is nothing that happened to an object.
        world.run(world.loop.idle())
        self._chronicle.forget_idle_rounds()

    def _inject(self, world: World, faults: tuple[Fault, ...]) -> FaultInjector | None:
        if not faults:
            return None
        from steersman.sim.faults.injector import FaultInjector

        return FaultInjector(world, faults, _Managers(self))

    # -- who is there -------------------------------------------------------------------------

    @property
    def world(self) -> World:
        """The world under virtual time. There is none any more once the cluster is served."""
        if isinstance(self._place, World):
            return self._place
        raise RuntimeError("this cluster is served to clients outside, and so in real time: it has no world")

    @property
    def _server(self) -> Server:
        return self._place.server

    @property
    def seed(self) -> int:
        """What all chance comes from."""
        return self._place.seed

    @property
    def now(self) -> datetime:
        """The cluster's time."""
        return self._place.now()

    @property
    def client(self) -> Api:
        """The ten verbs, with all rights, for coroutines of one's own that run in the cluster."""
        return LocalApi(self._place.server, YOU)

    @property
    def manager(self) -> Manager:
        """The process that runs the controllers, alive or dead."""
        return self._manager

    def as_account(self, name: str, namespace: str = "default") -> Api:
        """The same with the rights of a ServiceAccount, and no others. Raises `NotFound`."""
        return self.as_user(self._account(f"{namespace}/{name}"))

    def as_user(self, name: str) -> Api:
        """The same with the rights that roles give to a user, and no others."""
        return acting(LocalApi(self._server, user_named(name, self._authorizer)), self._authorizer)

    def _account(self, said: str) -> str:
        namespace, _, name = said.rpartition("/")
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
        place, injector = self._place, self._injector
        return Manager(
            controllers,
            place,
            place if injector is None else injector.clock(place),
            self._chronicle,
            authorizer=authorizer,
            account=account,
            through=(lambda api: api) if injector is None else injector.api,
            files=credentials.read if self._serving is None else self._serving.read,
            name=name,
        )

    def crash_manager(self) -> None:
        """The manager dies at once: what it has not written yet, it never will."""
        self._manager.crash()
        if self._injector is not None:
            self._injector.manager_died()

    def start_manager(self) -> None:
        """A new manager, which has to read all it knows. The old one is gone, if there was one."""
        if self._manager.alive:
            raise RuntimeError("there is a manager already: crash_manager() first, or restart_manager()")
        self._manager = self._start(self.plan.configured(self._place.server), "manager")

    def restart_manager(self) -> None:
        """The manager dies, and the next one takes over."""
        self.crash_manager()
        self.start_manager()

    def run_controller(self, *controllers: Controller[Any], account: str = "") -> Manager:
        """Run controllers of one's own, in a process that can `Manager.crash` without the others.

        They have all rights, or those of a ServiceAccount, as in ``account="shop/operator"``.
        """
        return self._run_own(controllers, self._account(account) if account else "")

    def _run_own(self, controllers: Sequence[Controller[Any]], account: str) -> Manager:
        name = ", ".join(each.name for each in controllers)
        started = self._launch(controllers, name, self._authorizer if account else None, account)
        self._others.append(started)
        return started

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Start something that goes on whenever time passes. If it fails, so does the test."""
        return self._place.spawn(coroutine, name=name)

    def node(self, name: str) -> Node:
        """One of the nodes, to play fate with."""
        return Node(self, name)

    def fork(self, seed: int | None = None) -> Cluster:
        """Another cluster that begins where this one is; neither sees the other again.

        All processes start anew there, as after a restart. What was spawned is not there.
        """
        fork = Cluster.__new__(Cluster)
        faults = () if self._injector is None else tuple(self._injector.faults)
        fork._begin(self.plan, self.world.fork(seed), faults, self._chronicle)
        if not self._manager.alive:
            fork.crash_manager()
        for other in self._others:
            if other.alive:
                fork._run_own(other.controllers, other.account)
        self._forks.append(fork)
        return fork

    # -- for clients outside ------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where clients reach the API server over HTTPS. See `serve`."""
        return self.serve()

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig of an administrator, for clients in other processes. See `serve`."""
        self.serve()
        assert self._serving is not None
        return self._serving.kubeconfig

    def serve(self, speed: float = 1.0) -> str:
        """Listen on loopback, and answer with the URL. From now on real time passes, or ``speed`` times that.

        Time moves on to the wall's, and all processes start anew; what was spawned is gone. `advance` and
        `wait_until` go on to work. Clients outside live in their own time.
        """
        if self._is_inside:
            raise RuntimeError("a cluster is served from outside: ask for its URL in a plain test function")
        if self._serving is None:
            from steersman.testing.serving import Serving

            self._serving = serving = Serving(self.world, speed, self.plan)
            self.world.close()
            place = self._place = serving.place
            self._injector = None
            self._authorizer = serving.authorizer
            self._chronicle = serving.call(lambda: Chronicle(place.server, self._chronicle))
            self._api = LocalApi(place.server, YOU, manager="kubectl")
            if self._manager.alive:
                self._manager = self._start(self.plan.configured(place.server), "manager")
            others, self._others = self._others, []
            for other in others:
                if other.alive:
                    self._run_own(other.controllers, other.account)
            self.plan.people(place, place)
        return self._serving.url

    # -- letting time pass --------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the cluster to its end; time passes as it needs to."""
        if self._is_inside:
            coroutine.close()
            raise RuntimeError(INSIDE)
        return self._place.run(coroutine)

    @property
    def _is_inside(self) -> bool:
        """Whether this is asked by a coroutine that runs in the cluster."""
        return isinstance(self._place, World) and self._place.loop.is_running()

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass, and everything happen that is due by then."""
        self.run(self.aio.advance(days=days, hours=hours, minutes=minutes, seconds=seconds))

    def settle(self, horizon: float = 10.0, *, limit: float = 86_400.0) -> float:
        """Let time pass until nothing was written for ``horizon`` seconds; answers how much passed."""
        return self.run(self.aio.settle(horizon, limit=limit))

    def wait_until(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Let time pass until the predicate is true; answers what it said.

        It is asked after every write, before anybody else has seen it. What it raises counts as "not yet".
        Raises `Unmet`, with what it saw last and who waits for what, once ``timeout`` seconds have passed:
        by default an hour, or a minute of the wall where real time passes.
        """
        __tracebackhide__ = True
        wait = self._wait(predicate, timeout)
        while True:
            over, asked = wait.over, wait.ask()
            if asked.met:
                return asked.said  # type: ignore[no-any-return]
            if over:
                raise wait.in_vain(asked)
            if self._is_inside:
                raise RuntimeError(INSIDE)
            if isinstance(self._place, World):
                wait.step(self._place.loop)
            else:
                self._place.run(wait.pulse(asked, self._due()))
            if wait.over:
                self.run(self._idle())

    def _wait(self, predicate: Callable[[], object], timeout: float | None) -> Wait:
        place = self._place
        if timeout is None:
            timeout = PATIENCE if isinstance(place, World) else LIVE_PATIENCE * place.speed
        return Wait(predicate, place.loop, self._chronicle, timeout, self._reads)

    def _due(self) -> float | None:
        """When a predicate is asked again, even if nothing is written."""
        place = self._place
        if isinstance(place, World):
            return place.loop.due()
        return place.loop.time() + GLANCE * place.speed

    async def _idle(self) -> None:
        if isinstance(self._place, World):
            await self._place.loop.idle()

    def _ask(self, request: Coroutine[Any, Any, T]) -> T:
        """What a request is answered with, at once: it waits for nothing but its turn."""
        if self._serving is not None:
            return self._place.run(request)
        try:
            while request.send(None) is None:
                pass
        except StopIteration as done:
            answer: T = done.value
            return answer
        raise RuntimeError("a request to the server in this process waits for something")

    # -- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """End everything, here and in all forks."""
        for fork in self._forks:
            fork.close()
        if self._serving is not None:
            self._serving.close()
        self._place.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class AioCluster:
    """What takes time, for coroutines that run in the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Like `Cluster.advance`."""
        await self._cluster._place.advance(((days * 24 + hours) * 60 + minutes) * 60 + seconds)

    async def settle(self, horizon: float = 10.0, *, limit: float = 86_400.0) -> float:
        """Like `Cluster.settle`."""
        return await self._cluster._place.settle(horizon, limit=limit)

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
            over, asked = wait.over, await wait.ask().awaited()
            if asked.met:
                return asked.said  # type: ignore[no-any-return]
            if over:
                raise wait.in_vain(asked)
            if calm:
                await wait.pulse(asked, cluster._due())
                calm = False
            if wait.over or not wait.has_news(asked):
                # What is ready comes first: it may set timers, and time is to pass to the next of them.
                await cluster._idle()
                calm = not wait.has_news(asked)


class _Managers:
    """What faults do to the managers of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def crash(self, down: float) -> None:
        """The manager dies, and the next one starts after so many seconds."""
        cluster = self._cluster
        cluster._manager.crash()
        cluster.world.loop.call_later(down, self._next)

    def _next(self) -> None:
        if not self._cluster._manager.alive:
            self._cluster.start_manager()

    def start_second(self, seconds: float) -> None:
        """A second manager works beside the first for so many seconds."""
        cluster = self._cluster
        second = cluster._start(cluster.plan.configured(cluster.world.server), "second manager")
        cluster.world.loop.call_later(seconds, second.crash)
