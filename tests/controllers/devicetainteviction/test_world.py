"""Tainted devices under virtual time. The tests allocate and reserve claims, as a scheduler does."""

from __future__ import annotations

from typing import Any

from steersman.sim.dynamicresources import Devices
from steersman.testing.cluster import Cluster

DRIVER = "gpu.example.com"
ALONE = ("device-taint-eviction-controller",)
GATES = {"DRADeviceTaintRules": True}
MARKING, CANCELLING = "Marking for deletion", "Cancelling deletion"
KEEP = "example.com/keep"


def device_slice(*taints: dict[str, Any], generation: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{generation}"},
        "spec": {
            "driver": DRIVER,
            "allNodes": True,
            "pool": {"name": "pool", "generation": generation, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", **({"taints": list(taints)} if taints else {})}],
        },
    }


BROKEN = {"key": "broken", "effect": "NoExecute"}


def use(cluster: Cluster, name: str = "p", seconds: int | None = None, *, kept: bool = False) -> None:
    """Creates a pod on a node that uses the device, by a claim which may tolerate taints for a time."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "spec": {"devices": {"requests": [request]}},
        }
    )
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "finalizers": [KEEP] if kept else []},
            "spec": {
                "nodeName": "elsewhere",
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": "app:1"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
            },
        }
    )
    result: dict[str, Any] = {"request": "gpu", "driver": DRIVER, "pool": "pool", "device": "gpu-0"}
    if seconds is not None:
        toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        result["tolerations"] = [toleration]
    reserved = {"resource": "pods", "name": name, "uid": cluster.get("pod", name).metadata.uid}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [reserved]}
    cluster.patch("resourceclaim", name, {"status": status}, subresource="status")


def rule(effect: str = "NoExecute") -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "broken", "effect": effect}},
    }


def pods(cluster: Cluster) -> list[str]:
    return [each.metadata.name for each in cluster.list("pods")]


def messages(cluster: Cluster) -> list[str]:
    found = [each for each in cluster.list("events") if each.reason == "DeviceTaintManagerEviction"]
    assert {each.source.component for each in found} <= {"device-taint-eviction-controller"}
    return [each.message for each in found]


def condition(cluster: Cluster) -> tuple[str, str, str]:
    (found,) = cluster.get("devicetaintrule", "r").status.conditions
    return found.status, found.reason, found.message


def test_a_pod_leaves_a_device_that_is_tainted() -> None:
    with Cluster(seed=31, nodes=0, controllers=ALONE) as cluster:
        cluster.apply(device_slice())
        use(cluster)
        use(cluster, "q", seconds=300)
        cluster.settle()
        assert pods(cluster) == ["p", "q"]
        cluster.apply(device_slice(BROKEN))
        cluster.advance(seconds=10)
        assert pods(cluster) == ["q"]
        cluster.advance(seconds=280)
        assert pods(cluster) == ["q"]
        cluster.advance(seconds=20)
        assert pods(cluster) == []
        assert messages(cluster) == [MARKING, MARKING]


def test_a_pod_is_marked_before_it_is_deleted() -> None:
    with Cluster(seed=32, nodes=0, controllers=ALONE) as cluster:
        cluster.apply(device_slice(BROKEN))
        use(cluster, kept=True)
        cluster.settle()
        found = cluster.get("pod", "p")
        assert found.metadata.deletionTimestamp is not None
        (marked,) = found.status.conditions
        assert (marked.type, marked.status, marked.reason, marked.message) == (
            "DisruptionTarget",
            "True",
            "DeletionByDeviceTaintManager",
            "Device Taint manager: deleting due to NoExecute taint",
        )


def test_an_eviction_is_cancelled_when_the_driver_publishes_the_device_without_taint() -> None:
    with Cluster(seed=33, nodes=0, controllers=ALONE) as cluster:
        cluster.apply(device_slice(BROKEN))
        use(cluster, seconds=300)
        cluster.advance(seconds=200)
        cluster.apply(device_slice(generation=2))
        cluster.advance(minutes=30)
        assert pods(cluster) == ["p"]
        assert messages(cluster) == [CANCELLING]


def test_the_time_of_an_eviction_outlives_the_manager() -> None:
    with Cluster(seed=34, nodes=0, controllers=ALONE) as cluster:
        cluster.apply(device_slice(BROKEN))
        use(cluster, seconds=300)
        cluster.advance(seconds=200)
        cluster.restart_manager()
        cluster.advance(seconds=95)
        assert pods(cluster) == ["p"]
        cluster.advance(seconds=10)
        assert pods(cluster) == []


def test_a_rule_evicts_and_says_so() -> None:
    with Cluster(seed=35, nodes=0, controllers=ALONE, gates=GATES) as cluster:
        cluster.apply(device_slice())
        use(cluster)
        use(cluster, "q", seconds=60)
        cluster.apply(rule("None"))
        cluster.advance(seconds=20)
        assert condition(cluster) == (
            "False",
            "NoEffect",
            "1 published device selected. 2 allocated devices selected. 2 pods would be evicted in 1 namespace if the "
            "effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to "
            "trigger an update.",
        )
        before = cluster.get("devicetaintrule", "r").spec.taint.timeAdded
        cluster.apply(rule())
        assert cluster.get("devicetaintrule", "r").spec.taint.timeAdded > before
        cluster.advance(seconds=5)
        assert pods(cluster) == ["q"]
        assert condition(cluster) == (
            "True",
            "PodsPendingEviction",
            "2 pods need to be evicted in 1 namespace.",
        )
        cluster.advance(seconds=15)
        assert condition(cluster) == (
            "True",
            "PodsPendingEviction",
            "1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the controller.",
        )
        cluster.advance(seconds=70)
        assert pods(cluster) == []
        assert condition(cluster) == ("False", "Completed", "2 pods evicted since starting the controller.")


def test_a_rule_that_is_deleted_cancels_its_evictions() -> None:
    with Cluster(seed=36, nodes=0, controllers=ALONE, gates=GATES) as cluster:
        use(cluster, seconds=300)
        cluster.apply(rule())
        cluster.advance(seconds=100)
        cluster.delete("devicetaintrule", "r")
        cluster.advance(minutes=30)
        assert (pods(cluster), messages(cluster)) == (["p"], [CANCELLING])


def test_thirty_days_without_a_taint_are_quiet() -> None:
    with Cluster(seed=37, nodes=0, controllers=ALONE, gates=GATES) as cluster:
        cluster.apply(device_slice())
        use(cluster)
        cluster.apply(rule("NoSchedule"))
        cluster.settle()
        before = cluster.get("devicetaintrule", "r").metadata.resourceVersion
        cluster.advance(days=30)
        assert pods(cluster) == ["p"]
        assert cluster.get("devicetaintrule", "r").metadata.resourceVersion == before


def test_a_deployment_leaves_a_device_that_fails_for_another_node() -> None:
    """The whole plane: driver, scheduler, kubelets, and all controllers."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "simulated"}}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    container = {"name": "main", "image": "app:1", "resources": {"claims": [{"name": "gpu"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [container],
                    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
                },
            },
        },
    }
    with Cluster(seed=38, nodes=2, dra=Devices(count=1)) as cluster:
        cluster.apply(template)
        cluster.apply(deployment)
        cluster.wait_until(lambda: cluster.get("deployment", "web").status.readyReplicas == 1, 120)
        (first,) = cluster.list("pods")
        cluster.node(first.spec.nodeName).fail_devices("device-0")
        cluster.advance(minutes=2)
        (second,) = cluster.list("pods")
        assert second.spec.nodeName != first.spec.nodeName
        assert second.status.phase == "Running"
        assert messages(cluster) == [MARKING]
        # The claim of the first pod went with it.
        (claim,) = cluster.list("resourceclaims")
        assert [each.name for each in claim.status.reservedFor] == [second.metadata.name]
        cluster.delete("deployment", "web")
        cluster.advance(minutes=2)
        assert (cluster.list("pods"), cluster.list("resourceclaims")) == ([], [])
