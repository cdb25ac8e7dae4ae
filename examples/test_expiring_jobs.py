"""Finished Jobs that go by themselves: a month in an instant.

``ttlSecondsAfterFinished`` is hard to test on a real cluster, where an hour is an hour. Here it is one line, and
so is the month in which a Job without it stays.
"""

from typing import Any

import pytest

from steersman.testing import Cluster


def job(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "report:v1"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {**spec, "template": template},
    }


def finish(cluster: Cluster, name: str) -> None:
    """Say that a Job is complete, as its controller does."""
    at = cluster.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": at}
        for type_ in ("SuccessCriteriaMet", "Complete")
    ]
    status = {"startTime": at, "completionTime": at, "conditions": conditions}
    cluster.patch("Job", name, {"status": status}, subresource="status")


@pytest.mark.cluster(controllers=["ttl-after-finished-controller"])
def test_a_finished_job_goes_when_its_time_is_up_and_not_before(cluster: Cluster) -> None:
    cluster.apply([job("daily", ttlSecondsAfterFinished=3600), job("keepsake")])
    for name in ("daily", "keepsake"):
        finish(cluster, name)

    cluster.advance(minutes=59, seconds=59)
    assert cluster.get("Job", "daily").metadata.deletionTimestamp is None

    cluster.advance(seconds=1)
    # Only this one controller runs here: the garbage collector would take it away for good.
    assert cluster.get("Job", "daily").metadata.deletionTimestamp == cluster.now

    cluster.advance(days=30)
    assert cluster.get("Job", "keepsake").status.completionTime is not None
