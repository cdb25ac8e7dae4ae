"""Jobs on a real API server: steersman and kube-controller-manager leave the same objects and events.

Each controller has just its bootstrap rights, and each manager a plane of its own.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steersman.api.kinds import JOBS, NAMESPACES, PODS, SERVICEACCOUNTS, Job
from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.runtime.clock import LiveClock
from steersman.sim.kubelet import Kubelets
from steersman.testing.follow import beside, until
from steersman.testing.normal import Document, normalise
from steersman.testing.plane import ASSETS, Binary, RealPlane

REFERENCE: Binary = "kube-controller-manager"
NAMESPACE = "jobs"
EVENTS: Kind[Document] = Kind("", "v1", "Event", "events", True, dict)
FLAGS = (
    "--controllers=job-controller,ttl-after-finished-controller,garbage-collector-controller,"
    "serviceaccount-controller",
    "--use-service-account-credentials=true",
    "--leader-elect=false",
    "--kube-api-qps=200",
    "--kube-api-burst=300",
)
SHORT, LONG, BAD = ["sleep", "1"], ["sleep", "3600"], ["sh", "-c", "exit 42"]


def load(name: str) -> ModuleType:
    """A module beside this one: test directories are no packages."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


async def tell(api: Api) -> None:
    """The Jobs, what is done to them, and that they have come to an end."""
    orphan = {"apiVersion": "v1", "kind": "Pod", **template(["sleep", "5"], app="manual")}
    orphan["metadata"]["name"] = "orphan"
    await api.create(PODS, NAMESPACE, orphan)
    for document in STORY:
        await api.create(JOBS.untyped, NAMESPACE, document)
    await until(api, JOBS, NAMESPACE, "resumed", ended("Suspended"))
    await until(api, JOBS, NAMESPACE, "halted", counts(active=2, ready=2))
    await until(api, JOBS, NAMESPACE, "shrunk", counts(active=3, ready=3))
    await api.patch(JOBS, NAMESPACE, "resumed", {"spec": {"suspend": False}})
    await api.patch(JOBS, NAMESPACE, "halted", {"spec": {"suspend": True}})
    await api.patch(JOBS, NAMESPACE, "shrunk", {"spec": {"parallelism": 1}})
    for name, how in ENDS.items():
        await until(api, JOBS, NAMESPACE, name, ended(how))
    await until(api, JOBS, NAMESPACE, "halted", counts(active=0, terminating=0))
    await until(api, JOBS, NAMESPACE, "shrunk", counts(active=1, ready=1, terminating=0))
    await until(api, JOBS, NAMESPACE, "none", counts(ready=0))


async def outcome(plane: RealPlane, binary: Binary) -> dict[str, Any]:
    same = load("same")
    mark = plane.mark()
    async with plane.connect() as api:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await api.create(NAMESPACES, "", space)
        manager = plane.manager(*FLAGS, binary=binary)
        nodes = Kubelets(api, LiveClock(), ("node-1",), register=False)
        async with beside(same.watchdog(manager), nodes.run()), asyncio.timeout(240):
            await until(api, SERVICEACCOUNTS, NAMESPACE, "default", bool)
            await tell(api)
            await same.quiet(plane)
            found: dict[str, list[Document]] = {}
            for kind in (JOBS, PODS, EVENTS):
                page = await api.list(kind.untyped, NAMESPACE)
                found[kind.plural] = [item for item in page.items if isinstance(item, dict)]
        manager.stop()
    refused = [
        entry
        for entry in plane.audit(mark)
        if entry.user.startswith("system:serviceaccount:kube-system:") and entry.code == 403
    ]
    assert refused == []
    assert "Traceback" not in manager.log()
    return normalise(found)


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    with RealPlane.start() as plane:
        return asyncio.run(outcome(plane, "steersman"))


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    if not os.access(Path(os.environ.get(ASSETS, ""), REFERENCE), os.X_OK):
        pytest.skip(f"needs the reference manager: put {REFERENCE} into {ASSETS}")
    with RealPlane.start() as plane:
        return asyncio.run(outcome(plane, REFERENCE))


def test_every_job_ends_as_it_should_with_just_the_rights_it_has(ours: dict[str, Any]) -> None:
    assert "brief" not in ours["jobs"], "its time to live was none"
    assert ours["jobs"]["parts"]["status"]["completedIndexes"] == "0-2"
    assert ours["jobs"]["manual"]["status"]["succeeded"] == 2
    assert ours["jobs"]["foreign"].get("status", {}) == {}
    held = [pod for pods in ours["pods"].values() for pod in pods if pod["status"] in ("Succeeded", "Failed")]
    assert held
    assert not [pod for pod in held if "finalizers" in pod["metadata"]]


@pytest.mark.parametrize("plural", ["jobs", "pods", "events"])
def test_both_managers_leave_the_same(reference: dict[str, Any], ours: dict[str, Any], plural: str) -> None:
    assert reference[plural], "the story must leave something to compare"
    assert ours[plural] == reference[plural]
