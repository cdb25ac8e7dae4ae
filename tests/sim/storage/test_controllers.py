"""Volumes in a cluster with all controllers: binder, attach-detach, expander and protections beside simulated storage."""

from __future__ import annotations

import subprocess
import sys

import pytest

from steersman.testing import Cluster
from tests.sim.kubelet.test_volume_manager import annotate, in_use, messages, waiting
from tests.sim.storage.test_world import claim, phase, pod, reasons, stateful


def test_a_stateful_set_runs_and_leaves_nothing_when_its_claims_are_deleted() -> None:
    with Cluster() as cluster:
        cluster.apply(stateful())
        cluster.wait_until(lambda: cluster.get("StatefulSet", "web").status.readyReplicas == 3, 60)
        assert [each.status.phase for each in cluster.list("PersistentVolume")] == ["Bound"] * 3
        cluster.delete("StatefulSet", "web")
        for number in range(3):
            cluster.delete("PersistentVolumeClaim", f"data-web-{number}")
        cluster.settle()
        for kind in ("Pod", "PersistentVolumeClaim", "PersistentVolume"):
            assert cluster.list(kind) == []


def test_a_claim_that_a_pod_uses_stays_until_the_pod_is_gone() -> None:
    with Cluster() as cluster:
        cluster.apply(claim())
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        cluster.delete("PersistentVolumeClaim", "data")
        cluster.advance(hours=1)
        assert phase(cluster) == "Running"
        cluster.delete("Pod", "p")
        cluster.settle()
        assert cluster.list("PersistentVolume") == []


def test_an_ephemeral_volume_lives_as_long_as_its_pod() -> None:
    template = {"volumeClaimTemplate": {"spec": claim()["spec"]}}
    with Cluster() as cluster:
        cluster.apply(pod(volumes=[{"name": "data", "ephemeral": template}]))
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        assert [each.metadata.name for each in cluster.list("PersistentVolumeClaim")] == ["p-data"]
        cluster.delete("Pod", "p")
        cluster.settle()
        assert cluster.list("PersistentVolumeClaim") == []
        assert cluster.list("PersistentVolume") == []


@pytest.mark.parametrize("seed", range(3))
def test_a_csi_volume_is_attached_used_and_detached(seed: int) -> None:
    with Cluster(seed, csi=True, shuffle=True) as cluster:
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        node = cluster.get("Pod", "p").spec.nodeName
        (volume,) = cluster.list("PersistentVolume")
        assert messages(cluster, "SuccessfulAttachVolume") == [
            f'AttachVolume.Attach succeeded for volume "{volume.metadata.name}" '
        ]
        cluster.delete("Pod", "p")
        cluster.settle()
        assert cluster.list("VolumeAttachment") == []
        assert (in_use(cluster, node), cluster.get("Node", node).status.volumesAttached) == ((), ())
        cluster.delete("PersistentVolumeClaim", "data")
        cluster.settle()
        assert cluster.list("PersistentVolume") == []


def test_the_events_of_a_claim_come_from_the_provisioner_of_its_class() -> None:
    with Cluster(csi=True) as cluster:
        for name, class_ in (("directory", "standard"), ("disk", "csi-sim")):
            cluster.apply({**claim(storageClassName=class_), "metadata": {"name": name}})
            mounts = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
            cluster.apply(pod(f"of-{name}", volumes=mounts))
        cluster.settle()
        sources = {
            each.involvedObject.name: each.source.component
            for each in cluster.list("events")
            if each.reason == "ProvisioningSucceeded"
        }
        assert sources == {"directory": "sim.steersman.dev/hostpath", "disk": "csi.sim.steersman.dev"}


def test_a_volume_that_cannot_be_attached_is_reported_and_attached_later() -> None:
    with Cluster(csi=True) as cluster:
        annotate(cluster, "StorageClass", "csi-sim", attach_error="no slot is free")
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod())
        cluster.advance(minutes=1)
        assert waiting(cluster) == "ContainerCreating"
        (volume,) = cluster.list("PersistentVolume")
        assert messages(cluster, "FailedAttachVolume")[0] == (
            f'AttachVolume.Attach failed for volume "{volume.metadata.name}" : no slot is free'
        )
        annotate(cluster, "StorageClass", "csi-sim", attach_error=None)
        cluster.wait_until(lambda: phase(cluster) == "Running", 600)


def test_the_volume_of_a_failed_node_moves_after_six_minutes() -> None:
    with Cluster(nodes=("node-1", "node-2"), csi=True) as cluster:
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod(nodeSelector={"kubernetes.io/hostname": "node-1"}))
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        cluster.node("node-1").fail()
        cluster.advance(minutes=2)
        cluster.delete("Pod", "p", grace=0)
        cluster.apply(pod("q"))
        cluster.advance(minutes=5)
        assert (phase(cluster, "q"), waiting(cluster, "q")) == ("Pending", "ContainerCreating")
        assert any(
            each.startswith("Waiting for detach for volume")
            for each in messages(cluster, "FailedAttachVolume")
        )
        cluster.advance(minutes=5)
        assert phase(cluster, "q") == "Running"


def test_a_claim_is_expanded_and_the_expander_leaves_it_to_the_driver() -> None:
    with Cluster(csi=True) as cluster:
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod())
        cluster.wait_until(lambda: phase(cluster) == "Running", 60)
        cluster.patch(
            "PersistentVolumeClaim", "data", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        )
        cluster.settle()
        found = cluster.get("PersistentVolumeClaim", "data")
        assert (dict(found.status.capacity), found.status.conditions) == ({"storage": "2Gi"}, ())
        assert {"ExternalExpanding", "Resizing", "FileSystemResizeSuccessful"} <= {
            *reasons(cluster, "PersistentVolumeClaim")
        }


def test_storage_does_not_keep_a_cluster_from_idling() -> None:
    with Cluster(csi=True) as cluster:
        cluster.apply(claim(storageClassName="csi-sim"))
        cluster.apply(pod())
        cluster.settle()
        steps: list[str] = []
        cluster.world.server.store.commit_hooks.append(lambda commit: steps.append(commit.resource))
        cluster.advance(days=30)
        idle = {"leases.coordination.k8s.io", "nodes", "events"}
        assert {each for each in steps if each not in idle} == set()


def test_a_cluster_without_claims_loads_nothing_of_volumes() -> None:
    script = (
        "import sys\n"
        "from steersman.testing import Cluster\n"
        "with Cluster() as cluster:\n"
        "    cluster.advance(days=1)\n"
        "parts = ('kubelet.volume_manager', 'scheduler.volume_binding', 'storage.provisioner')\n"
        "print([each for each in parts if f'steersman.sim.{each}' in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
