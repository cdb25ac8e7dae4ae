"""Pods that nobody will finish, on a real API server: both managers mark and remove the same ones.

The pods have a finalizer of their own where it is of interest what was written before they were deleted.
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
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
FORMER = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
    "lastTransitionTime": AT,
}
ORPHANS = ("orphan", "orphan-evicted", "orphan-pending")
WORN = ("worn-1", "worn-2", "worn-3", "worn-4", "worn-5")


def node(name: str, ready: str, *taints: Document) -> tuple[Document, Document]:
    document = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"taints": list(taints)},
    }
    conditions = [
        {
            "type": "Ready",
            "status": ready,
            "lastTransitionTime": AT,
            "lastHeartbeatTime": AT,
            "reason": "Test",
        }
    ]
    return document, {"status": {"conditions": conditions}}


def pod(name: str, on: str = "", *, held: bool = True) -> Document:
    spec: Document = {"containers": [{"name": "main", "image": "example/app:1"}]}
    if on:
        spec["nodeName"] = on
    else:
        spec["schedulerName"] = "nobody"
    meta = {"name": name, "finalizers": [KEEP] if held else []}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


async def before(stage: Any) -> None:
    """What a manager finds: nodes in three states, and pods that are in trouble."""
    for document, status in (
        node("alive", "True"),
        node("lost", "Unknown", OUT_OF_SERVICE),
        node("out", "True", OUT_OF_SERVICE),
    ):
        await stage.create(NODES, document)
        await stage.patch(NODES, document["metadata"]["name"], status, subresource="status")
    await stage.create(PODS, *(pod(name, "gone") for name in (*ORPHANS, "orphan-done")))
    await stage.create(PODS, pod("waiting"), pod("never-placed"), pod("stuck", "lost"), pod("stays", "out"))
    await stage.create(PODS, pod("runs", "alive"))
    phases: Document = {"orphan": {"phase": "Running"}, "orphan-done": {"phase": "Succeeded"}}
    phases["orphan-evicted"] = {"phase": "Running", "conditions": [FORMER]}
    phases["stuck"] = phases["stays"] = phases["runs"] = {"phase": "Running"}
    for name in WORN:
        await stage.create(PODS, pod(name, "alive", held=False))
        phases[name] = {"phase": "Succeeded"}
    phases["worn-4"] = {"phase": "Failed", "reason": "Evicted"}
    for name, status in phases.items():
        await stage.patch(PODS, name, {"status": status}, subresource="status")
    for name in ("never-placed", "stuck", "stays"):
        await stage.api.delete(PODS, stage.namespace, name, grace=3600)


def marked(one: Pod) -> bool:
    return one.status.phase == "Failed" and one.metadata.deletionTimestamp is not None


async def tell(stage: Any) -> Document:
    async with asyncio.TaskGroup() as tasks:
        for name in (*ORPHANS, "never-placed", "stuck"):
            tasks.create_task(stage.until(PODS, name, marked))
        going = stage.until(PODS, "orphan-done", lambda one: one.metadata.deletionTimestamp is not None)
        tasks.create_task(going)
        # Of the five that have ended, the evicted one goes first and then the oldest, until with those that
        # are held there are no more than may be: all of the held ones count, and are older.
        for name in ("worn-1", "worn-4"):
            tasks.create_task(stage.gone(PODS, name))
    page = await stage.api.list(PODS.untyped, stage.namespace)
    return {"marks": {one["metadata"]["name"]: seen(one) for one in page.items}}


def seen(document: Document) -> Document:
    """What was written of a pod, but when."""
    status = document["status"]
    conditions = [
        {key: value for key, value in one.items() if not key.endswith("Time")}
        for one in status.get("conditions", ())
    ]
    former = any(one.get("lastTransitionTime") == AT for one in status.get("conditions", ()))
    return {
        "phase": status["phase"],
        "conditions": sorted(conditions, key=lambda one: str(one["type"])),
        "kept the time of an earlier one": former,
        "observedGeneration": status.get("observedGeneration"),
        "going": "deletionTimestamp" in document["metadata"],
        "grace": document["metadata"].get("deletionGracePeriodSeconds"),
    }


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell,
        "litter",
        before=before,
        controllers=("pod-garbage-collector-controller",),
        kinds=(PODS,),
        flags=("--terminated-pod-gc-threshold=3",),
    )
    return found


def test_what_nobody_will_finish_is_marked_and_removed(ends: dict[str, dict[str, Any]]) -> None:
    marks = ends["steersman"]["marks"]
    going = sorted(name for name, mark in marks.items() if mark["going"])
    assert going == [
        "never-placed",
        "orphan",
        "orphan-done",
        "orphan-evicted",
        "orphan-pending",
        "stays",
        "stuck",
    ]
    assert marks["stays"]["phase"] == "Running", "its node is ready, whatever its taint says"
    assert [name for name in marks if name.startswith("worn")] == ["worn-2", "worn-3", "worn-5"]
    (told,) = marks["orphan"]["conditions"]
    assert (told["reason"], told["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")


@pytest.mark.parametrize("what", ["pods", "marks"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)
