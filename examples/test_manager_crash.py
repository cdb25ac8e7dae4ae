"""A controller manager that dies in the middle of a rollout.

It is cut off between two writes and stays away for an hour; the next one knows nothing but what the API server
tells it. There must be no pod too many at any time, and none too few in the end. Every seed is another
story: try ``pytest examples --steersman-seeds 50``.
"""

from steersman.testing import Cluster

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:v1"}]}
"""


def test_the_next_manager_finishes_what_the_last_one_began(cluster: Cluster) -> None:
    cluster.apply(WEB)
    cluster.settle()

    cluster.apply(WEB.replace("web:v1", "web:v2"))
    cluster.wait_until(lambda: len(new(cluster)) == 2)
    cluster.crash_manager()

    cluster.advance(hours=1)
    assert len(new(cluster)) < 10, "nobody is there to go on"

    cluster.start_manager()
    cluster.wait_until(lambda: cluster.get("Deployment", "web").status.updatedReplicas == 10)
    cluster.settle()
    assert len(new(cluster)) == len(cluster.list("pods")) == 10
    assert len(cluster.list("ReplicaSet")) == 2, "nothing was made twice"


def new(cluster: Cluster):  # type: ignore[no-untyped-def]
    return [pod for pod in cluster.list("pods") if pod.spec.containers[0].image == "web:v2"]
