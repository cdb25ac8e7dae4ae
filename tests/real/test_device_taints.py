"""Tainted devices on a real API server: both managers evict the same pods, and write the same conditions and events.

The pods have a finalizer of their own, so that it can be seen what was written before they were deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.devices import (
    DEVICETAINTRULES,
    RESOURCECLAIMS,
    RESOURCESLICES,
    DeviceTaintRule,
)

Document = dict[str, Any]
GATES = "--feature-gates=DRADeviceTaintRules=true"
API = "--runtime-config=resource.k8s.io/v1beta2=true"
DRIVER = "gpu.example.com"
KEEP = "example.com/keep"
NAMES = (
    "plain",
    "brief",
    "for-ever",
    "no-effect",
    "cancelled",
    "by-rule",
    "by-rule-too",
    "by-rule-brief",
    "cancelled-rule",
    "unscheduled",
    "unreserved",
    "terminating",
    "would",
)
"""Each pod has a claim, a device and a pool of its own, all of one name."""


def device_slice(name: str, *taints: Document, generation: int = 1) -> Document:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "allNodes": True,
            "pool": {"name": name, "generation": generation, "resourceSliceCount": 1},
            "devices": [{"name": name, "taints": list(taints)}],
        },
    }


def claim(name: str) -> Document:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }


def pod(name: str) -> Document:
    spec: Document = {
        "containers": [{"name": "main", "image": "example/app:1"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
    }
    if name != "unscheduled":
        spec["nodeName"] = "elsewhere"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "finalizers": [KEEP]},
        "spec": spec,
    }


def rule(name: str, effect: str = "NoExecute", **selector: str) -> Document:
    return {
        "apiVersion": DEVICETAINTRULES.api_version,
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {
            "deviceSelector": {"driver": DRIVER, **selector},
            "taint": {"key": "example.com/rule", "value": name, "effect": effect},
        },
    }


def tolerating(seconds: int | None = None, effect: str = "NoExecute") -> Document:
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"operator": "Exists", "effect": effect, **limit}


BROKEN = {"key": "example.com/broken", "effect": "NoExecute"}
TOLERATIONS = {
    "brief": [tolerating(3)],
    "for-ever": [tolerating()],
    "no-effect": [tolerating(effect="NoSchedule")],
    "cancelled": [tolerating(3000)],
    "by-rule-brief": [tolerating(2)],
    "cancelled-rule": [tolerating(3000)],
}


async def before(stage: Any) -> None:
    await stage.create(RESOURCESLICES, *(device_slice(name) for name in NAMES))
    await stage.create(RESOURCECLAIMS, *(claim(name) for name in NAMES))
    await stage.create(PODS, *(pod(name) for name in NAMES))
    for name in NAMES:
        found: Pod = await stage.until(PODS, name, bool)
        result = {
            "request": "gpu",
            "driver": DRIVER,
            "pool": name,
            "device": name,
            "tolerations": TOLERATIONS.get(name, []),
        }
        reserved = {"resource": "pods", "name": name, "uid": found.metadata.uid}
        status = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [reserved] if name != "unreserved" else [{**reserved, "uid": "another"}],
        }
        await stage.patch(RESOURCECLAIMS, name, {"status": status}, subresource="status")
    await stage.api.delete(PODS, stage.namespace, "terminating", grace=3600)


def marked(found: Pod) -> bool:
    return found.metadata.deletionTimestamp is not None


async def all_marked(stage: Any, *names: str) -> None:
    await asyncio.gather(*(stage.until(PODS, name, marked) for name in names))


async def taint(stage: Any, name: str, *taints: Document) -> None:
    await stage.patch(RESOURCESLICES, name, {"spec": {"devices": [{"name": name, "taints": list(taints)}]}})


def says(reason: str, message: str = "") -> Callable[[DeviceTaintRule], bool]:
    return lambda found: any(
        each.reason == reason and message in each.message for each in found.status.conditions
    )


async def tell(stage: Any) -> Document:
    await asyncio.gather(by_slices(stage), by_rules(stage))
    await stage.quiet()
    pods = await stage.api.list(PODS.untyped, stage.namespace)
    rules = await stage.api.list(DEVICETAINTRULES.untyped, "")
    return {
        "marks": {one["metadata"]["name"]: seen(one) for one in pods.items},
        "conditions": {one["metadata"]["name"]: conditions(one) for one in rules.items},
    }


async def by_slices(stage: Any) -> None:
    tainted = (
        "plain",
        "brief",
        "for-ever",
        "no-effect",
        "cancelled",
        "unscheduled",
        "unreserved",
        "terminating",
    )
    for name in tainted:
        await taint(stage, name, BROKEN)
    await all_marked(stage, "plain", "brief", "no-effect")
    # A taint that is replaced by another one that is tolerated changes nothing; one that goes cancels.
    await taint(stage, "cancelled", {**BROKEN, "effect": "NoSchedule"})
    await stage.told("DeviceTaintManagerEviction", "cancelled")


async def by_rules(stage: Any) -> None:
    await stage.create(DEVICETAINTRULES, rule("other", "NoSchedule"), rule("none", "None", device="would"))
    await stage.until(DEVICETAINTRULES, "other", says("OtherEffect"))
    await stage.until(DEVICETAINTRULES, "none", says("NoEffect"))
    await stage.create(DEVICETAINTRULES, rule("nothing", pool="nonesuch"), rule("two", pool="by-rule"))
    await all_marked(stage, "by-rule")
    await stage.until(DEVICETAINTRULES, "nothing", says("NotStarted"))
    await stage.until(DEVICETAINTRULES, "two", says("Completed", "1 pod evicted"))
    # A rule that changes evicts more.
    await stage.patch(DEVICETAINTRULES, "two", {"spec": {"deviceSelector": {"pool": "by-rule-too"}}})
    await all_marked(stage, "by-rule-too")
    await stage.until(DEVICETAINTRULES, "two", says("Completed", "2 pods evicted"))
    await stage.create(DEVICETAINTRULES, rule("brief", device="by-rule-brief"))
    await all_marked(stage, "by-rule-brief")
    await stage.until(DEVICETAINTRULES, "brief", says("Completed"))
    await stage.create(DEVICETAINTRULES, rule("removed", device="cancelled-rule"))
    await stage.until(DEVICETAINTRULES, "removed", says("PodsPendingEviction"))
    await stage.api.delete(DEVICETAINTRULES, "", "removed")
    await stage.told("DeviceTaintManagerEviction", "cancelled-rule")
    await stage.create(DEVICETAINTRULES, rule("pending", device="cancelled-rule"))
    await stage.until(DEVICETAINTRULES, "pending", says("PodsPendingEviction"))


def seen(document: Document) -> Document:
    """What was written of a pod, but when."""
    meta = document["metadata"]
    return {
        "conditions": [
            {key: value for key, value in one.items() if not key.endswith("Time")}
            for one in document["status"].get("conditions", ())
        ],
        "going": "deletionTimestamp" in meta,
        "grace": meta.get("deletionGracePeriodSeconds"),
    }


def conditions(document: Document) -> list[Document]:
    """The conditions of a rule, but for the time, which must not be in the future."""
    found = document.get("status", {}).get("conditions", ())
    for one in found:
        at = datetime.fromisoformat(one["lastTransitionTime"].replace("Z", "+00:00"))
        assert at <= datetime.now(UTC)
    return [{key: value for key, value in one.items() if key != "lastTransitionTime"} for one in found]


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell,
        "tainted-devices",
        before=before,
        controllers=("device-taint-eviction-controller",),
        kinds=(PODS,),
        flags=(GATES,),
        apiserver=(GATES, API),
    )
    return found


def test_pods_that_do_not_tolerate_the_taints_of_their_devices_are_evicted(
    ends: dict[str, dict[str, Any]],
) -> None:
    marks = ends["steersman"]["marks"]
    staying = sorted(name for name, mark in marks.items() if not mark["going"])
    assert staying == ["cancelled", "cancelled-rule", "for-ever", "unreserved", "unscheduled", "would"]


@pytest.mark.parametrize("what", ["pods", "marks", "conditions", "events"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)


def test_both_managers_count_the_same(ends: dict[str, dict[str, Any]], alike: Callable[..., None]) -> None:
    alike(ends, lambda end: end["counters"]["device_taint_eviction_controller_pod_deletions_total"])
