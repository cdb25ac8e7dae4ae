"""The same story told to kube-scheduler and to the simulated scheduler, each on a real API server of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest

from steersman.api.clock import RealClock
from steersman.api.generated import core_v1, load
from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.sim.scheduler import Scheduler
from tests.harness.envtest import ASSETS, SCHEDULER, RealPlane
from tests.harness.follow import beside, follow, until

OURS = "steersman"
BOUND, REFUSED = "True", "False"
"""The status of the condition PodScheduled."""
_REASONS = {BOUND: "Scheduled", REFUSED: "FailedScheduling"}
_SECONDS = 90

_PODS: Kind[core_v1.Pod] = load("", "v1", "Pod")
_EVENTS: Kind[core_v1.Event] = load("", "v1", "Event")
_NODES = load("", "v1", "Node").untyped
_ACCOUNTS = load("", "v1", "ServiceAccount").untyped
_ROOM = {"cpu": "8", "memory": "8Gi", "pods": "30"}

Ending = dict[str, Any]
"""What is left of a story, by what it is about."""


def both_endings(
    tell: Callable[[Api], Awaitable[Ending]], *, dynamic_resources: bool = False
) -> dict[str, Ending]:
    """Tells a story to both schedulers at once; returns its ending by scheduler. Skips where there is no kube-scheduler."""
    if not os.access(Path(os.environ.get(ASSETS, ""), SCHEDULER), os.X_OK):
        pytest.skip(f"needs {SCHEDULER} in {ASSETS}")
    schedulers = (OURS, SCHEDULER)

    async def ending(plane: RealPlane, name: str) -> Ending:
        async with plane.connect() as api, AsyncExitStack() as stack:
            if name == OURS:
                ours = Scheduler(api, RealClock(), scheduled_events=True, dra=dynamic_resources)
                await stack.enter_async_context(beside(ours.run()))
            else:
                plane.scheduler("--leader-elect=false")
            async with asyncio.timeout(_SECONDS):
                return await tell(api)

    async def both(planes: Sequence[RealPlane]) -> dict[str, Ending]:
        async with asyncio.TaskGroup() as tasks:
            told = {
                name: tasks.create_task(ending(plane, name))
                for plane, name in zip(planes, schedulers, strict=True)
            }
        return {name: task.result() for name, task in told.items()}

    with ExitStack() as stack:
        return asyncio.run(both([stack.enter_context(RealPlane.start()) for _ in schedulers]))


async def create_nodes(api: Api, label: str, zones: dict[str, str]) -> None:
    """Ready nodes by name, with their zone under a label, and the account of their pods."""
    await api.create(_ACCOUNTS, "default", {"metadata": {"name": "default"}})
    for name, zone in zones.items():
        ready = [{"type": "Ready", "status": "True"}]
        status = {"capacity": _ROOM, "allocatable": _ROOM, "conditions": ready}
        metadata = {"name": name, "labels": {"name": name, label: zone}}
        await api.create(_NODES, "", {"metadata": metadata, "status": status})


async def told(api: Api, name: str, status: str) -> None:
    """Waits until the scheduler has bound or refused a pod, and recorded an event of it."""

    def is_told(found: core_v1.Pod) -> bool:
        return any(each.type == "PodScheduled" and each.status == status for each in found.status.conditions)

    await until(api, _PODS, "default", name, is_told)
    async with contextlib.aclosing(follow(api, _EVENTS, "default")) as events:
        async for _, event in events:
            if event.involvedObject.name == name and event.reason == _REASONS[status]:
                return


def pod_outcome(found: dict[str, Any]) -> tuple[str, ...]:
    """A pod's node, and its condition PodScheduled."""
    conditions = found.get("status", {}).get("conditions", ())
    told: dict[str, str] = next((each for each in conditions if each["type"] == "PodScheduled"), {})
    return found["spec"].get("nodeName", ""), *(told.get(key, "") for key in ("status", "reason", "message"))


def event_text(found: dict[str, Any]) -> tuple[str, ...]:
    """An event's pod, type, reason and message."""
    return found["involvedObject"]["name"], found["type"], found["reason"], found.get("message", "")
