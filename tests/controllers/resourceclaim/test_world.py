"""Pods with ResourceClaims under virtual time. The tests allocate and reserve claims, as a scheduler does."""

from __future__ import annotations

from typing import Any

from steersman.api.kinds.devices import DELETE_PROTECTION, POD_CLAIM_NAME
from steersman.sim.faults.crashes import CrashAfterWrite
from steersman.sim.faults.requests import ErrorResponse
from steersman.sim.faults.watches import FrozenWatch, WatchCut
from steersman.testing.cluster import Cluster

ALONE = ("resourceclaim-controller", "garbage-collector-controller")
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpus"},
    "spec": {
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
    },
}
SHARED = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "shared"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
}


def pod(name: str = "p", node: str | None = None, **claim: str) -> dict[str, Any]:
    source = claim or {"resourceClaimTemplateName": "gpus"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "main", "image": "app:1", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", **source}],
            **({"nodeName": node} if node else {}),
        },
    }


def allocate(cluster: Cluster, name: str, *pods: str) -> None:
    """Allocates a claim and reserves it for pods, as the scheduler does."""
    cluster.patch("resourceclaim", name, {"metadata": {"finalizers": [DELETE_PROTECTION]}})
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
    status: dict[str, Any] = {"allocation": {"devices": {"results": [result]}}}
    if pods:
        status["reservedFor"] = [
            {"resource": "pods", "name": each, "uid": cluster.get("pod", each).metadata.uid} for each in pods
        ]
    cluster.patch("resourceclaim", name, {"status": status}, subresource="status")


def claims(cluster: Cluster) -> list[str]:
    return [each.metadata.name for each in cluster.list("resourceclaims")]


def reserved(cluster: Cluster, name: str) -> list[str]:
    return [each.name for each in cluster.get("resourceclaim", name).status.reservedFor]


def made_for(cluster: Cluster, name: str) -> str:
    """The claim in the status of a pod."""
    (status,) = cluster.get("pod", name).status.resourceClaimStatuses
    assert status.name == "gpu"
    return str(status.resourceClaimName)


def test_a_pod_gets_a_claim_from_its_template() -> None:
    with Cluster(seed=21, nodes=0, controllers=ALONE) as cluster:
        cluster.apply(pod())
        cluster.settle()
        (event,) = {each.message for each in cluster.events("pod", "p")}
        assert event == (
            'PodResourceClaim gpu: resource claim template "gpus": '
            'resourceclaimtemplate.resource.k8s.io "gpus" not found'
        )
        assert claims(cluster) == []
        cluster.apply(TEMPLATE)
        cluster.settle()
        (name,) = claims(cluster)
        assert made_for(cluster, "p") == name
        found = cluster.get("resourceclaim", name)
        assert name.startswith("p-gpu-")
        assert dict(found.metadata.labels) == {"team": "a"}
        assert dict(found.metadata.annotations) == {"note": "b", POD_CLAIM_NAME: "gpu"}
        (owner,) = found.metadata.ownerReferences
        assert (owner.kind, owner.name, owner.controller, owner.blockOwnerDeletion) == (
            "Pod",
            "p",
            True,
            None,
        )
        assert found.spec.devices.requests[0].exactly.deviceClassName == "gpu"


def test_a_claim_that_was_deleted_is_made_again() -> None:
    with Cluster(seed=22, nodes=0, controllers=ALONE) as cluster:
        cluster.apply(TEMPLATE)
        cluster.apply(pod())
        cluster.settle()
        first = made_for(cluster, "p")
        cluster.delete("resourceclaim", first)
        cluster.settle()
        assert claims(cluster) == [made_for(cluster, "p")] != [first]


def test_the_claim_of_a_finished_pod_is_deallocated_and_deleted() -> None:
    with Cluster(seed=23, nodes=0, controllers=ALONE) as cluster:
        cluster.apply(TEMPLATE)
        cluster.apply(pod())
        cluster.settle()
        allocate(cluster, made_for(cluster, "p"), "p")
        cluster.settle()
        assert reserved(cluster, made_for(cluster, "p")) == ["p"]
        cluster.patch("pod", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
        cluster.settle()
        assert claims(cluster) == []
        assert cluster.get("pod", "p").status.phase == "Succeeded"


def test_a_shared_claim_is_deallocated_after_its_last_pod() -> None:
    shared = {"resourceClaimName": "shared"}
    with Cluster(seed=24, nodes=0, controllers=ALONE) as cluster:
        cluster.apply(SHARED)
        cluster.apply(pod("p", "n", **shared))
        cluster.apply(pod("q", "n", **shared))
        cluster.settle()
        allocate(cluster, "shared", "p")
        cluster.settle()
        # The second pod was bound without the scheduler.
        assert reserved(cluster, "shared") == ["p", "q"]
        cluster.patch("pod", "p", {"status": {"phase": "Failed"}}, subresource="status")
        cluster.settle()
        assert reserved(cluster, "shared") == ["q"]
        assert cluster.get("resourceclaim", "shared").status.allocation is not None
        cluster.delete("pod", "q", grace=0)
        cluster.settle()
        left = cluster.get("resourceclaim", "shared")
        assert (left.status.reservedFor, left.status.allocation, left.metadata.finalizers) == ((), None, ())


def test_a_claim_that_is_deleted_while_in_use_goes_with_its_last_pod() -> None:
    with Cluster(seed=25, nodes=0, controllers=ALONE) as cluster:
        cluster.apply(SHARED)
        cluster.apply(pod(resourceClaimName="shared"))
        allocate(cluster, "shared", "p")
        cluster.delete("resourceclaim", "shared")
        cluster.settle()
        assert cluster.get("resourceclaim", "shared").status.allocation is not None
        cluster.delete("pod", "p", grace=0)
        cluster.settle()
        assert claims(cluster) == []


def test_a_claim_for_extended_resources_goes_with_its_pod() -> None:
    with Cluster(seed=26, nodes=0, controllers=ALONE) as cluster:
        plain = pod()
        del plain["spec"]["resourceClaims"], plain["spec"]["containers"][0]["resources"]
        cluster.apply(plain)
        uid = cluster.get("pod", "p").metadata.uid
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
        metadata = {
            "name": "extended",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [owner],
        }
        cluster.apply({**SHARED, "metadata": metadata})
        allocate(cluster, "extended", "p")
        mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "gpu"}
        status = {
            "extendedResourceClaimStatus": {"resourceClaimName": "extended", "requestMappings": [mapping]}
        }
        cluster.patch("pod", "p", {"status": status}, subresource="status")
        cluster.settle()
        assert reserved(cluster, "extended") == ["p"]
        cluster.patch("pod", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
        cluster.settle()
        assert claims(cluster) == []


def test_a_manager_that_stops_between_claim_and_status_makes_one_claim() -> None:
    with Cluster(seed=27, nodes=0, controllers=ALONE, faults=(CrashAfterWrite(1),)) as cluster:
        cluster.apply(TEMPLATE)
        cluster.apply(pod())
        cluster.settle()
        assert claims(cluster) == [made_for(cluster, "p")]


def test_a_status_that_is_refused_while_the_cache_lags_makes_one_claim() -> None:
    faults = (ErrorResponse(500, "patch", "pods", times=3), FrozenWatch("resourceclaims", 20))
    with Cluster(seed=30, nodes=0, controllers=ALONE, faults=faults) as cluster:
        cluster.apply(TEMPLATE)
        cluster.apply(pod())
        cluster.advance(seconds=60)
        assert claims(cluster) == [made_for(cluster, "p")]


def test_a_claim_that_was_reserved_for_another_pod_meanwhile_is_not_deallocated() -> None:
    shared = {"resourceClaimName": "shared"}
    frozen = FrozenWatch("resourceclaims", 20, nth=4)
    with Cluster(seed=31, nodes=0, controllers=ALONE, faults=(frozen,)) as cluster:
        cluster.apply(SHARED)
        cluster.apply(pod("p", **shared))
        cluster.apply(pod("q", **shared))
        allocate(cluster, "shared", "p")
        cluster.settle()
        allocate(cluster, "shared", "p", "q")
        cluster.patch("pod", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
        cluster.advance(seconds=10)
        assert reserved(cluster, "shared") == ["p", "q"], "the patch of the version in the cache is refused"
        cluster.advance(seconds=30)
        assert reserved(cluster, "shared") == ["q"]
        assert cluster.get("resourceclaim", "shared").status.allocation is not None


def test_a_claim_is_released_for_a_pod_that_was_replaced_while_the_watch_was_cut() -> None:
    cut = WatchCut("pods", nth=2, cause="expired")
    with Cluster(seed=32, nodes=0, controllers=ALONE, faults=(cut,)) as cluster:
        cluster.apply(SHARED)
        cluster.apply(pod("p", resourceClaimName="shared"))
        allocate(cluster, "shared", "p")
        cluster.settle()
        cluster.delete("pod", "p", grace=0)
        cluster.apply(pod("p", resourceClaimName="another"))
        cluster.advance(seconds=60)
        assert (reserved(cluster, "shared"), cluster.unused_faults) == ([], ())


def test_the_pods_of_a_group_share_its_claim() -> None:
    gates = {"GenericWorkload": True, "DRAWorkloadResourceClaims": True}
    with Cluster(seed=28, nodes=0, controllers=ALONE, gates=gates) as cluster:
        cluster.apply(TEMPLATE)
        cluster.apply(
            {
                "apiVersion": "scheduling.k8s.io/v1alpha2",
                "kind": "PodGroup",
                "metadata": {"name": "gang"},
                "spec": {
                    "schedulingPolicy": {"basic": {}},
                    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}],
                },
            }
        )
        for name in ("p", "q"):
            member = pod(name, "n")
            member["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
            cluster.apply(member)
        cluster.settle()
        (name,) = claims(cluster)
        assert name.startswith("gang-gpu-")
        assert [made_for(cluster, each) for each in ("p", "q")] == [name, name]
        allocate(cluster, name)
        cluster.settle()
        assert reserved(cluster, name) == ["gang"]


def test_what_drivers_say_of_a_device_goes_with_its_allocation() -> None:
    with Cluster(seed=29, nodes=0, controllers=ALONE) as cluster:
        cluster.apply(SHARED)
        cluster.apply(pod(resourceClaimName="shared"))
        allocate(cluster, "shared", "p")
        device = {"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0", "data": {"a": 1}}
        cluster.patch("resourceclaim", "shared", {"status": {"devices": [device]}}, subresource="status")
        assert len(cluster.get("resourceclaim", "shared").status.devices) == 1
        cluster.delete("pod", "p", grace=0)
        cluster.settle()
        assert cluster.get("resourceclaim", "shared").status.devices == ()
