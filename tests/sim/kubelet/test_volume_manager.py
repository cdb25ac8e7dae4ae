"""Pods that wait for their volumes, in a cluster under virtual time.

The binder and the attach-detach controller are small ones of the tests, so that what is tested are the kubelets and the CSI driver.
"""

from __future__ import annotations

from typing import Any

from steersman.testing import Cluster
from tests.harness.volume_attacher import ATTACHER
from tests.harness.volume_binder import BINDER
from tests.sim.storage.test_world import claim, phase, pod, reasons

CREW = (BINDER, ATTACHER)


def messages(cluster: Cluster, reason: str = "FailedMount") -> list[str]:
    return [each.message for each in cluster.list("Event") if each.reason == reason]


def waiting(cluster: Cluster, name: str = "p") -> str:
    """Why the container of a pod has not started; empty where it has."""
    (status,) = cluster.get("Pod", name).status.containerStatuses
    return status.state.waiting.reason if status.state.waiting is not None else ""


def annotate(cluster: Cluster, kind: str, name: str, **annotations: str | None) -> None:
    added = {f"sim.steersman.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    cluster.patch(kind, name, {"metadata": {"annotations": added}})


# -- ConfigMaps and Secrets -------------------------------------------------------------------


def configured(name: str = "p") -> dict[str, Any]:
    found = pod(name)
    found["spec"]["volumes"] = [{"name": "data", "configMap": {"name": "settings"}}]
    return found


def test_a_pod_waits_for_its_config_map_and_says_so_once() -> None:
    with Cluster(controllers=()) as cluster:
        cluster.apply(configured())
        cluster.advance(minutes=30)
        assert (phase(cluster), waiting(cluster)) == ("Pending", "ContainerCreating")
        assert messages(cluster) == [
            'MountVolume.SetUp failed for volume "data" : configmap "settings" not found'
        ]
        (event,) = (each for each in cluster.list("Event") if each.reason == "FailedMount")
        assert (event.source.component, event.source.host) == (
            "kubelet",
            cluster.get("Pod", "p").spec.nodeName,
        )
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}})
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)


def test_a_pod_starts_its_delay_after_its_volumes_are_mounted() -> None:
    with Cluster(controllers=()) as cluster:
        cluster.apply(configured())
        cluster.advance(seconds=100)
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}})
        before = cluster.now
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        assert (cluster.now - before).total_seconds() == 1.0


def test_a_pod_that_waits_can_be_deleted() -> None:
    with Cluster(controllers=()) as cluster:
        cluster.apply(configured())
        cluster.settle()
        cluster.delete("Pod", "p")
        cluster.wait_until(lambda: not cluster.list("Pod"), 60)


def test_a_pod_runs_on_when_its_config_map_is_deleted_and_after_a_restart_of_the_kubelet() -> None:
    with Cluster(controllers=()) as cluster:
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}})
        cluster.apply(configured())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        cluster.delete("ConfigMap", "settings")
        fork = cluster.fork()
        fork.advance(hours=1)
        assert phase(fork) == "Running"
        assert messages(fork) == []


def test_two_pods_of_two_namespaces_wait_for_one_name_each() -> None:
    with Cluster(controllers=()) as cluster:
        cluster.apply(configured())
        other = configured()
        other["metadata"]["namespace"] = "kube-public"
        cluster.apply(other)
        cluster.settle()
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "settings", "namespace": "kube-public"},
            }
        )
        cluster.settle()
        assert cluster.get("Pod", "p", "kube-public").status.phase == "Running"
        assert phase(cluster) == "Pending"


# -- claims -----------------------------------------------------------------------------------


def test_a_pod_that_names_its_node_waits_for_its_claim() -> None:
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(claim(storageClassName=""))
        cluster.apply(pod(nodeName="node-1"))
        cluster.settle()
        assert waiting(cluster) == "ContainerCreating"
        assert messages(cluster) == [
            "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], "
            "failed to process volumes=[data]: error processing PVC default/data: PVC is not bound"
        ]


# -- attached volumes -------------------------------------------------------------------------


def in_use(cluster: Cluster, node: str) -> tuple[str, ...]:
    found: tuple[str, ...] = cluster.get("Node", node).status.volumesInUse
    return found


def test_a_volume_is_attached_before_the_pod_runs_and_detached_after_it() -> None:
    with Cluster(controllers=CREW, csi=True) as cluster:
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        node = cluster.get("Pod", "p").spec.nodeName
        (volume,) = cluster.list("PersistentVolume")
        name = f"kubernetes.io/csi/csi.sim.steersman.dev^{volume.spec.csi.volumeHandle}"
        assert in_use(cluster, node) == (name,)
        assert [each.name for each in cluster.get("Node", node).status.volumesAttached] == [name]
        (attachment,) = cluster.list("VolumeAttachment")
        assert attachment.status.attached
        assert "external-attacher/csi-sim-steersman-dev" in attachment.metadata.finalizers
        cluster.delete("Pod", "p")
        cluster.wait_until(lambda: not cluster.list("VolumeAttachment"), 60)
        assert in_use(cluster, node) == ()


def test_the_volume_stays_in_use_until_the_containers_have_stopped() -> None:
    with Cluster(controllers=CREW, csi=True) as cluster:
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(
            pod() | {"metadata": {"name": "p", "annotations": {"sim.steersman.dev/shutdown": "20s"}}}
        )
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        node = cluster.get("Pod", "p").spec.nodeName
        cluster.delete("Pod", "p")
        cluster.advance(seconds=19)
        assert len(in_use(cluster, node)) == 1
        assert len(cluster.list("VolumeAttachment")) == 1
        cluster.advance(seconds=2)
        assert in_use(cluster, node) == ()
        assert cluster.list("VolumeAttachment") == []


def test_a_pod_waits_while_its_volume_cannot_be_attached() -> None:
    with Cluster(controllers=CREW, csi=True) as cluster:
        annotate(cluster, "StorageClass", "csi-sim", attach_error="no slot is free")
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod())
        cluster.advance(seconds=30)
        assert (phase(cluster), waiting(cluster)) == ("Pending", "ContainerCreating")
        (attachment,) = cluster.list("VolumeAttachment")
        assert attachment.status.attachError.message == "no slot is free"
        annotate(cluster, "StorageClass", "csi-sim", attach_error=None)
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        assert cluster.list("VolumeAttachment")[0].status.attachError is None


def test_a_volume_moves_with_its_pod() -> None:
    with Cluster(nodes=("node-1", "node-2"), controllers=CREW, csi=True) as cluster:
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        first = cluster.get("Pod", "p").spec.nodeName
        cluster.delete("Pod", "p")
        cluster.settle()
        cluster.node(first).cordon()
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        (attachment,) = cluster.list("VolumeAttachment")
        assert {first, attachment.spec.nodeName} == {"node-1", "node-2"}


def test_a_failed_node_keeps_its_volume_in_use() -> None:
    with Cluster(nodes=("node-1",), controllers=CREW, csi=True) as cluster:
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        cluster.node("node-1").fail()
        cluster.delete("Pod", "p", grace=0)
        cluster.settle()
        assert len(in_use(cluster, "node-1")) == 1
        cluster.node("node-1").recover()
        cluster.settle()
        assert in_use(cluster, "node-1") == ()


def test_a_kubelet_that_starts_anew_knows_which_volumes_are_in_use() -> None:
    with Cluster(nodes=("node-1",), controllers=CREW, csi=True) as cluster:
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        fork = cluster.fork()
        fork.settle()
        assert len(in_use(fork, "node-1")) == 1
        fork.delete("Pod", "p")
        fork.settle()
        assert in_use(fork, "node-1") == ()
        status = {"status": {"volumesInUse": ["kubernetes.io/csi/gone^1"]}}
        fork.patch("Node", "node-1", status, subresource="status")
        stale = fork.fork()
        stale.settle()
        assert in_use(stale, "node-1") == ()


# -- expansion --------------------------------------------------------------------------------


def test_a_volume_is_expanded_by_the_driver_and_then_by_the_kubelet() -> None:
    with Cluster(controllers=CREW, csi=True) as cluster:
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        cluster.patch(
            "PersistentVolumeClaim", "data", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        )
        cluster.settle()
        found = cluster.get("PersistentVolumeClaim", "data")
        assert found.status.capacity == {"storage": "2Gi"}
        assert (found.status.conditions, dict(found.status.allocatedResourceStatuses)) == ((), {})
        (volume,) = cluster.list("PersistentVolume")
        assert volume.spec.capacity == {"storage": "2Gi"}
        node = cluster.get("Pod", "p").spec.nodeName
        assert (
            messages(cluster, "FileSystemResizeSuccessful")
            == [f'MountVolume.NodeExpandVolume succeeded for volume "{volume.metadata.name}" {node}'] * 2
        )
        assert {"Resizing", "FileSystemResizeRequired", "FileSystemResizeSuccessful"} <= {
            *reasons(cluster, "PersistentVolumeClaim")
        }


def test_a_file_system_is_expanded_when_the_next_pod_starts() -> None:
    with Cluster(controllers=CREW, csi=True) as cluster:
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        cluster.delete("Pod", "p")
        cluster.settle()
        cluster.patch(
            "PersistentVolumeClaim", "data", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        )
        cluster.settle()
        found = cluster.get("PersistentVolumeClaim", "data")
        assert [each.type for each in found.status.conditions] == ["FileSystemResizePending"]
        assert found.status.capacity == {"storage": "1Gi"}
        cluster.apply(pod())
        cluster.settle()
        assert cluster.get("PersistentVolumeClaim", "data").status.capacity == {"storage": "2Gi"}


def test_expansion_fails_while_an_annotation_says_so() -> None:
    with Cluster(controllers=CREW, csi=True) as cluster:
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        annotate(cluster, "PersistentVolumeClaim", "data", expand_error="the array is full")
        cluster.patch(
            "PersistentVolumeClaim", "data", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        )
        cluster.advance(seconds=10)
        found = cluster.get("PersistentVolumeClaim", "data")
        assert [each.type for each in found.status.conditions] == ["Resizing"]
        assert "VolumeResizeFailed" in reasons(cluster, "PersistentVolumeClaim")
        annotate(cluster, "PersistentVolumeClaim", "data", expand_error=None)
        capacity = {"storage": "2Gi"}
        cluster.wait_until(
            lambda: cluster.get("PersistentVolumeClaim", "data").status.capacity == capacity, 60
        )


def test_a_node_of_an_older_kubelet_gets_the_annotation_by_which_its_volumes_are_attached() -> None:
    name = "volumes.kubernetes.io/controller-managed-attach-detach"
    with Cluster(controllers=CREW) as cluster:
        cluster.patch("Node", "node-1", {"metadata": {"annotations": {name: None}}})
        cluster.settle()
        assert cluster.get("Node", "node-1").metadata.annotations[name] == "true"
