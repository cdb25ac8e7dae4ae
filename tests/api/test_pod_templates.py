"""Pod templates: sameness, hashes, and that nothing inside is lost."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.generated_names import ALPHANUMS
from steersman.api.kinds import ObjectMeta, PodTemplateSpec, Struct
from steersman.api.pod_templates import POD_TEMPLATE_HASH, digest, same, with_labels


class Resources(Struct, frozen=True):
    limits: dict[str, str] = msgspec.field(default_factory=dict)
    requests: dict[str, str] = msgspec.field(default_factory=dict)


class Container(Struct, frozen=True):
    name: str = ""
    image: str = ""
    args: tuple[str, ...] = ()
    resources: Resources = Resources()


class FullPodSpec(Struct, frozen=True):
    """A spec as the in-process server would hold it."""

    containers: tuple[Container, ...] = ()
    nodeSelector: dict[str, str] | None = None
    restartPolicy: str = ""


class FullPodTemplateSpec(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: FullPodSpec = FullPodSpec()


def raw(spec: object, **metadata: Any) -> PodTemplateSpec:
    text = spec if isinstance(spec, str) else json.dumps(spec)
    return PodTemplateSpec(metadata=ObjectMeta(**metadata), spec=msgspec.Raw(text.encode()))


def full(spec: FullPodSpec, **metadata: Any) -> PodTemplateSpec:
    """A full struct stands in for the view."""
    return cast("PodTemplateSpec", FullPodTemplateSpec(metadata=ObjectMeta(**metadata), spec=spec))


def limited(cpu: object) -> dict[str, Any]:
    return {"containers": [{"resources": {"limits": {"cpu": cpu}}}]}


WEB = {"containers": [{"name": "web", "image": "web:1"}]}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (WEB, WEB),
        ('{"a":1,"b":2}', '{ "b": 2, "a": 1 }'),
        ({**WEB, "volumes": []}, WEB),
        ({**WEB, "securityContext": None}, WEB),
        ({**WEB, "nodeSelector": {}}, WEB),
        ({"containers": [{"name": "a", "resources": {}}]}, {"containers": [{"name": "a"}]}),
        ({"containers": [{"name": "a", "resources": {"limits": {}}}]}, {"containers": [{"name": "a"}]}),
        (limited("1.500"), limited("1500m")),
        (limited(1), limited("1")),
        ({"v": [{"emptyDir": {"sizeLimit": "1Gi"}}]}, {"v": [{"emptyDir": {"sizeLimit": "1024Mi"}}]}),
        ({"overhead": {"memory": "1024Ki"}}, {"overhead": {"memory": "1Mi"}}),
    ],
)
def test_templates_that_mean_the_same_are_the_same_and_hash_alike(a: object, b: object) -> None:
    assert same(raw(a), raw(b))
    assert digest(raw(a)) == digest(raw(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (WEB, {"containers": [{"name": "web", "image": "web:2"}]}),
        ({"args": ["a", "b"]}, {"args": ["b", "a"]}),
        ({"args": ["a", ""]}, {"args": ["a"]}),
        ({"volumes": [{"name": "a", "emptyDir": {}}]}, {"volumes": [{"name": "a"}]}),
        ({"term": {"namespaceSelector": {}}}, {"term": {}}),
        ({"securityContext": {"runAsNonRoot": False}}, {"securityContext": {}}),
        ({"nodeSelector": {"sizeLimit": "1000m"}}, {"nodeSelector": {"sizeLimit": "1"}}),
        (limited("x"), limited("y")),
        ({"unknownToUs": 1}, {"unknownToUs": 2}),
    ],
)
def test_templates_that_differ_are_not_the_same_and_hash_differently(a: object, b: object) -> None:
    assert not same(raw(a), raw(b))
    assert digest(raw(a)) != digest(raw(b))


def test_the_hash_label_is_ignored_and_no_other() -> None:
    plain = raw(WEB, labels={"app": "web"})
    hashed = raw(WEB, labels={"app": "web", POD_TEMPLATE_HASH: "abc"})
    assert same(plain, hashed)
    assert same(hashed, plain)
    assert not same(plain, hashed, ignoring=())
    assert not same(plain, raw(WEB, labels={"app": "web", "tier": "x"}))
    assert same(plain, raw(WEB, labels={"app": "web", "tier": "x"}), ignoring=("tier",))


def test_annotations_and_other_metadata_count() -> None:
    assert not same(raw(WEB), raw(WEB, annotations={"kubectl.kubernetes.io/restartedAt": "now"}))
    assert not same(raw(WEB), raw(WEB, finalizers=("x/y",)))
    assert same(raw(WEB, annotations={}), raw(WEB))
    assert digest(raw(WEB)) != digest(raw(WEB, annotations={"a": "b"}))


def test_raw_and_full_forms_of_a_template_are_the_same_and_hash_alike() -> None:
    struct = full(
        FullPodSpec(
            containers=(Container(name="web", image="web:1", resources=Resources(limits={"cpu": "1500m"})),),
            nodeSelector={},
        ),
        labels={"app": "web"},
    )
    document = {"containers": [{"resources": {"limits": {"cpu": "1.5"}}, "image": "web:1", "name": "web"}]}
    wire = raw(document, labels={"app": "web"})
    assert same(struct, wire)
    assert same(wire, struct)
    assert digest(struct) == digest(wire)
    assert digest(struct, 3) == digest(wire, 3)
    assert not same(full(FullPodSpec(restartPolicy="Never")), wire)


def test_the_types_of_the_api_are_the_same_as_what_they_write() -> None:
    from steersman.api.generated.core_v1 import PodTemplateSpec as Full

    wire = b"""{"metadata":{"labels":{"app":"web"},"creationTimestamp":null},"spec":{"containers":[{"name":"web",
        "image":"web:1","resources":{"limits":{"cpu":"1500m"}},"env":[{"name":"a","valueFrom":{"resourceFieldRef":
        {"resource":"limits.cpu","divisor":"0"}}}]}],"volumes":[{"name":"v","emptyDir":{}}],"securityContext":{}}}"""
    view = msgspec.json.decode(wire, type=PodTemplateSpec)
    struct = cast("PodTemplateSpec", msgspec.json.decode(wire, type=Full))
    again = msgspec.json.decode(msgspec.json.encode(struct), type=PodTemplateSpec)
    assert same(view, struct)
    assert same(struct, again)
    assert digest(view) == digest(struct) == digest(again)
    labelled = with_labels(struct, {POD_TEMPLATE_HASH: "abc"})
    assert isinstance(labelled, Full)
    assert same(labelled, view)


def test_a_collision_count_gives_another_hash_every_time() -> None:
    hashes = [digest(raw(WEB), count) for count in (None, 0, 1, 2)]
    assert len(set(hashes)) == 4
    assert all(set(hash) <= set(ALPHANUMS) and len(hash) <= 10 for hash in hashes)


def test_the_hash_stays_what_it_is_over_time() -> None:
    # ReplicaSets are named after it: another value would roll every Deployment.
    assert digest(raw(WEB, labels={"app": "web"})) == "794686fc5b"


def test_labels_are_added_and_the_spec_is_passed_on_untouched() -> None:
    template = raw(
        '{"containers":[],"unknownToUs": {"kept" : 1}}', labels={"app": "web"}, annotations={"a": "b"}
    )
    labelled = with_labels(template, {POD_TEMPLATE_HASH: "abc"})
    assert labelled.metadata.labels == {"app": "web", POD_TEMPLATE_HASH: "abc"}
    assert labelled.metadata.annotations == {"a": "b"}
    assert labelled.spec is template.spec
    assert template.metadata.labels == {"app": "web"}
    assert msgspec.json.encode(labelled).endswith(b'"spec":{"containers":[],"unknownToUs": {"kept" : 1}}}')


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(("", "a", "1000m")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("a", "resources", "limits", "labels", "emptyDir")), inner, max_size=3
        )
    ),
    max_leaves=10,
)
specs = st.dictionaries(st.sampled_from(("a", "b", "containers", "overhead")), documents, max_size=3)


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@given(specs)
def test_the_order_of_keys_and_white_space_mean_nothing(spec: dict[str, Any]) -> None:
    other = raw(json.dumps(shuffled(spec), indent=1))
    assert same(raw(spec), other)
    assert digest(raw(spec)) == digest(other)


@given(specs, specs)
def test_templates_are_the_same_exactly_if_they_hash_the_same_text(
    a: dict[str, Any], b: dict[str, Any]
) -> None:
    # The hash has 32 bits and the examples are few: a collision would be news.
    assert same(raw(a), raw(b)) == (digest(raw(a)) == digest(raw(b)))
