"""Each kind finds its rules, other kinds have those of metadata, and a valid object stays valid."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.generated import gated_resources, resources
from steersman.api.generated.core_v1 import (
    Container,
    EphemeralVolumeSource,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate,
    Pod,
    PodSpec,
    Volume,
    VolumeResourceRequirements,
)
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.codec.convert import to_document, to_struct
from steersman.server.server import Server
from steersman.server.validation import LOADERS, METADATA_ONLY, rules_for, validate_create, validate_update
from steersman.server.validation.pods import pod as pods
from tests.harness import verbs
from tests.harness.fake_clock import FakeClock


def _documents() -> ModuleType:
    spec = importlib.util.spec_from_file_location("documents", Path(__file__).with_name("documents.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


documents = _documents()


ANSWERS = json.loads(documents.ANSWERS.read_text())
TAKEN = [row for row in documents.rows() if "object" in ANSWERS[row.says] and row.change is None]


@pytest.mark.parametrize("key", LOADERS, ids="/".join)
def test_the_rules_of_each_kind_can_be_found_and_the_kind_is_served(key: tuple[str, str]) -> None:
    group, kind = key
    assert rules_for(group, kind) is not METADATA_ONLY
    assert any((row.group, row.kind) == key for row in (*resources(), *gated_resources()))


def test_a_kind_is_held_to_the_same_rules_each_time() -> None:
    assert rules_for("apps", "Deployment") is rules_for("apps", "Deployment")
    old, new = (rules_for("autoscaling", "HorizontalPodAutoscaler", version) for version in ("v1", "v2"))
    assert old is not new


def test_a_kind_without_rules_is_held_to_those_of_metadata() -> None:
    bad = Pod(metadata=ObjectMeta(name="p", namespace="default", labels={"a b": "c"}))
    assert rules_for("example.com", "Thing") is METADATA_ONLY
    assert [problem.field for problem in validate_create("example.com", "Thing", bad)] == ["metadata.labels"]


@pytest.fixture
def server() -> Server:
    server = Server(FakeClock())
    namespaces = server.registry.find("", "v1", "namespaces")
    verbs.create(server, namespaces, "", to_struct(namespaces.type, {"metadata": {"name": "default"}}))
    return server


@pytest.mark.parametrize("row", TAKEN, ids=[row.says for row in TAKEN])
def test_what_was_taken_may_be_put_back_as_it_is(server: Server, row: Any) -> None:
    group, version, kind = row.kind
    resource = server.registry.find(group, version, documents.resource(group, version, kind).plural)
    namespace = "default" if resource.namespaced else ""
    there = verbs.create(server, resource, namespace, to_struct(resource.type, row.document))
    # A copy, so that nothing is taken for granted because it is the same object.
    again = to_struct(resource.type, to_document(resource.api_version, kind, there))
    assert again.metadata is not there.metadata
    assert resource.strategy.rules.update(again, there, namespaced=resource.namespaced) == []


def pod(name: str, spec: PodSpec) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


def whole(**changes: Any) -> PodSpec:
    """A spec as it is once defaults are filled in."""
    container = Container(
        name="c", image="i", imagePullPolicy="Always", terminationMessagePolicy="File", **changes
    )
    return PodSpec(
        containers=(container,),
        dnsPolicy="ClusterFirst",
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        schedulerName="default-scheduler",
    )


def test_a_spec_that_pods_share_is_looked_at_once_and_refused_each_time() -> None:
    good, bad = whole(), replace(whole(), restartPolicy="Sometimes")
    seen = []
    for i in range(3):
        assert validate_create("", "Pod", pod(f"good-{i}", good)) == []
        assert [p.field for p in validate_create("", "Pod", pod(f"bad-{i}", bad))] == ["spec.restartPolicy"]
        seen.append((pods._spec_cache.get(id(good)), pods._spec_cache.get(id(bad))))
    assert None not in seen[0]
    assert all(now is first for pair in seen for now, first in zip(pair, seen[0], strict=True))


def test_a_spec_whose_pods_claim_by_name_is_looked_at_for_each_pod() -> None:
    claim = PersistentVolumeClaimTemplate(
        spec=PersistentVolumeClaimSpec(
            accessModes=("ReadWriteOnce",),
            volumeMode="Filesystem",
            resources=VolumeResourceRequirements(requests={"storage": "1Gi"}),
        )
    )
    volume = Volume(name="v", ephemeral=EphemeralVolumeSource(volumeClaimTemplate=claim))
    spec = replace(whole(), volumes=(volume,))
    assert validate_create("", "Pod", pod("short", spec)) == []
    long = validate_create("", "Pod", pod("a" * 252, spec))
    assert [problem.field for problem in long] == ["spec.volumes[0].name"]


def test_specs_are_remembered_only_so_long() -> None:
    for i in range(512):
        assert validate_create("", "Pod", pod(f"p-{i}", whole(workingDir=f"/{i}"))) == []
    assert len(pods._spec_cache) <= 256


def test_the_name_of_a_pod_is_looked_at_even_where_its_spec_is_known() -> None:
    spec = whole()
    assert validate_create("", "Pod", pod("p", spec)) == []
    assert [p.field for p in validate_create("", "Pod", pod("P", spec))] == ["metadata.name"]


def test_an_update_is_held_to_the_rules_of_the_part_it_is_of() -> None:
    old = pod("p", whole())
    old = replace(old, metadata=replace(old.metadata, resourceVersion="1"))
    new = replace(old, status=replace(old.status, qosClass="Burstable"))
    assert validate_update("", "Pod", new, old) == []
    told = validate_update("", "Pod", new, old, subresource="status")
    assert [problem.field for problem in told] == ["status.qosClass"]


def test_an_object_without_a_namespace_is_refused_where_there_are_some() -> None:
    lost = Pod(metadata=ObjectMeta(name="p"), spec=whole())
    assert [str(problem) for problem in validate_create("", "Pod", lost)] == [
        "metadata.namespace: Required value"
    ]
