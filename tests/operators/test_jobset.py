"""JobSet, from its own manifests: webhooks for JobSets and for their pods, and Jobs that run to completion."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from kubernetes.dynamic.exceptions import DynamicApiError

from tests.harness.child_process import Child
from tests.harness.operators import (
    Document,
    Plane,
    directory,
    documents,
    free_port,
    has_condition,
    needs,
    plane,
    serving_files,
    trusting,
)

API = "jobset.x-k8s.io/v1alpha2"
SERVICE, NAMESPACE = "webhook-service", "system"


pytestmark = needs("bin/jobset", "jobset")


@contextmanager
def installed(where: Path) -> Iterator[tuple[Plane, Child]]:
    """A plane with JobSet's definitions, roles and webhooks, and its program."""
    bundle = serving_files(where / "certs", SERVICE, NAMESPACE)
    port, source = free_port(), directory() / "jobset"
    settings = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": True, "resourceNamespace": NAMESPACE},
        # Files of ours: with its own, it waits for a kubelet to mount the Secret it made.
        "internalCertManagement": {"enable": False},
        "webhook": {"port": port, "host": "127.0.0.1", "certDir": str(where / "certs")},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
    }
    (where / "config.yaml").write_text(yaml.safe_dump(settings))
    with plane(where, f"--webhook-address={NAMESPACE}/{SERVICE}=127.0.0.1:{port}") as running:
        running.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        parts = source / "config/components"
        rights = [path for path in sorted(parts.glob("rbac/*.yaml")) if path.name != "kustomization.yaml"]
        running.apply(*documents(*rights), namespace=NAMESPACE)
        manifests = documents(
            *parts.glob("crd/bases/*.yaml"), parts / "webhook/manifests.yaml", parts / "webhook/service.yaml"
        )
        for each in (trusting(document, bundle) for document in manifests):
            for webhook in each.get("webhooks", ()):
                if webhook["rules"][0]["resources"] == ["pods"]:  # as its kustomization patches them
                    exists = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
                    webhook["objectSelector"] = {"matchExpressions": [exists]}
            running.apply(each)
        program = running.start(
            "jobset", f"--config={where / 'config.yaml'}", account=f"{NAMESPACE}/controller-manager"
        )
        running.listening(port, program)
        yield running, program


def example(name: str) -> Document:
    (found,) = documents(directory() / f"jobset/examples/{name}.yaml")
    return found


def simulated(jobset: Document, job: int, **annotations: str) -> None:
    """States what the pods of a replicated Job do on simulated nodes."""
    template = jobset["spec"]["replicatedJobs"][job]["template"]["spec"]["template"]
    notes = template.setdefault("metadata", {}).setdefault("annotations", {})
    notes.update({f"sim.steersman.dev/{name.replace('_', '-')}": text for name, text in annotations.items()})


def test_a_jobset_succeeds_by_its_policy_and_its_webhooks_have_their_say(tmp_path: Path) -> None:
    with installed(tmp_path) as (running, program):
        jobset = example("simple/success-policy")
        simulated(jobset, 1, runs="2")
        made = running.create(jobset)
        (leader, workers) = made["spec"]["replicatedJobs"]
        assert workers["template"]["spec"]["completionMode"] == "Indexed", "its webhook sets it"
        assert leader["template"]["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"
        running.until(
            lambda: len(running.list("batch/v1", "Job")) == 2, "leader and workers have Jobs", program
        )

        name = made["metadata"]["name"]
        running.until(
            lambda: has_condition(running.get(API, "JobSet", name), "Completed"),
            "the JobSet is completed as soon as its workers are",
            program,
        )
        ended = {job["metadata"]["name"]: job for job in running.list("batch/v1", "Job")}
        assert has_condition(ended[f"{name}-workers-0"], "Complete")
        running.until(
            lambda: (
                [job["metadata"]["name"] for job in running.list("batch/v1", "Job")] == [f"{name}-workers-0"]
            ),
            "the leader, which never ends, is cleaned up",
            program,
        )
        service = running.get("v1", "Service", name)
        assert service["spec"]["clusterIP"] == "None"

        wrong = example("simple/success-policy")
        wrong["metadata"]["name"] = "wrong"
        wrong["spec"]["successPolicy"]["targetReplicatedJobs"] = ["absent"]
        with pytest.raises(DynamicApiError, match=r"vjobset.kb.io.* denied the request.*absent"):
            running.create(wrong)


def test_a_jobset_starts_again_as_often_as_its_failure_policy_allows(tmp_path: Path) -> None:
    with installed(tmp_path) as (running, program):
        jobset = example("simple/failure-policy")
        jobset["spec"]["failurePolicy"]["maxRestarts"] = 2
        simulated(jobset, 0, runs="1", exit_code="1")
        simulated(jobset, 1, runs="forever")
        name = running.create(jobset)["metadata"]["name"]
        running.until(
            lambda: has_condition(running.get(API, "JobSet", name), "Failed"), "the JobSet failed", program
        )
        ended = running.get(API, "JobSet", name)
        (failed,) = [each for each in ended["status"]["conditions"] if each["type"] == "Failed"]
        assert (ended["status"]["restarts"], failed["reason"]) == (2, "ReachedMaxRestarts")
        attempts = {
            job["metadata"]["name"]: job["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"]
            for job in running.list("batch/v1", "Job")
        }
        assert set(attempts.values()) == {"2"}, "all Jobs were created anew each time"
        running.delete(API, "JobSet", name)
        running.until(
            lambda: not running.list("batch/v1", "Job") and not running.list("v1", "Pod"),
            "its Jobs and their pods are collected",
            program,
        )


def test_a_jobset_starts_in_order_and_is_suspended_and_resumed(tmp_path: Path) -> None:
    with installed(tmp_path) as (running, program):
        jobset = example("startup-policy/startup-driver-ready")
        driver, _ = jobset["spec"]["replicatedJobs"]
        (container,) = driver["template"]["spec"]["template"]["spec"]["containers"]
        container["readinessProbe"]["initialDelaySeconds"] = 2
        name = running.create(jobset)["metadata"]["name"]
        running.until(
            lambda: has_condition(running.get(API, "JobSet", name), "StartupPolicyCompleted"),
            "driver and workers are ready",
            program,
        )
        first, second = sorted(running.list("batch/v1", "Job"), key=lambda job: job["metadata"]["name"])
        assert first["metadata"]["creationTimestamp"] < second["metadata"]["creationTimestamp"]

        def suspend(suspended: bool) -> None:
            running.patch(API, "JobSet", name, {"spec": {"suspend": suspended}})

        def pods() -> list[str]:
            return [pod["status"]["phase"] for pod in running.list("v1", "Pod")]

        assert pods() == ["Running"] * 5
        suspend(True)
        running.until(
            lambda: has_condition(running.get(API, "JobSet", name), "Suspended") and not pods(),
            "a suspended JobSet has no pods",
            program,
        )
        assert all(job["spec"]["suspend"] for job in running.list("batch/v1", "Job"))
        suspend(False)
        running.until(lambda: pods() == ["Running"] * 5, "it goes on", program)
        with pytest.raises(DynamicApiError, match=r"spec.successPolicy: Invalid value: .*Value is immutable"):
            running.patch(API, "JobSet", name, {"spec": {"successPolicy": {"operator": "Any"}}})
