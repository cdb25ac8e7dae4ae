"""OpenAPI documents are consistent, and include custom resources."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.api.generated import load, resources
from steersman.server.discovery.documents import CustomResource
from steersman.server.discovery.openapi import OpenAPI
from steersman.server.discovery.openapi.operations import group_title, operation_tag
from steersman.server.discovery.openapi.schemas import (
    V2,
    V3,
    Dialect,
    definition_of,
    definitions,
    references,
    structs,
)


def custom(schema: dict[str, Any] | None = None, **more: Any) -> CustomResource:
    said = {"group": "example.com", "version": "v1", "kind": "Thing", "plural": "things", "singular": "thing"}
    return CustomResource(**{**said, "namespaced": True, "schema": schema, **more})


def v3(openapi: OpenAPI, name: str) -> Any:
    document = openapi.v3(name)
    assert document is not None
    return json.loads(document.body)


# -- definitions ------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", [V2, V3])
def test_no_definition_refers_to_one_that_is_not_there(dialect: Dialect) -> None:
    known = definitions(dialect)
    dangling = [(name, ref) for name in known for ref in references(known[name]) if ref not in known]
    assert dangling == []


def test_every_kind_is_defined_under_its_name_and_knows_it() -> None:
    known = definitions(V3)
    for row in resources():
        name = definition_of(load(row.group, row.version, row.kind).type)
        kinds = known[name]["x-kubernetes-group-version-kind"]
        assert kinds == [{"group": row.group, "version": row.version, "kind": row.kind}]
        assert {"apiVersion", "kind"} <= known[name]["properties"].keys()
        assert (f"{name}List" in known) == ("list" in row.verbs)


def test_every_fact_is_about_a_field_there_is() -> None:
    for name, struct in structs().items():
        properties = definitions(V2)[name].get("properties", {})
        missing = [field for field in definitions(V2)[name].get("required", ()) if field not in properties]
        assert missing == [], struct


@pytest.mark.parametrize(
    ("definition", "field", "v2", "v3"),
    [
        ("io.k8s.api.apps.v1.DeploymentSpec", "replicas", {"type": "integer", "format": "int32"}, None),
        ("io.k8s.api.core.v1.PodSpec", "activeDeadlineSeconds", {"type": "integer", "format": "int64"}, None),
        (
            "io.k8s.api.core.v1.PodSpec",
            "containers",
            {
                "type": "array",
                "items": {"$ref": "#/definitions/io.k8s.api.core.v1.Container"},
                "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-list-type": "map",
                "x-kubernetes-patch-merge-key": "name",
                "x-kubernetes-patch-strategy": "merge",
            },
            {
                "type": "array",
                "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"},
                "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-list-type": "map",
                "x-kubernetes-patch-merge-key": "name",
                "x-kubernetes-patch-strategy": "merge",
            },
        ),
        (
            "io.k8s.api.apps.v1.DeploymentSpec",
            "strategy",
            {
                "$ref": "#/definitions/io.k8s.api.apps.v1.DeploymentStrategy",
                "x-kubernetes-patch-strategy": "retainKeys",
            },
            {
                "allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}],
                "x-kubernetes-patch-strategy": "retainKeys",
            },
        ),
        (
            "io.k8s.api.core.v1.ContainerPort",
            "protocol",
            {"type": "string", "enum": ["SCTP", "TCP", "UDP"]},
            {"type": "string", "enum": ["SCTP", "TCP", "UDP"], "default": "TCP"},
        ),
        (
            "io.k8s.api.coordination.v1.LeaseSpec",
            "renewTime",
            {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"},
            {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"},
        ),
        (
            "io.k8s.api.core.v1.Secret",
            "data",
            {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
            None,
        ),
        (
            "io.k8s.api.core.v1.ServiceSpec",
            "selector",
            {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "x-kubernetes-map-type": "atomic",
            },
            None,
        ),
    ],
)
def test_a_field_is_described_by_its_type_and_its_merging(
    definition: str, field: str, v2: dict[str, Any], v3: dict[str, Any] | None
) -> None:
    assert _without_description(definitions(V2)[definition]["properties"][field]) == v2
    assert _without_description(definitions(V3)[definition]["properties"][field]) == (v3 or v2)


def _without_description(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as it is where no package with descriptions is installed: beside one, a reference that stood alone is wrapped."""
    rest = {key: value for key, value in schema.items() if key != "description"}
    return rest["allOf"][0] if rest.keys() == {"allOf"} else rest


# -- documents --------------------------------------------------------------------------------


def test_every_document_of_the_index_is_whole() -> None:
    openapi = OpenAPI([custom({"type": "object"})])
    index = openapi.index()["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/example.com/v1"} <= index.keys()
    for name, entry in index.items():
        found = openapi.v3(name)
        assert found is not None
        assert entry["serverRelativeURL"] == f"/openapi/v3/{name}?hash={found.etag[1:-1]}"
        document = json.loads(found.body)
        assert set(references(document)) <= document["components"]["schemas"].keys()


def test_the_one_document_of_version_two_is_whole() -> None:
    document = json.loads(OpenAPI([custom({"type": "object"})]).v2().body)
    assert set(references(document)) <= document["definitions"].keys()
    assert "com.example.v1.Thing" in document["definitions"]


@pytest.mark.parametrize("name", ["", "apis/none", "apis/example.com/v2", "api/v2", "nonsense"])
def test_there_is_no_document_of_what_is_not_served(name: str) -> None:
    assert OpenAPI([custom()]).v3(name) is None


def test_every_operation_has_a_name_of_its_own() -> None:
    paths = json.loads(OpenAPI([custom({})]).v2().body)["paths"]
    ids = [
        operation["operationId"]
        for item in paths.values()
        for method, operation in item.items()
        if method != "parameters"
    ]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", ["apis/apps/v1", "apis/example.com/v1"])
def test_a_patch_says_that_it_can_be_tried_and_checked(name: str) -> None:
    openapi = OpenAPI([custom({})])
    patches = [item["patch"] for item in v3(openapi, name)["paths"].values() if "patch" in item]
    assert patches
    for patch in patches:
        assert {"dryRun", "fieldManager", "fieldValidation", "force"} == {
            p["name"] for p in patch["parameters"]
        }


def test_only_built_in_kinds_take_strategic_merge_patches() -> None:
    openapi = OpenAPI([custom({})])

    def types(name: str, path: str) -> list[str]:
        return list(v3(openapi, name)["paths"][path]["patch"]["requestBody"]["content"])

    strategic = "application/strategic-merge-patch+json"
    assert strategic in types("apis/apps/v1", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
    assert strategic not in types(
        "apis/example.com/v1", "/apis/example.com/v1/namespaces/{namespace}/things/{name}"
    )


@pytest.mark.parametrize(
    ("group", "titled", "tagged"),
    [
        ("", "Core", "core_v1"),
        ("apps", "Apps", "apps_v1"),
        ("rbac.authorization.k8s.io", "RbacAuthorization", "rbacAuthorization_v1"),
        ("example.com", "ExampleCom", "exampleCom_v1"),
    ],
)
def test_groups_are_spelt_as_identifiers(group: str, titled: str, tagged: str) -> None:
    assert group_title(group) == titled
    assert operation_tag(group, "v1") == tagged


def test_the_documents_change_when_a_custom_resource_does_and_the_others_stay() -> None:
    one, two = (
        OpenAPI([custom({"type": "object"})]),
        OpenAPI([custom({"type": "object", "description": "x"})]),
    )
    changed = [
        name for name in one.index()["paths"] if one.index()["paths"][name] != two.index()["paths"][name]
    ]
    assert changed == ["apis/example.com/v1"]
    assert one.v2().etag != two.v2().etag


# -- custom resources -------------------------------------------------------------------------


def defined(schema: dict[str, Any] | None) -> tuple[Any, Any]:
    openapi = OpenAPI([custom(schema)])
    name = "com.example.v1.Thing"
    new = v3(openapi, "apis/example.com/v1")["components"]["schemas"][name]
    return json.loads(openapi.v2().body)["definitions"][name], new


def test_without_a_schema_nothing_is_said_of_the_fields() -> None:
    for found in defined(None):
        assert found.keys() == {"type", "x-kubernetes-group-version-kind"}


def test_an_object_open_to_anything_is_so_in_both_versions() -> None:
    old, new = defined({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    assert "properties" not in old
    assert new["x-kubernetes-preserve-unknown-fields"] is True


def field(schema: dict[str, Any]) -> tuple[Any, Any]:
    old, new = defined({"type": "object", "properties": {"f": schema}})
    return old["properties"]["f"], new["properties"]["f"]


def test_what_version_two_cannot_say_is_left_out_of_it() -> None:
    schema = {"type": "string", "default": "x", "anyOf": [{"pattern": "a"}], "minLength": 1}
    old, new = field(schema)
    assert old == {"type": "string", "minLength": 1}
    assert new == schema


@pytest.mark.parametrize(
    ("schema", "old"),
    [
        ({"type": "object", "nullable": True, "properties": {"a": {"type": "string"}}}, {}),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-preserve-unknown-fields": True},
        ),
        ({"x-kubernetes-int-or-string": True}, {"x-kubernetes-int-or-string": True}),
        (
            {
                "type": "object",
                "required": ["a", "b"],
                "properties": {"a": {"type": "string", "nullable": True}, "b": {"type": "string"}},
            },
            {"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}},
        ),
    ],
)
def test_half_a_schema_is_not_told_to_version_two(schema: dict[str, Any], old: dict[str, Any]) -> None:
    assert field(schema)[0] == old


def test_an_object_inside_another_has_what_every_object_has() -> None:
    old, new = field({"type": "object", "x-kubernetes-embedded-resource": True})
    assert old["properties"].keys() == new["properties"].keys() == {"apiVersion", "kind", "metadata"}
    assert new["required"] == ["kind", "apiVersion"]


def test_a_built_in_version_cannot_be_overlaid() -> None:
    openapi = OpenAPI([custom({}, group="apps")])
    assert openapi.v3("apis/apps/v1") == OpenAPI().v3("apis/apps/v1")
