"""Tainted nodes on a real API server: both managers delete the same pods, and say the same of it.

The pods have a finalizer of their own, so that it can be seen what was written before they were deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.nodes import NODES

Document = dict[str, Any]
KEEP = "example.com/keep"
AT = "2025-02-10T00:00:00Z"
OUT = {"key": "example.com/out", "value": "yes", "effect": "NoExecute"}
WORN = {"key": "example.com/worn", "effect": "NoExecute"}
FULL = {"key": "example.com/full", "effect": "NoSchedule"}
FORMER = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
    "lastTransitionTime": AT,
}
FOR_EVER = {"key": "example.com/out", "operator": "Exists"}
ANYTHING = {"operator": "Exists"}


def lasting(seconds: int, key: str = "example.com/out", **more: str) -> Document:
    return {
        "key": key,
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": seconds,
        **more,
    }


def node(name: str, *taints: Document) -> Document:
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"taints": list(taints)}}


def pod(name: str, on: str, *tolerations: Document) -> Document:
    containers = [{"name": "main", "image": "example/app:1"}]
    spec = {"nodeName": on, "tolerations": list(tolerations), "containers": containers}
    meta = {"name": name, "finalizers": [KEEP]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


FOUND = (
    pod("found", "tainted"),
    pod("found-brief", "tainted", lasting(2)),
    pod("found-for-ever", "tainted", FOR_EVER),
    pod("found-other-value", "tainted", {**OUT, "operator": "Equal", "value": "no"}),
)
LATER = (
    pod("plain", "later"),
    pod("brief", "later", lasting(2)),
    pod("negative", "later", lasting(-5)),
    pod("shortest", "later", lasting(2), lasting(300, "example.com/worn")),
    pod("removed", "later", lasting(300)),
    pod("for-ever", "later", ANYTHING),
    pod("evicted-before", "later"),
    pod("terminating", "later"),
    pod("succeeded", "later"),
)
TWICE = (
    pod("first-of-two", "twice", lasting(300), lasting(1)),
    pod("long", "twice", lasting(300), ANYTHING),
    pod("sign", "twice"),
)
"""On a node that is tainted twice. The sign is gone at once, for it has ended; a pod that stays would be deleted twice by
the reference manager."""
GOING_LATER = ("plain", "brief", "negative", "shortest", "evicted-before", "terminating", "succeeded")


async def before(stage: Any) -> None:
    await stage.create(
        NODES, node("tainted", OUT), node("later", FULL), node("twice", FULL), node("apart", FULL)
    )
    await stage.create(PODS, *FOUND, *LATER, *TWICE, pod("elsewhere", "apart"))
    await stage.patch(PODS, "evicted-before", {"status": {"conditions": [FORMER]}}, subresource="status")
    for name in ("succeeded", "sign"):
        await stage.patch(PODS, name, {"status": {"phase": "Succeeded"}}, subresource="status")
    await stage.patch(PODS, "sign", {"metadata": {"finalizers": None}})
    await stage.api.delete(PODS, stage.namespace, "terminating", grace=3600)


def marked(one: Pod) -> bool:
    return one.metadata.deletionTimestamp is not None and any(
        condition.reason == "DeletionByTaintManager" for condition in one.status.conditions
    )


async def all_marked(stage: Any, *names: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(stage.until(PODS, name, marked))


async def taint(stage: Any, name: str, *taints: Document) -> None:
    await stage.patch(NODES, name, {"spec": {"taints": list(taints)}})


async def tell(stage: Any) -> Document:
    await all_marked(stage, "found", "found-brief", "found-other-value")
    await taint(stage, "later", FULL, OUT)
    await all_marked(stage, *GOING_LATER)
    # Removed by its owner: its deletion is cancelled.
    await stage.api.delete(PODS, stage.namespace, "removed", grace=0)
    await stage.patch(PODS, "removed", {"metadata": {"finalizers": None}})
    await stage.told("TaintManagerEviction", "removed")
    # A second taint is tolerated for ever by one of those that wait for the first, and not by the other.
    await taint(stage, "twice", FULL, OUT)
    await stage.gone(PODS, "sign")
    await taint(stage, "twice", FULL, OUT, WORN)
    await all_marked(stage, "first-of-two")
    await taint(stage, "twice", FULL)
    await stage.told("TaintManagerEviction", "long")
    await stage.create(PODS, pod("late", "tainted"), pod("late-brief", "tainted", lasting(1)))
    await all_marked(stage, "late", "late-brief")
    await stage.quiet()
    page = await stage.api.list(PODS.untyped, stage.namespace)
    return {"marks": {one["metadata"]["name"]: seen(one) for one in page.items}}


def seen(document: Document) -> Document:
    """What was written of a pod, but when."""
    meta, conditions = document["metadata"], document["status"].get("conditions", ())
    return {
        "phase": document["status"]["phase"],
        "conditions": [
            {key: value for key, value in one.items() if not key.endswith("Time")} for one in conditions
        ],
        "kept the time of an earlier one": any(one.get("lastTransitionTime") == AT for one in conditions),
        "going": "deletionTimestamp" in meta,
        "grace": meta.get("deletionGracePeriodSeconds"),
    }


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    # The reference manager needs the index of the daemonset-controller to find the pods of a node.
    found: dict[str, dict[str, Any]] = both(
        tell,
        "tainted",
        before=before,
        controllers=("taint-eviction-controller", "daemonset-controller"),
        kinds=(PODS,),
    )
    for end in found.values():
        for event in end["events"]:
            if event["about"].startswith("Pod/found"):
                # The reference manager deletes these once for their node, and once for themselves.
                event["count"] = None
    return found


def deletions(end: dict[str, Any]) -> float:
    count: float = end["counters"]["taint_eviction_controller_pod_deletions_total"]
    return count


def test_pods_that_do_not_tolerate_the_taints_of_their_node_are_deleted(
    ends: dict[str, dict[str, Any]],
) -> None:
    marks = ends["steersman"]["marks"]
    staying = sorted(name for name, mark in marks.items() if not mark["going"])
    assert staying == ["elsewhere", "for-ever", "found-for-ever", "long"]
    assert deletions(ends["steersman"]) == len(marks) - len(staying) + len(["sign"])


@pytest.mark.parametrize("what", ["pods", "marks", "events"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)
