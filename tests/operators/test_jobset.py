"""JobSet, from its own manifests: webhooks for JobSets and for their pods, and Jobs that run to completion."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kubernetes.dynamic.exceptions import DynamicApiError

from tests.harness.operators import (
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


@needs("bin/jobset", "jobset")
def test_a_jobset_succeeds_by_its_policy_and_its_webhooks_have_their_say(tmp_path: Path) -> None:
    bundle = serving_files(tmp_path / "certs", SERVICE, NAMESPACE)
    port, source = free_port(), directory() / "jobset"
    settings = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": True, "resourceNamespace": NAMESPACE},
        # Files of ours: with its own, it waits for a kubelet to mount the Secret it made.
        "internalCertManagement": {"enable": False},
        "webhook": {"port": port, "host": "127.0.0.1", "certDir": str(tmp_path / "certs")},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    with plane(tmp_path, f"--webhook-address={NAMESPACE}/{SERVICE}=127.0.0.1:{port}") as running:
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
            "jobset", f"--config={tmp_path / 'config.yaml'}", account=f"{NAMESPACE}/controller-manager"
        )
        running.listening(port, program)

        (jobset,) = documents(source / "examples/simple/success-policy.yaml")
        jobset["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["metadata"] = {
            "annotations": {"sim.steersman.dev/runs": "2"}
        }
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

        wrong = documents(source / "examples/simple/success-policy.yaml")[0]
        wrong["metadata"]["name"] = "wrong"
        wrong["spec"]["successPolicy"]["targetReplicatedJobs"] = ["absent"]
        with pytest.raises(DynamicApiError, match=r"vjobset.kb.io.* denied the request.*absent"):
            running.create(wrong)
