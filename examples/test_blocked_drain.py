"""A node that cannot be drained: a disruption budget holds on to the last pods until others are ready elsewhere.

A drain asks the API server to evict each pod, and asks again every few seconds while a budget says no. With
nowhere else to go the drain never ends; with room, it ends by itself, and nobody loses service meanwhile.
"""

from typing import Any

from steersman.testing import Cluster

SHOP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      nodeSelector: {disk: fast}
      containers: [{name: shop, image: "shop:v1"}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: shop}
spec:
  minAvailable: 2
  selector: {matchLabels: {app: shop}}
"""


def test_a_drain_waits_until_the_pods_have_somewhere_else_to_go(cluster: Cluster) -> None:
    fast(cluster, "node-1")
    cluster.apply(SHOP)
    cluster.wait_until(lambda: budget(cluster).disruptionsAllowed == 1)

    cluster.node("node-1").drain()
    cluster.advance(hours=1)

    assert len(running(cluster)) == 2, "one could be spared, and its successor has no place"
    assert budget(cluster).disruptionsAllowed == 0
    allowed = next(each for each in budget(cluster).conditions if each.type == "DisruptionAllowed")
    assert (allowed.status, allowed.reason) == ("False", "InsufficientPods")

    fast(cluster, "node-2")
    served = []
    while cluster.node("node-1").pods:
        cluster.advance(seconds=1)
        served.append(len(running(cluster)))

    assert min(served) >= 2, "the budget was kept all the way"
    cluster.settle()
    assert {pod.spec.nodeName for pod in running(cluster)} == {"node-2"}
    assert budget(cluster).disruptionsAllowed == 1


def fast(cluster: Cluster, node: str) -> None:
    """From now on the node is one that the shop may run on."""
    cluster.patch("Node", node, {"metadata": {"labels": {"disk": "fast"}}})


def budget(cluster: Cluster) -> Any:
    return cluster.get("PodDisruptionBudget", "shop").status


def running(cluster: Cluster) -> list[Any]:
    """The pods that serve."""
    return [
        pod
        for pod in cluster.list("pods")
        if pod.metadata.deletionTimestamp is None
        and any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)
    ]
