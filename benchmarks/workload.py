"""Deployments to converge, and the eyes that see when they have.

What is watched is the API alone, so both managers are held to the same: every status is final and
no old pod is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from steersman.api.kinds import DEPLOYMENTS, REPLICASETS, Deployment, ReplicaSet
from steersman.client.api import Api, EventType
from tests.harness.convergence import deployment_settled
from tests.harness.follow import follow


def pod_spec(node: str) -> dict[str, Any]:
    """A pod bound to a node already, so that no scheduler is needed."""
    return {
        "nodeName": node,
        "containers": [
            {
                "name": "main",
                "image": "example/app:1",
                "env": [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(5)],
                "ports": [{"containerPort": 8080, "name": "http"}],
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
            }
        ],
    }


def deployment(name: str, replicas: int, node: str = "node-0") -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(node)},
        },
    }


async def each(names: Iterable[str], act: Callable[[str], Awaitable[object]], at_once: int = 16) -> None:
    """Do something for every name, a few at a time."""
    rest = iter(names)

    async def worker() -> None:
        for name in rest:
            await act(name)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(worker())


class Observer:
    """Follows Deployments and ReplicaSets of a namespace and says when all have settled."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._deployments: dict[str, Deployment] = {}
        self._sets: dict[str, dict[str, ReplicaSet]] = {}
        self._wanted: dict[str, int] = {}
        self._open: dict[str, None] = {}
        self._done = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_deployments())
            tasks.create_task(self._follow_sets())

    def expect(self, generations: dict[str, int]) -> None:
        """From now on these Deployments are to settle, each in a generation at least this."""
        self._wanted = generations
        self._open = dict.fromkeys(generations)
        self._done.clear()
        for name in generations:
            self._look(name)
        if not generations:
            self._done.set()

    async def converged(self) -> None:
        await self._done.wait()

    @property
    def open(self) -> int:
        """How many have not settled."""
        return len(self._open)

    async def _follow_deployments(self) -> None:
        async for event, found in follow(self._api, DEPLOYMENTS, self._namespace):
            name = found.metadata.name
            if event is EventType.DELETED:
                self._deployments.pop(name, None)
            else:
                self._deployments[name] = found
            self._look(name)

    async def _follow_sets(self) -> None:
        async for event, found in follow(self._api, REPLICASETS, self._namespace):
            owner = found.metadata.labels.get("app", "")
            owned = self._sets.setdefault(owner, {})
            if event is EventType.DELETED:
                owned.pop(found.metadata.name, None)
            else:
                owned[found.metadata.name] = found
            self._look(owner)

    def _look(self, name: str) -> None:
        if name not in self._wanted:
            return
        found = self._deployments.get(name)
        if found is not None and deployment_settled(
            found, self._sets.get(name, {}).values(), self._wanted[name]
        ):
            self._open.pop(name, None)
        else:
            self._open[name] = None
        if self._open:
            self._done.clear()
        else:
            self._done.set()
