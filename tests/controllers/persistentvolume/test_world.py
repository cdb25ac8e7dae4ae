"""Volumes and claims under virtual time: binding, waiting, provisioning and reclaiming in the embedded control plane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from steersman.sim import faults
from steersman.testing.cluster import Cluster
from tests.harness import volumes

BINDER = "persistentvolume-binder-controller"
Document = dict[str, Any]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(seed=11, nodes=1, controllers=[BINDER]) as cluster:
        yield cluster


def volume(name: str, size: str = "1Gi", **spec: Any) -> Document:
    return volumes.volume(
        name, **{"capacity": {"storage": size}, "hostPath": {"path": f"/tmp/{name}"}, **spec}
    )


def claim(name: str, size: str = "1Gi", **spec: Any) -> Document:
    return volumes.claim(
        name, **{"resources": {"requests": {"storage": size}}, "storageClassName": "", **spec}
    )


def storage_class(name: str, provisioner: str = "vendor.com/driver", **fields: Any) -> Document:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, **fields.pop("metadata", {})},
        "provisioner": provisioner,
        **fields,
    }


def phase(cluster: Cluster, kind: str, name: str) -> str:
    found: str = cluster.get(kind, name).status.phase
    return found


def is_bound(cluster: Cluster, name: str) -> bool:
    return phase(cluster, "PersistentVolumeClaim", name) == "Bound"


def reasons(cluster: Cluster, name: str) -> set[str]:
    return {event.reason for event in cluster.list("Event") if event.involvedObject.name == name}


def test_a_claim_takes_the_smallest_volume_that_fits(cluster: Cluster) -> None:
    for name, size in (("large", "10Gi"), ("small", "1Gi"), ("medium", "5Gi")):
        cluster.apply(volume(name, size))
    cluster.wait_until(lambda: phase(cluster, "PersistentVolume", "small") == "Available")
    cluster.apply(claim("data", "3Gi"))
    cluster.wait_until(lambda: is_bound(cluster, "data"))
    bound = cluster.get("PersistentVolumeClaim", "data")
    assert (bound.spec.volumeName, bound.status.capacity) == ("medium", {"storage": "5Gi"})
    taken = cluster.get("PersistentVolume", "medium")
    assert (taken.spec.claimRef.name, taken.spec.claimRef.uid) == ("data", bound.metadata.uid)
    assert taken.status.phase == "Bound"


def test_a_claim_that_waits_is_bound_as_soon_as_there_is_a_volume(cluster: Cluster) -> None:
    cluster.apply(claim("first"))
    cluster.apply(claim("second"))
    cluster.advance(minutes=1)
    assert phase(cluster, "PersistentVolumeClaim", "first") == "Pending"
    assert "FailedBinding" in reasons(cluster, "first")
    began = cluster.now
    cluster.apply(volume("one"))
    cluster.wait_until(lambda: is_bound(cluster, "first"))
    cluster.apply(volume("two"))
    cluster.wait_until(lambda: is_bound(cluster, "second"))
    assert (cluster.now - began).total_seconds() < 1


@pytest.mark.parametrize("claims_first", [True, False])
def test_claims_and_volumes_that_come_together_are_bound_one_to_one(
    cluster: Cluster, claims_first: bool
) -> None:
    count = 50
    for number in range(count):
        objects = [volume(f"volume-{number}"), claim(f"claim-{number}")]
        for each in reversed(objects) if claims_first else objects:
            cluster.apply(each)
    cluster.wait_until(lambda: all(is_bound(cluster, f"claim-{number}") for number in range(count)))
    taken = [each.spec.volumeName for each in cluster.list("PersistentVolumeClaim")]
    assert len(set(taken)) == count
    refs = {each.metadata.name: each.spec.claimRef.name for each in cluster.list("PersistentVolume")}
    assert all(
        refs[each.spec.volumeName] == each.metadata.name for each in cluster.list("PersistentVolumeClaim")
    )


def test_a_volume_and_a_claim_that_name_each_other_are_bound(cluster: Cluster) -> None:
    ref = {"namespace": "default", "name": "data"}
    cluster.apply(volume("reserved", "10Gi", claimRef=ref))
    cluster.apply(volume("other"))
    cluster.apply(claim("data", volumeName="reserved"))
    cluster.wait_until(lambda: is_bound(cluster, "data"))
    assert phase(cluster, "PersistentVolume", "reserved") == "Bound"
    cluster.settle()
    assert phase(cluster, "PersistentVolume", "other") == "Available"


def test_a_claim_waits_for_the_volume_it_names(cluster: Cluster) -> None:
    cluster.apply(volume("other"))
    cluster.apply(claim("data", volumeName="later"))
    cluster.advance(minutes=1)
    assert phase(cluster, "PersistentVolumeClaim", "data") == "Pending"
    cluster.apply(volume("later"))
    cluster.wait_until(lambda: is_bound(cluster, "data"), timeout=1)
    assert cluster.get("PersistentVolumeClaim", "data").spec.volumeName == "later"


def test_the_mismatch_of_a_volume_and_its_claim_is_told_again_before_the_events_expire(
    cluster: Cluster,
) -> None:
    cluster.apply(claim("data"))
    ref = {
        "namespace": "default",
        "name": "data",
        "uid": cluster.get("PersistentVolumeClaim", "data").metadata.uid,
    }
    cluster.apply(volume("raw", claimRef=ref, volumeMode="Block"))
    cluster.advance(hours=3)
    for name in ("data", "raw"):
        assert "VolumeMismatch" in reasons(cluster, name)


def test_a_retained_volume_is_released_and_not_bound_again(cluster: Cluster) -> None:
    cluster.apply(volume("kept", persistentVolumeReclaimPolicy="Retain"))
    cluster.apply(claim("data"))
    cluster.wait_until(lambda: is_bound(cluster, "data"))
    delete_claim(cluster, "data")
    cluster.wait_until(lambda: phase(cluster, "PersistentVolume", "kept") == "Released")
    cluster.apply(claim("data"))
    cluster.advance(minutes=1)
    assert phase(cluster, "PersistentVolumeClaim", "data") == "Pending"
    # An administrator makes the volume available again.
    cluster.patch("PersistentVolume", "kept", {"spec": {"claimRef": None}})
    cluster.wait_until(lambda: is_bound(cluster, "data"), timeout=1)


def test_a_volume_is_deleted_with_its_claim(cluster: Cluster) -> None:
    cluster.apply(volume("scratch", persistentVolumeReclaimPolicy="Delete"))
    cluster.apply(claim("data"))
    cluster.wait_until(lambda: is_bound(cluster, "data"))
    unprotect(cluster, "PersistentVolume", "scratch")
    delete_claim(cluster, "data")
    cluster.wait_until(lambda: not cluster.list("PersistentVolume"))


def test_a_volume_outside_of_tmp_is_not_deleted(cluster: Cluster) -> None:
    cluster.apply(volume("home", persistentVolumeReclaimPolicy="Delete", hostPath={"path": "/home"}))
    cluster.apply(claim("data"))
    cluster.wait_until(lambda: is_bound(cluster, "data"))
    delete_claim(cluster, "data")
    cluster.wait_until(lambda: phase(cluster, "PersistentVolume", "home") == "Failed")
    cluster.wait_until(lambda: "VolumeFailedDelete" in reasons(cluster, "home"))


def test_a_claim_whose_volume_is_gone_is_lost(cluster: Cluster) -> None:
    cluster.apply(volume("gone"))
    cluster.apply(claim("data"))
    cluster.wait_until(lambda: is_bound(cluster, "data"))
    unprotect(cluster, "PersistentVolume", "gone")
    cluster.delete("PersistentVolume", "gone")
    cluster.wait_until(lambda: phase(cluster, "PersistentVolumeClaim", "data") == "Lost", timeout=1)
    cluster.wait_until(lambda: "ClaimLost" in reasons(cluster, "data"))


def test_a_claim_gets_the_default_class_as_soon_as_there_is_one(cluster: Cluster) -> None:
    for each in cluster.list("StorageClass"):
        cluster.delete(each)
    unclassed = claim("data")
    del unclassed["spec"]["storageClassName"]
    cluster.apply(unclassed)
    cluster.advance(minutes=1)
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    cluster.apply(storage_class("fast", metadata=default))
    cluster.wait_until(
        lambda: cluster.get("PersistentVolumeClaim", "data").spec.storageClassName == "fast", timeout=1
    )
    cluster.wait_until(lambda: "ExternalProvisioning" in reasons(cluster, "data"))
    annotations = cluster.get("PersistentVolumeClaim", "data").metadata.annotations
    assert annotations["volume.kubernetes.io/storage-provisioner"] == "vendor.com/driver"


def test_a_claim_of_a_waiting_class_waits_for_a_node(cluster: Cluster) -> None:
    cluster.apply(storage_class("late", volumeBindingMode="WaitForFirstConsumer"))
    cluster.apply(claim("data", storageClassName="late"))
    cluster.wait_until(lambda: "WaitForFirstConsumer" in reasons(cluster, "data"))
    cluster.patch(
        "PersistentVolumeClaim",
        "data",
        {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node-1"}}},
    )
    cluster.wait_until(lambda: "ExternalProvisioning" in reasons(cluster, "data"))


def test_a_directory_of_the_host_is_provisioned_and_deleted() -> None:
    flags = {"enable-hostpath-provisioner": True}
    with Cluster(seed=11, nodes=1, controllers=[BINDER], flags=flags) as cluster:
        cluster.apply(storage_class("local", "kubernetes.io/host-path"))
        cluster.apply(claim("data", storageClassName="local"))
        cluster.wait_until(lambda: is_bound(cluster, "data"))
        (made,) = cluster.list("PersistentVolume")
        assert made.metadata.name == f"pvc-{cluster.get('PersistentVolumeClaim', 'data').metadata.uid}"
        assert made.spec.hostPath.path.startswith("/tmp/hostpath_pv/")
        cluster.wait_until(lambda: "ProvisioningSucceeded" in reasons(cluster, "data"))
        delete_claim(cluster, "data")
        cluster.settle()
        assert cluster.get("PersistentVolume", made.metadata.name).metadata.finalizers == (
            "kubernetes.io/pv-protection",
        )
        unprotect(cluster, "PersistentVolume", made.metadata.name)
        cluster.wait_until(lambda: not cluster.list("PersistentVolume"))


def test_without_the_flag_no_directory_is_provisioned(cluster: Cluster) -> None:
    cluster.apply(storage_class("local", "kubernetes.io/host-path"))
    cluster.apply(claim("data", storageClassName="local"))
    cluster.wait_until(lambda: "ProvisioningFailed" in reasons(cluster, "data"))
    assert not cluster.list("PersistentVolume")


def test_a_volume_is_recycled_by_a_pod(cluster: Cluster) -> None:
    cluster.apply(volume("used", persistentVolumeReclaimPolicy="Recycle"))
    cluster.apply(claim("data"))
    cluster.wait_until(lambda: is_bound(cluster, "data"))
    delete_claim(cluster, "data")
    cluster.wait_until(lambda: bool(cluster.list("Pod")))
    (pod,) = cluster.list("Pod")
    assert (pod.metadata.name, pod.spec.activeDeadlineSeconds) == ("recycler-for-used", 60)
    assert pod.spec.volumes[0].hostPath.path == "/tmp/used"
    cluster.patch("Pod", "recycler-for-used", {"status": {"phase": "Succeeded"}}, subresource="status")
    cluster.wait_until(lambda: phase(cluster, "PersistentVolume", "used") == "Available")
    assert cluster.get("PersistentVolume", "used").spec.claimRef is None
    cluster.wait_until(lambda: "VolumeRecycled" in reasons(cluster, "used"))
    cluster.wait_until(lambda: not cluster.list("Pod"))


def release(cluster: Cluster, *, used: bool) -> None:
    """Release a volume that is to be recycled; ``used``: while a pod without a node names its claim."""
    cluster.node("node-1").cordon()
    cluster.apply(volume("used", persistentVolumeReclaimPolicy="Recycle"))
    cluster.apply(claim("data"))
    cluster.wait_until(lambda: is_bound(cluster, "data"))
    if used:
        cluster.apply(volumes.pod("waiting", "data", node=""))
    cluster.settle()
    delete_claim(cluster, "data")
    cluster.settle()


def pods(cluster: Cluster) -> list[str]:
    return [pod.metadata.name for pod in cluster.list("Pod")]


def end_recycler(cluster: Cluster) -> None:
    cluster.patch("Pod", "recycler-for-used", {"status": {"phase": "Succeeded"}}, subresource="status")


def test_a_volume_that_a_pod_uses_is_recycled_when_the_pod_is_gone(cluster: Cluster) -> None:
    release(cluster, used=True)
    assert "VolumeFailedRecycle" in reasons(cluster, "used")
    assert pods(cluster) == ["waiting"]
    cluster.delete("Pod", "waiting")
    cluster.wait_until(lambda: pods(cluster) == ["recycler-for-used"], timeout=15)


def test_a_volume_that_a_pod_uses_is_recycled_when_there_is_another_claim_of_the_name(
    cluster: Cluster,
) -> None:
    release(cluster, used=True)
    cluster.apply(claim("data"))
    cluster.wait_until(lambda: "recycler-for-used" in pods(cluster), timeout=15)
    end_recycler(cluster)
    cluster.wait_until(lambda: is_bound(cluster, "data"))


def test_a_pod_that_comes_while_a_volume_is_recycled_does_not_hold_it_up(cluster: Cluster) -> None:
    release(cluster, used=False)
    assert pods(cluster) == ["recycler-for-used"]
    cluster.apply(volumes.pod("waiting", "data", node=""))
    cluster.settle()
    end_recycler(cluster)
    cluster.wait_until(lambda: phase(cluster, "PersistentVolume", "used") == "Available")
    assert pods(cluster) == ["waiting"]


def test_the_recycler_of_a_volume_that_is_deleted_meanwhile_is_deleted_when_it_ends(cluster: Cluster) -> None:
    release(cluster, used=False)
    unprotect(cluster, "PersistentVolume", "used")
    cluster.delete("PersistentVolume", "used")
    assert not cluster.list("PersistentVolume")
    cluster.settle()
    assert pods(cluster) == ["recycler-for-used"]
    end_recycler(cluster)
    cluster.wait_until(lambda: not pods(cluster))


def test_a_recycler_that_fails_is_replaced_after_the_sync_period(cluster: Cluster) -> None:
    release(cluster, used=False)
    failed = {"status": {"phase": "Failed", "message": "cannot mount"}}
    cluster.patch("Pod", "recycler-for-used", failed, subresource="status")
    cluster.wait_until(lambda: phase(cluster, "PersistentVolume", "used") == "Failed")
    cluster.wait_until(lambda: not pods(cluster))
    cluster.advance(seconds=10)
    assert not pods(cluster)
    cluster.wait_until(lambda: pods(cluster) == ["recycler-for-used"], timeout=10)
    end_recycler(cluster)
    cluster.wait_until(lambda: phase(cluster, "PersistentVolume", "used") == "Available")


def test_a_volume_whose_recycler_pod_is_refused_has_failed(cluster: Cluster) -> None:
    enforced = {"pod-security.kubernetes.io/enforce": "baseline"}
    cluster.patch("Namespace", "default", {"metadata": {"labels": enforced}})
    release(cluster, used=False)
    cluster.wait_until(lambda: phase(cluster, "PersistentVolume", "used") == "Failed")
    assert cluster.get("PersistentVolume", "used").status.message.startswith(
        'Recycle failed: unexpected error creating recycler pod:  pods "recycler-for-used" is forbidden: '
        'violates PodSecurity "baseline:latest": hostPath volumes'
    )
    cluster.wait_until(lambda: "VolumeFailedRecycle" in reasons(cluster, "used"))


def test_a_bound_claim_shows_the_access_modes_that_its_volume_gets(cluster: Cluster) -> None:
    cluster.apply(volume("shared"))
    cluster.apply(claim("data"))
    cluster.wait_until(lambda: is_bound(cluster, "data"))
    modes = ["ReadWriteOnce", "ReadOnlyMany"]
    cluster.patch("PersistentVolume", "shared", {"spec": {"accessModes": modes}})
    cluster.wait_until(
        lambda: list(cluster.get("PersistentVolumeClaim", "data").status.accessModes) == modes, timeout=15
    )


def test_a_bound_volume_that_cannot_be_decoded_stays_as_it_is() -> None:
    # Creation, claimRef and phase are the first three events.
    undecodable = faults.undecodable_events("persistentvolumes", 4, seconds=600)
    with Cluster(seed=11, nodes=1, controllers=[BINDER], faults=[undecodable]) as cluster:
        cluster.apply(volume("one"))
        cluster.apply(claim("data"))
        cluster.wait_until(lambda: is_bound(cluster, "data"))
        cluster.patch("PersistentVolume", "one", {"metadata": {"labels": {"tier": "db"}}})
        labelled = cluster.get("PersistentVolume", "one").metadata.resourceVersion
        cluster.advance(minutes=1)
        found = cluster.get("PersistentVolume", "one")
        assert (found.status.phase, found.metadata.resourceVersion) == ("Bound", labelled)
        assert is_bound(cluster, "data")


def test_claims_that_wait_cost_nothing_while_nothing_changes(cluster: Cluster) -> None:
    cluster.apply(claim("data"))
    cluster.advance(hours=1)
    before = len(cluster.list("Event"))
    rounds = cluster.now
    cluster.advance(days=30)
    assert (cluster.now - rounds).days == 30
    assert len(cluster.list("Event")) <= before


def delete_claim(cluster: Cluster, name: str) -> None:
    unprotect(cluster, "PersistentVolumeClaim", name)
    cluster.delete("PersistentVolumeClaim", name)


def unprotect(cluster: Cluster, kind: str, name: str) -> None:
    """Remove the finalizer of a protection controller that does not run."""
    cluster.patch(kind, name, {"metadata": {"finalizers": None}})
