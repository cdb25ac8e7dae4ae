"""Jobs in a whole cluster, with time passing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from steersman.controllers.job.pods import TRACKING_FINALIZER
from steersman.sim.faults.requests import ErrorResponse
from steersman.testing.cluster import Cluster

JOBS_ONLY = ("job-controller",)


def job(name: str, script: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "app:1", "command": ["sh", "-c", script]}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def ended(cluster: Cluster, name: str) -> str:
    """The reason for which a Job has ended; empty where it has not."""
    for condition in cluster.get("Job", name).status.conditions:
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            return f"{condition.type} {condition.reason}"
    return ""


def test_the_waits_between_failures_double() -> None:
    with Cluster(seed=3, controllers=JOBS_ONLY) as cluster:
        cluster.apply(job("bad", "exit 3", backoffLimit=3))
        cluster.wait_until(lambda: ended(cluster, "bad") == "Failed BackoffLimitExceeded")
        born = sorted(at for pod in cluster.list("Pod") if (at := pod.metadata.creationTimestamp))
        waits = [(b - a).total_seconds() for a, b in pairwise(born)]
        assert [wait // 10 for wait in waits] == [1, 2, 4]


def test_a_job_whose_rounds_fail_is_retried_after_one_second_doubling() -> None:
    refused = ErrorResponse(403, verb="create", kind="pods", times=100)
    with Cluster(seed=3, controllers=JOBS_ONLY, faults=[refused]) as cluster:
        cluster.apply(job("work", "exit 0"))
        cluster.advance(seconds=30)
        (event,) = cluster.events("Job", "work")
        assert event.reason == "FailedCreate"
        assert 4 <= event.count <= 6  # after 0, 1, 3, 7 and 15 seconds, and once for its own status


def test_a_restart_does_not_forget_the_wait() -> None:
    with Cluster(seed=3, controllers=JOBS_ONLY) as cluster:
        cluster.apply(job("bad", "exit 3", backoffLimit=3))
        cluster.wait_until(lambda: cluster.get("Job", "bad").status.failed == 2)
        cluster.restart_manager()
        cluster.advance(seconds=12)
        assert len(cluster.list("Pod")) == 2
        cluster.wait_until(lambda: len(cluster.list("Pod")) == 3)


def test_a_deleted_pod_is_replaced_after_a_wait_too() -> None:
    with Cluster(seed=3, controllers=JOBS_ONLY) as cluster:
        long = job("long", "sleep 3600")
        # It takes longer to stop than it is given, so it is killed.
        long["spec"]["template"]["metadata"] = {"annotations": {"sim.steersman.dev/shutdown": "60"}}
        long["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 3
        cluster.apply(long)
        cluster.wait_until(lambda: cluster.get("Job", "long").status.ready == 1)
        (pod,) = cluster.list("Pod")
        cluster.delete("Pod", pod.metadata.name)
        cluster.advance(seconds=8)
        assert cluster.list("Pod") == []
        assert cluster.get("Job", "long").status.failed == 1
        cluster.wait_until(lambda: len(cluster.list("Pod")) == 1)


def test_a_job_that_is_deleted_leaves_no_pod_that_cannot_go() -> None:
    with Cluster(seed=3) as cluster:
        cluster.apply(job("long", "sleep 3600", parallelism=3, completions=3))
        cluster.wait_until(lambda: cluster.get("Job", "long").status.ready == 3)
        assert all(TRACKING_FINALIZER in pod.metadata.finalizers for pod in cluster.list("Pod"))
        cluster.delete("Job", "long", propagation="Background")
        cluster.wait_until(lambda: not cluster.list("Pod"))


def test_a_cron_job_runs_its_jobs_and_keeps_the_last() -> None:
    with Cluster(seed=3) as cluster:
        spec = job("x", "sleep 2")["spec"]
        cron = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "tick"},
            "spec": {"schedule": "* * * * *", "successfulJobsHistoryLimit": 1, "jobTemplate": {"spec": spec}},
        }
        cluster.apply(cron)
        cluster.advance(minutes=3, seconds=30)
        (last,) = cluster.list("Job")
        assert ended(cluster, last.metadata.name) == "Complete CompletionsReached"
        assert cluster.get("CronJob", "tick").status.lastSuccessfulTime is not None


def test_a_finished_job_goes_when_its_time_has_come_and_its_pods_with_it() -> None:
    with Cluster(seed=3) as cluster:
        cluster.apply(job("brief", "true", ttlSecondsAfterFinished=60))
        cluster.wait_until(lambda: ended(cluster, "brief"))
        cluster.advance(seconds=50)
        assert len(cluster.list("Job")) == 1
        cluster.advance(seconds=20)
        assert (cluster.list("Job"), cluster.list("Pod")) == ([], [])
