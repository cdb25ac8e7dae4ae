"""A hollow kubelet for every node at once: pods become ready, and leave when they are told to.

It answers each pod with the fewest requests a real one could: one status write when it starts and
one delete when it goes, so that what the manager does stays the larger part of the load.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from benchmarks.wire import METADATA, Wire
from steersman.api.errors import Conflict, NotFound
from steersman.api.kinds import PODS, Object

_PODS = PODS.as_(Object)
_WORKERS = 16


def running(pod: Object) -> dict[str, object]:
    """The status of a pod whose containers have started."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "status": {
            "phase": "Running",
            "startTime": now,
            "podIP": "10.1.0.1",
            "podIPs": [{"ip": "10.1.0.1"}],
            "hostIP": "10.2.0.1",
            "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in kinds],
            "containerStatuses": [
                {
                    "name": "main",
                    "image": "example/app:1",
                    "imageID": "example/app@sha256:0",
                    "containerID": f"hollow://{pod.metadata.uid}",
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": now}},
                }
            ],
        }
    }


class Kubelet:
    """Follows the pods of a namespace, all of them bound to a node, until it is cancelled."""

    def __init__(self, wire: Wire, namespace: str) -> None:
        self._wire = wire
        self._namespace = namespace
        self._queue: asyncio.Queue[tuple[Object, bool]] = asyncio.Queue()
        self._seen: dict[str, bool] = {}
        self.idle = asyncio.Event()
        """Set while there are no pods."""
        self.idle.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            for _ in range(_WORKERS):
                tasks.create_task(self._work())

    async def _follow(self) -> None:
        pods, version = await self._wire.list(_PODS, self._namespace, accept=METADATA)
        for pod in pods:
            self._notice("ADDED", pod)
        while True:
            async for event, pod in self._wire.watch(_PODS, self._namespace, version, accept=METADATA):
                version = pod.metadata.resourceVersion
                self._notice(event, pod)

    def _notice(self, event: str, pod: Object) -> None:
        uid = pod.metadata.uid
        if event == "DELETED":
            self._seen.pop(uid, None)
        else:
            going = pod.metadata.deletionTimestamp is not None
            if self._seen.get(uid) is not going:
                self._queue.put_nowait((pod, going))
                self._seen[uid] = going
        if self._seen:
            self.idle.clear()
        else:
            self.idle.set()

    async def _work(self) -> None:
        while True:
            pod, going = await self._queue.get()
            at = pod.metadata.namespace, pod.metadata.name
            try:
                if going:
                    await self._wire.delete(_PODS, *at, grace=0)
                elif self._seen.get(pod.metadata.uid) is False:
                    status = running(pod)
                    await self._wire.patch(_PODS, *at, status, subresource="status", accept=METADATA)
            except (NotFound, Conflict):
                # Somebody was faster; the watch says what came of it.
                continue
