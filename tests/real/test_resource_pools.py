"""Requests for the status of pools on a real API server: steersman and kube-controller-manager give the same answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.kinds.devices import RESOURCECLAIMS, RESOURCEPOOLSTATUSREQUESTS, RESOURCESLICES
from tests.harness.follow import gone

Document = dict[str, Any]
DRIVER, OTHER = "gpu.example.com", "other.example.com"
GATES = "--feature-gates=DRAResourcePoolStatus=true"
COUNTED = "resourcepoolstatusrequest_controller_request"


def published(name: str, pool: str, *, driver: str = DRIVER, node: str = "", **more: Any) -> Document:
    where: Document = {"nodeName": node} if node else {"allNodes": True}
    numbers = {"generation": more.get("generation", 1), "resourceSliceCount": more.get("count", 1)}
    devices = [{"name": f"{name}-{number}"} for number in range(more.get("devices", 3))]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": driver, "pool": {"name": pool, **numbers}, "devices": devices, **where},
    }


def request(name: str, driver: str = DRIVER, **spec: Any) -> Document:
    return {
        "apiVersion": RESOURCEPOOLSTATUSREQUESTS.api_version,
        "kind": "ResourcePoolStatusRequest",
        "metadata": {"name": name},
        "spec": {"driver": driver, **spec},
    }


def claim(name: str) -> Document:
    wanted = {
        "name": "gpu",
        "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [wanted]}},
    }


async def prepare(stage: Any) -> Document:
    """Slices, a claim that has two devices, and requests that were answered before: hours ago, and just now."""
    await stage.create(
        RESOURCESLICES,
        published("a", "node-1", node="node-1", count=2),
        published("b", "node-1", node="node-1", count=2, devices=4),
        published("old", "shared", devices=9, generation=1),
        published("new", "shared", devices=2, generation=7),
        published("half", "unfinished", count=2),
        published("foreign", "node-1", driver=OTHER, devices=1),
    )
    await stage.create(RESOURCECLAIMS, claim("mine"), claim("waiting"))
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": "node-1", "device": device} for device in ("a-0", "b-1")
    ]
    allocation = {"allocation": {"devices": {"results": results}}}
    await stage.patch(RESOURCECLAIMS, "mine", {"status": allocation}, subresource="status")
    for name, age in (("expired", timedelta(hours=2)), ("recent", timedelta(minutes=1))):
        await stage.create(RESOURCEPOOLSTATUSREQUESTS, request(name))
        since = (datetime.now(UTC) - age).strftime("%Y-%m-%dT%H:%M:%SZ")
        done = {
            "type": "Complete",
            "status": "True",
            "reason": "Done",
            "message": "",
            "lastTransitionTime": since,
        }
        status = {"status": {"poolCount": 0, "conditions": [done]}}
        await stage.patch(RESOURCEPOOLSTATUSREQUESTS, name, status, subresource="status")
    return {}


async def tell(stage: Any) -> Document:
    await gone(stage.api, RESOURCEPOOLSTATUSREQUESTS, "", "expired")
    answered = (
        request("node", poolName="node-1"),
        request("shared", poolName="shared"),
        request("first", limit=1),
        request("foreign", driver=OTHER),
        request("nothing", driver="nothing.example.com"),
    )
    await stage.create(
        RESOURCEPOOLSTATUSREQUESTS, *answered, request("all"), request("half", poolName="unfinished")
    )
    for each in answered:
        await stage.until(
            RESOURCEPOOLSTATUSREQUESTS, each["metadata"]["name"], lambda found: found.status is not None
        )
    await stage.quiet()
    page = await stage.api.list(RESOURCEPOOLSTATUSREQUESTS.untyped, "")
    answers = {one["metadata"]["name"]: one.get("status") for one in page.items}
    for status in answers.values():
        for condition in (status or {}).get("conditions", ()):
            del condition["lastTransitionTime"]
    return {"answers": answers}


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell,
        "pools",
        controllers=("resourcepoolstatusrequest-controller",),
        kinds=(),
        flags=(GATES,),
        apiserver=(GATES, "--runtime-config=resource.k8s.io/v1alpha3=true"),
        before=prepare,
    )
    return found


def test_a_request_is_answered_once_its_pools_are_complete(ends: dict[str, dict[str, Any]]) -> None:
    answers = ends["steersman"]["answers"]
    counts = {
        name: [
            (pool["poolName"], pool["totalDevices"], pool["allocatedDevices"])
            for pool in status.get("pools", ())
        ]
        for name, status in answers.items()
        if status is not None
    }
    assert counts == {
        "node": [("node-1", 7, 2)],
        "shared": [("shared", 2, 0)],
        "first": [("node-1", 7, 2)],
        "foreign": [("node-1", 1, 0)],
        "nothing": [],
        "recent": [],
    }
    assert answers["first"]["poolCount"] == 3
    assert {name for name, status in answers.items() if status is None} == {"all", "half"}


def test_both_answer_the_same(ends: dict[str, dict[str, Any]], alike: Callable[..., None]) -> None:
    alike(ends, "answers")


def test_both_count_the_requests_they_answered(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None]
) -> None:
    alike(
        ends, lambda end: {name: value for name, value in end["counters"].items() if name.startswith(COUNTED)}
    )
