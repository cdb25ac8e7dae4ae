"""A training job waits for a device, gets it when another job is done, and moves when the device fails."""

from __future__ import annotations

from typing import Any

from steersman.sim.dynamicresources import Devices
from steersman.testing import Cluster

TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "large-device"},
    "spec": {
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "device",
                        "exactly": {
                            "deviceClassName": "simulated",
                            "selectors": [
                                {
                                    "cel": {
                                        "expression": "device.capacity['sim.steersman.dev'].memory"
                                        ".compareTo(quantity('40Gi')) >= 0"
                                    }
                                }
                            ],
                        },
                    }
                ]
            }
        }
    },
}


def training(name: str, seconds: int) -> dict[str, Any]:
    """A Job whose pod needs a device of its own."""
    container = {
        "name": "train",
        "image": "train:1",
        "command": ["sleep", str(seconds)],
        "resources": {"claims": [{"name": "device"}]},
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "resourceClaims": [{"name": "device", "resourceClaimTemplateName": "large-device"}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"metadata": {"labels": {"job": name}}, "spec": pod}},
    }


def device(cluster: Cluster) -> str:
    """The device that is in use."""
    allocations = [each.status.allocation for each in cluster.list("resourceclaims")]
    return ", ".join(
        f"{result.pool}/{result.device}"
        for allocation in allocations
        if allocation is not None
        for result in allocation.devices.results
    )


def succeeded(cluster: Cluster, name: str) -> bool:
    return bool(cluster.get("Job", name).status.succeeded == 1)


def test_jobs_take_turns_with_the_only_device() -> None:
    with Cluster(nodes=1, dra=Devices(count=1, capacity={"memory": "80Gi"})) as cluster:
        cluster.apply(TEMPLATE)
        cluster.apply(training("first", 3600))
        cluster.wait_until(lambda: device(cluster) == "node-1/device-0")
        cluster.apply(training("second", 60))
        cluster.settle()
        second = next(pod for pod in cluster.list("pods") if pod.metadata.labels["job"] == "second")
        assert "1 cannot allocate all claims" in second.status.conditions[0].message
        cluster.wait_until(lambda: succeeded(cluster, "first"), timeout=7200)
        cluster.wait_until(lambda: succeeded(cluster, "second"))


def test_a_job_moves_to_another_device_when_its_own_fails() -> None:
    with Cluster(nodes=2, dra=Devices(count=1, capacity={"memory": "80Gi"})) as cluster:
        cluster.apply(TEMPLATE)
        cluster.apply(training("only", 3600))
        cluster.wait_until(lambda: device(cluster) == "node-1/device-0")
        cluster.node("node-1").fail_devices("device-0")
        cluster.wait_until(lambda: device(cluster) == "node-2/device-0")
        cluster.wait_until(lambda: succeeded(cluster, "only"), timeout=7200)
