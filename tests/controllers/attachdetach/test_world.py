"""Volumes in a cluster with a CSI driver that a test scripts: they are attached, move, and survive what happens to nodes."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.controllers.attachdetach.world import MANAGED
from steersman.testing.cluster import Cluster

NAME = "persistentvolume-attach-detach-controller"
DRIVER = "csi.example.com"
FINALIZER = "external-attacher/csi-example-com"


def unique(volume: str) -> str:
    return f"kubernetes.io/csi/{DRIVER}^{volume}"


class Storage:
    """A cluster with a scripted CSI driver, and with kubelets whose mounts are scripted, too."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        for node in cluster.list("nodes"):
            cluster.patch("node", node.metadata.name, {"metadata": {"annotations": {MANAGED: "true"}}})

    def volume(self, name: str, mode: str = "ReadWriteOnce") -> None:
        """A PersistentVolume and its claim, bound to each other."""
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {
                "accessModes": [mode],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
                "volumeName": name,
            },
        }
        self.cluster.create(claim)
        uid = self.cluster.get("persistentvolumeclaim", name).metadata.uid
        pv = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "accessModes": [mode],
                "capacity": {"storage": "1Gi"},
                "claimRef": {"namespace": "default", "name": name, "uid": uid},
                "csi": {"driver": DRIVER, "volumeHandle": name},
            },
        }
        self.cluster.create(pv)
        self.cluster.patch(
            "persistentvolumeclaim", name, {"status": {"phase": "Bound"}}, subresource="status"
        )

    def pod(self, name: str, on: str, volume: str) -> None:
        spec = {
            "nodeName": on,
            "containers": [{"name": "main", "image": "app:1"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": volume}}],
        }
        self.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})

    def attachments(self) -> list[tuple[str, str, bool]]:
        """The volume, node and state of each VolumeAttachment; True is attached."""
        return sorted(
            (each.spec.source.persistentVolumeName, each.spec.nodeName, each.status.attached)
            for each in self.cluster.list("volumeattachments")
        )

    def attach(self) -> None:
        """The driver attaches everything that is asked for, and lets go what is being deleted."""
        self.cluster.settle(1.0)
        for each in self.cluster.list("volumeattachments"):
            name, meta = each.metadata.name, each.metadata
            if meta.deletionTimestamp is not None:
                self.cluster.patch("volumeattachment", name, {"metadata": {"finalizers": None}})
            elif not each.status.attached:
                self.cluster.patch("volumeattachment", name, {"metadata": {"finalizers": [FINALIZER]}})
                self.cluster.patch(
                    "volumeattachment", name, {"status": {"attached": True}}, subresource="status"
                )
        self.cluster.settle(1.0)

    def mount(self, on: str, *volumes: str) -> None:
        names = [unique(volume) for volume in volumes]
        self.cluster.patch("node", on, {"status": {"volumesInUse": names}}, subresource="status")
        self.cluster.settle(1.0)

    def reported(self, on: str) -> list[str]:
        found: Any = self.cluster.get("node", on)
        return sorted(each.name for each in found.status.volumesAttached)


def test_the_volumes_of_many_pods_are_attached_and_reported() -> None:
    with Cluster(nodes=2, controllers=[NAME]) as cluster:
        storage = Storage(cluster)
        for number in range(6):
            storage.volume(f"v{number}")
            storage.pod(f"p{number}", f"node-{number % 2 + 1}", f"v{number}")
        storage.attach()
        assert storage.reported("node-1") == [unique("v0"), unique("v2"), unique("v4")]
        assert storage.reported("node-2") == [unique("v1"), unique("v3"), unique("v5")]
        assert [each.reason for each in cluster.events("pod", "p3")] == ["SuccessfulAttachVolume"]


def test_a_volume_moves_with_its_pod() -> None:
    with Cluster(nodes=2, controllers=[NAME]) as cluster:
        storage = Storage(cluster)
        storage.volume("data")
        storage.pod("first", "node-1", "data")
        storage.attach()
        storage.mount("node-1", "data")
        storage.pod("second", "node-2", "data")
        cluster.settle()
        assert storage.attachments() == [("data", "node-1", True)]
        cluster.delete("pod", "first", grace=0)
        cluster.settle()
        assert storage.attachments() == [("data", "node-1", True)]
        storage.mount("node-1")
        assert storage.reported("node-1") == []
        storage.attach()
        storage.attach()
        assert storage.attachments() == [("data", "node-2", True)]
        assert storage.reported("node-2") == [unique("data")]


@pytest.mark.parametrize("minutes", [5, 7])
def test_a_failed_node_loses_its_volume_after_six_minutes(minutes: int) -> None:
    with Cluster(nodes=2, controllers=[NAME, "node-lifecycle-controller"]) as cluster:
        storage = Storage(cluster)
        storage.volume("data")
        storage.pod("first", "node-1", "data")
        storage.attach()
        storage.mount("node-1", "data")
        cluster.node("node-1").fail()
        cluster.advance(minutes=2)
        cluster.delete("pod", "first", grace=0)
        storage.pod("second", "node-2", "data")
        cluster.advance(minutes=minutes)
        storage.attach()
        storage.attach()
        on = "node-1" if minutes < 6 else "node-2"
        assert storage.attachments() == [("data", on, True)]


def test_nothing_is_written_while_nothing_changes() -> None:
    with Cluster(nodes=2, controllers=[NAME]) as cluster:
        storage = Storage(cluster)
        storage.volume("data")
        storage.pod("first", "node-1", "data")
        storage.attach()
        before = len(cluster.history())
        assert before
        cluster.advance(days=1)
        assert len(cluster.history()) == before


def test_a_manager_that_restarts_goes_on_with_the_move_of_a_volume() -> None:
    with Cluster(nodes=2, controllers=[NAME]) as cluster:
        storage = Storage(cluster)
        storage.volume("data")
        storage.pod("first", "node-1", "data")
        storage.attach()
        storage.pod("second", "node-2", "data")
        cluster.delete("pod", "first", grace=0)
        cluster.settle(1.0)
        cluster.restart_manager()
        storage.attach()
        storage.attach()
        assert storage.attachments() == [("data", "node-2", True)]
