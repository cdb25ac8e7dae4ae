"""A hollow kubelet for every node at once: pods become ready, and leave when they are told to.

Not `steersman.sim.kubelet`, which follows pods whole: the API server encodes a watched object once for
all who want it in the same form, so the kubelet would pay for a manager that reads JSON and not for
one that does not. This one reads nothing but metadata, a form neither manager asks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from steersman.api.clock import Clock
from steersman.api.errors import Conflict, NotFound
from steersman.api.kinds import PODS, Object
from steersman.client.api import Api, EventType
from tests.harness.follow import follow

_PODS = PODS.as_(Object)
_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def running(
    pod: Object, now: datetime, containers: Sequence[str] = ("main",), *, ip: str = "10.1.0.1"
) -> dict[str, Any]:
    """The status of a pod whose containers have started, as a patch."""
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "status": {
            "phase": "Running",
            "startTime": at,
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "hostIP": "10.2.0.1",
            "hostIPs": [{"ip": "10.2.0.1"}],
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": at} for kind in _CONDITIONS
            ],
            "containerStatuses": [
                {
                    "name": name,
                    "image": "example/app:1",
                    "imageID": "example/app@sha256:0",
                    "containerID": f"hollow://{pod.metadata.uid}/{name}",
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": at}},
                }
                for name in containers
            ],
        }
    }


def succeeded(pod: Object, now: datetime, containers: Sequence[str] = ("main",)) -> dict[str, Any]:
    """The status of a pod whose containers have done their work, as a patch."""
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    status = running(pod, now, containers)["status"]
    over = {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}
    return {
        "status": {
            **status,
            "phase": "Succeeded",
            "conditions": [
                {**one, "status": "False", "reason": "PodCompleted"}
                if one["type"] in ("Ready", "ContainersReady")
                else one
                for one in status["conditions"]
            ],
            "containerStatuses": [
                {**one, "ready": False, "started": False, "state": {"terminated": over}}
                for one in status["containerStatuses"]
            ],
        }
    }


class HollowKubelet:
    """Follows pods, all of them bound to a node already, until it is cancelled."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        namespace: str = "",
        *,
        workers: int = 16,
        become: Callable[[Object, datetime], dict[str, Any]] = running,
    ) -> None:
        """``become`` is what the status of a pod is set to, once."""
        self._api = api
        self._clock = clock
        self._namespace = namespace
        self._workers = workers
        self._become = become
        self._queue: asyncio.Queue[tuple[Object, bool]] = asyncio.Queue()
        self._going: dict[str, bool] = {}
        """By uid, whether a pod was told to go."""
        self.idle = asyncio.Event()
        """Set while there are no pods."""
        self.idle.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            for _ in range(self._workers):
                tasks.create_task(self._work())

    async def _follow(self) -> None:
        async for event, pod in follow(self._api, _PODS, self._namespace):
            uid = pod.metadata.uid
            if event is EventType.DELETED:
                self._going.pop(uid, None)
            else:
                going = pod.metadata.deletionTimestamp is not None
                if self._going.get(uid) is not going:
                    self._going[uid] = going
                    self._queue.put_nowait((pod, going))
            if self._going:
                self.idle.clear()
            else:
                self.idle.set()

    async def _work(self) -> None:
        while True:
            pod, going = await self._queue.get()
            try:
                if going:
                    await self._api.delete(_PODS, *pod.key, uid=pod.metadata.uid, grace=0)
                elif self._going.get(pod.metadata.uid) is False:
                    status = self._become(pod, self._clock.now())
                    await self._api.patch(_PODS, *pod.key, status, subresource="status")
            except (NotFound, Conflict):
                # Somebody was faster; the watch says what came of it.
                continue
