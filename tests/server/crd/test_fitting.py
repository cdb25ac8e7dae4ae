"""Pruning and filling in: what an object looks like once it is stored."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.api.patch.values import deep_copy, json_equal
from steersman.server.crd.defaulting import compile_defaulting
from steersman.server.crd.pruning import compile_pruning, prune

TEXT = {"type": "string"}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def schema_of(document: dict[str, Any]) -> JSONSchemaProps:
    return msgspec.convert(document, JSONSchemaProps)


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "value", "left", "gone"),
    [
        (fields(a=TEXT), {"a": "x", "b": {"c": 1}}, {"a": "x"}, ["b"]),
        (fields(a=fields(b=TEXT)), {"a": {"b": "x", "c": 1}}, {"a": {"b": "x"}}, ["a.c"]),
        (fields(a={"type": "array", "items": fields(b=TEXT)}), {"a": [{"c": 1}]}, {"a": [{}]}, ["a[0].c"]),
        (fields(a=OPEN), {"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1}}}, []),
        ({**OPEN, "properties": {"a": fields()}}, {"a": {"b": 1}, "c": 1}, {"a": {}, "c": 1}, ["a.b"]),
        (
            fields(a={"type": "object", "additionalProperties": True}),
            {"a": {"b": {"c": 1}}},
            {"a": {"b": {}}},
            ["a.b.c"],
        ),
        (
            fields(a={**fields(), "x-kubernetes-embedded-resource": True}),
            {"a": {"kind": "X", "z": 1}},
            {"a": {"kind": "X"}},
            ["a.z"],
        ),
        (fields(), {"kind": "X", "metadata": {"z": 1}, "z": 1}, {"kind": "X", "metadata": {"z": 1}}, ["z"]),
    ],
)
def test_fields_no_schema_speaks_of_go_and_are_told(
    schema: dict[str, Any], value: dict[str, Any], left: dict[str, Any], gone: list[str]
) -> None:
    made = deep_copy(value)
    assert prune(compile_pruning(schema_of(schema), root=True), made, report=True) == tuple(gone)
    assert made == left


@pytest.mark.parametrize(
    ("schema", "value", "filled"),
    [
        (fields(a={**TEXT, "default": "x"}), {}, {"a": "x"}),
        (fields(a={**TEXT, "default": "x"}), {"a": None}, {"a": "x"}),
        (fields(a={**TEXT, "default": "x", "nullable": True}), {"a": None}, {"a": None}),
        (fields(a=TEXT), {"a": None}, {}),
        (fields(a={**TEXT, "nullable": True}), {"a": None}, {"a": None}),
        (fields(a=OPEN), {"a": {"b": None}}, {"a": {"b": None}}),
        (fields(a=fields(b={**TEXT, "default": "x"})), {}, {}),
        (fields(a={**fields(b={**TEXT, "default": "x"}), "default": {}}), {}, {"a": {"b": "x"}}),
        (fields(a={"type": "array", "items": {**TEXT, "default": "x"}}), {"a": [None]}, {"a": ["x"]}),
        ({"type": "object", "additionalProperties": {**TEXT, "default": "x"}}, {"k": None}, {"k": "x"}),
        ({"type": "object", "additionalProperties": TEXT}, {"k": None}, {}),
        (fields(a={"type": "boolean", "default": False}), {}, {"a": False}),
    ],
)
def test_what_is_not_said_is_filled_in(
    schema: dict[str, Any], value: dict[str, Any], filled: dict[str, Any]
) -> None:
    made = deep_copy(value)
    compile_defaulting(schema_of(schema))(made)
    assert json_equal(made, filled)


def test_objects_do_not_share_what_was_filled_in() -> None:
    fill = compile_defaulting(schema_of(fields(a={"type": "array", "items": TEXT, "default": ["x"]})))
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    fill(one)
    one["a"].append("y")
    fill(other)
    assert other == {"a": ["x"]}


SCALARS = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)
SCHEMAS = st.recursive(
    st.sampled_from([TEXT, OPEN, {**TEXT, "nullable": True}, {**TEXT, "default": "d"}]),
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(lambda found: fields(**found))
        | inner.map(lambda items: {"type": "array", "items": items})
        | inner.map(lambda others: {"type": "object", "additionalProperties": others})
        | st.dictionaries(st.sampled_from("ab"), inner, max_size=2).map(
            lambda found: {**fields(**found), "default": {}}
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), SCHEMAS), st.dictionaries(st.sampled_from("abcd"), VALUES))
def test_what_fits_once_fits_again(properties: dict[str, Any], value: dict[str, Any]) -> None:
    schema = schema_of(fields(**properties))
    once = deep_copy(value)
    prune(compile_pruning(schema), once)
    compile_defaulting(schema)(once)
    twice = deep_copy(once)
    assert prune(compile_pruning(schema), twice, report=True) == ()
    compile_defaulting(schema)(twice)
    assert json_equal(once, twice)


@given(st.dictionaries(st.sampled_from("abc"), SCHEMAS), st.dictionaries(st.sampled_from("abcd"), VALUES))
def test_what_went_is_told_and_nothing_else(properties: dict[str, Any], value: dict[str, Any]) -> None:
    made = deep_copy(value)
    gone = prune(compile_pruning(schema_of(fields(**properties))), made, report=True)
    assert bool(gone) == (made != value)
    assert all(name.split(".")[0].split("[")[0] in value for name in gone)
