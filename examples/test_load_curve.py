"""A day's load: an autoscaler follows it up in the morning and down at night, and not at every gust."""

from steersman.testing import Cluster

SHOP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: "shop:1", resources: {requests: {cpu: "1"}}}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  minReplicas: 2
  maxReplicas: 10
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
"""
# Cores that the customers of each hour keep busy, all pods together.
CURVE = {6: 0.6, 8: 1.5, 12: 4.0, 18: 2.0, 22: 0.5}


def test_replicas_follow_the_load_of_a_day(cluster: Cluster) -> None:
    cluster.apply(SHOP)
    cluster.settle()
    seen = {}
    hour = 0
    for then, cores in CURVE.items():
        cluster.advance(hours=then - hour)
        hour = then
        for _ in range(24):  # six minutes, in which every pod takes its share of the load
            pods = cluster.list("Pod")
            share = f"{round(1000 * cores / len(pods))}m"
            for pod in pods:
                cluster.patch(
                    "Pod", pod.metadata.name, {"metadata": {"annotations": {"sim.steersman.dev/cpu": share}}}
                )
            cluster.advance(seconds=15)
        seen[then] = cluster.get("Deployment", "shop").spec.replicas or 0
    assert seen[6] == 2
    assert seen[12] == 8
    assert seen[8] < seen[12] > seen[18] > seen[22]
    assert seen[22] == 2
    reasons = {event.reason for event in cluster.events(cluster.get("HorizontalPodAutoscaler", "shop"))}
    assert "SuccessfulRescale" in reasons
