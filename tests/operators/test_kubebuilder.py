"""The projects of kubebuilder's tutorials, from their own ``dist/install.yaml``: a CronJob operator with webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kubernetes.dynamic.exceptions import DynamicApiError

from tests.harness.operators import (
    Document,
    Plane,
    directory,
    documents,
    free_port,
    needs,
    plane,
    serving_files,
    trusting,
)

GROUP = "batch.tutorial.kubebuilder.io"
SERVICE, NAMESPACE, PORT = "project-webhook-service", "project-system", 9443
# Kinds of cert-manager and of Prometheus' operator, which these tests do without.
OTHERS = {"Certificate", "Issuer", "ServiceMonitor"}


def project(tutorial: str) -> Path:
    return directory() / f"kubebuilder/docs/book/src/{tutorial}-tutorial/testdata/project"


@contextmanager
def operator(tutorial: str, where: Path) -> Iterator[Plane]:
    """A plane with the operator of a tutorial installed, and running beside it."""
    bundle = serving_files(where / "certs", SERVICE, NAMESPACE)
    with plane(where, f"--webhook-address={NAMESPACE}/{SERVICE}=127.0.0.1:{PORT}") as running:
        manifests = documents(project(tutorial) / "dist/install.yaml")
        running.apply(*(trusting(each, bundle) for each in manifests if each["kind"] not in OTHERS))
        program = running.start(
            f"kubebuilder-{tutorial}",
            f"--webhook-cert-path={where / 'certs'}",
            f"--health-probe-bind-address=127.0.0.1:{free_port()}",
            account=f"{NAMESPACE}/project-controller-manager",
        )
        running.listening(PORT, program)
        yield running


def sample(tutorial: str, version: str) -> Document:
    (found,) = documents(project(tutorial) / f"config/samples/batch_{version}_cronjob.yaml")
    return found


@needs("bin/kubebuilder-cronjob", "kubebuilder")
def test_the_cronjob_tutorial_runs_jobs_and_its_webhooks_default_and_refuse(tmp_path: Path) -> None:
    with operator("cronjob", tmp_path) as running:
        wrong = sample("cronjob", "v1")
        wrong["spec"]["schedule"] = "whenever"
        with pytest.raises(
            DynamicApiError, match=r"admission webhook .*vcronjob-v1.kb.io.* denied the request"
        ):
            running.create(wrong)
        cronjob = sample("cronjob", "v1")
        del cronjob["spec"]["concurrencyPolicy"]
        cronjob["spec"]["schedule"] = "@every 2s"
        made = running.create(cronjob)
        defaults = {"concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3}
        assert defaults.items() <= made["spec"].items()
        program = running.programs[0]

        def has_run() -> bool:
            jobs = running.list("batch/v1", "Job")
            owners = {owner["apiVersion"] for job in jobs for owner in job["metadata"]["ownerReferences"]}
            assert owners <= {f"{GROUP}/v1"}
            return any(job["status"].get("succeeded") for job in jobs)

        running.until(has_run, "a Job of the CronJob has succeeded", program)
        name = made["metadata"]["name"]
        running.until(
            lambda: bool(running.get(f"{GROUP}/v1", "CronJob", name)["status"].get("lastScheduleTime")),
            "the status tells of it",
            program,
        )
        running.delete(f"{GROUP}/v1", "CronJob", name)
        running.until(lambda: not running.list("batch/v1", "Job"), "its Jobs are collected", program)


@needs("bin/kubebuilder-multiversion", "kubebuilder")
def test_the_multiversion_tutorial_converts_between_its_versions(tmp_path: Path) -> None:
    with operator("multiversion", tmp_path) as running:
        second = sample("multiversion", "v2")
        second["spec"]["schedule"] = {"minute": "*/5", "hour": "3"}
        made = running.create(second)
        assert made["spec"]["schedule"] == {"minute": "*/5", "hour": "3"}
        name = made["metadata"]["name"]
        assert running.get(f"{GROUP}/v1", "CronJob", name)["spec"]["schedule"] == "*/5 3 * * *"
        first = sample("multiversion", "v1")
        first["metadata"]["name"], first["spec"]["schedule"] = "first", "0 4 * * 1"
        running.create(first)
        by_name = {each["metadata"]["name"]: each for each in running.list(f"{GROUP}/v2", "CronJob")}
        assert by_name["first"]["spec"]["schedule"] == {"minute": "0", "hour": "4", "dayOfWeek": "1"}
        assert by_name[name]["apiVersion"] == f"{GROUP}/v2"
        second["metadata"]["name"], second["spec"]["schedule"] = "wrong", {"minute": "61"}
        with pytest.raises(DynamicApiError, match="denied the request"):
            running.create(second)
