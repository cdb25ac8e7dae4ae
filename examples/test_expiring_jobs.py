"""Jobs that finish and go by themselves, when their time is up and not a second before.

``ttlSecondsAfterFinished`` is hard to test on a real cluster, where an hour is an hour. Here the nodes run each
Job's command (``sleep 90``) by the cluster's own clock.
"""

from typing import Any

from steersman.testing import Cluster


def job(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "report:v1", "command": ["sleep", "90"]}]
    return {**spec, "template": {"spec": {"restartPolicy": "Never", "containers": containers}}}


def test_a_finished_job_goes_when_its_time_is_up_and_not_before(cluster: Cluster) -> None:
    meta = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "report"}}
    cluster.apply({**meta, "spec": job(ttlSecondsAfterFinished=3600)})
    cluster.wait_until(lambda: cluster.get("Job", "report").status.completionTime)

    cluster.advance(minutes=59, seconds=59)
    assert len(cluster.list("pods")) == 1
    assert cluster.get("Job", "report").metadata.deletionTimestamp is None

    cluster.advance(seconds=5)
    assert cluster.list("Job") == []
    assert cluster.list("pods") == [], "and its pods go with it"
