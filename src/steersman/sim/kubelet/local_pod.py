"""A pod on a simulated node: what its kubelet knows about it, and what a kubelet leaves as it found it."""

from __future__ import annotations

from datetime import datetime

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.kinds import Struct
from steersman.sim.kubelet.pod_lifecycle import PodRun
from steersman.sim.kubelet.pod_plan import PodPlan

SIMULATED = "sim://"
"""Prefix of the ids of simulated containers."""
_STARTING = ("", "ContainerCreating", "PodInitializing")
"""Reasons of containers that wait for their start, and not because something is wrong."""


class PodReport(Struct, frozen=True):
    """A pod with a new status. The server keeps the spec, so it is not sent."""

    metadata: ObjectMeta
    status: v1.PodStatus


class LocalPod:
    """A pod on one of the nodes."""

    __slots__ = ("due", "gone", "plan", "planned", "pod", "run", "stays")

    def __init__(self, pod: v1.Pod, stays: bool = False) -> None:
        self.pod = pod
        """As last watched or written."""
        self.stays = stays
        """Whether a real kubelet started it, so that it stays as it was found until it is deleted."""
        self.run: PodRun | None = None
        self.plan: PodPlan | None = None
        self.planned = ""
        """The resourceVersion that the plan was made from."""
        self.due: float | None = None
        """When its next change is due."""
        self.gone = False
        """Whether it was deleted; finalizers may still hold it."""


def stays_as_found(pod: v1.Pod, now: datetime, ready_delay: float) -> bool:
    """Whether a kubelet that takes a pod over leaves it as it is: real containers that run go on, those that fail go on failing.

    A pod whose containers are about to start or to become ready, within ``ready_delay`` seconds, is simulated from there on.
    """
    status = pod.status
    if status.startTime is None:
        return False
    if status.phase in ("Succeeded", "Failed"):
        return True
    found = (*status.initContainerStatuses, *status.containerStatuses)
    if not status.containerStatuses or any(each.containerID.startswith(SIMULATED) for each in found):
        return False
    waiting = [each.state.waiting for each in found if each.state.waiting is not None]
    if waiting:
        return any(each.reason not in _STARTING for each in waiting)
    if all(each.ready or each.state.running is None for each in status.containerStatuses):
        return True
    started = [
        each.state.running.startedAt
        for each in status.containerStatuses
        if each.state.running is not None and each.state.running.startedAt is not None
    ]
    return not started or (now - max(started)).total_seconds() > ready_delay
