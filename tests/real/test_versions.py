"""Objects that two versions serve: what the one is given the other shows, here as on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from steersman.api.generated import load
from steersman.client.api import Api
from steersman.sim.world import World
from tests.harness.envtest import RealPlane

V1 = load("autoscaling", "v1", "HorizontalPodAutoscaler").untyped
V2 = load("autoscaling", "v2", "HorizontalPodAutoscaler").untyped
CORE = load("", "v1", "Event").untyped
NEW = load("events.k8s.io", "v1", "Event").untyped
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
SELECTOR = {"matchLabels": {"a": "b"}}
METRICS: list[dict[str, Any]] = [
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
    },
    {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "64Mi"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "main",
            "target": {"type": "Utilization", "averageUtilization": 50},
        },
    },
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "hits", "selector": SELECTOR},
            "target": {"type": "AverageValue", "averageValue": "1500m"},
        },
    },
    {
        "type": "Object",
        "object": {
            "metric": {"name": "queue"},
            "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "q"},
            "target": {"type": "Value", "value": "10"},
        },
    },
    {
        "type": "Object",
        "object": {
            "metric": {"name": "queue", "selector": SELECTOR},
            "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "q"},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    },
    {
        "type": "External",
        "external": {
            "metric": {"name": "mail", "selector": SELECTOR},
            "target": {"type": "Value", "value": "3"},
        },
    },
    {
        "type": "External",
        "external": {"metric": {"name": "mail"}, "target": {"type": "AverageValue", "averageValue": "3"}},
    },
]
CURRENT: list[dict[str, Any]] = [
    {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 7, "averageValue": "70m"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "main", "current": {"averageValue": "1"}},
    },
    {"type": "Pods", "pods": {"metric": {"name": "hits"}, "current": {"averageValue": "1"}}},
    {
        "type": "Object",
        "object": {
            "metric": {"name": "queue"},
            "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "q"},
            "current": {"value": "4", "averageValue": "2"},
        },
    },
    {
        "type": "External",
        "external": {"metric": {"name": "mail", "selector": SELECTOR}, "current": {"value": "4"}},
    },
]
STATUS = {
    "currentReplicas": 2,
    "desiredReplicas": 3,
    "lastScaleTime": "2026-01-01T00:00:00Z",
    "currentMetrics": CURRENT,
    "conditions": [
        {
            "type": "AbleToScale",
            "status": "True",
            "reason": "Fine",
            "message": "so it is",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}
BEHAVIOR = {
    "scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}], "selectPolicy": "Min"},
    "scaleDown": {"stabilizationWindowSeconds": 60},
}


def scaler(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 5, **spec}}


def event(name: str, namespace: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": namespace, "uid": "u"},
        "reason": "Started",
        "message": "it has begun",
        "source": {"component": "kubelet", "host": "node-1"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:01:00Z",
        "count": 3,
        "type": "Normal",
    }


def new_event(name: str, namespace: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "regarding": {"kind": "Pod", "name": "p", "namespace": namespace, "uid": "u"},
        "reason": "Scheduled",
        "note": "it has a place",
        "action": "Binding",
        "eventTime": "2026-01-01T00:00:00.500000Z",
        "reportingController": "scheduler",
        "reportingInstance": "scheduler-1",
        "series": {"count": 4, "lastObservedTime": "2026-01-01T00:00:01.000001Z"},
        "type": "Normal",
    }


def bare(document: dict[str, Any]) -> dict[str, Any]:
    """Without what differs each time, and with what annotations say taken apart."""
    meta = document["metadata"]
    notes: dict[str, Any] = dict(meta.get("annotations", {}))
    for name, text in notes.items():
        if text.startswith(("[", "{")):
            notes[name] = msgspec.json.decode(text)
    return {**document, "metadata": {"name": meta["name"], "annotations": notes}}


async def story(api: Api, namespace: str) -> dict[str, Any]:
    """Everything written in one version is read in both."""
    metrics = await api.create(V2, namespace, scaler("all", metrics=METRICS, behavior=BEHAVIOR))
    await api.update_status(V2, namespace, "all", {**metrics, "status": STATUS})
    await api.create(V1, namespace, scaler("percent", targetCPUUtilizationPercentage=40))
    await api.create(V1, namespace, scaler("silent"))
    await api.create(V2, namespace, scaler("usual"))
    old = await api.get(V1, namespace, "all")
    old["spec"]["maxReplicas"] = 9
    await api.update(V1, namespace, "all", old)
    notes = {"autoscaling.alpha.kubernetes.io/metrics": "no JSON", "mine": "stays"}
    odd = scaler("odd")
    odd["metadata"]["annotations"] = notes
    await api.create(V1, namespace, odd)
    await api.create(CORE, namespace, event("core", namespace))
    await api.create(NEW, namespace, new_event("new", namespace))
    found: dict[str, Any] = {}
    for kind in (V1, V2, CORE, NEW):
        page = await api.list(kind, namespace)
        for each in page.items:
            assert isinstance(each, dict)
            found[f"{kind} {each['metadata']['name']}"] = bare(each)
    for kind, selector in (
        (NEW, "regarding.kind=Pod,reportingController=scheduler"),
        (CORE, "involvedObject.uid=u,source=kubelet"),
    ):
        page = await api.list(kind, namespace, field_selector=selector)
        found[f"{kind} {selector}"] = [each["metadata"]["name"] for each in page.items]
    await api.delete(NEW, namespace, "core")
    found["left"] = [each["metadata"]["name"] for each in (await api.list(CORE, namespace)).items]
    return found


@pytest.fixture
def world() -> Iterator[World]:
    with World() as world:
        yield world


def test_what_one_version_is_given_the_other_shows_as_on_a_real_server(
    plane: RealPlane, namespace: str, world: World
) -> None:
    async def real() -> dict[str, Any]:
        async with plane.connect() as api:
            return await story(api, namespace)

    namespaces = load("", "v1", "Namespace").untyped
    world.run(world.api().create(namespaces, "", {"metadata": {"name": namespace}}))
    ours = world.run(story(world.api(), namespace))
    theirs = asyncio.run(real())
    for name, expected in theirs.items():
        assert ours[name] == expected, name
    assert ours.keys() == theirs.keys()
