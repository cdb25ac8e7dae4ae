"""PersistentVolumes on a real API server: steersman and kube-controller-manager bind, provision and reclaim the same.

Each claim has a class of its own, so that its volume does not depend on the order of events. Volumes come first: the reference
manager binds a claim that found none at its next resync only.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.errors import NotFound
from steersman.api.kinds import PODS, SERVICEACCOUNTS
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    STORAGECLASSES,
    PersistentVolume,
    PersistentVolumeClaim,
)
from steersman.api.scheme import Kind

Document = dict[str, Any]
EVENTS: Kind[Document] = Kind("", "v1", "Event", "events", True, dict)
NAMESPACE = "volumes"
NOWHERE = "/tmp/no-such-directory-of-steersman"
DEFAULT_CLASS = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}


def volume(name: str, size: str = "1Gi", **spec: Any) -> Document:
    source = (
        {}
        if {"csi", "gcePersistentDisk", "nfs"} & spec.keys()
        else {"hostPath": {"path": f"{NOWHERE}/{name}"}}
    )
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {"disk": name}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            **source,
            **spec,
        },
    }


def claim(name: str, size: str = "1Gi", annotations: Document | None = None, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": name,
            **spec,
        },
    }


def storage_class(name: str, provisioner: str, **fields: Any) -> Document:
    meta = {"name": name, **fields.pop("metadata", {})}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": meta,
        "provisioner": provisioner,
        **fields,
    }


def csi(driver: str = "csi.example.com") -> Document:
    return {"csi": {"driver": driver, "volumeHandle": "1"}}


VOLUMES = (
    *(volume(f"size-{size}", f"{size}Gi", storageClassName="size") for size in (1, 5, 10)),
    volume("modes-two", storageClassName="modes", accessModes=["ReadWriteOnce", "ReadOnlyMany"]),
    volume("modes-one", "2Gi", storageClassName="modes"),
    volume("selected-1", storageClassName="selected"),
    volume("selected-2", "2Gi", storageClassName="selected"),
    volume("block", volumeMode="Block"),
    volume("attributed", volumeAttributesClassName="gold", **csi()),
    volume("named"),
    volume(
        "reserved", "3Gi", claimRef={"namespace": NAMESPACE, "name": "reserved"}, storageClassName="other"
    ),
    volume("wrong-uid", claimRef={"namespace": NAMESPACE, "name": "no-such", "uid": "1-2-3"}),
    volume("taken"),
    volume("lost"),
    volume("kept", persistentVolumeReclaimPolicy="Retain"),
    volume("scratch", persistentVolumeReclaimPolicy="Delete"),
    volume("elsewhere", persistentVolumeReclaimPolicy="Delete", hostPath={"path": "/no-such-directory"}),
    volume("disk", persistentVolumeReclaimPolicy="Delete", gcePersistentDisk={"pdName": "disk"}),
    volume("share", persistentVolumeReclaimPolicy="Delete", nfs={"server": "nfs.example.com", "path": "/"}),
    volume("driver", persistentVolumeReclaimPolicy="Delete", **csi()),
    volume("reused", persistentVolumeReclaimPolicy="Recycle"),
    volume("unreusable", persistentVolumeReclaimPolicy="Recycle", **csi()),
    volume("late-static", storageClassName="late"),
)
CLASSES = (
    storage_class("external", "vendor.example.com/driver"),
    storage_class("late", "vendor.example.com/driver", volumeBindingMode="WaitForFirstConsumer"),
    storage_class("migrated", "kubernetes.io/gce-pd"),
    storage_class("unknown", "kubernetes.io/unknown"),
    storage_class("local", "kubernetes.io/no-provisioner"),
    storage_class("mounted", "kubernetes.io/host-path", mountOptions=["ro"]),
)
BOUND = (
    claim("size", "3Gi"),
    claim("modes"),
    claim("selected", selector={"matchLabels": {"disk": "selected-2"}}),
    claim("block", volumeMode="Block"),
    claim("attributed", volumeAttributesClassName="gold"),
    claim("named", volumeName="named"),
    claim("reserved"),
    *(
        claim(name)
        for name in (
            "taken",
            "lost",
            "kept",
            "scratch",
            "elsewhere",
            "disk",
            "share",
            "driver",
            "reused",
            "unreusable",
        )
    ),
)
RECLAIMED = ("kept", "scratch", "elsewhere", "disk", "share", "driver", "reused", "unreusable")
COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}
WAITING: tuple[tuple[Document, str], ...] = (
    (claim("too-large", "1Ti", storageClassName=""), "FailedBinding"),
    (claim("second", volumeName="taken", storageClassName="taken"), "FailedBinding"),
    (
        claim("mismatched", volumeName="size-1", storageClassName="size", volumeMode="Block"),
        "VolumeMismatch",
    ),
    (claim("too-small", "2Gi", volumeName="size-1", storageClassName="size"), "VolumeMismatch"),
    (claim("absent"), "ProvisioningFailed"),
    (claim("unknown"), "ProvisioningFailed"),
    (claim("local"), "ProvisioningFailed"),
    (claim("mounted"), "ProvisioningFailed"),
    (claim("external"), "ExternalProvisioning"),
    (claim("migrated"), "ExternalProvisioning"),
    (claim("late"), "WaitForFirstConsumer"),
    (claim("misbound", annotations=COMPLETED, volumeName="taken", storageClassName="taken"), "ClaimMisbound"),
    (claim("bound-before", annotations=COMPLETED, volumeName="no-such"), "ClaimLost"),
)


def in_phase(phase: str) -> Callable[[Any], bool]:
    def met(found: PersistentVolume | PersistentVolumeClaim) -> bool:
        return found.status.phase == phase

    return met


async def unprotect(stage: Any, kind: Kind[Any], name: str) -> None:
    """Remove the finalizer of a protection controller that does not run."""
    await stage.patch(kind, name, {"metadata": {"finalizers": None}})


async def delete_claim(stage: Any, name: str) -> None:
    await unprotect(stage, PERSISTENTVOLUMECLAIMS, name)
    await stage.api.delete(PERSISTENTVOLUMECLAIMS, stage.namespace, name)


async def tell(stage: Any) -> Document:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    await stage.api.create(SERVICEACCOUNTS.untyped, "default", account)
    await stage.create(STORAGECLASSES, *CLASSES)
    await stage.create(PERSISTENTVOLUMES, *VOLUMES)
    for name in (each["metadata"]["name"] for each in VOLUMES):
        phase = "Released" if name == "wrong-uid" else "Available"
        await stage.until(PERSISTENTVOLUMES, name, in_phase(phase))
    unclassed = claim("unclassed")
    del unclassed["spec"]["storageClassName"]
    await stage.create(PERSISTENTVOLUMECLAIMS, *BOUND, unclassed)
    async with asyncio.TaskGroup() as tasks:
        for name in (each["metadata"]["name"] for each in BOUND):
            tasks.create_task(stage.until(PERSISTENTVOLUMECLAIMS, name, in_phase("Bound")))
        tasks.create_task(stage.told("FailedBinding", "unclassed"))
    await stage.create(PERSISTENTVOLUMECLAIMS, *(each for each, _ in WAITING))
    async with asyncio.TaskGroup() as tasks:
        for each, reason in WAITING:
            tasks.create_task(stage.told(reason, each["metadata"]["name"]))
    await consume(stage)
    await provision(stage)
    await assign_default(stage)
    await reclaim(stage)
    await unprotect(stage, PERSISTENTVOLUMES, "lost")
    await stage.api.delete(PERSISTENTVOLUMES, "", "lost")
    await stage.until(PERSISTENTVOLUMECLAIMS, "lost", in_phase("Lost"))
    await stage.told("ClaimLost", "lost")
    page = await stage.api.list(EVENTS, "default")
    return {"volume events": sorted({event_line(event) for event in page.items if is_ours(event)})}


async def consume(stage: Any) -> None:
    """A pod uses a claim whose class waits for it, and the scheduler selects a node."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "consumer"},
        "spec": {
            "containers": [{"name": "main", "image": "example/app:1"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "late"}}],
        },
    }
    await stage.create(PODS, pod)
    await stage.told("WaitForPodScheduled", "late")
    selected = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node-1"}}}
    await stage.patch(PERSISTENTVOLUMECLAIMS, "late", selected)
    await stage.told("ExternalProvisioning", "late")


async def provision(stage: Any) -> None:
    """The external provisioner makes a volume; a directory of the host is made and deleted."""
    made = await stage.api.get(PERSISTENTVOLUMECLAIMS, stage.namespace, "external")
    ref = {
        "kind": "PersistentVolumeClaim",
        "namespace": stage.namespace,
        "name": "external",
        "uid": made.metadata.uid,
    }
    provisioned = volume("provisioned", storageClassName="external", claimRef=ref, **csi())
    provisioned["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "vendor.example.com/driver"}
    await stage.create(PERSISTENTVOLUMES, provisioned)
    await stage.until(PERSISTENTVOLUMECLAIMS, "external", in_phase("Bound"))
    await stage.create(STORAGECLASSES, storage_class("host", "kubernetes.io/host-path"))
    await stage.create(PERSISTENTVOLUMECLAIMS, claim("host"))
    bound = await stage.until(PERSISTENTVOLUMECLAIMS, "host", in_phase("Bound"))
    await stage.until(PERSISTENTVOLUMES, bound.spec.volumeName, in_phase("Bound"))
    await delete_claim(stage, "host")
    await vanish(stage, bound.spec.volumeName)


async def assign_default(stage: Any) -> None:
    """There is a default class at last, for a claim that asked for none."""
    await stage.create(
        STORAGECLASSES, storage_class("default", "default.example.com/driver", metadata=DEFAULT_CLASS)
    )
    await stage.until(
        PERSISTENTVOLUMECLAIMS,
        "unclassed",
        lambda found: "volume.kubernetes.io/storage-provisioner" in found.metadata.annotations,
    )
    await stage.told("ExternalProvisioning", "unclassed")


async def reclaim(stage: Any) -> None:
    for name in RECLAIMED:
        await delete_claim(stage, name)
    for name in ("kept", "driver"):
        await stage.until(PERSISTENTVOLUMES, name, in_phase("Released"))
    for name in ("elsewhere", "disk", "share", "unreusable"):
        await stage.until(PERSISTENTVOLUMES, name, in_phase("Failed"))
    await vanish(stage, "scratch")
    recycler = "recycler-for-reused"
    while True:
        try:
            await stage.api.patch(
                PODS.untyped, "default", recycler, {"status": {"phase": "Succeeded"}}, subresource="status"
            )
            break
        except NotFound:
            await asyncio.sleep(0.1)
    await stage.until(PERSISTENTVOLUMES, "reused", in_phase("Available"))


async def vanish(stage: Any, name: str) -> None:
    """Wait until a volume is being deleted, and let it go."""
    await stage.until(PERSISTENTVOLUMES, name, lambda found: found.metadata.deletionTimestamp is not None)
    await stage.patch(PERSISTENTVOLUMES, name, {"metadata": {"finalizers": None}})


def is_ours(event: Any) -> bool:
    return isinstance(event, dict) and event["involvedObject"]["kind"] == "PersistentVolume"


def event_line(event: Document) -> str:
    about = event["involvedObject"]["name"]
    return f"{about}: {event['type']} {event['reason']} {event['message']} ({event['source']['component']})"


UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def timeless(end: dict[str, Any]) -> dict[str, Any]:
    """The same, however often it was said, and whatever uid the server gave a claim."""
    for event in end["events"]:
        event["count"] = None
        event["message"] = UID.sub("<uid>", event["message"])
    end["events"] = [
        event for number, event in enumerate(end["events"]) if event not in end["events"][:number]
    ]
    end["counters"] = {
        name: value for name, value in end["counters"].items() if name.startswith("pv_collector_")
    }
    return end


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found = both(
        tell,
        NAMESPACE,
        controllers=("persistentvolume-binder-controller",),
        kinds=(PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES),
        flags=("--pvclaimbinder-sync-period=1s", "--enable-hostpath-provisioner=true"),
    )
    return {binary: timeless(end) for binary, end in found.items()}


def test_a_claim_gets_the_volume_that_fits(ends: dict[str, dict[str, Any]]) -> None:
    claims = ends["steersman"]["persistentvolumeclaims"]
    chosen = {name: claims[name]["spec"]["volumeName"] for name in ("size", "modes", "selected", "reserved")}
    assert chosen == {
        "size": "size-5",
        "modes": "modes-one",
        "selected": "selected-2",
        "reserved": "reserved",
    }
    assert claims["attributed"]["status"]["currentVolumeAttributesClassName"] == "gold"


@pytest.mark.parametrize(
    "what", ["persistentvolumeclaims", "persistentvolumes", "events", "volume events", "counters"]
)
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)
