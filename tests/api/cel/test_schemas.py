"""OpenAPI schemas as types, row by row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.cel import Structs
from steersman.api.cel.schemas import UnknownKind, escape, kind_type

TEXT = {"type": "string"}
REF = "#/components/schemas/"


def document(schema: dict[str, Any], **others: dict[str, Any]) -> dict[str, Any]:
    gvk = {"group": "example.com", "version": "v1", "kind": "Thing"}
    return {
        "components": {"schemas": {"Thing": {**schema, "x-kubernetes-group-version-kind": [gvk]}, **others}}
    }


def fields(schema: dict[str, Any], **others: dict[str, Any]) -> dict[str, str]:
    """The fields of an object of a schema, in words."""
    structs = Structs()
    made = kind_type(document(schema, **others), "example.com", "v1", "Thing", structs, "Thing")
    assert str(made) == "Thing"
    return {name: str(type_) for name, type_ in (structs.fields("Thing") or {}).items()}


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer", "format": "int64"}, "int"),
        ({"type": "number"}, "double"),
        ({"type": "boolean"}, "bool"),
        ({"type": "string", "format": "byte"}, "bytes"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date"}, "timestamp"),
        ({"type": "string", "format": "duration"}, "duration"),
        ({"type": "string", "format": "uuid"}, "string"),
        ({"oneOf": [{"type": "integer"}, TEXT], "format": "int-or-string"}, "dyn"),
        ({"x-kubernetes-int-or-string": True}, "dyn"),
        ({"type": "array", "items": TEXT}, "list(string)"),
        ({"type": "array", "items": {"type": "object"}}, "list(Thing.x.@idx)"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map(string, int)"),
        ({"type": "object", "additionalProperties": {"type": "object"}}, "map(string, Thing.x.@elem)"),
        ({"type": "object", "additionalProperties": True}, "Thing.x"),
        ({"type": "object", "properties": {}}, "Thing.x"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "Thing.x"),
        ({"$ref": f"{REF}Other"}, "string"),
        ({"allOf": [{"$ref": f"{REF}Other"}], "default": {}}, "string"),
        # left open
        ({}, None),
        ({"x-kubernetes-preserve-unknown-fields": True}, None),
        ({"oneOf": [{"type": "number"}, TEXT]}, None),
        ({"type": "array"}, None),
        ({"type": "array", "items": {}}, None),
        ({"type": "object", "additionalProperties": {}}, None),
        ({"$ref": f"{REF}Nowhere"}, None),
    ],
)
def test_a_schema_is_a_type_or_is_left_open(schema: dict[str, Any], type_: str | None) -> None:
    assert fields({"type": "object", "properties": {"x": schema}}, Other=TEXT).get("x") == type_


def test_an_object_always_has_a_kind_and_a_name() -> None:
    assert fields({"type": "object"}) == {
        "kind": "string",
        "apiVersion": "string",
        "metadata": "Thing.metadata",
    }


def test_metadata_that_is_described_is_kept() -> None:
    meta = {
        "type": "object",
        "properties": {"name": TEXT, "generateName": TEXT, "labels": {"type": "object"}},
    }
    schema = {
        "type": "object",
        "properties": {"kind": TEXT, "apiVersion": TEXT, "metadata": {"allOf": [{"$ref": f"{REF}Meta"}]}},
    }
    structs = Structs()
    kind_type(document(schema, Meta=meta), "example.com", "v1", "Thing", structs, "Thing")
    structs.fields("Thing")
    assert list(structs.fields("Thing.metadata") or ()) == ["name", "generateName", "labels"]


def test_an_object_inside_another_has_metadata_too() -> None:
    inner = {"type": "object", "x-kubernetes-embedded-resource": True}
    structs = Structs()
    schema = {"type": "object", "properties": {"x": inner}}
    kind_type(document(schema), "example.com", "v1", "Thing", structs, "Thing")
    structs.fields("Thing")
    assert list(structs.fields("Thing.x") or ()) == ["kind", "apiVersion", "metadata"]


def test_what_is_inside_itself_is_an_object_without_fields() -> None:
    node = {"type": "object", "properties": {"child": {"$ref": f"{REF}Node"}, "name": TEXT}}
    structs = Structs()
    schema = {"type": "object", "properties": {"x": {"$ref": f"{REF}Node"}}}
    kind_type(document(schema, Node=node), "example.com", "v1", "Thing", structs, "Thing")
    structs.fields("Thing")
    assert {name: str(one) for name, one in (structs.fields("Thing.x") or {}).items()} == {
        "child": "Thing.x.child",
        "name": "string",
    }
    assert structs.fields("Thing.x.child") == {}


def test_a_kind_without_a_schema_may_be_anything() -> None:
    assert str(kind_type(document({}), "example.com", "v1", "Thing", Structs(), "Thing")) == "dyn"


def test_a_kind_that_is_not_described_is_unknown() -> None:
    with pytest.raises(UnknownKind):
        kind_type(document({}), "example.com", "v2", "Thing", Structs(), "Thing")
    with pytest.raises(UnknownKind):
        kind_type({}, "example.com", "v1", "Thing", Structs(), "Thing")


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("replicas", "replicas"),
        ("namespace", "__namespace__"),
        ("in-use", "in__dash__use"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("$ref", None),
        ("1st", None),
        ("", None),
        ("é", None),
    ],
)
def test_fields_are_written_as_names_of_cel(name: str, escaped: str | None) -> None:
    assert escape(name) == escaped


@given(st.text())
def test_what_is_escaped_is_a_name(name: str) -> None:
    escaped = escape(name)
    assert escaped is None or (escaped.isidentifier() and escaped.isascii())
