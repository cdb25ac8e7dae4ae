"""Applying and tracking: what a manager gains, keeps and loses. The schema is a ConfigMap's and a Service's."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.errors import ApiError, BadRequest, Conflict, ServerError, to_status
from steersman.api.generated import load
from steersman.server.apply import (
    Applied,
    ManagedFields,
    ResourceSchema,
    apply,
    field_set,
    last_applied,
    managed_fields,
    track,
)
from steersman.server.apply.reset_fields import exclude_fields
from steersman.server.apply.schema import DEDUCED
from steersman.server.apply.structs import typed_schema_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(seconds=5)
CONFIGMAP = ResourceSchema("v1", "ConfigMap", typed_schema_of(load("", "v1", "ConfigMap").type))
SERVICE = ResourceSchema(
    "v1", "Service", typed_schema_of(load("", "v1", "Service").type), "", exclude_fields(("status",))
)
BLANK = {"apiVersion": "v1", "kind": "ConfigMap"}


def configmap(data: Any = None, **metadata: Any) -> dict[str, Any]:
    made: dict[str, Any] = {**BLANK, "metadata": {"name": "c", **metadata}}
    return made if data is None else {**made, "data": data}


def service(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}


def told(managed: ManagedFields) -> dict[str, list[str]]:
    """Who owns what, in words."""
    return {
        f"{who.name} {who.operation} {who.subresource}".strip(): list(field_set.paths(owned.fields))
        for who, owned in managed.items()
    }


def applied(state: Applied, patch: dict[str, Any], manager: str, *, force: bool = False) -> Applied:
    return apply(
        state.document, patch, manager, state.managed, resource_schema=CONFIGMAP, now=NOW, force=force
    )


NOTHING = Applied(BLANK, {})


def test_what_is_applied_is_owned_and_merged() -> None:
    one = applied(NOTHING, configmap({"a": "1"}, labels={"l": "1"}), "one")
    assert one.document == configmap({"a": "1"}, labels={"l": "1"})
    assert told(one.managed) == {"one Apply": [".data.a", ".metadata.labels.l"]}
    two = applied(one, configmap({"b": "2"}), "two")
    assert two.document["data"] == {"a": "1", "b": "2"}
    assert told(two.managed) == {
        "one Apply": [".data.a", ".metadata.labels.l"],
        "two Apply": [".data.b"],
    }


def test_a_field_no_longer_applied_is_removed_unless_another_manager_owns_it() -> None:
    one = applied(NOTHING, configmap({"a": "1", "b": "2"}), "one")
    both = applied(one, configmap({"b": "2"}), "two")
    left = applied(both, configmap(), "one")
    assert left.document["data"] == {"b": "2"}
    assert told(left.managed) == {"two Apply": [".data.b"]}


def test_a_field_another_manager_changed_stays_when_it_is_no_longer_applied() -> None:
    one = applied(NOTHING, configmap({"a": "1"}), "one")
    changed = configmap({"a": "9"})
    managed = track(one.document, changed, "editor", one.managed, resource_schema=CONFIGMAP, now=NOW)
    assert told(managed) == {"editor Update": [".data.a"]}
    again = applied(Applied(changed, managed), configmap({"c": "3"}), "one")
    assert again.document["data"] == {"a": "9", "c": "3"}


def test_a_conflict_names_every_manager_and_field() -> None:
    one = applied(NOTHING, configmap({"a": "1", "b": "2"}), "one")
    changed = {**one.document, "data": {"a": "1", "b": "9"}}
    managed = track(one.document, changed, "editor", one.managed, resource_schema=CONFIGMAP, now=NOW)
    with pytest.raises(Conflict) as refused:
        applied(Applied(changed, managed), configmap({"a": "5", "b": "5"}), "two")
    status = to_status(refused.value)
    assert status["code"] == 409
    assert status["reason"] == "Conflict"
    assert status["message"] == (
        'Apply failed with 2 conflicts: conflicts with "editor" using v1:\n- .data.b\n'
        'conflicts with "one":\n- .data.a'
    )
    assert status["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "editor" using v1', "field": ".data.b"},
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"},
    ]


def test_one_conflict_is_told_in_one_line() -> None:
    one = applied(NOTHING, configmap({"a": "1"}), "one")
    with pytest.raises(Conflict) as refused:
        applied(one, configmap({"a": "2"}), "two")
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "one": .data.a'


def test_force_takes_fields_away() -> None:
    one = applied(NOTHING, configmap({"a": "1", "b": "2"}), "one")
    two = applied(one, configmap({"a": "5"}), "two", force=True)
    assert two.document["data"] == {"a": "5", "b": "2"}
    assert told(two.managed) == {"one Apply": [".data.b"], "two Apply": [".data.a"]}


def test_the_same_value_is_owned_by_both_without_a_conflict_and_without_a_time() -> None:
    one = applied(NOTHING, configmap({"a": "1"}), "one")
    two = applied(one, configmap({"a": "1"}), "two")
    assert two.document is one.document
    assert told(two.managed) == {"one Apply": [".data.a"], "two Apply": [".data.a"]}
    assert [owned.time for owned in two.managed.values()] == [NOW, None]


def test_what_was_there_before_anybody_kept_track_has_an_owner_of_that_name() -> None:
    with pytest.raises(Conflict) as refused:
        applied(Applied(configmap({"a": "1"}), {}), configmap({"a": "2"}), "one")
    assert 'conflict with "before-first-apply" using v1: .data.a' in refused.value.message


@pytest.mark.parametrize(
    ("patch", "error", "says"),
    [
        ({"apiVersion": "v1"}, BadRequest, "invalid object type: /v1, Kind="),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            BadRequest,
            "invalid object type: apps/v1, Kind=Deployment",
        ),
        (configmap(managedFields=[]), BadRequest, "metadata.managedFields must be nil"),
        (
            {**configmap(), "spec": 1},
            ServerError,
            "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .spec: field not declared in schema",
        ),
    ],
)
def test_a_patch_that_cannot_be_applied_is_refused(
    patch: dict[str, Any], error: type[ApiError], says: str
) -> None:
    with pytest.raises(error) as refused:
        applied(NOTHING, patch, "one")
    assert refused.value.message == says


def test_items_are_told_apart_by_their_keys_and_by_what_those_count_as() -> None:
    blank = {"apiVersion": "v1", "kind": "Service"}
    dns = {"port": 53, "protocol": "UDP"}
    one = apply(blank, service(ports=[{"port": 53}, dns]), "one", {}, resource_schema=SERVICE, now=NOW)
    assert told(one.managed) == {
        "one Apply": [
            '.spec.ports[port=53,protocol="TCP"]',
            '.spec.ports[port=53,protocol="UDP"]',
            '.spec.ports[port=53,protocol="TCP"].port',
            '.spec.ports[port=53,protocol="UDP"].port',
            '.spec.ports[port=53,protocol="UDP"].protocol',
        ]
    }
    live = service(ports=[{"port": 53, "protocol": "TCP"}, dns])
    named = service(ports=[{"port": 53, "name": "dns"}])
    two = apply(live, named, "two", one.managed, resource_schema=SERVICE, now=NOW)
    assert two.document["spec"]["ports"][0] == {"port": 53, "protocol": "TCP", "name": "dns"}


def test_the_status_is_not_owned_by_requests_to_the_object() -> None:
    blank = {"apiVersion": "v1", "kind": "Service"}
    patch = {**service(type="ClusterIP"), "status": {"loadBalancer": {}}}
    made = apply(blank, patch, "one", {}, resource_schema=SERVICE, now=NOW)
    assert told(made.managed) == {"one Apply": [".spec.type"]}


def test_nothing_is_owned_twice_after_an_update() -> None:
    made = track(None, configmap({"a": "1", "b": "1"}), "maker", {}, resource_schema=CONFIGMAP, now=NOW)
    old, new = configmap({"a": "1", "b": "1"}), configmap({"a": "2", "c": "1"})
    managed = track(old, new, "editor", made, resource_schema=CONFIGMAP, now=LATER)
    assert told(managed) == {"maker Update": [".data"], "editor Update": [".data.a", ".data.c"]}
    assert [owned.time for owned in managed.values()] == [NOW, LATER]


def test_an_update_that_changes_nothing_or_only_removes_leaves_no_trace_of_its_maker() -> None:
    old = configmap({"a": "1", "b": "1"})
    made = track(None, old, "maker", {}, resource_schema=CONFIGMAP, now=NOW)
    assert track(old, old, "editor", made, resource_schema=CONFIGMAP, now=LATER) == made
    less = track(old, configmap({"a": "1"}), "editor", made, resource_schema=CONFIGMAP, now=LATER)
    assert told(less) == {"maker Update": [".data", ".data.a"]}


def test_an_object_without_managed_fields_stays_without() -> None:
    assert track(configmap(), configmap({"a": "1"}), "editor", {}, resource_schema=CONFIGMAP, now=NOW) == {}


def test_an_object_that_is_not_what_it_should_be_has_no_owners() -> None:
    odd = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": ["no port"]}}
    assert track(None, odd, "maker", {}, resource_schema=SERVICE, now=NOW) == {}


def test_what_is_nested_too_far_to_be_followed_has_no_owners_and_is_not_applied() -> None:
    deep: Any = {"a": 1}
    for _ in range(2000):
        deep = {"a": deep}
    resource_schema = replace(CONFIGMAP, schema=DEDUCED)
    assert track(None, {**BLANK, "deep": deep}, "maker", {}, resource_schema=resource_schema, now=NOW) == {}
    with pytest.raises(BadRequest, match="exceeded max depth"):
        apply(BLANK, {**BLANK, "deep": deep}, "one", {}, resource_schema=resource_schema, now=NOW)


def test_subresources_are_managers_of_their_own() -> None:
    status = replace(SERVICE, subresource="status", field_filter=exclude_fields(("spec",)))
    old, new = service(type="A"), {**service(type="B"), "status": {"conditions": []}}
    made = track(None, old, "m", {}, resource_schema=SERVICE, now=NOW)
    managed = track(old, new, "m", made, resource_schema=status, now=NOW)
    assert told(managed) == {
        "m Update": [".spec", ".spec.type"],
        "m Update status": [".status", ".status.conditions"],
    }


# -- other versions ---------------------------------------------------------------------------


def versioned(*served: str) -> ResourceSchema:
    def at(version: str) -> ResourceSchema | None:
        return replace(resource_schema, api_version=version) if version in served else None

    def convert(document: dict[str, Any], version: str) -> dict[str, Any] | None:
        return {**document, "apiVersion": version} if version in served else None

    resource_schema = replace(CONFIGMAP, convert=convert, at_version=at)
    return resource_schema


def test_owners_at_other_versions_lose_what_is_changed_here() -> None:
    other = managed_fields.manager_identifier("other", managed_fields.UPDATE, "v2")
    managed = {other: managed_fields.VersionedSet(field_set.of("data.a", "data.b"), "v2", NOW)}
    old, new = configmap({"a": "1", "b": "1"}), configmap({"a": "2", "b": "1"})
    after = track(old, new, "me", managed, resource_schema=versioned("v1", "v2"), now=NOW)
    assert told(after) == {"other Update": [".data.b"], "me Update": [".data.a"]}
    gone = track(old, new, "me", managed, resource_schema=versioned("v1"), now=NOW)
    assert told(gone) == {"me Update": [".data.a"]}


def test_what_was_applied_at_another_version_goes_when_it_is_no_longer_applied() -> None:
    one = managed_fields.manager_identifier("one", managed_fields.APPLY, "v2")
    managed = {one: managed_fields.VersionedSet(field_set.of("data.a", "data.b"), "v2", NOW)}
    live = configmap({"a": "1", "b": "1"})
    made = apply(live, configmap({"a": "1"}), "one", managed, resource_schema=versioned("v1", "v2"), now=NOW)
    assert made.document["data"] == {"a": "1"}
    assert told(made.managed) == {"one Apply": [".data.a"]}
    assert [owned.version for owned in made.managed.values()] == ["v1"]


# -- kubectl ----------------------------------------------------------------------------------


def test_kubectl_does_not_conflict_with_what_it_applied_from_its_own_side() -> None:
    last = json.dumps({**BLANK, "metadata": {"name": "c"}, "data": {"a": "1"}})
    live = configmap({"a": "1"}, annotations={last_applied.ANNOTATION: last})
    made = track(None, live, "kubectl-client-side-apply", {}, resource_schema=CONFIGMAP, now=NOW)
    state = Applied(live, made)
    with pytest.raises(Conflict):
        applied(state, configmap({"a": "2"}), "another")
    done = applied(state, configmap({"a": "2"}, annotations={"x": "<y>"}), "kubectl")
    assert done.document["data"] == {"a": "2"}
    assert done.document["metadata"]["annotations"][last_applied.ANNOTATION] == (
        '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap",'
        '"metadata":{"annotations":{"x":"\\u003cy\\u003e"},"name":"c"}}\n'
    )
    edited = configmap({"a": "9"}, annotations={last_applied.ANNOTATION: last})
    managed = track(live, edited, "editor", made, resource_schema=CONFIGMAP, now=NOW)
    with pytest.raises(Conflict):
        applied(Applied(edited, managed), configmap({"a": "2"}), "kubectl")


@pytest.mark.parametrize("text", ["no json", "[]", '{"apiVersion": "v2"}', '{"apiVersion": "v1", "x": 1}'])
def test_an_annotation_that_says_nothing_of_use_changes_nothing(text: str) -> None:
    live = configmap({"a": "1"}, annotations={last_applied.ANNOTATION: text})
    made = track(None, live, "other", {}, resource_schema=CONFIGMAP, now=NOW)
    with pytest.raises(Conflict):
        applied(Applied(live, made), configmap({"a": "2"}), "kubectl")


def test_an_annotation_that_would_be_too_long_goes() -> None:
    live = configmap({"a": "1"}, annotations={last_applied.ANNOTATION: "{}"})
    refreshed = last_applied.update_annotation(live, configmap({"a": "x" * 300_000}))
    assert refreshed["metadata"]["annotations"] == {}


# -- any sequence -----------------------------------------------------------------------------

wishes = st.tuples(
    st.sampled_from(["one", "two", "three"]),
    st.sampled_from(["apply", "update"]),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3),
)


@given(st.lists(wishes, max_size=12))
def test_every_field_has_a_manager_and_no_missing_field_has_one(steps: list[Any]) -> None:
    state = Applied(
        configmap({"a": "1"}),
        track(None, configmap({"a": "1"}), "maker", {}, resource_schema=CONFIGMAP, now=NOW),
    )
    for manager, verb, data in steps:
        if verb == "apply":
            state = applied(state, configmap(data), manager, force=True)
        else:
            new = configmap(data)
            managed = track(state.document, new, manager, state.managed, resource_schema=CONFIGMAP, now=NOW)
            state = Applied(new, managed)
        there = {f".data.{name}" for name in state.document.get("data") or {}}
        held = {path for paths in told(state.managed).values() for path in paths if path.startswith(".data.")}
        assert there == held


@given(st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3))
def test_applying_the_same_again_changes_nothing(data: dict[str, str]) -> None:
    once = applied(NOTHING, configmap(data), "one")
    twice = applied(once, configmap(data), "one")
    assert twice.document is once.document
    assert twice.managed == once.managed
