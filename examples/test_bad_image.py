"""An image that does not exist, and the way back.

A typo in a tag must not take the service down: the rollout stops with the first pods, the pod says what it
waits for, and applying the old manifest again heals everything.
"""

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
    spec: {containers: [{name: shop, image: "shop:v1"}]}
"""


def test_a_typo_in_a_tag_harms_nobody_and_is_undone_by_the_old_manifest(cluster: Cluster) -> None:
    cluster.apply(SHOP)
    cluster.settle()

    cluster.apply(SHOP.replace("shop:v1", "shop:bad"))
    cluster.advance(minutes=2)

    waiting = [pod for pod in cluster.list("pods", selector="app=shop") if pod.status.phase == "Pending"]
    (container,) = waiting[0].status.containerStatuses
    assert container.state.waiting is not None
    assert container.state.waiting.reason == "ImagePullBackOff"
    assert cluster.get("Deployment", "shop").status.availableReplicas == 3

    cluster.apply(SHOP)
    cluster.settle()

    images = {pod.spec.containers[0].image for pod in cluster.list("pods", selector="app=shop")}
    assert images == {"shop:v1"}
    assert [event.reason for event in cluster.events("Deployment", "shop")] == ["ScalingReplicaSet"] * 3
