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
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar, overload

from steersman.api.errors import NotFound, TooManyRequests
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.controllers import CONTROLLERS
from steersman.intent.controller import Controller
from steersman.server import admission
from steersman.server.apply.options import APPLY_YAML
from steersman.server.local import LocalApi
from steersman.sim.kubelet import Kubelets, Settings, Shape
from steersman.sim.scheduler import Scheduler
from steersman.sim.world import START, World
from steersman.testing import nouns
from steersman.testing.chronicle import Chronicle, Entry
from steersman.testing.process import Fault, Manager
from steersman.testing.wording import unmet

T = TypeVar("T")

YOU = "you"
"""Who a test is to the server."""
PATIENCE = 3600.0
"""How long `Cluster.wait_until` waits, in seconds."""
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
NEEDED_BY = {
    "ServiceAccount": "serviceaccount-controller",
    "TaintNodesByCondition": "node-lifecycle-controller",
}
"""Admission plugins that need a controller beside them."""
UNWATCHED = 0.0
WATCHED = 40.0
"""Seconds between heartbeats, when somebody looks at them: as many as change nothing."""


class Unmet(AssertionError):
    """What was waited for did not come about."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a cluster is made of."""

    nodes: tuple[str, ...]
    controllers: tuple[Controller[Any], ...]
    shuffle: bool
    journal: bool
    start: datetime
    settings: Settings
    shape: Shape

    @property
    def key(self) -> tuple[object, ...]:
        """Clusters with the same key begin the same way. Controllers are told apart by identity."""
        ids = tuple(id(each) for each in self.controllers)
        return self.nodes, ids, self.shuffle, self.journal, self.start, self.settings, repr(self.shape)

    @property
    def plugins(self) -> admission.Plugins:
        there = {controller.name for controller in self.controllers}
        return admission.default().without(*(name for name, by in NEEDED_BY.items() if by not in there))


class Cluster:
    """A control plane with nodes. Close it, or use it in a ``with``."""

    def __init__(
        self,
        seed: int = 0,
        *,
        nodes: int | Sequence[str] = 3,
        controllers: Iterable[Controller[Any]] = CONTROLLERS,
        faults: Iterable[Fault] = (),
        shuffle: bool = False,
        journal: bool = False,
        start: datetime = START,
        settings: Settings | None = None,
        shape: Shape = Shape(),
    ) -> None:
        """``nodes`` is how many there are, or their names. ``faults`` stand between the controllers and the
        server. ``shuffle`` runs what is ready in an order drawn from the seed. ``journal`` has
        ``world.journal`` keep a line for each write. ``settings`` is how kubelets take their time, ``shape``
        what nodes are like.
        """
        names = tuple(f"node-{n}" for n in range(1, nodes + 1)) if isinstance(nodes, int) else tuple(nodes)
        chosen = tuple(controllers)
        if settings is None:
            watched = any(each.name == "node-lifecycle-controller" for each in chosen)
            settings = Settings(start_delay=1.0, lease_interval=WATCHED if watched else UNWATCHED)
        plan = Plan(names, chosen, shuffle, journal, start, settings, shape)
        self._begin(plan, _template(plan).fork(seed), tuple(faults), None)

    def _begin(self, plan: Plan, world: World, faults: tuple[Fault, ...], before: Chronicle | None) -> None:
        self.world = world
        self.plan = plan
        self.aio = AioCluster(self)
        self._faults = faults
        self._chronicle = Chronicle(world.server, before)
        self._others: builtins.list[Manager] = []
        self._forks: builtins.list[Cluster] = []
        self._reads: dict[tuple[str, Key], Any] = {}
        self._api = LocalApi(world.server, YOU, manager="kubectl")
        self._manager = self._start(plan.controllers, "manager")
        _people(world, plan)
        world.run(_instant(world))

    # -- who is there -------------------------------------------------------------------------

    @property
    def seed(self) -> int:
        """What all chance comes from."""
        return self.world.seed

    @property
    def now(self) -> datetime:
        """The cluster's time."""
        return self.world.now()

    @property
    def client(self) -> Api:
        """The ten verbs, for coroutines of one's own in the same time."""
        return LocalApi(self.world.server, YOU)

    @property
    def manager(self) -> Manager:
        """The process that runs the controllers, alive or dead."""
        return self._manager

    def _start(self, controllers: Sequence[Controller[Any]], name: str) -> Manager:
        return Manager(controllers, self.world, self.world, self._chronicle, faults=self._faults, name=name)

    def crash_manager(self) -> None:
        """The manager dies at once: what it has not written yet, it never will."""
        self._manager.crash()

    def start_manager(self) -> None:
        """A new manager, which has to read all it knows. The old one is gone, if there was one."""
        if self._manager.alive:
            raise RuntimeError("there is a manager already: crash_manager() first, or restart_manager()")
        self._manager = self._start(self.plan.controllers, "manager")

    def restart_manager(self) -> None:
        """The manager dies, and the next one takes over."""
        self.crash_manager()
        self.start_manager()

    def run_controller(self, *controllers: Controller[Any]) -> Manager:
        """Run controllers of one's own, in a process that can `Manager.crash` without the others."""
        started = self._start(controllers, ", ".join(each.name for each in controllers))
        self._others.append(started)
        return started

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Start something that goes on whenever time passes. If it fails, so does the test."""
        return self.world.spawn(coroutine, name=name)

    def node(self, name: str) -> Node:
        """One of the nodes, to play fate with."""
        return Node(self, name)

    def fork(self, seed: int | None = None) -> Cluster:
        """Another cluster that begins where this one is; neither sees the other again.

        All processes start anew there, as after a restart. What was spawned is not there.
        """
        fork = Cluster.__new__(Cluster)
        fork._begin(self.plan, self.world.fork(seed), self._faults, self._chronicle)
        if not self._manager.alive:
            fork.crash_manager()
        for other in self._others:
            if other.alive:
                fork.run_controller(*other.controllers)
        self._forks.append(fork)
        return fork

    # -- reading ------------------------------------------------------------------------------

    @overload
    def get(self, kind: Kind[T] | type[T], name: str, namespace: str = "default") -> T: ...
    @overload
    def get(self, kind: str, name: str, namespace: str = "default") -> Any: ...
    def get(self, kind: object, name: str, namespace: str = "default") -> Any:
        """One object: ``get("deploy", "web")``. Raises `NotFound`."""
        found = self._kind(kind)
        obj = _now(self._api.get(found, namespace, name))
        self._reads[found.resource, _key(obj)] = obj
        return obj

    @overload
    def list(
        self, kind: Kind[T] | type[T], namespace: str | None = None, selector: str = ""
    ) -> builtins.list[T]: ...
    @overload
    def list(self, kind: str, namespace: str | None = None, selector: str = "") -> builtins.list[Any]: ...
    def list(self, kind: object, namespace: str | None = None, selector: str = "") -> builtins.list[Any]:
        """Objects of a namespace, or of all: ``list("pods", selector="app=web")``."""
        found = self._kind(kind)
        items = _now(self._api.list(found, namespace or "", label_selector=selector)).items
        self._reads.update({(found.resource, _key(obj)): obj for obj in items})
        return items

    def history(self, of: object = None, name: str = "", namespace: str = "default") -> builtins.list[Entry]:
        """What happened to an object, or to ``history("Deployment", "web")``, or to all: when, by whom, why."""
        if of is None:
            return self._chronicle.entries()
        kind, key = self._about(of, name, namespace)
        return self._chronicle.entries(kind.resource, key)

    def events(self, of: object = None, name: str = "", namespace: str = "default") -> builtins.list[Any]:
        """The events about an object, or of the whole cluster, oldest first. They last an hour."""
        found: builtins.list[Any] = _now(self._api.list(self._kind("events"), "")).items
        found.sort(key=lambda event: int(event.metadata.resourceVersion))
        if of is None:
            return found
        kind, key = self._about(of, name, namespace)
        names = kind.name, key.namespace, key.name
        return [
            event
            for event in found
            if (event.involvedObject.kind, event.involvedObject.namespace, event.involvedObject.name) == names
        ]

    def _kind(self, said: object) -> Kind[Any]:
        return nouns.kind(self.world.server, said)

    def _about(self, of: object, name: str, namespace: str) -> tuple[Kind[Any], Key]:
        if name:
            kind = self._kind(of)
            return kind, Key(namespace if kind.namespaced else "", name)
        kind = nouns.kind_of_object(self.world.server, of)
        return kind, _key(of)

    # -- writing ------------------------------------------------------------------------------

    def apply(
        self, what: object, namespace: str = "default", *, server_side: bool = True, manager: str = "kubectl"
    ) -> Any:
        """Apply manifests: YAML or JSON text, a file, a folder, a document, a typed object, or many of them.

        Answers with the object, or a list where there are several. ``server_side=False`` creates what is
        not there and replaces what is.
        """
        return self._each(what, lambda document: self._apply(document, namespace, server_side, manager))

    def create(self, what: object, namespace: str = "default") -> Any:
        """Create objects, in any form `apply` takes. Raises `AlreadyExists`."""
        return self._each(what, lambda document: self._create(document, namespace))

    def patch(
        self,
        kind: object,
        name: str,
        body: object,
        namespace: str = "default",
        *,
        subresource: str = "",
    ) -> Any:
        """Change an object as kubectl would: a strategic merge for built-in kinds, a JSON merge for custom
        ones, a JSON patch where the body is a list."""
        found = self._kind(kind)
        content = JSON if isinstance(body, list | tuple) else MERGE if found.type is dict else STRATEGIC
        change = self._api.patch(found, namespace, name, body, content_type=content, subresource=subresource)
        return _now(change)

    def scale(self, kind: object, name: str, replicas: int, namespace: str = "default") -> None:
        """Set how many replicas there shall be."""
        self.patch(kind, name, {"spec": {"replicas": replicas}}, namespace, subresource="scale")

    def delete(
        self,
        of: object,
        name: str = "",
        namespace: str = "default",
        *,
        propagation: str | None = None,
        grace: int | None = None,
    ) -> None:
        """Delete an object, or ``delete("Deployment", "web")``."""
        kind, key = self._about(of, name, namespace)
        _now(self._api.delete(kind, key.namespace, key.name, propagation=propagation, grace=grace))

    def _each(self, what: object, do: Callable[[nouns.Document], Any]) -> Any:
        made = [do(document) for document in nouns.documents(self.world.server, what)]
        return made[0] if len(made) == 1 else made

    def _apply(self, document: nouns.Document, namespace: str, server_side: bool, manager: str) -> Any:
        kind = nouns.kind_of_object(self.world.server, document)
        where, name = nouns.address(kind, document, namespace)
        if not name:
            return self._create(document, namespace)
        if server_side:
            change = self._api.patch(
                kind, where, name, document, content_type=APPLY_YAML, field_manager=manager, force=True
            )
            return _now(change)
        try:
            return _now(self._api.update(kind, where, name, document))
        except NotFound:
            return self._create(document, namespace)

    def _create(self, document: nouns.Document, namespace: str) -> Any:
        kind = nouns.kind_of_object(self.world.server, document)
        where, _ = nouns.address(kind, document, namespace)
        return _now(self._api.create(kind, where, document))

    # -- letting time pass --------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the cluster to its end; time passes as it needs to."""
        return self.world.run(coroutine)

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass, and everything happen that is due by then."""
        self.run(self.aio.advance(days=days, hours=hours, minutes=minutes, seconds=seconds))

    def settle(self, horizon: float = 10.0, *, limit: float = 86_400.0) -> float:
        """Let time pass until nothing was written for ``horizon`` seconds; answers how much passed."""
        return self.run(self.world.settle(horizon, limit=limit))

    def wait_until(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Let time pass until the predicate is true; answers what it said.

        It is asked after every write. What it raises counts as "not yet". Raises `Unmet`, with what it saw
        last and who waits for what, once ``timeout`` seconds (an hour) have passed.
        """
        patience = PATIENCE if timeout is None else timeout
        deadline = self.world.monotonic() + patience
        while True:
            asked = self._ask(predicate)
            if asked.met:
                return asked.said  # type: ignore[return-value]
            if self.world.monotonic() >= deadline:
                raise self._unmet(predicate, asked, patience) from asked.error
            self.run(self._pulse(deadline, asked.writes))

    def _ask(self, predicate: Callable[[], object]) -> _Asked:
        self._reads.clear()
        writes = self._chronicle.writes
        try:
            said = predicate()
        except Exception as error:
            return _Asked(None, writes, error)
        return _Asked(said, writes)

    def _unmet(self, predicate: Callable[[], object], asked: _Asked, patience: float) -> Unmet:
        return Unmet(unmet(predicate, asked.said, asked.error, patience, self._reads, self._chronicle))

    async def _pulse(self, deadline: float, writes: int) -> None:
        """Let the world go on until there are more writes than these, or a timer goes off."""
        loop = self.world.loop
        if self._chronicle.writes != writes:
            return  # somebody was faster than this coroutine
        due = loop.due()
        if due is None or due >= deadline:
            due = deadline
        waiter: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not waiter.done():
                waiter.set_result(None)

        self._chronicle.changed.append(wake)
        timer = loop.call_at(due, wake)
        try:
            await waiter
        finally:
            timer.cancel()
            self._chronicle.changed.remove(wake)
        if loop.time() >= deadline:
            await loop.idle()

    # -- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """End everything, here and in all forks."""
        for fork in self._forks:
            fork.close()
        self.world.close()

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
        await self._cluster.world.advance(((days * 24 + hours) * 60 + minutes) * 60 + seconds)

    async def settle(self, horizon: float = 10.0, *, limit: float = 86_400.0) -> float:
        """Like `Cluster.settle`."""
        return await self._cluster.world.settle(horizon, limit=limit)

    async def wait_until(self, predicate: Callable[[], T | Awaitable[T]], timeout: float | None = None) -> T:
        """Like `Cluster.wait_until`; the predicate may be a coroutine function."""
        cluster = self._cluster
        patience = PATIENCE if timeout is None else timeout
        deadline = cluster.world.monotonic() + patience
        while True:
            asked = cluster._ask(predicate)
            if isinstance(asked.said, Awaitable):
                try:
                    asked = replace(asked, said=await asked.said)
                except Exception as error:
                    asked = replace(asked, said=None, error=error)
            if asked.met:
                return asked.said  # type: ignore[return-value]
            if cluster.world.monotonic() >= deadline:
                raise cluster._unmet(predicate, asked, patience) from asked.error
            await cluster._pulse(deadline, asked.writes)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a predicate answered."""

    said: object
    writes: int
    """How many there had been when it was asked."""
    error: Exception | None = None

    @property
    def met(self) -> bool:
        return self.error is None and bool(self.said)


class Node:
    """A node of a cluster, to play fate with."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self._cluster = cluster

    def fail(self) -> None:
        """It falls silent: no heartbeats, no news of its pods."""
        self._note("failed")

    def recover(self) -> None:
        """It is heard of again."""
        self._note(None)

    def reboot(self) -> None:
        """It goes down with all that runs on it, and comes back half a minute later."""
        self._note("rebooting")

    def cordon(self) -> None:
        """No pod is placed on it from now on."""
        self._cluster.patch("Node", self.name, {"spec": {"unschedulable": True}})

    def uncordon(self) -> None:
        """Pods are placed on it again."""
        self._cluster.patch("Node", self.name, {"spec": {"unschedulable": None}})

    def drain(self) -> None:
        """Cordon it, and evict its pods as time passes: refused evictions are asked for again every 5 s."""
        self.cordon()
        self._cluster.spawn(self._drain(), name=f"drain {self.name}")

    @property
    def pods(self) -> list[Any]:
        """What runs on it."""
        return [pod for pod in self._cluster.list("pods") if pod.spec.nodeName == self.name]

    def _note(self, state: str | None) -> None:
        body = {"metadata": {"annotations": {"sim.steersman.dev/state": state}}}
        self._cluster.patch("Node", self.name, body)

    async def _drain(self) -> None:
        client = self._cluster.client
        kind = self._cluster._kind("pods")
        while True:
            left = [
                pod
                for pod in self.pods
                if not any(owner.kind == "DaemonSet" for owner in pod.metadata.ownerReferences)
                and pod.metadata.deletionTimestamp is None
            ]
            if not left:
                return
            for pod in left:
                meta = pod.metadata
                try:
                    await client.subresource(kind, meta.namespace, meta.name, "eviction", {})
                except (NotFound, TooManyRequests):
                    pass  # gone already, or its budget says later
            await asyncio.sleep(5)


# -- how a cluster begins ---------------------------------------------------------------------

_templates: dict[tuple[object, ...], tuple[Plan, World]] = {}


def _template(plan: Plan) -> World:
    """A world that is ready, to be forked: the same for all seeds, so a test depends on its own alone."""
    known = _templates.get(plan.key)
    if known is None:
        known = _templates[plan.key] = plan, _ready(plan)
    return known[1]


def _ready(plan: Plan) -> World:
    world = World(0, start=plan.start, shuffle=plan.shuffle, journal=plan.journal, plugins=plan.plugins)
    Manager(plan.controllers, world, world, Chronicle(world.server))
    _people(world, plan)
    world.run(world.settle())
    world.close()
    return world


def _people(world: World, plan: Plan) -> None:
    """Kubelets and a scheduler."""
    if plan.nodes:
        kubelets = Kubelets(
            world.api("system:nodes"), world, plan.nodes, settings=plan.settings, shape=plan.shape
        )
        world.spawn(kubelets.run(), name="kubelets")
        world.spawn(Scheduler(world.api("system:kube-scheduler"), world).run(), name="scheduler")


async def _instant(world: World) -> None:
    """Let everything happen that takes no time: caches are filled."""
    await world.loop.idle()


def _now(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a request is answered with, at once: it waits for nothing but its turn."""
    try:
        while True:
            if coroutine.send(None) is not None:
                raise RuntimeError("this takes time")
    except StopIteration as done:
        answer: T = done.value
        return answer


def _key(obj: Any) -> Key:
    if isinstance(obj, dict):
        meta = obj.get("metadata", {})
        return Key(meta.get("namespace", ""), meta.get("name", ""))
    return Key(obj.metadata.namespace, obj.metadata.name)
