"""Volumes that are attached and detached, on a real API server: both managers do it alike.

The story is the CSI driver, which answers VolumeAttachments, and the kubelets, which report the volumes they have mounted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.kinds import PODS
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.kinds.storage import (
    CSIDRIVERS,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    VOLUMEATTACHMENTS,
    VolumeAttachment,
)

Document = dict[str, Any]
MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"
DRIVER, PLAIN = "csi.example.com", "nfs.example.com"
FINALIZER = "external-attacher/csi-example-com"
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
RWO, RWX = "ReadWriteOnce", "ReadWriteMany"
NODE_NAMES = ("n1", "n2", "n3")
GAUGES = ("storage_count_attachable_volumes_in_use", "attachdetach_controller_total_volumes")
FORCED = "attach_detach_controller_attachdetach_controller_forced_detaches"


def unique(handle: str, driver: str = DRIVER) -> str:
    return f"kubernetes.io/csi/{driver}^{handle}"


class Storage:
    """The scripted CSI driver and kubelets of a story."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage

    async def add_node(self, name: str, managed: bool = True) -> None:
        annotations = {MANAGED: "true"} if managed else {}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}}
        await self.stage.create(NODES, body)
        conditions = [{"type": "Ready", "status": "True", "reason": "Test", "message": "posted"}]
        await self.stage.patch(NODES, name, {"status": {"conditions": conditions}}, "status")

    async def add_volume(self, name: str, modes: str = RWO, **source: Any) -> None:
        """A PersistentVolume and its claim, bound to each other."""
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {
                "accessModes": [modes],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
                "volumeName": name,
            },
        }
        made = await self.stage.api.create(PERSISTENTVOLUMECLAIMS.untyped, self.stage.namespace, claim)
        reference = {"namespace": self.stage.namespace, "name": name, "uid": made["metadata"]["uid"]}
        pv = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "accessModes": [modes],
                "capacity": {"storage": "1Gi"},
                "claimRef": reference,
                **(source or {"csi": {"driver": DRIVER, "volumeHandle": name}}),
            },
        }
        await self.stage.create(PERSISTENTVOLUMES, pv)
        await self.stage.patch(PERSISTENTVOLUMECLAIMS, name, {"status": {"phase": "Bound"}}, "status")

    async def add_pod(self, name: str, on: str, claim: str = "", **source: Any) -> None:
        volume = {"name": "data", **(source or {"persistentVolumeClaim": {"claimName": claim}})}
        spec = {
            "nodeName": on,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "example/app:1"}],
            "volumes": [volume],
        }
        await self.stage.create(
            PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        )

    async def find(self, source: str, on: str) -> VolumeAttachment | None:
        page = await self.stage.api.list(VOLUMEATTACHMENTS, "")
        for each in page.items:
            inline = each.spec.source.inlineVolumeSpec
            names = (
                each.spec.source.persistentVolumeName,
                inline.csi.volumeHandle if inline is not None and inline.csi is not None else None,
            )
            if each.spec.nodeName == on and source in names:
                found: VolumeAttachment = each
                return found
        return None

    async def attachment(self, source: str, on: str) -> VolumeAttachment:
        """The VolumeAttachment of a volume and a node, once it is there."""
        found: list[VolumeAttachment] = []

        async def look() -> None:
            while not found:
                page = await self.stage.api.list(VOLUMEATTACHMENTS, "")
                if (one := await self.find(source, on)) is not None:
                    found.append(one)
                    return
                async for _ in self.stage.api.watch(
                    VOLUMEATTACHMENTS, "", resource_version=page.resource_version
                ):
                    if (one := await self.find(source, on)) is not None:
                        found.append(one)
                        return

        await self.stage._patient(f"the attachment of {source} to {on}", look())
        return found[0]

    async def answer(self, source: str, on: str, error: str = "") -> None:
        """The driver attaches a volume, or fails to."""
        name = (await self.attachment(source, on)).metadata.name
        await self.stage.patch(VOLUMEATTACHMENTS, name, {"metadata": {"finalizers": [FINALIZER]}})
        failure = {"message": error, "time": "2026-01-01T00:00:00Z"} if error else None
        status = {"attached": not error, "attachError": failure}
        await self.stage.patch(VOLUMEATTACHMENTS, name, {"status": status}, "status")

    async def let_go(self, source: str, on: str) -> None:
        """The driver detaches a volume, once its VolumeAttachment is being deleted."""
        name = (await self.attachment(source, on)).metadata.name
        await self.stage.until(
            VOLUMEATTACHMENTS, name, lambda one: one.metadata.deletionTimestamp is not None
        )
        await self.stage.patch(VOLUMEATTACHMENTS, name, {"metadata": {"finalizers": None}})
        await self.stage.gone(VOLUMEATTACHMENTS, name)

    async def mount(self, on: str, *names: str) -> None:
        """The kubelet reports the volumes that it has mounted: only these."""
        await self.stage.patch(NODES, on, {"status": {"volumesInUse": list(names)}}, "status")

    async def reported(self, on: str, *names: str) -> None:
        """Wait until a node reports these volumes as attached: only these."""

        def look(node: Node) -> bool:
            return sorted(each.name for each in node.status.volumesAttached) == sorted(names)

        await self.stage.until(NODES, on, look)

    async def state(self) -> Document:
        """All VolumeAttachments and reports."""
        page = await self.stage.api.list(VOLUMEATTACHMENTS.untyped, "")
        nodes = await self.stage.api.list(NODES.untyped, "")
        return {
            "attachments": {
                each["metadata"]["name"]: {
                    "spec": each["spec"],
                    "attached": each["status"]["attached"],
                    "deleting": "deletionTimestamp" in each["metadata"],
                    "labels": each["metadata"].get("labels"),
                    "annotations": each["metadata"].get("annotations"),
                }
                for each in page.items
            },
            "nodes": {
                each["metadata"]["name"]: sorted(
                    (volume["name"], volume["devicePath"])
                    for volume in each["status"].get("volumesAttached", ())
                )
                for each in nodes.items
            },
        }


async def tell(stage: Any) -> Document:
    told: Document = {}
    storage = Storage(stage)
    for name in NODE_NAMES:
        await storage.add_node(name)
    await storage.add_node("kubelet-managed", managed=False)
    for name, attach in ((DRIVER, True), (PLAIN, False)):
        await stage.create(
            CSIDRIVERS,
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSIDriver",
                "metadata": {"name": name},
                "spec": {"attachRequired": attach},
            },
        )
    # A pod gets its volume, and a pod on another node waits for it.
    await storage.add_volume("moving")
    await storage.add_pod("first", "n1", "moving")
    await storage.answer("moving", "n1")
    await storage.reported("n1", unique("moving"))
    await storage.mount("n1", unique("moving"))
    await storage.add_pod("second", "n2", "moving")
    await stage.told("FailedAttachVolume", "second")
    await stage.quiet()
    told["waiting"] = await storage.state()
    # It moves when the first pod is gone and the kubelet has unmounted it.
    await stage.api.delete(PODS, stage.namespace, "first", grace=0)
    await stage.quiet()
    told["mounted"] = await storage.state()
    await storage.mount("n1")
    await storage.let_go("moving", "n1")
    await storage.answer("moving", "n2")
    await storage.reported("n2", unique("moving"))
    await storage.reported("n1")
    # A pod comes to a node while the volume is mounted elsewhere, and no pod uses it there.
    await storage.mount("n2", unique("moving"))
    await stage.api.delete(PODS, stage.namespace, "second", grace=0)
    await storage.add_pod("third", "n1", "moving")
    await stage.told("FailedAttachVolume", "third")
    # Shared volumes, other plugins, and volumes that need nothing.
    await storage.add_volume("shared", RWX)
    await storage.add_volume("ebs", awsElasticBlockStore={"volumeID": "aws://zone/vol-1", "fsType": "ext4"})
    await storage.add_volume("fibre", fc={"targetWWNs": ["50060e801049cfd1"], "lun": 0})
    iscsi = {"targetPortal": "192.0.2.1:3260", "iqn": "iqn.2026-01.com.example:a", "lun": 1}
    await storage.add_volume("iscsi", iscsi=iscsi)
    await storage.add_volume("plain", csi={"driver": PLAIN, "volumeHandle": "plain"})
    await storage.add_volume("host", hostPath={"path": "/data"})
    await storage.add_volume("unmanaged")
    for name, on, volume in (
        ("shared-1", "n1", "shared"),
        ("shared-2", "n2", "shared"),
        ("ebs", "n1", "ebs"),
        ("fibre", "n1", "fibre"),
        ("iscsi", "n1", "iscsi"),
        ("plain", "n1", "plain"),
        ("host", "n1", "host"),
        ("unmanaged", "kubelet-managed", "unmanaged"),
    ):
        await storage.add_pod(name, on, volume)
    await storage.add_pod("inline", "n1", cinder={"volumeID": "disk-1", "fsType": "xfs"})
    await storage.add_pod("inline-iscsi", "n1", iscsi={**iscsi, "lun": 2})
    await storage.add_pod(
        "ephemeral",
        "n1",
        ephemeral={
            "volumeClaimTemplate": {
                "spec": {"accessModes": [RWO], "resources": {"requests": {"storage": "1Gi"}}}
            }
        },
    )
    for source, on in (("shared", "n1"), ("shared", "n2"), ("ebs", "n1"), ("disk-1", "n1")):
        await storage.answer(source, on)
    many = (
        unique("shared"),
        unique("vol-1", "ebs.csi.aws.com"),
        unique("disk-1", "cinder.csi.openstack.org"),
        "kubernetes.io/fc/[50060e801049cfd1]:0",
        "kubernetes.io/iscsi/192.0.2.1:3260:iqn.2026-01.com.example:a:1",
        "kubernetes.io/iscsi/192.0.2.1:3260:iqn.2026-01.com.example:a:2",
    )
    await storage.reported("n1", *many)
    await storage.reported("n2", unique("moving"), unique("shared"))
    await stage.quiet()
    told["many"] = await storage.state()
    # The driver fails, and then does not.
    await storage.add_volume("flaky")
    await storage.add_pod("flaky", "n3", "flaky")
    await storage.answer("flaky", "n3", error="rpc error: no such disk")
    await stage.told("FailedAttachVolume", "flaky")
    await storage.answer("flaky", "n3")
    await storage.reported("n3", unique("flaky"))
    # Pods end: by themselves, and on a node that is out of service.
    await stage.patch(PODS, "ebs", {"status": {"phase": "Succeeded"}}, "status")
    await storage.let_go("ebs", "n1")
    for name in ("fibre", "iscsi", "inline-iscsi"):
        await stage.api.delete(PODS, stage.namespace, name, grace=0)
    await storage.reported("n1", unique("shared"), unique("disk-1", "cinder.csi.openstack.org"))
    await storage.mount("n3", unique("flaky"))
    await stage.patch(NODES, "n3", {"spec": {"taints": [OUT_OF_SERVICE]}})
    await stage.quiet()
    told["tainted"] = await storage.state()
    await stage.api.delete(PODS, stage.namespace, "flaky", grace=0)
    await storage.let_go("flaky", "n3")
    await storage.reported("n3")
    # A node goes with its pods.
    await storage.mount("n2")
    await storage.let_go("moving", "n2")
    await storage.answer("moving", "n1")
    await storage.reported(
        "n1", unique("shared"), unique("disk-1", "cinder.csi.openstack.org"), unique("moving")
    )
    await stage.quiet()
    told["end"] = await storage.state()
    return told


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell, "volumes", controllers=("persistentvolume-attach-detach-controller",), kinds=()
    )
    return found


@pytest.mark.parametrize("what", ["waiting", "mounted", "many", "tainted", "end", "events"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)


def test_both_managers_count_the_same(ends: dict[str, dict[str, Any]], alike: Callable[..., None]) -> None:
    def counted(end: dict[str, Any]) -> dict[str, float]:
        # The reference does not show what is zero.
        return {
            name: value
            for name, value in end["counters"].items()
            if value and name.split(" ")[0].removesuffix("_total") in (*GAUGES, FORCED)
        }

    alike(ends, counted)


def test_pods_are_told_what_they_wait_for(ends: dict[str, dict[str, Any]]) -> None:
    messages = [event["message"] for event in ends["steersman"]["events"]]
    assert 'Waiting for detach for volume "moving" Volume is already used by pod(s) first' in messages
    assert 'AttachVolume.Attach failed for volume "flaky" : rpc error: no such disk' in messages
    assert 'AttachVolume.Attach succeeded for volume "moving" ' in messages


# -- a manager that finds volumes attached ----------------------------------------------------------------


async def attach_by_hand(storage: Storage, volume: str, on: str, attached: bool = True) -> None:
    """A VolumeAttachment as an earlier manager has made it."""
    digest = hashlib.sha256(f"{volume}{DRIVER}{on}".encode()).hexdigest()
    body = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": f"csi-{digest}"},
        "spec": {"attacher": DRIVER, "nodeName": on, "source": {"persistentVolumeName": volume}},
    }
    await storage.stage.create(VOLUMEATTACHMENTS, body)
    name = f"csi-{digest}"
    await storage.stage.patch(VOLUMEATTACHMENTS, name, {"status": {"attached": attached}}, "status")


async def earlier(stage: Any) -> None:
    """What an earlier manager has left."""
    storage = Storage(stage)
    for name in ("n1", "n2"):
        await storage.add_node(name)
    volumes = ("kept", "dangling", "unreported", "begun", "lost", "stale", "moving")
    for name in volumes:
        await storage.add_volume(name)
    for name in ("kept", "unreported", "lost", "moving"):
        await storage.add_pod(name, "n2" if name == "moving" else "n1", name)
    for name in ("kept", "dangling", "unreported", "moving", "without-volume"):
        await attach_by_hand(storage, name, "n1")
    await attach_by_hand(storage, "begun", "n1", attached=False)
    reported = ("kept", "dangling", "lost", "stale", "moving")
    listed = [{"name": unique(name), "devicePath": ""} for name in reported]
    in_use = [unique("kept"), unique("moving")]
    status = {"volumesAttached": listed, "volumesInUse": in_use}
    await stage.patch(NODES, "n1", {"status": status}, "status")


async def later(stage: Any) -> Document:
    """What the next manager makes of it."""
    storage = Storage(stage)
    await stage.told("SuccessfulAttachVolume", "unreported")
    await stage.told("FailedAttachVolume", "moving")
    # The volume that is reported without being attached is attached again.
    await storage.answer("lost", "n1")
    await stage.told("SuccessfulAttachVolume", "lost")
    reported = (unique("kept"), unique("unreported"), unique("lost"), unique("moving"))
    await storage.reported("n1", *reported)
    await stage.quiet()
    found = await storage.state()
    await storage.mount("n1", unique("kept"))
    await storage.answer("moving", "n2")
    await storage.reported("n2", unique("moving"))
    await stage.quiet()
    moved = await storage.state()
    # Somebody deletes the VolumeAttachment of a volume that is still mounted, so that another node gets it.
    await stage.api.delete(PODS, stage.namespace, "kept", grace=0)
    await storage.add_pod("kept-2", "n2", "kept")
    await stage.told("FailedAttachVolume", "kept-2")
    name = (await storage.attachment("kept", "n1")).metadata.name
    await stage.api.delete(VOLUMEATTACHMENTS, "", name)
    await storage.answer("kept", "n2")
    await storage.reported("n2", unique("moving"), unique("kept"))
    await storage.reported("n1", unique("unreported"), unique("lost"))
    await stage.quiet()
    return {"found": found, "moved": moved, "freed": await storage.state()}


@pytest.fixture(scope="module")
def continued(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        later,
        "volumes",
        controllers=("persistentvolume-attach-detach-controller",),
        kinds=(),
        flags=("--attach-detach-reconcile-sync-period=2s",),
        before=earlier,
    )
    return found


@pytest.mark.parametrize("what", ["found", "moved", "freed", "events"])
def test_both_managers_go_on_where_another_one_stopped(
    continued: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(continued, what)


def test_only_what_no_pod_uses_is_detached(continued: dict[str, dict[str, Any]]) -> None:
    attachments = continued["steersman"]["found"]["attachments"].values()
    left = sorted(each["spec"]["source"]["persistentVolumeName"] for each in attachments)
    assert left == ["kept", "lost", "moving", "unreported", "without-volume"]
