"""What simulated pods use, and how the metrics API says it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from steersman.api.generated.core_v1 import Node, Pod
from steersman.sim.kubelet.usage import Usage, node_metrics, pod_metrics, usage

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MI = 1024 * 1024


def pod(
    notes: dict[str, str] | None = None, requests: Any = None, phase: str = "Running", count: int = 1
) -> Pod:
    names = ["main", "side"][:count]
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    statuses = [{"name": name, "state": running, "image": "", "imageID": ""} for name in names]
    document = {
        "metadata": {
            "name": "p",
            "namespace": "default",
            "labels": {"app": "web"},
            "annotations": {f"sim.steersman.dev/{key}": value for key, value in (notes or {}).items()},
        },
        "spec": {"containers": [{"name": name, "resources": {"requests": requests or {}}} for name in names]},
        "status": {"phase": phase, "containerStatuses": statuses},
    }
    return msgspec.convert(document, Pod)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod({"cpu": "250m", "memory": "64Mi"}), Usage(250, 64 * MI)),
        (pod({"cpu": "250m", "memory": "64Mi"}, count=2), Usage(250, 64 * MI)),
        (pod({"cpu.main": "1"}, {"cpu": "100m", "memory": "8Mi"}, count=2), Usage(1050, 8 * MI)),
        (pod(requests={"cpu": "100m", "memory": "100Mi"}), Usage(50, 50 * MI)),
        (pod(), Usage(1, 16 * MI)),
        (pod({"cpu": "much"}), Usage(1, 16 * MI)),
        (pod({"cpu": "1"}, phase="Pending"), Usage()),
        (pod({"cpu": "1"}, phase="Succeeded"), Usage()),
    ],
)
def test_a_pod_uses(found: Pod, expected: Usage) -> None:
    assert usage(found) == expected


def test_pod_metrics_are_what_the_metrics_api_serves() -> None:
    assert pod_metrics(pod({"cpu": "250m", "memory": "64Mi"}), NOW) == {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": {
            "name": "p",
            "namespace": "default",
            "labels": {"app": "web"},
            "creationTimestamp": "2026-01-02T03:04:05Z",
        },
        "timestamp": "2026-01-02T03:04:05Z",
        "window": "30s",
        "containers": [{"name": "main", "usage": {"cpu": "250m", "memory": "64Mi"}}],
    }
    assert pod_metrics(pod(phase="Pending"), NOW) is None


def test_a_node_uses_what_its_pods_do() -> None:
    node = msgspec.convert({"metadata": {"name": "n"}}, Node)
    metrics = node_metrics(node, [usage(pod({"cpu": "1"})), usage(pod({"cpu": "500m"}))], NOW)
    assert (metrics["kind"], metrics["usage"]) == ("NodeMetrics", {"cpu": "1500m", "memory": "32Mi"})
