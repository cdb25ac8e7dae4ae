"""Defaults of pods: specs shared by pods of one template, and image pull policies."""

from __future__ import annotations

import pytest

from steersman.api.errors import BadRequest
from steersman.api.generated.core_v1 import (
    Container,
    ContainerPort,
    Pod,
    PodSpec,
    PodTemplateSpec,
    ResourceRequirements,
)
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.codec.convert import to_builtins
from steersman.server.defaulting import default_for, pods
from steersman.server.defaulting.volumes import image_pull_policy

fill = default_for("", "Pod")
DIGEST = "sha256:" + "0" * 64


def pod(name: str, spec: PodSpec) -> Pod:
    return Pod(metadata=ObjectMeta(name=name), spec=spec)


def spec(**container: object) -> PodSpec:
    return PodSpec(containers=(Container(name="c", image="i", **container),))  # type: ignore[arg-type]


def test_pods_of_one_template_share_one_whole_spec() -> None:
    shared = spec()
    first, second = (fill(pod(name, shared)) for name in ("a", "b"))
    assert first.spec is second.spec
    assert first.spec is not shared
    assert first.metadata.name == "a"
    assert second.metadata.name == "b"


def test_a_pod_of_a_whole_template_is_filled_without_being_copied() -> None:
    template = pods.default_pod_template_spec(PodTemplateSpec(spec=spec()))
    made = fill(pod("a", template.spec))
    assert made.spec.containers is template.spec.containers
    whole = pod("b", made.spec)
    assert fill(whole) is whole


def test_specs_are_remembered_only_so_long() -> None:
    for i in range(512):
        fill(pod("p", spec(workingDir=f"/{i}")))
    assert len(pods._spec_cache) <= 256


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("i", "Always"),
        ("i:latest", "Always"),
        ("x.io:5000/a/i", "Always"),
        ("x.io:5000/a/i:latest", "Always"),
        ("i:1", "IfNotPresent"),
        ("x.io/a/i:v1.2", "IfNotPresent"),
        (f"i@{DIGEST}", "IfNotPresent"),
        (f"i:1@{DIGEST}", "IfNotPresent"),
        (f"i:latest@{DIGEST}", "Always"),
        ("", "IfNotPresent"),
        ("No Image", "IfNotPresent"),
    ],
)
def test_only_the_latest_is_always_pulled(image: str, policy: str) -> None:
    assert image_pull_policy(image) == policy


def test_what_is_limited_is_requested_too_in_a_pod_but_not_in_a_template() -> None:
    limited = spec(
        resources=ResourceRequirements(limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "0.5"})
    )
    made = fill(pod("a", limited)).spec.containers[0].resources
    assert dict(made.requests) == {"cpu": "500m", "memory": "1Gi"}
    template = pods.default_pod_template_spec(PodTemplateSpec(spec=limited)).spec.containers[0].resources
    assert dict(template.requests) == {"cpu": "500m"}


def test_ports_are_those_of_the_node_where_the_network_is() -> None:
    ports = (ContainerPort(containerPort=80), ContainerPort(containerPort=81, hostPort=82))
    given = PodSpec(containers=(Container(name="c", image="i", ports=ports),), hostNetwork=True)
    assert [port.hostPort for port in fill(pod("a", given)).spec.containers[0].ports] == [80, 82]


def test_an_account_has_two_names_and_the_newer_one_counts() -> None:
    both = PodSpec(serviceAccountName="new", serviceAccount="old")
    old = PodSpec(serviceAccount="old")
    for given, name in ((both, "new"), (old, "old")):
        made = fill(pod("a", given)).spec
        assert (made.serviceAccountName, made.serviceAccount) == (name, name)


def test_a_malformed_quantity_is_a_bad_request() -> None:
    bad = spec(resources=ResourceRequirements(limits={"cpu": "much"}))
    with pytest.raises(BadRequest) as refusal:
        fill(pod("a", bad))
    assert refusal.value.message == (
        'Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )


def test_an_empty_selector_of_nodes_is_none_at_all() -> None:
    assert "nodeSelector" not in to_builtins(fill(pod("p", PodSpec(nodeSelector={}))).spec)
    assert to_builtins(fill(pod("p", PodSpec(nodeSelector={"a": "b"}))).spec)["nodeSelector"] == {"a": "b"}
