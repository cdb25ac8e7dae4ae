"""Jobs on a real API server: steersman and kube-controller-manager leave the same objects and events.

Each controller has just its bootstrap rights, and each manager a plane of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.kinds import JOBS, PODS, Job

Document = dict[str, Any]
SHORT, LONG, BAD = ["sleep", "1"], ["sleep", "3600"], ["sh", "-c", "exit 42"]


def template(command: list[str], **labels: str) -> Document:
    return {
        # It takes longer to stop than it is given, so it is killed, and has failed.
        "metadata": {"labels": labels, "annotations": {"sim.steersman.dev/shutdown": "60"}},
        "spec": {
            "nodeName": "node-1",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "example/app:1", "command": command}],
        },
    }


def job(name: str, command: list[str], **spec: Any) -> Document:
    spec = {"template": template(command), **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def indexed(name: str, command: list[str], completions: int, **spec: Any) -> Document:
    spec = {"parallelism": completions, **spec}
    return job(name, command, completionMode="Indexed", completions=completions, **spec)


FAIL_JOB = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
FAIL_INDEX = {"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}]}
STORY = (
    job("plain", SHORT, completions=3, parallelism=2),
    job("queue", SHORT, parallelism=2),
    job("none", SHORT, parallelism=0),
    indexed("parts", SHORT, 3),
    job("failing", BAD, backoffLimit=1),
    job("restarting", LONG, backoffLimit=1, activeDeadlineSeconds=2),
    job("policy", BAD, podFailurePolicy=FAIL_JOB),
    indexed("indexes", BAD, 2, backoffLimitPerIndex=0),
    indexed("rule", BAD, 2, backoffLimitPerIndex=3, podFailurePolicy=FAIL_INDEX),
    indexed("most", BAD, 3, backoffLimitPerIndex=0, maxFailedIndexes=0, parallelism=1),
    indexed("enough", SHORT, 3, parallelism=1, successPolicy={"rules": [{"succeededCount": 1}]}),
    job("resumed", SHORT, suspend=True),
    job("halted", LONG, parallelism=2, completions=2),
    job("foreign", SHORT, managedBy="example.com/somebody"),
    job("brief", SHORT, ttlSecondsAfterFinished=0),
    job("shrunk", LONG, parallelism=3, completions=3, podReplacementPolicy="Failed"),
    {
        **job("manual", SHORT, manualSelector=True, selector={"matchLabels": {"app": "manual"}}),
        "spec": {
            "manualSelector": True,
            "selector": {"matchLabels": {"app": "manual"}},
            "completions": 2,
            "parallelism": 2,
            "template": template(SHORT, app="manual"),
        },
    },
)
ENDS = {
    "plain": "Complete",
    "queue": "Complete",
    "parts": "Complete",
    "failing": "Failed",
    "restarting": "Failed",
    "policy": "Failed",
    "indexes": "Failed",
    "rule": "Failed",
    "most": "Failed",
    "enough": "Complete",
    "resumed": "Complete",
    "manual": "Complete",
}


def ended(how: str) -> Any:
    return lambda job: any(one.type == how and one.status == "True" for one in job.status.conditions)


def counts(**wanted: Any) -> Any:
    def met(job: Job) -> bool:
        return all(getattr(job.status, field) == value for field, value in wanted.items())

    return met


async def tell(stage: Any) -> None:
    """The Jobs, what is done to them, and that they have come to an end."""
    orphan = {"apiVersion": "v1", "kind": "Pod", **template(["sleep", "5"], app="manual")}
    orphan["metadata"]["name"] = "orphan"
    await stage.create(PODS, orphan)
    await stage.create(JOBS, *STORY)
    await stage.until(JOBS, "resumed", ended("Suspended"))
    await stage.until(JOBS, "halted", counts(active=2, ready=2))
    await stage.until(JOBS, "shrunk", counts(active=3, ready=3))
    await stage.patch(JOBS, "resumed", {"spec": {"suspend": False}})
    await stage.patch(JOBS, "halted", {"spec": {"suspend": True}})
    await stage.patch(JOBS, "shrunk", {"spec": {"parallelism": 1}})
    for name, how in ENDS.items():
        await stage.until(JOBS, name, ended(how))
    await stage.until(JOBS, "halted", counts(active=0, terminating=0))
    await stage.until(JOBS, "shrunk", counts(active=1, ready=1, terminating=0))
    await stage.until(JOBS, "none", counts(ready=0))
    await stage.quiet()


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell,
        "jobs",
        controllers=("job-controller", "ttl-after-finished-controller", "garbage-collector-controller"),
        kinds=(JOBS, PODS),
    )
    return found


def test_every_job_ends_as_it_should_with_just_the_rights_it_has(ends: dict[str, dict[str, Any]]) -> None:
    ours = ends["steersman"]
    assert "brief" not in ours["jobs"], "its time to live was none"
    assert ours["jobs"]["parts"]["status"]["completedIndexes"] == "0-2"
    assert ours["jobs"]["manual"]["status"]["succeeded"] == 2
    assert ours["jobs"]["foreign"].get("status", {}) == {}
    held = [pod for pods in ours["pods"].values() for pod in pods if pod["status"] in ("Succeeded", "Failed")]
    assert held
    assert not [pod for pod in held if "finalizers" in pod["metadata"]]


@pytest.mark.parametrize("plural", ["jobs", "pods", "events"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], plural: str
) -> None:
    alike(ends, plural)


COUNTERS = (
    "job_pods_creation_total",
    "job_pods_finished_total",
    "jobs_finished_total",
    "job_finished_indexes_total",
    "jobs_by_external_controller_total",
    "pod_failures_handled_by_failure_policy_total",
    "terminated_pods_tracking_finalizer_total",
)


@pytest.mark.parametrize("name", COUNTERS)
def test_both_managers_count_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], name: str
) -> None:
    def counted(end: dict[str, Any]) -> dict[str, float]:
        found: dict[str, float] = end["counters"]
        # Upstream also shows that there was nothing to count.
        return {key: count for key, count in found.items() if f"controller_{name}" in key and count}

    alike(ends, counted)
