"""One manager's run through the phases: start, create, roll, scale to nothing and back, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from benchmarks.hollow_nodes import HollowNodes
from benchmarks.kubelet import HollowKubelet
from benchmarks.measure import Cost, Meter
from benchmarks.workload import Observer, deployment, each
from steersman.api.clock import RealClock
from steersman.api.kinds import DEPLOYMENTS, NAMESPACES, PODS, REPLICASETS, SERVICEACCOUNTS, Object
from steersman.api.scheme import Kind
from steersman.client.api import Api
from tests.harness.child_process import Child, tail
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside, until

Starter = Callable[[], Child]

NODE_COUNT = 10
"""Nodes that the pods are bound to. Pods of nodes that do not exist are collected after 40 seconds."""


async def watchdog(manager: Child) -> None:
    """Fail when the manager dies."""
    await manager.exited()
    raise RuntimeError(f"the manager ended with code {manager.code}:\n{tail(manager)}")


class Run:
    """The phases of one manager on one API server."""

    def __init__(
        self,
        api: Api,
        plane: RealPlane | None,
        start: Starter,
        *,
        namespace: str,
        deployments: int,
        replicas: int,
        collects: bool,
        timeout: float,
        say: Callable[[str], None],
    ) -> None:
        self._api = api
        self._plane = plane
        self._start = start
        self._namespace = namespace
        self._names = [f"web-{n}" for n in range(deployments)]
        self._replicas = replicas
        self._collects = collects
        self._timeout = timeout
        self._say = say
        self._observer = Observer(api, namespace)
        self._kubelet = HollowKubelet(api, RealClock(), namespace)
        self._nodes = HollowNodes(api, NODE_COUNT)
        self.costs: list[Cost] = []

    async def run(self) -> list[Cost]:
        await self._api.create(
            NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
        )
        await self._api.create(DEPLOYMENTS, self._namespace, deployment("first", 0, "node-0"))
        await self._nodes.create()
        async with beside(self._observer.run(), self._kubelet.run(), self._nodes.run()):
            manager = self._start()
            meter = Meter(manager, self._plane)
            pods = len(self._names) * self._replicas
            async with beside(watchdog(manager)):
                await self._phase(meter, "start", 0, self._first)
                await self._phase(meter, "create", pods, self._create)
                await self._phase(meter, "roll", pods, self._roll)
                await self._phase(meter, "scale to 0", pods, lambda: self._scale(0))
                await self._phase(meter, "scale back", pods, lambda: self._scale(self._replicas))
                await self._phase(meter, "delete", pods, self._delete)
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
        await until(self._api, SERVICEACCOUNTS, self._namespace, "default", lambda account: True)

    async def _create(self) -> None:
        nodes = {name: f"node-{number % NODE_COUNT}" for number, name in enumerate(self._names)}

        async def create(name: str) -> None:
            body = deployment(name, self._replicas, nodes[name])
            await self._api.create(DEPLOYMENTS, self._namespace, body)

        self._observer.expect(dict.fromkeys(self._names, 1))
        await each(self._names, create)

    async def _roll(self) -> None:
        await self._change({"template": {"metadata": {"annotations": {"example/rolled": "once"}}}})

    async def _scale(self, replicas: int) -> None:
        await self._change({"replicas": replicas})

    async def _change(self, spec: dict[str, Any]) -> None:
        generations: dict[str, int] = {}

        async def change(name: str) -> None:
            made = await self._api.patch(DEPLOYMENTS, self._namespace, name, {"spec": spec})
            generations[name] = made.metadata.generation

        await each(self._names, change)
        self._observer.expect(generations)

    async def _delete(self) -> None:
        """All goes. Without a garbage collector we go from the top down ourselves, so that nothing
        is made anew; then what is measured is how a manager takes the news."""
        await each(self._names, partial(self._delete_one, DEPLOYMENTS))
        if not self._collects:
            for kind in (REPLICASETS.as_(Object), PODS.as_(Object)):
                page = await self._api.list(kind, self._namespace, label_selector="app!=first")
                names = [found.metadata.name for found in page.items]
                await each(names, partial(self._delete_one, kind))
        self._observer.expect({})
        await self._kubelet.idle.wait()

    async def _delete_one(self, kind: Kind[Any], name: str) -> None:
        await self._api.delete(kind, self._namespace, name, grace=0)
