"""DaemonSets in a whole cluster, with time passing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from steersman.api.kinds import PODS
from steersman.api.pods import is_ready
from steersman.sim.kubelet import Kubelets, KubeletSettings
from steersman.testing.cluster import Cluster

ONLY = ("daemonset-controller",)
SLOW = KubeletSettings(start_delay=1.0, shutdown=2.0, lease_interval=0.0)


def daemonset(image: str = "app:1", *, spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "main", "image": image}], **(spec or {})},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template, **more},
    }


def rolling(unavailable: Any, surge: Any = 0) -> dict[str, Any]:
    limits = {"maxUnavailable": unavailable, "maxSurge": surge}
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": limits}}


def status(cluster: Cluster) -> Any:
    return cluster.get("DaemonSet", "agent").status


def is_rolled_out(cluster: Cluster) -> bool:
    """As ``kubectl rollout status`` sees it."""
    found = cluster.get("DaemonSet", "agent")
    desired = found.status.desiredNumberScheduled
    return bool(
        found.status.observedGeneration >= found.metadata.generation
        and found.status.updatedNumberScheduled == desired
        and found.status.numberAvailable == desired > 0
    )


def where(cluster: Cluster) -> list[str]:
    return sorted(pod.spec.nodeName for pod in cluster.list("Pod", selector="app=agent"))


def serving(cluster: Cluster) -> dict[str, int]:
    """Node -> how many pods there are ready and staying."""
    found: dict[str, int] = {}
    for pod in cluster.list(PODS, selector="app=agent"):
        if is_ready(pod) and pod.metadata.deletionTimestamp is None:
            found[pod.spec.nodeName] = found.get(pod.spec.nodeName, 0) + 1
    return found


def test_a_node_that_comes_gets_its_pod_and_one_that_goes_is_not_counted_any_more() -> None:
    with Cluster(seed=1, controllers=(*ONLY, "pod-garbage-collector-controller")) as cluster:
        cluster.apply(daemonset())
        cluster.wait_until(lambda: is_rolled_out(cluster))
        cluster.spawn(Kubelets(cluster.world.api("more"), cluster.world, ("node-4",)).run())
        cluster.wait_until(lambda: status(cluster).numberReady == 4)
        cluster.delete("Node", "node-2")
        cluster.advance(seconds=1)
        assert status(cluster).desiredNumberScheduled == 3
        cluster.wait_until(lambda: where(cluster) == ["node-1", "node-3", "node-4"], 300)


def test_a_pod_that_waits_for_a_place_on_a_node_that_is_gone_is_deleted() -> None:
    with Cluster(seed=1, controllers=ONLY) as cluster:
        cluster.apply(daemonset(spec={"containers": [big()]}))
        cluster.settle()
        assert where(cluster) == ["", "", ""], "no node has room for it"
        assert status(cluster).currentNumberScheduled == 3
        cluster.delete("Node", "node-2")
        cluster.settle()
        assert where(cluster) == ["", ""]


def big() -> dict[str, Any]:
    return {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "900"}}}


def test_a_taint_keeps_new_pods_away_or_drives_the_one_there_out() -> None:
    with Cluster(seed=1, controllers=ONLY) as cluster:
        cluster.apply(daemonset())
        cluster.wait_until(lambda: is_rolled_out(cluster))
        taint = {"key": "example.com/busy", "effect": "NoSchedule"}
        cluster.patch("Node", "node-1", {"spec": {"taints": [taint]}})
        cluster.settle()
        assert where(cluster) == ["node-1", "node-2", "node-3"]
        assert (status(cluster).desiredNumberScheduled, status(cluster).numberMisscheduled) == (2, 1)
        cluster.patch("Node", "node-1", {"spec": {"taints": [{**taint, "effect": "NoExecute"}]}})
        cluster.settle()
        assert where(cluster) == ["node-2", "node-3"]
        assert status(cluster).numberMisscheduled == 0
        cluster.patch("Node", "node-1", {"spec": {"taints": None}})
        cluster.wait_until(lambda: status(cluster).numberReady == 3)


def test_a_drained_node_keeps_its_pod_and_even_gets_another() -> None:
    with Cluster(seed=1, controllers=ONLY) as cluster:
        cluster.apply(daemonset())
        cluster.wait_until(lambda: is_rolled_out(cluster))
        cluster.node("node-1").drain()
        (pod,) = [pod for pod in cluster.list("Pod") if pod.spec.nodeName == "node-1"]
        cluster.delete("Pod", pod.metadata.name)
        cluster.settle()
        assert where(cluster) == ["node-1", "node-2", "node-3"]
        assert status(cluster).numberReady == 3


def test_a_roll_leaves_no_more_nodes_without_a_pod_than_it_may() -> None:
    with Cluster(seed=1, nodes=6, controllers=ONLY, settings=SLOW) as cluster:
        cluster.apply(daemonset(**rolling("30%")))
        cluster.wait_until(lambda: is_rolled_out(cluster))
        cluster.apply(daemonset("app:2", **rolling("30%")))
        fewest = 6
        while not is_rolled_out(cluster):
            cluster.advance(seconds=0.25)
            fewest = min(fewest, len(serving(cluster)))
        assert fewest == 4
        assert [pod.spec.containers[0].image for pod in cluster.list("Pod")] == ["app:2"] * 6


def test_a_roll_with_a_surge_leaves_no_node_without_a_pod_at_any_time() -> None:
    with Cluster(seed=1, nodes=4, controllers=ONLY, settings=SLOW) as cluster:
        cluster.apply(daemonset(**rolling(0, "50%"), minReadySeconds=3))
        cluster.wait_until(lambda: is_rolled_out(cluster))
        cluster.apply(daemonset("app:2", **rolling(0, "50%"), minReadySeconds=3))
        most = 0
        while not is_rolled_out(cluster) or len(where(cluster)) > 4:
            cluster.advance(seconds=0.25)
            assert len(serving(cluster)) == 4
            staying = [pod for pod in cluster.list("Pod") if pod.metadata.deletionTimestamp is None]
            most = max(most, len(staying))
        assert most == 6, "two more at a time than there are nodes"


def test_undoing_a_roll_uses_the_revision_there_is() -> None:
    with Cluster(seed=1, controllers=ONLY) as cluster:
        cluster.apply(daemonset())
        cluster.wait_until(lambda: is_rolled_out(cluster))
        (first,) = cluster.list("ControllerRevision")
        cluster.apply(daemonset("app:2"))
        cluster.wait_until(lambda: is_rolled_out(cluster))
        cluster.patch("DaemonSet", "agent", first.data)  # as kubectl rollout undo does
        cluster.wait_until(lambda: is_rolled_out(cluster))
        found = {one.metadata.name: one.revision for one in cluster.list("ControllerRevision")}
        assert sorted(found.values()) == [2, 3]
        assert found[first.metadata.name] == 3
        hashes = {pod.metadata.labels["controller-revision-hash"] for pod in cluster.list("Pod")}
        assert hashes == {first.metadata.labels["controller-revision-hash"]}


def test_a_pod_that_fails_again_and_again_is_replaced_more_and_more_slowly() -> None:
    with Cluster(seed=1, nodes=1, controllers=ONLY) as cluster:
        # Without a scheduler no kubelet has a say in what becomes of the pods.
        cluster.apply(daemonset(spec={"schedulerName": "nobody"}))
        cluster.wait_until(lambda: status(cluster).observedGeneration == 1)
        born = []
        for _ in range(6):
            cluster.wait_until(lambda: [pod.status.phase for pod in cluster.list("Pod")] == ["Pending"])
            (pod,) = cluster.list("Pod")
            born.append(pod.metadata.creationTimestamp)
            cluster.patch("Pod", pod.metadata.name, {"status": {"phase": "Failed"}}, subresource="status")
        waits = [(b - a).total_seconds() for a, b in pairwise(born)]
        assert waits == [0, 1, 2, 4, 8]
        reasons = [one.reason for one in cluster.events("DaemonSet", "agent")]
        assert reasons.count("FailedDaemonPod") == 5


def test_a_manager_that_starts_anew_finds_all_as_it_is() -> None:
    with Cluster(seed=1, controllers=ONLY) as cluster:
        cluster.apply(daemonset())
        cluster.wait_until(lambda: is_rolled_out(cluster))
        before = [pod.metadata.uid for pod in cluster.list("Pod")]
        cluster.restart_manager()
        cluster.settle()
        assert [pod.metadata.uid for pod in cluster.list("Pod")] == before
        assert len(cluster.list("ControllerRevision")) == 1


def test_a_daemonset_of_the_same_name_that_comes_at_once_has_pods_and_a_history_of_its_own() -> None:
    with Cluster(seed=1, controllers=(*ONLY, "garbage-collector-controller")) as cluster:
        cluster.apply(daemonset())
        cluster.wait_until(lambda: is_rolled_out(cluster))
        cluster.delete("DaemonSet", "agent", propagation="Background")
        cluster.apply(daemonset())
        cluster.settle()
        found = cluster.get("DaemonSet", "agent")
        assert (found.status.numberReady, found.status.updatedNumberScheduled) == (3, 3)
        for kind in ("Pod", "ControllerRevision"):
            owners = {one.metadata.ownerReferences[0].uid for one in cluster.list(kind)}
            assert owners == {found.metadata.uid}
