"""Pods that were to be disrupted and were not: after two minutes they are no longer said to be."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from steersman.api.conditions import find
from steersman.api.kinds import Pod
from steersman.intent.actions import Patch, PatchType
from steersman.intent.verdict import Rest, Verdict, Wake

STALE = timedelta(minutes=2)
"""Within this time a disruption that was granted happens, or it does not happen at all."""
TARGET = "DisruptionTarget"


def stale_since(pod: Pod) -> datetime | None:
    """Since when a pod that is not going has been said to be about to; None where it is not."""
    if pod.metadata.deletionTimestamp is not None or pod.status.phase in ("Succeeded", "Failed"):
        return None
    condition = find(pod.status.conditions, TARGET)
    if condition is None or condition.status != "True" or condition.reason == "TerminationByKubelet":
        return None
    return condition.lastTransitionTime


async def clean(pod: Pod, now: datetime) -> Verdict:
    """Take back that a pod is about to be disrupted, when that has become unlikely."""
    since = stale_since(pod)
    if since is None:
        return Rest("is not about to be disrupted")
    if now < since + STALE:
        return Wake(since + STALE - now, "may still be disrupted")
    meta = pod.metadata
    condition: dict[str, Any] = {
        "type": TARGET,
        "status": "False",
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "reason": None,
        "message": None,
    }
    if meta.generation:
        condition["observedGeneration"] = meta.generation
    # differs: upstream puts the whole status; a patch keeps what this program does not know.
    exact = {"uid": meta.uid, "resourceVersion": meta.resourceVersion}
    body = {"metadata": exact, "status": {"conditions": [condition]}}
    await Patch(pod, body, PatchType.STRATEGIC, subresource="status")
    return Rest("was not disrupted after all")
