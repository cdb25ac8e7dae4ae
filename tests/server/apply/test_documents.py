"""Comparing, merging and taking apart documents of a schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.server.apply import field_set
from steersman.server.apply.compare import compare
from steersman.server.apply.fields import ensure_named_fields, reconcile_with_schema, to_field_set
from steersman.server.apply.merge import merge, remove
from steersman.server.apply.openapi import custom_resource_schema
from steersman.server.apply.schema import SchemaError, TypedSchema
from steersman.server.apply.validate import validate

SCHEMA = custom_resource_schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "word": {"type": "string"},
                    "on": {"type": "boolean"},
                    "map": {"type": "object", "additionalProperties": {"type": "string"}},
                    "whole": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "properties": {"a": {}, "b": {}},
                    },
                    "list": {"type": "array", "items": {"type": "string"}},
                    "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                    "items": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name", "kind"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "name": {"type": "string"},
                                "kind": {"type": "string", "default": "K"},
                                "value": {"type": "string"},
                            },
                        },
                    },
                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        },
    }
)


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


def shown(fields: field_set.FieldSet) -> list[str]:
    return list(field_set.paths(fields))


# -- comparing --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        (spec(size=1), spec(size=2), [], [".spec.size"], []),
        (spec(size=1), spec(), [".spec.size"], [], []),
        ({}, spec(size=1), [], [], [".spec", ".spec.size"]),
        (spec(), spec(map={"a": "1"}), [], [], [".spec.map", ".spec.map.a"]),
        (spec(map={}), spec(map={"a": "1"}), [], [], [".spec.map.a"]),
        (spec(map=None), spec(map={"a": "1"}), [], [], [".spec.map.a"]),
        (spec(map=None), spec(map={}), [], [".spec.map"], []),
        (spec(map={"a": "1"}), spec(map={}), [".spec.map.a"], [], []),
        (spec(whole={"a": 1}), spec(whole={"a": 1, "b": 2}), [], [".spec.whole"], []),
        (spec(list=["a"]), spec(list=["a", "b"]), [], [".spec.list"], []),
        (spec(set=["a", "b"]), spec(set=["b", "c"]), ['.spec.set[="a"]'], [], ['.spec.set[="c"]']),
        (
            spec(items=[{"name": "x", "value": "1"}]),
            spec(items=[{"name": "x", "value": "2"}, {"name": "x", "kind": "L"}]),
            [],
            ['.spec.items[kind="K",name="x"].value'],
            [
                '.spec.items[kind="L",name="x"]',
                '.spec.items[kind="L",name="x"].kind',
                '.spec.items[kind="L",name="x"].name',
            ],
        ),
        (spec(any={"a": 1}), spec(any={"a": {"b": 1}}), [], [".spec.any.a"], [".spec.any.a.b"]),
        (spec(any={"a": [1]}), spec(any={"a": [2]}), [], [".spec.any.a"], []),
    ],
)
def test_changes_are_told_field_by_field(
    old: Any, new: Any, removed: list[str], modified: list[str], added: list[str]
) -> None:
    found = compare(old, new, SCHEMA)
    assert [shown(each) for each in found] == [removed, modified, added]
    assert found.changed


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        (["a", "a"], ["a", "a", "a"], [], ['.spec.set[="a"]'], []),
        (["a", "a"], ["a"], ['.spec.set[="a"]'], [], ['.spec.set[="a"]']),
        (["a"], ["a", "a"], ['.spec.set[="a"]'], [], ['.spec.set[="a"]']),
        (["a", "a"], ["a", "a"], [], [], []),
    ],
)
def test_items_that_are_there_several_times_are_owned_together(
    old: list[str], new: list[str], removed: list[str], modified: list[str], added: list[str]
) -> None:
    found = compare(spec(set=old), spec(set=new), SCHEMA)
    assert [shown(each) for each in found] == [removed, modified, added]


# -- merging ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        (["a", "b", "c"], ["c", "a"], ["b", "c", "a"]),
        (["a", "b"], ["c", "b"], ["a", "c", "b"]),
        (["a", "b"], ["b", "c"], ["a", "b", "c"]),
        (["a"], ["b", "c"], ["a", "b", "c"]),
        ([], ["b"], ["b"]),
        (["a"], [], ["a"]),
        (["a", "b", "c", "d"], ["d", "x", "b"], ["a", "c", "d", "x", "b"]),
        (["a", "a", "b"], ["a"], ["a", "b"]),
    ],
)
def test_shared_items_are_in_the_order_they_were_applied_in(
    live: list[str], applied: list[str], merged: list[str]
) -> None:
    assert merge(spec(set=live), spec(set=applied), SCHEMA) == spec(set=merged)


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        (spec(size=1), spec(word="a"), spec(size=1, word="a")),
        (spec(size=1), spec(size=None), spec(size=None)),
        (spec(map={"a": "1"}), spec(map=None), spec(map={"a": "1"})),
        (spec(map={}), spec(map=None), spec(map=None)),
        (spec(whole={"a": 1}), spec(whole={"b": 2}), spec(whole={"b": 2})),
        (spec(list=["a"]), spec(list=["b"]), spec(list=["b"])),
        (
            spec(items=[{"name": "x", "kind": "K", "value": "1"}]),
            spec(items=[{"name": "x", "value": "2"}]),
            spec(items=[{"name": "x", "kind": "K", "value": "2"}]),
        ),
        (spec(any={"a": 1, "b": {"c": 1}}), spec(any={"b": "text"}), spec(any={"a": 1, "b": "text"})),
    ],
)
def test_what_is_applied_takes_its_place_among_what_is_there(live: Any, applied: Any, merged: Any) -> None:
    assert merge(live, applied, SCHEMA) == merged


texts = st.sampled_from("abcd")
documents = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "map": st.dictionaries(texts, texts, max_size=3),
        "list": st.lists(texts, max_size=3),
        # A list of items that has none is not spoken of, upstream neither.
        "set": st.lists(texts, min_size=1, max_size=3, unique=True),
        "items": st.lists(
            st.fixed_dictionaries({"name": texts, "kind": st.just("K")}, optional={"value": texts}),
            min_size=1,
            max_size=3,
            unique_by=lambda item: item["name"],
        ),
        "any": st.dictionaries(
            texts, st.integers(0, 2) | st.dictionaries(texts, st.integers(0, 2)), max_size=2
        ),
    },
).map(lambda fields: {"spec": fields})


@given(documents, documents)
def test_nothing_that_is_merged_changes_when_it_is_merged_again(live: Any, applied: Any) -> None:
    merged = merge(live, applied, SCHEMA)
    assert merge(merged, applied, SCHEMA) == merged
    assert not compare(merged, merge(merged, applied, SCHEMA), SCHEMA).changed


@given(documents, documents)
def test_changes_back_are_the_changes_turned_round(one: Any, other: Any) -> None:
    there, back = compare(one, other, SCHEMA), compare(other, one, SCHEMA)
    assert there.removed == back.added
    assert there.added == back.removed
    assert there.modified == back.modified


@given(documents, documents)
def test_what_merging_adds_are_fields_that_were_applied(live: Any, applied: Any) -> None:
    found = compare(live, merge(live, applied, SCHEMA), SCHEMA)
    assert found.removed == {} or "any" in applied["spec"]
    spoken = ensure_named_fields(to_field_set(applied, SCHEMA), SCHEMA)
    assert field_set.difference(field_set.union(found.modified, found.added), spoken) == {}


@given(documents)
def test_a_document_without_its_fields_is_empty(document: Any) -> None:
    doomed = ensure_named_fields(to_field_set(document, SCHEMA), SCHEMA)
    left = remove(document, doomed, SCHEMA)
    assert left in (None, {"spec": {}}, {"spec": None}) or not to_field_set(left, SCHEMA)


# -- fields -----------------------------------------------------------------------------------


def test_a_document_speaks_of_leaves_items_and_keys() -> None:
    document = spec(size=1, map={"a": "1"}, whole={"a": 1}, set=["x"], items=[{"name": "n"}], any={"b": {}})
    assert shown(to_field_set(document, SCHEMA)) == [
        ".spec.size",
        ".spec.whole",
        ".spec.any.b",
        '.spec.items[kind="K",name="n"]',
        '.spec.items[kind="K",name="n"].name',
        ".spec.map.a",
        '.spec.set[="x"]',
    ]


def test_what_became_atomic_since_is_owned_as_a_whole() -> None:
    before = field_set.of("spec.whole.a", "spec.map.a", "spec.gone.a", "spec.any.a.b")
    assert shown(reconcile_with_schema(before, SCHEMA)) == [
        ".spec.whole",
        ".spec.any.a.b",
        ".spec.gone.a",
        ".spec.map.a",
    ]


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (spec(foo=1), ".spec.foo: field not declared in schema"),
        (spec(size="x"), ".spec.size: expected numeric (int or float), got string"),
        (spec(size=True), ".spec.size: expected numeric (int or float), got bool"),
        (spec(word=1), ".spec.word: expected string, got &value.valueUnstructured{Value:1}"),
        (spec(on="x"), ".spec.on: expected boolean, got &{x}"),
        (spec(map=[1]), ".spec.map: expected map, got &{[1]}"),
        (spec(list={"a": 1}), ".spec.list: expected list, got &{map[a:1]}"),
        (spec(set=["a", "a"]), '.spec.set: duplicate entries for key [="a"]'),
        (
            spec(set=[{"a": 1}]),
            ".spec.set: element 0: associative list without keys has an element that's a map type",
        ),
        (
            spec(items=["x"]),
            ".spec.items: element 0: associative list with keys may not have non-map elements",
        ),
        (
            spec(items=[None]),
            ".spec.items: element 0: associative list with keys may not have a null element",
        ),
        (
            spec(size="x", word=1),
            "errors:\n  .spec.size: expected numeric (int or float), got string\n"
            "  .spec.word: expected string, got &value.valueUnstructured{Value:1}",
        ),
    ],
)
def test_a_document_of_another_shape_is_refused(document: Any, says: str) -> None:
    with pytest.raises(SchemaError) as refused:
        validate(document, SCHEMA)
    assert str(refused.value) == says


def test_a_list_whose_items_leave_out_all_keys_is_refused() -> None:
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
        "items": {"type": "object", "properties": {"a": {"type": "string"}}},
    }
    schema: TypedSchema = custom_resource_schema({"type": "object", "properties": {"list": keyed}})
    with pytest.raises(SchemaError, match='omits all key fields \\["a"\\]'):
        validate({"list": [{}]}, schema)


def test_live_documents_may_have_duplicates_and_nulls() -> None:
    validate(spec(set=["a", "a"], map=None, size=None, items=None), SCHEMA, duplicates=True)
