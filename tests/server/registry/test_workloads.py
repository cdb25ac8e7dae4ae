"""Labels of Jobs, as kube-apiserver 1.36.4 gives them."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.testing import Cluster

OWN = ["batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"]


@pytest.mark.parametrize(
    ("labels", "template", "expected"),
    [
        ({}, {}, OWN),
        ({}, {"app": "a"}, ["app", *OWN]),
        ({"mine": "x"}, {"app": "a"}, ["mine"]),
        ({"app": "a"}, {"app": "a"}, ["app"]),
    ],
)
def test_a_job_without_labels_has_those_of_its_pods(
    labels: dict[str, str], template: dict[str, str], expected: list[str]
) -> None:
    job: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "labels": labels},
        "spec": {
            "template": {
                "metadata": {"labels": template},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]},
            }
        },
    }
    with Cluster(nodes=0) as cluster:
        cluster.create(job)
        found = cluster.get("Job", "j")
        assert sorted(found.metadata.labels) == sorted(expected)
        assert sorted(found.spec.template.metadata.labels) == sorted({*template, *OWN})
