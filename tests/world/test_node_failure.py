"""A node fails: it is tainted, its pods leave it after five minutes, and it gets pods again when it recovers."""

from __future__ import annotations

from typing import Any

from steersman.testing.cluster import Cluster

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "app:1"}]}
"""
UNREACHABLE = "node.kubernetes.io/unreachable"


def taints(cluster: Cluster, name: str) -> set[tuple[str, str]]:
    return {(each.key, each.effect) for each in cluster.get("Node", name).spec.taints}


def pods(cluster: Cluster, *, terminating: bool = False) -> dict[str, str]:
    """The node of each pod."""
    return {
        pod.metadata.name: pod.spec.nodeName
        for pod in cluster.list("pods")
        if (pod.metadata.deletionTimestamp is not None) is terminating
    }


def on(found: dict[str, str], node: str) -> set[str]:
    return {name for name, where in found.items() if where == node}


def evictions(cluster: Cluster) -> list[Any]:
    return [each for each in cluster.list("events") if each.reason == "TaintManagerEviction"]


def test_pods_leave_a_failed_node_after_five_minutes() -> None:
    with Cluster(seed=21, nodes=3) as cluster:
        cluster.apply(WEB)
        cluster.settle()
        there = on(pods(cluster), "node-1")
        assert there
        cluster.node("node-1").fail()
        cluster.advance(seconds=60)
        assert taints(cluster, "node-1") == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
        cluster.advance(seconds=280)
        assert on(pods(cluster), "node-1") == there, "they tolerate it for five minutes"
        cluster.advance(seconds=30)
        assert on(pods(cluster, terminating=True), "node-1") == there, "no kubelet confirms their deletion"
        assert sorted(set(pods(cluster).values())) == ["node-2", "node-3"]
        assert cluster.get("Deployment", "web").status.availableReplicas == 6
        assert {each.involvedObject.name for each in evictions(cluster)} == there
        cluster.node("node-1").recover()
        cluster.advance(minutes=2)
        assert taints(cluster, "node-1") == set()
        assert not there & set(pods(cluster) | pods(cluster, terminating=True))


def test_pods_stay_on_a_node_that_recovers_in_time() -> None:
    with Cluster(seed=22, nodes=3) as cluster:
        cluster.apply(WEB)
        cluster.settle()
        before = pods(cluster)
        cluster.node("node-1").fail()
        cluster.advance(seconds=260)
        assert (UNREACHABLE, "NoExecute") in taints(cluster, "node-1")
        cluster.node("node-1").recover()
        cluster.advance(minutes=30)
        assert pods(cluster) == before
        assert {each.message for each in evictions(cluster)} == {
            f"Cancelling deletion of Pod default/{name}" for name in on(before, "node-1")
        }
