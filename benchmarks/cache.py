"""What a cached pod costs a manager: its memory with no pods, and started anew with many.

The pods belong to nobody and are bound and running, so no controller acts on them; all that a
manager does is to hold them.
"""

from __future__ import annotations

import asyncio
import gc
import re
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import msgspec

from benchmarks.kubelet import running
from benchmarks.phases import watchdog
from benchmarks.workload import each, pod_spec
from steersman.api.clock import RealClock
from steersman.api.errors import NotFound
from steersman.api.kinds import NAMESPACES, PODS, REPLICASETS, SERVICEACCOUNTS, Object
from steersman.client.api import Api
from steersman.controllers.shared.indexes import CONTROLLED
from steersman.runtime.informer import Informer
from tests.harness.child_process import Child
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside, until

_PODS = PODS.as_(Object)
_SETTLE = 5.0
"""Seconds given to both managers to hand memory back before it is read."""


@dataclass(frozen=True)
class Memory:
    """A manager's memory, in bytes, once its caches are filled and it rests."""

    pods: int
    rss: int
    peak_rss: int
    heap: int | None
    """What is alive in it, exactly; None where it was not asked."""
    seconds: float
    """From its start until it acted on a ReplicaSet, which it may only with its pods cached."""
    cpu: float


@dataclass(frozen=True)
class CacheCost:
    """One manager's caches, empty and full."""

    pod_bytes: int
    """A pod's JSON as the server serves it."""
    pod_bytes_trimmed: int
    """The same without managedFields, which neither manager keeps."""
    empty: Memory
    full: Memory
    churned: Memory
    """Full, after each pod was updated once: closer to the life of a cluster than a fresh start."""

    def per_pod(self, what: Callable[[Memory], int], of: Memory) -> float:
        return (what(of) - what(self.empty)) / of.pods


def pod(number: int) -> dict[str, Any]:
    """A pod such as charts make them: about 6 KB with what the server adds."""
    labels = {
        "app.kubernetes.io/name": "shop",
        "app.kubernetes.io/instance": f"shop-{number % 50}",
        "app.kubernetes.io/version": "1.4.2",
        "app.kubernetes.io/component": "backend",
        "app.kubernetes.io/managed-by": "Helm",
        "pod-template-hash": f"6d4cf56db{number % 10}",
    }
    spec = pod_spec(f"node-{number % 100}")
    fields = ("metadata.name", "metadata.namespace", "metadata.uid", "status.podIP", "status.hostIP")
    container = {
        **spec["containers"][0],
        "env": spec["containers"][0]["env"]
        + [
            {"name": f"FIELD_{n}", "valueFrom": {"fieldRef": {"fieldPath": at}}}
            for n, at in enumerate(fields)
        ],
        "command": ["/usr/bin/app"],
        "args": ["--listen=:8080", "--log-format=json", "--config=/etc/app/config.yaml"],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
        "securityContext": {"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}],
    }
    spec["containers"] = [container, {**container, "name": "sidecar", "ports": []}]
    spec["volumes"] = [{"name": "config", "configMap": {"name": "shop-config"}}]
    spec["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": "shop", "effect": "NoSchedule"}]
    spec["affinity"] = {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {
                        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "shop"}},
                        "topologyKey": "kubernetes.io/hostname",
                    },
                }
            ]
        }
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"shop-{number}",
            "labels": labels,
            "annotations": {
                "checksum/config": f"{number:064x}",
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "8080",
            },
        },
        "spec": spec,
    }


def sentinel(number: int) -> dict[str, Any]:
    labels = {"app": f"sentinel-{number}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": f"sentinel-{number}"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec("node-0")},
        },
    }


class CacheRun:
    """Measures one manager's caches on one API server."""

    def __init__(
        self,
        api: Api,
        plane: RealPlane,
        start: Callable[[int], Child],
        heap: bool,
        pods: int,
        say: Callable[[str], None],
    ) -> None:
        self._api = api
        self._plane = plane
        self._start = start
        self._heap = heap
        self._pods = pods
        self._say = say
        self._sentinels = 0
        self._clock = RealClock()

    async def run(self) -> CacheCost:
        for name in ("cache", "sentinel"):
            await self._api.create(
                NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            await self._api.create(SERVICEACCOUNTS, name, account)
        manager, port = self._launch()
        empty = await self._measure(manager, port, 0)
        manager.stop()
        self._say(f"{self._pods} pods are made")
        await each(map(str, range(self._pods)), self._make)
        sizes = await self._sizes()
        manager, port = self._launch()
        # Asking for the heap would collect it, and the next figure would be the better for it.
        full = await self._measure(manager, 0, self._pods)
        await each(map(str, range(self._pods)), self._touch)
        churned = await self._measure(manager, port, self._pods)
        manager.stop()
        if not self._heap:
            churned, empty = replace(churned, heap=await held(self._api)), replace(empty, heap=0)
        cost = CacheCost(*sizes, empty, full, churned)
        for name, memory in (("fresh", full), ("churned", churned)):
            self._say(
                f"{name}: {memory.rss / 2**20:.0f} MiB, {cost.per_pod(lambda m: m.rss, memory):.0f} bytes"
                f" a pod, peak {memory.peak_rss / 2**20:.0f} MiB (empty {empty.rss / 2**20:.0f} MiB)"
            )
        return cost

    def _launch(self) -> tuple[Child, int]:
        port = self._plane.free_port() if self._heap else 0
        return self._start(port), port

    async def _measure(self, manager: Child, port: int, pods: int) -> Memory:
        """Wait until the manager shows that its caches are full, and rests."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with beside(watchdog(manager)):
            self._sentinels += 1
            made = await self._api.create(REPLICASETS, "sentinel", sentinel(self._sentinels))
            name = made.metadata.name
            await until(self._api, REPLICASETS, "sentinel", name, lambda found: found.status.replicas == 1)
            seconds = loop.time() - began
            await asyncio.sleep(_SETTLE)
            cpu, rss = manager.cpu_seconds(), manager.rss()
            heap = await self._alive(port) if port else None
            return Memory(pods, rss, manager.peak_rss(), heap, seconds, cpu)

    async def _alive(self, port: int) -> int:
        """The bytes the Go collector has left alive, of a profile taken right after collecting."""
        url = f"https://127.0.0.1:{port}/debug/pprof/heap?gc=1&debug=1"
        # It serves with a certificate it made itself, and nothing but loopback lies between.
        context = self._plane.tls()
        context.check_hostname = False
        context.verify_mode = 0  # type: ignore[assignment]
        async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as answer:
            answer.raise_for_status()
            found = re.search(r"^# HeapAlloc = (\d+)$", await answer.text(), re.MULTILINE)
            if found is None:
                raise RuntimeError("the heap profile does not say how much is alive")
            return int(found[1])

    async def _make(self, number: str) -> None:
        made = await self._api.create(_PODS, "cache", pod(int(number)))
        name, status = made.metadata.name, running(made, self._clock.now(), ("main", "sidecar"))
        await self._api.patch(_PODS, "cache", name, status, subresource="status")

    async def _touch(self, number: str) -> None:
        change = {"metadata": {"annotations": {"example/touched": number}}}
        try:
            await self._api.patch(_PODS, "cache", f"shop-{number}", change)
        except NotFound:
            raise RuntimeError("a pod that nobody owns was deleted: the caches are not at rest") from None

    async def _sizes(self) -> tuple[int, int]:
        document = await self._api.get(PODS.untyped, "cache", "shop-0")
        raw = msgspec.json.encode(document)
        del document["metadata"]["managedFields"]
        return len(raw), len(msgspec.json.encode(document))


async def held(api: Api) -> int:
    """The bytes that steersman's cache of all pods, with its indexes, takes from Python's allocator.

    Measured in this process, by the manager's own informer: a process cannot be asked from outside
    what of its memory is alive.
    """
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        informer = Informer(PODS, api, RealClock())
        for name, index in CONTROLLED.items():
            informer.store.add_index(name, index)
        async with beside(informer.run()):
            await informer.wait_synced()
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        return after - before
    finally:
        tracemalloc.stop()
