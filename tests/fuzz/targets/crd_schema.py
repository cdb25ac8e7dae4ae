"""Schemas of custom resources: validated without an exception; those that pass prune, default and validate any object."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from steersman.api.errors import ApiError
from steersman.api.generated.apiextensions_v1 import CustomResourceDefinition
from steersman.server.codec.convert import to_struct
from steersman.server.crd.custom import CustomResource
from steersman.server.crd.definitions import default_definition, validate_definition, with_stored_version
from steersman.server.crd.version import compile_version
from tests.fuzz.documents import decoded, encoded, equal, values
from tests.fuzz.target import Target


def _definition(schema: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "kind": "Thing"}
    return {
        "metadata": {"name": "things.crd.test"},
        "spec": {"group": "crd.test", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def check(data: bytes) -> None:
    """An object with a ``schema`` and the ``content`` of a custom resource."""
    given = decoded(data)
    content = given.get("content")
    try:
        definition = to_struct(CustomResourceDefinition, _definition(given.get("schema")))
    except ValueError:
        return
    definition = with_stored_version(default_definition(definition))
    if validate_definition(definition):
        return
    version = compile_version(definition, definition.spec.versions[0])
    if not isinstance(content, dict):
        return
    content = {
        name: value for name, value in content.items() if name not in ("apiVersion", "kind", "metadata")
    }
    try:
        made = version.prune_and_default(content)
    except ApiError:
        return
    assert equal(version.prune_and_default(made), made), (
        "pruning and defaulting a second time changes the object"
    )
    assert version.unknown_fields(made) == ()
    obj = CustomResource(content=made)
    for problem in version.validate(obj):
        assert str(problem)
    # An update that changes nothing is allowed, whatever the schema says of the object.
    version.validate(obj, obj)
    msgspec.json.encode(made)


_names = st.sampled_from(("a", "b", "spec", "status"))
_leaves = st.one_of(
    st.sampled_from(
        (
            {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "array"}, {"type": "object"}, {},
            {"x-kubernetes-int-or-string": True}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-preserve-unknown-fields": True}, {"type": "object", "x-kubernetes-embedded-resource": True},
            {"type": "string", "pattern": "^(a*)*$", "maxLength": 3}, {"type": "string", "format": "date-time", "nullable": True},
            {"type": "integer", "default": 5, "minimum": 1, "multipleOf": 2}, {"type": "string", "enum": ["a", 1], "default": "a"},
            {"type": "number", "minimum": 0.1, "exclusiveMinimum": True}, {"type": "string", "default": 1}, {"type": "string", "default": None},
        )
    ),
)  # fmt: skip


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(_names, inner, max_size=3)},
            optional={
                "required": st.lists(_names, max_size=2),
                "default": st.just({}),
                "maxProperties": st.integers(0, 2),
            },
        ),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner}),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={
                "x-kubernetes-list-type": st.sampled_from(("set", "map", "atomic")),
                "x-kubernetes-list-map-keys": st.lists(_names, max_size=2),
                "maxItems": st.integers(0, 3),
                "uniqueItems": st.booleans(),
                "default": st.just([]),
            },
        ),
        st.fixed_dictionaries({"type": st.just("object"), "anyOf": several, "not": inner}),
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(_names, inner, max_size=2),
                "oneOf": several,
            }
        ),
    )


TARGET = Target(
    name="crd_schema",
    check=check,
    seeds=(
        b'{"schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer", '
        b'"default": 1}, "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"], '
        b'"items": {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}}}}}}}}, '
        b'"content": {"spec": {"l": [{"n": "x"}, {"n": "x"}], "z": 1}}}',
        b'{"schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"e": {"type": "object", '
        b'"x-kubernetes-embedded-resource": true}}}, "content": {"e": {"apiVersion": "v1", "kind": "X", "metadata": {"a": 1}}}}',
        b'{"schema": {"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "string"}], '
        b'"x-kubernetes-int-or-string": true}, "s": {"type": "array", "x-kubernetes-list-type": "set", "items": '
        b'{"type": "string", "pattern": "^a+$"}}}}, "content": {"a": "5%", "s": ["a", "a", 1]}}',
    ),
    strategy=encoded(
        st.fixed_dictionaries(
            {
                "schema": st.dictionaries(_names, st.recursive(_leaves, _schemas, max_leaves=6), max_size=2).map(
                    lambda properties: {"type": "object", "properties": properties}
                ),
                "content": st.dictionaries(_names, values(_names), max_size=3),
            }
        )
    ),
    dictionary=(
        b'"properties": {', b'"items": ', b'"additionalProperties": ', b'"anyOf": [', b'"not": ', b'"allOf": [', b'"nullable": true',
        b'"default": ', b'"pattern": "(a*)*"', b'"format": "date"', b'"multipleOf": ', b'"minimum": ', b'"enum": [', b'"type": "object"',
        b'"x-kubernetes-list-type": "set"', b'"x-kubernetes-int-or-string": true', b'"x-kubernetes-embedded-resource": true',
        b'"x-kubernetes-validations": [{"rule": "self.a > 1"}]', b'"x-kubernetes-preserve-unknown-fields": true', b"null", b"1e308",
    ),
    seconds_per_byte=300e-6,
    memory_per_byte=6000,
)  # fmt: skip
