"""A request never becomes the manager of a reset field."""

from __future__ import annotations

import pytest

from steersman.server.apply import field_set
from steersman.server.apply.reset_fields import reset_fields_filter

EVERYTHING = field_set.of(
    "metadata.labels.a",
    "metadata.ownerReferences.o",
    "spec.replicas",
    "spec.ephemeralContainers.e.image",
    "spec.containers.c.image",
    "spec.containers.c.resources.limits",
    "status.phase",
    "status.conditions.c",
    "status.certificate",
)


@pytest.mark.parametrize(
    ("resource", "subresource", "kept"),
    [
        ("pods", "", ["metadata", "spec"]),
        ("pods", "status", ["labels", "status"]),
        ("deployments.apps", "status", ["ownerReferences", "status"]),
        ("replicasets.apps", "status", ["metadata", "status"]),
        ("volumeattachments.storage.k8s.io", "status", ["status"]),
        ("certificatesigningrequests.certificates.k8s.io", "", ["metadata"]),
        ("certificatesigningrequests.certificates.k8s.io", "status", ["metadata", "phase", "certificate"]),
        ("certificatesigningrequests.certificates.k8s.io", "approval", ["metadata", "phase", "conditions"]),
        ("namespaces", "finalize", ["metadata", "spec"]),
        ("pods", "ephemeralcontainers", ["ephemeralContainers"]),
        # What upstream says it resets there it does not tell those who follow owners.
        ("pods", "resize", ["metadata", "spec", "status"]),
    ],
)
def test_each_resource_resets_what_upstreams_does(resource: str, subresource: str, kept: list[str]) -> None:
    left = list(field_set.paths(reset_fields_filter(resource, subresource, has_status=True)(EVERYTHING)))
    all_paths = list(field_set.paths(EVERYTHING))
    assert left == [path for path in all_paths if any(f".{name}" in path for name in kept)]


def test_a_resource_without_a_status_resets_nothing() -> None:
    assert reset_fields_filter("configmaps", "", has_status=False)(EVERYTHING) == EVERYTHING
