"""Nodes of a cluster, for those who play fate with them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from steersman.api.errors import NotFound, TooManyRequests
from steersman.sim.kubelet.node import STATE

if TYPE_CHECKING:
    from steersman.testing.cluster import Cluster

AGAIN = 5.0
"""Seconds until an eviction that was refused is asked for again, as kubectl does."""


class Node:
    """A node of a cluster, by its name."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self._cluster = cluster

    def fail(self) -> None:
        """It falls silent: no heartbeats, no news of its pods."""
        self._state("failed")

    def recover(self) -> None:
        """It is heard of again."""
        self._state(None)

    def reboot(self) -> None:
        """It goes down with all that runs on it, and comes back half a minute later."""
        self._state("rebooting")

    def cordon(self) -> None:
        """No pod is placed on it from now on."""
        self._cluster.patch("Node", self.name, {"spec": {"unschedulable": True}})

    def uncordon(self) -> None:
        """Pods are placed on it again."""
        self._cluster.patch("Node", self.name, {"spec": {"unschedulable": None}})

    def drain(self) -> None:
        """Cordon it, and evict its pods as time passes; what a budget refuses is asked for again."""
        self.cordon()
        self._cluster.spawn(self._drain(), name=f"drain {self.name}")

    @property
    def pods(self) -> list[Any]:
        """What runs on it."""
        return _pods(self._cluster.list("pods"), self.name)

    def _state(self, state: str | None) -> None:
        self._cluster.patch("Node", self.name, {"metadata": {"annotations": {STATE: state}}})

    async def _drain(self) -> None:
        client, kind = self._cluster.client, self._cluster.kind("pods")
        while True:
            there = _pods((await client.list(kind)).items, self.name)
            left = [pod for pod in there if _leaves(pod)]
            if not left:
                return
            for pod in left:
                meta = pod.metadata
                try:
                    await client.subresource(kind, meta.namespace, meta.name, "eviction", {})
                except (NotFound, TooManyRequests):
                    pass  # gone already, or its budget says later
            await asyncio.sleep(AGAIN)


def _pods(pods: list[Any], node: str) -> list[Any]:
    return [pod for pod in pods if pod.spec.nodeName == node]


def _leaves(pod: Any) -> bool:
    owners = pod.metadata.ownerReferences
    return pod.metadata.deletionTimestamp is None and not any(owner.kind == "DaemonSet" for owner in owners)
