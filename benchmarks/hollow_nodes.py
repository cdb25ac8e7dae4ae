"""Hollow nodes: each renews its lease and posts its status as a kubelet does, so that no controller takes it for dead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from benchmarks.workload import each
from steersman.api.errors import AlreadyExists
from steersman.api.kinds import LEASES, Object
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.sim.kubelet.node import LEASES as LEASE_NAMESPACE
from steersman.sim.kubelet.node import Shape, node
from tests.harness.follow import follow

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
        """``count`` nodes, named node-0, node-1 …"""
        self._api = api
        self._names = [f"node-{number}" for number in range(count)]

    async def create(self) -> None:
        """Create those that do not exist yet, ready at once."""
        await each(self._names, self._create)

    async def join(self) -> None:
        """Create all nodes; over when each has a CIDR and no taint."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.create())
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
        with suppress(AlreadyExists):
            await self._api.create(_LEASES, LEASE_NAMESPACE, body)
        number = int(name.removeprefix("node-")) + 1
        with suppress(AlreadyExists):
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
