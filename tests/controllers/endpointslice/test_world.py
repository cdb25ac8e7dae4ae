"""endpointslice-controller in a cluster: slices follow Services and pods, and what others write is repaired."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from steersman.api.kinds.services import ENDPOINTSLICES, EndpointSlice
from steersman.controllers.shared.endpoint_slices import MANAGED_BY, SERVICE_NAME
from steersman.testing.cluster import Cluster
from tests.harness.services import deployment, service

CONTROLLERS = ("deployment-controller", "replicaset-controller", "endpointslice-controller")


def slices(cluster: Cluster, name: str = "web") -> list[EndpointSlice]:
    return [one for one in cluster.list(ENDPOINTSLICES) if one.metadata.labels.get(SERVICE_NAME) == name]


def ready(found: Iterable[EndpointSlice]) -> list[str]:
    """The pods of the ready endpoints."""
    return sorted(
        one.targetRef.name
        for slice in found
        for one in slice.endpoints or ()
        if one.conditions.ready and one.targetRef is not None
    )


def running(cluster: Cluster) -> list[str]:
    return sorted(pod.metadata.name for pod in cluster.list("Pod"))


def test_slices_follow_a_rollout() -> None:
    with Cluster(seed=3, controllers=CONTROLLERS) as cluster:
        cluster.apply([service("web"), deployment(3)])
        cluster.settle()
        assert ready(slices(cluster)) == running(cluster)
        cluster.patch("Deployment", "web", {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}})
        cluster.settle()
        assert ready(slices(cluster)) == running(cluster)
        assert len(running(cluster)) == 3
        cluster.scale("Deployment", "web", 0)
        cluster.settle()
        assert [slice.endpoints or () for slice in slices(cluster)] == [()]


def test_a_service_that_is_exposed_has_its_endpoints_within_a_second() -> None:
    with Cluster(seed=3) as cluster:
        cluster.apply(deployment(3))
        cluster.settle()
        cluster.apply(service("web"))
        cluster.advance(seconds=1)
        assert ready(slices(cluster)) == running(cluster)


def test_nothing_is_written_while_nothing_changes() -> None:
    with Cluster(seed=3, controllers=CONTROLLERS, journal=True) as cluster:
        cluster.apply([service("web"), service("headless", clusterIP="None", ports=[]), deployment(2)])
        cluster.settle()
        before = len(cluster.world.journal)
        for pod in cluster.list("Pod"):
            cluster.patch("Pod", pod.metadata.name, {"metadata": {"annotations": {"note": "1"}}})
        cluster.advance(days=1)
        assert not [line for line in cluster.world.journal[before:] if "endpointslices" in line]


def test_the_slices_that_others_change_are_repaired() -> None:
    with Cluster(seed=3, controllers=CONTROLLERS) as cluster:
        cluster.apply([service("web"), deployment(2)])
        cluster.settle()
        (slice,) = slices(cluster)
        name = slice.metadata.name
        cluster.patch("EndpointSlice", name, {"endpoints": [{"addresses": ["10.9.9.9"]}]})
        cluster.settle()
        assert ready(slices(cluster)) == running(cluster)
        cluster.patch("EndpointSlice", name, {"metadata": {"labels": {"stray": "x"}}})
        cluster.settle()
        assert "stray" not in slices(cluster)[0].metadata.labels
        cluster.delete("EndpointSlice", name)
        cluster.settle()
        assert ready(slices(cluster)) == running(cluster)


def test_a_slice_that_a_new_manager_has_not_written_is_repaired_as_well() -> None:
    with Cluster(seed=3, controllers=CONTROLLERS) as cluster:
        cluster.apply([service("web"), deployment(2)])
        cluster.settle()
        cluster.restart_manager()
        cluster.settle()
        cluster.delete("EndpointSlice", slices(cluster)[0].metadata.name)
        cluster.settle()
        assert ready(slices(cluster)) == running(cluster)


def test_a_slice_handed_to_another_controller_is_replaced_and_left_alone() -> None:
    with Cluster(seed=3, controllers=CONTROLLERS) as cluster:
        cluster.apply([service("web"), deployment(2)])
        cluster.settle()
        name = slices(cluster)[0].metadata.name
        cluster.patch("EndpointSlice", name, {"metadata": {"labels": {MANAGED_BY: "other"}}})
        cluster.settle()
        mine = [one for one in slices(cluster) if one.metadata.name != name]
        assert ready(mine) == running(cluster)
        cluster.scale("Deployment", "web", 1)
        cluster.settle()
        assert len(cluster.get(ENDPOINTSLICES, name).endpoints or ()) == 2


@pytest.mark.parametrize(("period", "writes"), [(0.0, 4), (30.0, 2)])
def test_changes_of_pods_are_written_in_batches(period: float, writes: int) -> None:
    """The placeholder, and a write for each of three pods, or one for all of them."""
    flags = {"endpointslice-updates-batch-period": period}
    with Cluster(seed=3, controllers=CONTROLLERS, flags=flags, journal=True) as cluster:
        pods = [f"web-{number}" for number in range(3)]
        for name in pods:
            spec = {"nodeName": "elsewhere", "containers": [{"name": "main", "image": "app:1"}]}
            meta = {"name": name, "labels": {"app": "web"}}
            cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "elsewhere"}})
        cluster.apply(service("web", ports=[{"port": 80}]))
        cluster.settle()
        for number, name in enumerate(pods):
            ip = f"10.1.0.{number}"
            conditions = [{"type": "Ready", "status": "True"}]
            status = {"podIP": ip, "podIPs": [{"ip": ip}], "conditions": conditions}
            cluster.patch("Pod", name, {"status": status}, subresource="status")
            cluster.advance(seconds=1)
        cluster.advance(minutes=1)
        assert ready(slices(cluster)) == pods
        found = [line for line in cluster.world.journal if "endpointslices" in line and "web" in line]
        assert len(found) == writes, found


def test_many_pods_are_packed_into_slices_of_the_flag() -> None:
    with Cluster(seed=3, controllers=CONTROLLERS, flags={"max-endpoints-per-slice": 4}) as cluster:
        cluster.apply([service("web"), deployment(10)])
        cluster.settle()
        assert ready(slices(cluster)) == running(cluster)
        assert sorted(len(slice.endpoints or ()) for slice in slices(cluster)) == [2, 4, 4]


def test_a_pod_on_a_missing_node_is_told_of_and_holds_up_no_other() -> None:
    with Cluster(seed=3, controllers=CONTROLLERS) as cluster:
        cluster.apply([service("web"), service("other", selector={"app": "none"}), deployment(2)])
        cluster.settle()
        cluster.delete("Node", "node-1")
        cluster.advance(seconds=30)
        cluster.patch("Service", "other", {"metadata": {"labels": {"a": "b"}}})
        cluster.patch("Service", "web", {"metadata": {"labels": {"a": "b"}}})
        cluster.advance(seconds=30)
        assert slices(cluster, "other")[0].metadata.labels["a"] == "b"
        told = [event for event in cluster.list("Event") if event.reason == "FailedToUpdateEndpointSlices"]
        assert told
        assert "Node node-1 Not Found" in told[0].message


def test_a_service_of_many_slices_rests_between_two_rounds() -> None:
    """Forty slices of five endpoints: a round takes most of a second, in which further pods go."""

    def pod(number: int) -> dict[str, object]:
        container = {"name": "main", "image": "app:1", "ports": [{"name": "web", "containerPort": 8080}]}
        meta = {"name": f"web-{number}", "labels": {"app": "web"}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}

    flags = {"max-endpoints-per-slice": 5}
    names = ("endpointslice-controller",)
    with Cluster(seed=1, controllers=names, write_latency=(0.02, 0.02), flags=flags, journal=True) as cluster:
        cluster.apply([service("web"), *map(pod, range(200))])
        cluster.settle()
        before = len(cluster.world.journal)
        for number in range(160):
            cluster.delete("Pod", f"web-{number * 11 % 200}", grace=0)
            cluster.advance(seconds=0.01)
        cluster.settle()
        assert ready(slices(cluster)) == running(cluster)
        writes = sum(" endpointslices." in line for line in cluster.world.journal[before:])
        assert writes < 100, "without a rest there are 110"
