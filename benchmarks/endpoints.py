"""What the endpoints of one large Service cost a manager, beside the reference in the same run.

    python benchmarks/endpoints.py --endpoints 5000

The pods are written by the benchmark itself: no workload controller runs, and both managers run the same controllers of endpoints. All pods
become ready; they are replaced, a tenth at a time; they are deleted. A watch of the EndpointSlices sees when each step is over, and
that the endpoint of a pod that stays ready is never missing from all slices. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if not __package__:
    # Run as a file: the package it belongs to is beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.kubelet import running
from benchmarks.measure import Cost, Meter
from benchmarks.phases import watchdog
from benchmarks.rounds import Phases, arguments, compare, flags, say
from benchmarks.workload import each, pod_spec
from steersman.api.clock import RealClock
from steersman.api.kinds import NAMESPACES, PODS, SERVICEACCOUNTS, Object
from steersman.api.kinds.nodes import NODES
from steersman.api.kinds.services import ENDPOINTSLICES, SERVICES, EndpointSlice
from steersman.client.api import Api, EventType
from steersman.client.http import HttpApi
from tests.harness.assets import Binary
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside, follow

CONTROLLERS = "endpointslice-controller"
NAMESPACE = "endpoints"
NODE_COUNT = 100
ZONES = 3
STEPS = 10
"""In how many steps the pods are replaced."""
_PODS = PODS.as_(Object)


@dataclass(frozen=True)
class Replica:
    """A pod of the Service, ready or to be."""

    number: int

    @property
    def name(self) -> str:
        return f"web-{self.number}"

    @property
    def ip(self) -> str:
        high, low = divmod(self.number, 250)
        return f"10.{64 + high // 250}.{high % 250}.{low + 1}"

    def manifest(self) -> dict[str, Any]:
        spec = pod_spec(f"node-{self.number % NODE_COUNT}")
        return {"metadata": {"name": self.name, "labels": {"app": "web"}}, "spec": spec}


class SliceWatch:
    """The endpoints of all slices, as a watch shows them."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._slices: dict[str, dict[str, bool]] = {}
        """Whether each address of a slice is ready, by the name of the slice."""
        self._slices_with: dict[str, int] = {}
        """In how many slices an address is."""
        self._wanted: set[str] | None = None
        self._reached = asyncio.Event()
        self.steady: set[str] = set()
        """Addresses of pods that are ready and stay so."""
        self.missing: list[str] = []
        """Steady addresses that were in no slice for a time."""

    async def run(self) -> None:
        async for event, slice in follow(self._api, ENDPOINTSLICES, NAMESPACE):
            self._take(slice, gone=event is EventType.DELETED)

    async def shows(self, replicas: Iterable[Replica]) -> None:
        """Wait until the ready endpoints are exactly those of these pods, and there is a slice."""
        self._wanted = {replica.ip for replica in replicas}
        self._reached.clear()
        self._look()
        await self._reached.wait()

    def _take(self, slice: EndpointSlice, *, gone: bool) -> None:
        name = slice.metadata.name
        old = self._slices.pop(name, {})
        new: dict[str, bool] = {}
        if not gone:
            endpoints = slice.endpoints or ()
            new = {address: one.conditions.ready is True for one in endpoints for address in one.addresses}
            self._slices[name] = new
        for address in new.keys() - old.keys():
            self._slices_with[address] = self._slices_with.get(address, 0) + 1
        for address in old.keys() - new.keys():
            self._slices_with[address] -= 1
            if self._slices_with[address] == 0:
                del self._slices_with[address]
                if address in self.steady:
                    self.missing.append(address)
        self._look()

    def _look(self) -> None:
        if self._wanted is None or not self._slices:
            return
        if len(self._slices_with) == len(self._wanted) and self._wanted == {
            address for slice in self._slices.values() for address, ready in slice.items() if ready
        }:
            self._reached.set()


class Service:
    """The pods of a Service as the benchmark writes them."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._clock = RealClock()
        self._replicas: dict[str, Replica] = {}
        self._made = 0
        self.watch = SliceWatch(api)

    async def create(self) -> None:
        """The Service, before it has pods, and all that they need."""
        api = self._api
        await api.create(NAMESPACES, "", {"metadata": {"name": NAMESPACE}})
        await api.create(SERVICEACCOUNTS, NAMESPACE, {"metadata": {"name": "default"}})

        async def join(name: str) -> None:
            zone = {"topology.kubernetes.io/zone": f"zone-{sum(name.encode()) % ZONES}"}
            await api.create(NODES.untyped, "", {"metadata": {"name": name, "labels": zone}})

        await each([f"node-{number}" for number in range(NODE_COUNT)], join)
        spec = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
        await api.create(SERVICES.untyped, NAMESPACE, {"metadata": {"name": "web"}, "spec": spec})

    async def empty(self) -> None:
        await self.watch.shows(())

    async def add(self, count: int) -> None:
        """Create pods and let each become ready; over when all are endpoints."""
        await self._start(count)
        await self.watch.shows(self._replicas.values())
        self.watch.steady = {replica.ip for replica in self._replicas.values()}

    async def roll(self) -> None:
        """Replace all pods: a tenth becomes ready and as many are deleted, again and again."""
        old = tuple(self._replicas)
        for step in range(STEPS):
            names = old[step::STEPS]
            await self._start(len(names))
            await self._delete(names)
            await self.watch.shows(self._replicas.values())
            self.watch.steady = {replica.ip for replica in self._replicas.values()}

    async def remove(self) -> None:
        await self._delete(tuple(self._replicas))
        await self.watch.shows(())

    async def _start(self, count: int) -> None:
        new = {one.name: one for one in map(Replica, range(self._made, self._made + count))}
        self._made += count

        async def start(name: str) -> None:
            pod = await self._api.create(_PODS, NAMESPACE, new[name].manifest())
            status = running(pod, self._clock.now(), ip=new[name].ip)
            await self._api.patch(_PODS, NAMESPACE, name, status, subresource="status")

        await each(new, start)
        self._replicas |= new

    async def _delete(self, names: Iterable[str]) -> None:
        async def delete(name: str) -> None:
            self.watch.steady.discard(self._replicas.pop(name).ip)
            await self._api.delete(_PODS, NAMESPACE, name, grace=0)

        await each(names, delete)


async def run(api: HttpApi, plane: RealPlane, name: Binary, options: argparse.Namespace) -> list[Cost]:
    """One manager's run."""
    service = Service(api)
    await service.create()
    manager = plane.manager(*flags(options, options.controllers), binary=name)
    phases = Phases(Meter(manager, plane), options.timeout)
    try:
        async with beside(watchdog(manager), service.watch.run()):
            await phases.run("start", 0, service.empty)
            await phases.run("create", options.endpoints, lambda: service.add(options.endpoints))
            await phases.run("roll", options.endpoints, service.roll)
            await phases.run("delete", options.endpoints, service.remove)
    finally:
        manager.stop()
    missing = service.watch.missing
    if missing and name == "steersman":
        raise RuntimeError(f"{len(missing)} endpoints of ready pods were missing, such as {missing[0]}")
    say(f"{len(missing)} endpoints of pods that stayed ready were missing from all slices for a time")
    return phases.costs


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--endpoints", type=int, default=5000)
    parser.add_argument("--controllers", default=CONTROLLERS)
    options = parser.parse_args()
    what = f"a Service of {options.endpoints} endpoints"
    compare(options, what, lambda api, plane, name: run(api, plane, name, options))


if __name__ == "__main__":
    main()
