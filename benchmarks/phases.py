"""One manager's run through the phases: start, create, roll, scale to nothing and back, delete."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from benchmarks.kubelet import Kubelet
from benchmarks.measure import Cost, Meter
from benchmarks.wire import Wire
from benchmarks.workload import Observer, deployment, each
from steersman.api.errors import NotFound
from steersman.api.kinds import DEPLOYMENTS, NAMESPACES, PODS, REPLICASETS, SERVICEACCOUNTS
from steersman.testing.child import Child, tail
from steersman.testing.plane import RealPlane

Starter = Callable[[], Child]


@contextlib.asynccontextmanager
async def background(*work: Awaitable[None]) -> AsyncIterator[None]:
    """Run things beside the body; what ends early or fails ends the body too."""

    async def forever(one: Awaitable[None]) -> None:
        await one
        raise RuntimeError("a watcher ended early")

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(forever(one)) for one in work]
        yield
        for task in running:
            task.cancel()


async def watchdog(manager: Child) -> None:
    """Fail when the manager dies."""
    await manager.exited()
    raise RuntimeError(f"the manager ended with code {manager.code}:\n{tail(manager)}")


class Run:
    """The phases of one manager on one API server."""

    def __init__(
        self,
        wire: Wire,
        plane: RealPlane | None,
        start: Starter,
        *,
        namespace: str,
        deployments: int,
        replicas: int,
        collects: bool,
        timeout: float,
        say: Callable[[str], None],
        started: Callable[[Child], None] = lambda manager: None,
    ) -> None:
        self._wire = wire
        self._plane = plane
        self._start = start
        self._namespace = namespace
        self._names = [f"web-{n}" for n in range(deployments)]
        self._replicas = replicas
        self._collects = collects
        self._timeout = timeout
        self._say = say
        self._started = started
        self._observer = Observer(wire, namespace)
        self._kubelet = Kubelet(wire, namespace)
        self.costs: list[Cost] = []

    async def run(self) -> list[Cost]:
        await self._wire.create(
            NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
        )
        await self._wire.create(DEPLOYMENTS, self._namespace, deployment("first", 0))
        async with background(self._observer.run(), self._kubelet.run()):
            manager = self._start()
            meter = Meter(manager, self._plane)
            self._started(manager)
            pods = len(self._names) * self._replicas
            async with background(watchdog(manager)):
                await self._phase(meter, "start", 0, self._first)
                await self._phase(meter, "create", pods, self._create)
                await self._phase(meter, "roll", pods, self._roll)
                await self._phase(meter, "scale to 0", pods, lambda: self._scale(0))
                await self._phase(meter, "scale back", pods, lambda: self._scale(self._replicas))
                await self._phase(meter, "delete", pods, self._delete)
        manager.stop()
        return self.costs

    async def _phase(self, meter: Meter, name: str, pods: int, act: Callable[[], Awaitable[None]]) -> None:
        stretch = meter.begin()
        try:
            async with asyncio.timeout(self._timeout):
                await act()
                await self._observer.converged()
        except TimeoutError:
            raise RuntimeError(
                f"{name}: {self._observer.open} Deployments have not converged in {self._timeout:g} s"
            ) from None
        stretch.converged()
        await meter.quiet()
        cost = stretch.end(name, pods)
        self.costs.append(cost)
        self._say(
            f"{name:<11}{cost.seconds:7.2f} s {cost.rate:7.0f} pods/s {cost.total:6d} requests"
            f" {cost.cpu:6.2f} s CPU (API server {cost.apiserver_cpu:6.2f} s)"
            f" {cost.peak_rss / 2**20:6.0f} MiB peak"
        )

    async def _first(self) -> None:
        # The default account is made by the manager: with it, pods can be.
        self._observer.expect({"first": 1})
        while True:
            try:
                await self._wire.request("GET", SERVICEACCOUNTS.path(self._namespace, "default"))
                return
            except NotFound:
                await asyncio.sleep(0.02)

    async def _create(self) -> None:
        async def create(name: str) -> None:
            await self._wire.create(DEPLOYMENTS, self._namespace, deployment(name, self._replicas))

        self._observer.expect(dict.fromkeys(self._names, 1))
        await each(self._names, create)

    async def _roll(self) -> None:
        await self._change({"template": {"metadata": {"annotations": {"example/rolled": "once"}}}})

    async def _scale(self, replicas: int) -> None:
        await self._change({"replicas": replicas})

    async def _change(self, spec: dict[str, Any]) -> None:
        generations: dict[str, int] = {}

        async def change(name: str) -> None:
            made = await self._wire.patch(DEPLOYMENTS, self._namespace, name, {"spec": spec})
            generations[name] = made.metadata.generation

        await each(self._names, change)
        self._observer.expect(generations)

    async def _delete(self) -> None:
        """All goes. Without a garbage collector we go from the top down ourselves, so that nothing
        is made anew; then what is measured is how a manager takes the news."""
        await each(self._names, lambda name: self._wire.delete(DEPLOYMENTS, self._namespace, name))
        if not self._collects:
            sets, _ = await self._wire.list(REPLICASETS, self._namespace)
            await each(
                [found.metadata.name for found in sets if found.metadata.labels.get("app") != "first"],
                lambda name: self._wire.delete(REPLICASETS, self._namespace, name),
            )
            pods, _ = await self._wire.list(PODS, self._namespace)
            await each(
                [found.metadata.name for found in pods],
                lambda name: self._wire.delete(PODS, self._namespace, name, grace=0),
            )
        self._observer.expect({})
        await self._kubelet.idle.wait()
