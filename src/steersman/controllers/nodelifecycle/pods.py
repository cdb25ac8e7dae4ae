"""Pods on nodes that are not ready: their Ready condition becomes False, for their kubelet can no longer say so."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from steersman.api.conditions import find_condition
from steersman.api.errors import NotFound
from steersman.api.kinds import Pod
from steersman.api.meta import format_time
from steersman.intent.actions import Batch, Done, Emit, Failed, Patch, PatchType


def mark_not_ready(pod: Pod, now: datetime) -> Patch[Pod] | None:
    """The patch that makes a pod not ready; None for a pod that is not, or that never said whether it is.

    differs: upstream puts the whole status; a patch keeps fields this program does not know.
    """
    ready = find_condition(pod.status.conditions, "Ready")
    if ready is None or ready.status == "False":
        return None
    meta = pod.metadata
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(now)}
    body = {
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resourceVersion},
        "status": {"conditions": [condition]},
    }
    return Patch(pod, body, PatchType.STRATEGIC, subresource="status")


async def mark_pods_not_ready(pods: Iterable[Pod], now: datetime) -> int:
    """Makes pods not ready, with an event each; returns how many. Raises the first error, after trying all."""
    marked = [(pod, patch) for pod in pods if (patch := mark_not_ready(pod, now)) is not None]
    if not marked:
        return 0
    outcomes = await Batch(tuple(patch for _, patch in marked), slow_start=False)
    for (pod, _), outcome in zip(marked, outcomes, strict=True):
        if isinstance(outcome, Done):
            await Emit(pod, "Warning", "NodeNotReady", "Node is not ready")
    for outcome in outcomes:
        # A pod that is gone needs nothing more.
        if isinstance(outcome, Failed) and not isinstance(outcome.error, NotFound):
            raise outcome.error
    return sum(isinstance(outcome, Done) for outcome in outcomes)
