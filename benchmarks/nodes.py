"""What nodes at rest cost a manager, beside the reference in the same run.

    python benchmarks/nodes.py --nodes 1000 --minutes 3

Nodes join, get their CIDRs and lose the taint of new nodes; then nothing happens but what kubelets do anyway: each renews its lease
every 10 seconds and posts its status every 5 minutes, all of them evenly spread. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

if not __package__:
    # Run as a file: the package it belongs to is beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.measure import Cost, Meter
from benchmarks.phases import watchdog
from benchmarks.rounds import Phases, arguments, compare, flags
from benchmarks.workload import each
from steersman.api.kinds import LEASES, Object
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.client.http import HttpApi
from steersman.sim.kubelet.node import LEASES as LEASE_NAMESPACE
from steersman.sim.kubelet.node import Shape, node
from tests.harness.assets import Binary
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside, follow

CONTROLLERS = "node-lifecycle-controller,taint-eviction-controller,node-ipam-controller,ttl-controller"
LEASE_PERIOD = 10.0
"""Seconds between two renewals of a lease."""
STATUS_PERIOD = 300.0
"""Seconds between two reports of a status that has not changed."""
STRIPES = 8
"""How many requests of a kind are under way at most: a slow answer holds up an eighth of the nodes."""
STRATEGIC = "application/strategic-merge-patch+json"
_NODES = NODES.as_(Object)
_LEASES: Kind[Object] = LEASES.as_(Object)


class HollowNodes:
    """Nodes that do nothing but live. What they are told is not read: the answers are metadata alone."""

    def __init__(self, api: Api, count: int) -> None:
        self._api = api
        self._names = [f"node-{number}" for number in range(count)]

    async def join(self) -> None:
        """Create all nodes, ready at once; over when each has a CIDR and no taint."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(each(self._names, self._create))
            tasks.create_task(self._joined())

    async def run(self) -> None:
        """Renew leases and report statuses until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for stripe in range(STRIPES):
                names = self._names[stripe::STRIPES]
                tasks.create_task(_spread(names, LEASE_PERIOD, self._renew))
                tasks.create_task(_spread(names, STATUS_PERIOD, self._report))

    async def _joined(self) -> None:
        waiting = dict.fromkeys(self._names)
        async for _, found in follow(self._api, NODES):
            if _has_joined(found):
                waiting.pop(found.metadata.name, None)
            if not waiting:
                return

    async def _create(self, name: str) -> None:
        # The lease comes first, so that it is never missing.
        body = {"metadata": {"name": name}, "spec": _lease(name)}
        await self._api.create(_LEASES, LEASE_NAMESPACE, body)
        number = int(name.removeprefix("node-")) + 1
        await self._api.create(_NODES, "", node(name, number, Shape(), _now().replace(microsecond=0)))

    async def _renew(self, name: str) -> None:
        await self._api.patch(_LEASES, LEASE_NAMESPACE, name, {"spec": _lease(name)})

    async def _report(self, name: str) -> None:
        at = _now().strftime("%Y-%m-%dT%H:%M:%SZ")
        types = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
        conditions = [{"type": each, "lastHeartbeatTime": at} for each in types]
        body = {"status": {"conditions": conditions}}
        await self._api.patch(_NODES, "", name, body, subresource="status", content_type=STRATEGIC)


async def _spread(names: Sequence[str], period: float, act: Callable[[str], Awaitable[object]]) -> None:
    """Do something for each node once in a period, one after the other with equal pauses."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        for name in names:
            due += period / len(names)
            await asyncio.sleep(max(0.0, due - loop.time()))
            await act(name)


def _has_joined(found: Node) -> bool:
    return bool(found.spec.podCIDR) and not found.spec.taints


def _now() -> datetime:
    return datetime.now(UTC)


def _lease(name: str) -> dict[str, Any]:
    at = _now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": at}


async def run(api: HttpApi, plane: RealPlane, name: Binary, options: argparse.Namespace) -> list[Cost]:
    """One manager's run."""
    manager = plane.manager(
        *flags(options, options.controllers),
        "--allocate-node-cidrs=true",
        "--cluster-cidr=10.128.0.0/10",
        "--service-cluster-ip-range=10.0.0.0/24",
        binary=name,
    )
    phases = Phases(Meter(manager, plane), options.timeout)
    nodes = HollowNodes(api, options.nodes)

    async def minute() -> None:
        await asyncio.sleep(60)

    try:
        async with beside(watchdog(manager)):
            await phases.run("join", options.nodes, nodes.join)
            async with beside(nodes.run()):
                # What is left over from joining is not measured.
                await asyncio.sleep(options.settle)
                for number in range(options.minutes):
                    await phases.run(f"minute {number + 1}", 0, minute)
    finally:
        manager.stop()
    return phases.costs


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--minutes", type=int, default=3, help="minutes at rest, each measured by itself")
    parser.add_argument("--settle", type=float, default=20, help="seconds of rest before the first of them")
    parser.add_argument("--controllers", default=CONTROLLERS)
    options = parser.parse_args()
    what = f"{options.nodes} nodes"
    compare(options, what, lambda api, plane, name: run(api, plane, name, options))


if __name__ == "__main__":
    main()
