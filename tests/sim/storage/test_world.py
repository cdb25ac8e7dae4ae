"""Claims in a whole cluster under virtual time: provisioned, bound, used and deleted.

The binder is a small one of the tests, so that what is tested is the scheduler and the storage.
"""

from __future__ import annotations

from typing import Any

import pytest

from steersman.sim.kubelet import Shape
from steersman.testing import Cluster
from tests.harness.volume_binder import BINDER

CREW = ("statefulset-controller", "garbage-collector-controller", BINDER)
NODES = ("node-1", "node-2")


def claim(name: str = "data", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def pod(name: str = "p", claim: str = "data", **spec: Any) -> dict[str, Any]:
    mount = {"name": "main", "image": "app:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [mount], "volumes": volumes, **spec},
    }


def stateful(replicas: int = 3) -> dict[str, Any]:
    template = pod()["spec"]["containers"]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "serviceName": "web",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": template}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim()["spec"]}],
        },
    }


def scheduled(cluster: Cluster, name: str = "p") -> str:
    """The message of the PodScheduled condition, or the node of the pod."""
    found = cluster.get("Pod", name)
    conditions = {each.type: each for each in found.status.conditions}
    message: str = found.spec.nodeName or conditions["PodScheduled"].message
    return message


def phase(cluster: Cluster, name: str = "p") -> str:
    found: str = cluster.get("Pod", name).status.phase
    return found


def reasons(cluster: Cluster, kind: str) -> list[str]:
    return [each.reason for each in cluster.list("Event") if each.involvedObject.kind == kind]


def test_a_stateful_set_with_claims_runs() -> None:
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(stateful())
        cluster.wait_until(lambda: cluster.get("StatefulSet", "web").status.readyReplicas == 3, 60)
        claims = cluster.list("PersistentVolumeClaim")
        assert [each.status.phase for each in claims] == ["Bound"] * 3
        assert {each.spec.storageClassName for each in claims} == {"standard"}


def test_a_claim_waits_for_its_first_consumer() -> None:
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(claim())
        cluster.settle()
        assert cluster.list("PersistentVolume") == []
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        (volume,) = cluster.list("PersistentVolume")
        terms = volume.spec.nodeAffinity.required.nodeSelectorTerms
        assert terms[0].matchExpressions[0].values == (scheduled(cluster),)


def test_a_pod_follows_its_volume_and_waits_for_the_node_of_it() -> None:
    with Cluster(nodes=NODES, controllers=CREW) as cluster:
        cluster.apply(claim())
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        home = scheduled(cluster)
        cluster.delete("Pod", "p")
        cluster.settle()
        cluster.node(home).cordon()
        cluster.apply(pod())
        cluster.settle()
        assert scheduled(cluster) == (
            "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, "
            "1 node(s) were unschedulable. no new claims to deallocate, preemption: 0/2 nodes are available: "
            "2 Preemption is not helpful for scheduling."
        )
        cluster.node(home).uncordon()
        cluster.wait_until(lambda: scheduled(cluster) == home, 60)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ((), 'persistentvolumeclaim "data" not found'),
        ((claim(storageClassName=""),), "pod has unbound immediate PersistentVolumeClaims"),
        ((claim(storageClassName="gone"),), "pod has unbound immediate PersistentVolumeClaims"),
    ],
    ids=["missing", "without a class", "of a class that is gone"],
)
def test_a_pod_is_not_scheduled_because_of_its_claim(objects: tuple[Any, ...], message: str) -> None:
    with Cluster(controllers=CREW) as cluster:
        for each in objects:
            cluster.apply(each)
        cluster.apply(pod())
        cluster.settle()
        assert scheduled(cluster) == f"0/3 nodes are available: {message}. not found"
        assert "FailedScheduling" in reasons(cluster, "Pod")


def test_no_pod_is_preempted_for_one_whose_claim_is_missing() -> None:
    with Cluster(
        nodes=("node-1",), controllers=CREW, shape=Shape(capacity={"cpu": "1", "pods": "9"})
    ) as cluster:
        main = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
        low = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "low"}, "spec": {"containers": [main]}}
        cluster.apply(low)
        cluster.wait_until(lambda: phase(cluster, "low") == "Running", 60)
        cluster.apply(pod(containers=[main], priorityClassName="system-cluster-critical"))
        cluster.settle()
        assert cluster.get("Pod", "low").metadata.deletionTimestamp is None


def test_a_pod_is_scheduled_once_its_claim_exists() -> None:
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(pod())
        cluster.settle()
        cluster.apply(claim())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)


def test_a_volume_is_deleted_with_its_claim() -> None:
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(claim())
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        cluster.delete("Pod", "p")
        cluster.delete("PersistentVolumeClaim", "data")
        cluster.wait_until(lambda: not cluster.list("PersistentVolume"), 60)


def test_a_pod_is_bound_to_an_existing_volume() -> None:
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "2Gi"},
            "storageClassName": "standard",
            "hostPath": {"path": "/disk"},
        },
    }
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(volume)
        cluster.settle()
        cluster.apply(claim())
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        assert cluster.get("PersistentVolumeClaim", "data").spec.volumeName == "disk"
        assert [each.metadata.name for each in cluster.list("PersistentVolume")] == ["disk"]


def test_two_pods_never_share_the_last_volume() -> None:
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "local"},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        )
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "disk"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": {"storage": "2Gi"},
                    "storageClassName": "local",
                    "hostPath": {"path": "/disk"},
                },
            }
        )
        cluster.settle()
        for name in ("one", "two"):
            cluster.apply(claim(name, storageClassName="local"))
            cluster.apply(pod(name, name))
        cluster.settle()
        assert sorted(phase(cluster, name) for name in ("one", "two")) == ["Pending", "Running"]


def test_provisioning_fails_while_an_annotation_says_so() -> None:
    with Cluster(controllers=CREW) as cluster:
        broken = {"metadata": {"annotations": {"sim.steersman.dev/provision-error": "no space"}}}
        cluster.apply(claim() | {"metadata": {"name": "data", **broken["metadata"]}})
        cluster.apply(pod())
        cluster.advance(seconds=30)
        assert phase(cluster) == "Pending"
        assert "ProvisioningFailed" in reasons(cluster, "PersistentVolumeClaim")
        cluster.patch(
            "PersistentVolumeClaim",
            "data",
            {"metadata": {"annotations": {"sim.steersman.dev/provision-error": None}}},
        )
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)


def test_a_pod_whose_claim_is_not_bound_in_ten_minutes_is_scheduled_again() -> None:
    with Cluster(controllers=CREW) as cluster:
        broken = {"annotations": {"sim.steersman.dev/provision-error": "no space"}}
        cluster.apply(claim() | {"metadata": {"name": "data", **broken}})
        cluster.apply(pod())
        cluster.advance(seconds=601)
        (event,) = (each for each in cluster.list("Event") if each.reason == "FailedScheduling")
        assert event.message == (
            'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
        )
        assert cluster.get("Pod", "p").status.conditions[0].reason == "SchedulerError"


def test_a_claim_whose_node_is_gone_gets_another_one() -> None:
    with Cluster(nodes=NODES, controllers=CREW) as cluster:
        gone = {"annotations": {"volume.kubernetes.io/selected-node": "gone"}}
        cluster.apply(claim() | {"metadata": {"name": "data", **gone}})
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)


def test_a_driver_of_a_node_attaches_only_so_many_volumes() -> None:
    with Cluster(nodes=("node-1",), controllers=CREW, csi=True) as cluster:
        limit = {"metadata": {"annotations": {"sim.steersman.dev/volume-limit": "1"}}}
        cluster.patch("Node", "node-1", limit)
        cluster.settle()
        (driver,) = cluster.get("CSINode", "node-1").spec.drivers or ()
        assert driver.allocatable.count == 1
        for name in ("one", "two"):
            cluster.apply(claim(name, storageClassName="csi-sim"))
            cluster.apply(pod(name, name))
            cluster.settle()
        assert phase(cluster, "one") == "Running"
        assert scheduled(cluster, "two").startswith(
            "0/1 nodes are available: 1 node(s) exceed max volume count."
        )
        cluster.delete("Pod", "one")
        cluster.wait_until(lambda: phase(cluster, "two") == "Running", 60)


def test_without_a_binder_pods_do_not_wait_for_their_claims() -> None:
    with Cluster(controllers=("statefulset-controller",)) as cluster:
        cluster.apply(stateful(1))
        cluster.wait_until(lambda: cluster.get("StatefulSet", "web").status.readyReplicas == 1, 60)
        assert cluster.list("StorageClass") == []


def test_a_fork_goes_on_with_bound_claims() -> None:
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(stateful(1))
        cluster.wait_until(lambda: cluster.get("StatefulSet", "web").status.readyReplicas == 1, 60)
        fork = cluster.fork()
        fork.patch("StatefulSet", "web", {"spec": {"replicas": 2}})
        fork.wait_until(lambda: fork.get("StatefulSet", "web").status.readyReplicas == 2, 60)
        assert len(fork.list("PersistentVolume")) == 2
        assert len(cluster.list("PersistentVolume")) == 1
