"""endpoints-controller in a cluster: Endpoints follow Services and pods, in batches where it is asked to."""

from __future__ import annotations

import pytest

from steersman.testing.cluster import Cluster
from tests.harness.services import deployment, service

CONTROLLERS = ("deployment-controller", "replicaset-controller", "endpoints-controller")


def ready(cluster: Cluster, name: str) -> list[str]:
    """The pods behind a Service, by its Endpoints."""
    subsets = cluster.get("Endpoints", name).subsets
    return sorted(address.targetRef.name for subset in subsets for address in subset.addresses)


def names(cluster: Cluster) -> list[str]:
    return [one.metadata.name for one in cluster.list("Endpoints")]


def running(cluster: Cluster) -> list[str]:
    return sorted(pod.metadata.name for pod in cluster.list("Pod"))


def test_endpoints_follow_a_rollout_and_a_failing_node() -> None:
    with Cluster(seed=3, controllers=CONTROLLERS) as cluster:
        cluster.apply([service("web"), deployment(3)])
        cluster.settle()
        assert len(ready(cluster, "web")) == 3
        assert ready(cluster, "web") == running(cluster)
        cluster.patch("Deployment", "web", {"spec": {"replicas": 5}})
        cluster.settle()
        assert ready(cluster, "web") == running(cluster)
        image = {"spec": {"template": {"metadata": {"annotations": {"roll": "1"}}}}}
        cluster.patch("Deployment", "web", image)
        cluster.settle()
        assert len(ready(cluster, "web")) == 5
        assert ready(cluster, "web") == running(cluster)


def test_nothing_is_written_while_nothing_changes() -> None:
    with Cluster(seed=3, controllers=CONTROLLERS) as cluster:
        cluster.apply([service("web"), service("headless", clusterIP="None", ports=[]), deployment(2)])
        cluster.settle()
        before = {one.metadata.name: one.metadata.resourceVersion for one in cluster.list("Endpoints")}
        assert before.keys() >= {"web", "headless"}
        cluster.patch("Service", "web", {"metadata": {"annotations": {"note": "1"}}})
        for pod in cluster.list("Pod"):
            cluster.patch("Pod", pod.metadata.name, {"metadata": {"annotations": {"note": "1"}}})
        cluster.advance(days=1)
        after = {one.metadata.name: one.metadata.resourceVersion for one in cluster.list("Endpoints")}
        assert after == before


@pytest.mark.parametrize(("period", "writes"), [(0.0, 4), (30.0, 2)])
def test_changes_of_pods_are_written_in_batches(period: float, writes: int) -> None:
    """The creation, and a write for each of three pods, or one for all of them."""
    flags = {"endpoint-updates-batch-period": period}
    with Cluster(seed=3, controllers=CONTROLLERS, flags=flags, journal=True) as cluster:
        pods = [f"web-{number}" for number in range(3)]
        for name in pods:
            spec = {"nodeName": "elsewhere", "containers": [{"name": "main", "image": "app:1"}]}
            meta = {"name": name, "labels": {"app": "web"}}
            cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        cluster.apply(service("web", ports=[{"port": 80}]))
        cluster.settle()
        for number, name in enumerate(pods):
            ip = f"10.1.0.{number}"
            status = {
                "podIP": ip,
                "podIPs": [{"ip": ip}],
                "conditions": [{"type": "Ready", "status": "True"}],
            }
            cluster.patch("Pod", name, {"status": status}, subresource="status")
            cluster.advance(seconds=1)
        cluster.advance(minutes=1)
        assert ready(cluster, "web") == pods
        found = [line for line in cluster.world.journal if "endpoints" in line and "web" in line]
        assert len(found) == writes, found


def test_leftover_endpoints_are_deleted_when_a_manager_starts() -> None:
    with Cluster(seed=3, controllers=CONTROLLERS) as cluster:
        for name in ("leftover", "lock"):
            annotations = {"control-plane.alpha.kubernetes.io/leader": "{}"} if name == "lock" else {}
            meta = {"name": name, "annotations": annotations}
            cluster.apply({"apiVersion": "v1", "kind": "Endpoints", "metadata": meta})
        cluster.settle()
        assert "leftover" in names(cluster), "they are looked for at start only"
        cluster.restart_manager()
        cluster.settle()
        assert "leftover" not in names(cluster)
        assert "lock" in names(cluster)
