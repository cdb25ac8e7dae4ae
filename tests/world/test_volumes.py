"""The life of a claim in a cluster with every controller and a CSI driver: made, bound, expanded, protected and gone."""

from __future__ import annotations

from typing import Any

from steersman.testing.cluster import Cluster
from tests.harness import volumes

CSI = {"storageClassName": "csi-sim"}


def mounted(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod whose container mounts its volumes, so that its kubelet waits for them."""
    names = [volume["name"] for volume in pod["spec"]["volumes"]]
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    pod["spec"]["containers"][0]["volumeMounts"] = mounts
    return pod


def claims(cluster: Cluster) -> list[str]:
    return [each.metadata.name for each in cluster.list("persistentvolumeclaims")]


def capacity(cluster: Cluster, name: str) -> Any:
    return cluster.get("persistentvolumeclaims", name).status.capacity.get("storage")


def is_running(cluster: Cluster, name: str) -> bool:
    return bool(cluster.get("pods", name).status.phase == "Running")


def test_a_claim_is_expanded_while_in_use_and_goes_after_its_last_pod() -> None:
    with Cluster(seed=5, nodes=2, csi=True) as cluster:
        cluster.apply([volumes.claim("data", **CSI), mounted(volumes.pod("web", "data", node=""))])
        cluster.wait_until(lambda: is_running(cluster, "web"))
        requests = {"storage": "2Gi"}
        cluster.patch("persistentvolumeclaims", "data", {"spec": {"resources": {"requests": requests}}})
        cluster.wait_until(lambda: capacity(cluster, "data") == "2Gi")
        told = [each.reason for each in cluster.list("events") if each.source.component == "volume_expand"]
        assert told == ["ExternalExpanding"]
        cluster.delete("persistentvolumeclaims", "data")
        cluster.settle(60)
        assert claims(cluster) == ["data"]
        assert len(cluster.list("persistentvolumes")) == 1
        cluster.delete("pods", "web")
        cluster.settle(60)
        assert claims(cluster) == []
        assert cluster.list("persistentvolumes") == []


def test_an_ephemeral_volume_comes_and_goes_with_its_pod() -> None:
    with Cluster(seed=6, nodes=2, csi=True) as cluster:
        web = mounted(volumes.pod("web", ephemeral="scratch", node=""))
        web["spec"]["volumes"][0]["ephemeral"]["volumeClaimTemplate"]["spec"] = {**volumes.CLAIM, **CSI}
        cluster.apply(web)
        cluster.wait_until(lambda: is_running(cluster, "web"))
        (volume,) = cluster.list("persistentvolumes")
        assert volume.spec.claimRef.name == "web-scratch"
        cluster.delete("pods", "web")
        cluster.settle(60)
        assert claims(cluster) == []
        assert cluster.list("persistentvolumes") == []
