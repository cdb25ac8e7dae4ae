"""A rollout that gets stuck: ten minutes pass in milliseconds, and the cluster says why.

The new version starts but never gets ready, so the Deployment keeps the old pods and gives up at its
progress deadline, to the second. Nobody loses service meanwhile.
"""

from datetime import timedelta

from steersman.testing import Cluster

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:v1"}]}
"""
NEVER_READY = {"sim.steersman.dev/ready": "false"}


def test_a_rollout_that_makes_no_progress_is_given_up_after_ten_minutes(cluster: Cluster) -> None:
    cluster.apply(WEB)
    cluster.wait_until(lambda: cluster.get("Deployment", "web").status.readyReplicas == 4)

    began = cluster.now
    template = {"metadata": {"annotations": NEVER_READY}}
    cluster.patch("Deployment", "web", {"spec": {"template": template}})
    cluster.wait_until(lambda: progress(cluster).status == "False")

    assert progress(cluster).reason == "ProgressDeadlineExceeded"
    # The clock runs from the last progress: the new pods were started a second after the change.
    assert timedelta(minutes=10) <= cluster.now - began <= timedelta(minutes=10, seconds=5)
    assert cluster.get("Deployment", "web").status.availableReplicas >= 3, "the old pods serve on"

    story = [str(entry) for entry in cluster.history("Deployment", "web")]
    assert "rollout made no progress" in story[-1]


def progress(cluster: Cluster):  # type: ignore[no-untyped-def]
    conditions = cluster.get("Deployment", "web").status.conditions
    return next(each for each in conditions if each.type == "Progressing")
