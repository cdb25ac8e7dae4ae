"""A cloud that outlives the managers of a test, and that can hang, refuse or lie."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from steersman.api.cloud import ClusterObjects, Route
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.services import LoadBalancerIngress, LoadBalancerStatus, Service

Trouble = Callable[[str, Any], Awaitable[Any] | None]
"""Gets the name of a call and its object; returns None, or an awaitable whose result is the answer."""


class Balancers:
    """Load balancers by the uid of their Service, with the names of their nodes."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self.made: dict[str, tuple[str, ...]] = {}

    async def get(self, cluster: str, service: Service) -> LoadBalancerStatus | None:
        answer = await self._cloud.asked("get", service)
        uid = service.metadata.uid
        return answer if answer is not None else (_status(uid) if uid in self.made else None)

    async def ensure(self, cluster: str, service: Service, nodes: Sequence[Node]) -> LoadBalancerStatus:
        answer = await self._cloud.asked("ensure", service)
        self.made[service.metadata.uid] = _names(nodes)
        return answer if answer is not None else _status(service.metadata.uid)

    async def update(self, cluster: str, service: Service, nodes: Sequence[Node]) -> None:
        await self._cloud.asked("update", service)
        self.made[service.metadata.uid] = _names(nodes)

    async def ensure_deleted(self, cluster: str, service: Service) -> None:
        await self._cloud.asked("delete", service)
        self.made.pop(service.metadata.uid, None)


class Machines:
    """The instances of nodes: all exist and run."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def exists(self, node: Node) -> bool:
        answer: Any = await self._cloud.asked("exists", node)
        return True if answer is None else answer

    async def is_shut_down(self, node: Node) -> bool:
        await self._cloud.asked("is_shut_down", node)
        return False


class Table:
    """Routes by name."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self.made: dict[str, Route] = {}

    async def list(self, cluster: str) -> Sequence[Route]:
        answer: Any = await self._cloud.asked("list", cluster)
        return tuple(self.made.values()) if answer is None else answer

    async def create(self, cluster: str, name_hint: str, route: Route) -> None:
        await self._cloud.asked("create", route)
        name = f"{name_hint} {route.destination_cidr}"
        self.made[name] = Route(route.destination_cidr, route.target_node, name)

    async def delete(self, cluster: str, route: Route) -> None:
        await self._cloud.asked("delete", route)
        self.made.pop(route.name)


class Cloud:
    """A cloud provider for tests; a `CloudProvider`."""

    name = "fake"

    def __init__(self) -> None:
        self.load_balancers = Balancers(self)
        self.routes = Table(self)
        self.instances = Machines(self)
        self.calls: list[tuple[str, str]] = []
        """Each call with the name of its object."""
        self.trouble: Trouble = lambda call, about: None

    def initialize(self, cluster: ClusterObjects) -> None:
        pass

    async def asked(self, call: str, about: Any) -> Any:
        name = (
            about
            if isinstance(about, str)
            else about.name
            if isinstance(about, Route)
            else about.metadata.name
        )
        self.calls.append((call, name))
        trouble = self.trouble(call, about)
        return None if trouble is None else await trouble

    def count(self, call: str) -> int:
        return sum(made == call for made, _ in self.calls)


async def hang() -> None:
    """Never answer."""
    await asyncio.get_running_loop().create_future()


def _names(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(sorted(node.metadata.name for node in nodes))


def _status(uid: str) -> LoadBalancerStatus:
    return LoadBalancerStatus(ingress=(LoadBalancerIngress(hostname=f"{uid}.lb.example"),))
