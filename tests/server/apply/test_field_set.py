"""Sets of fields: their algebra, and how they are written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.server.apply import field_set, path_element
from steersman.server.apply.field_set import FieldSet

names = st.sampled_from(
    ["f:a", "f:b", 'k:{"name":"x"}', 'k:{"port":80}', 'k:{"port":9}', 'v:"s"', "v:1", "v:true", "i:0"]
)


def as_paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """A set as the set of its paths: the plain thing that tries stand for."""
    found: set[tuple[str, ...]] = set()
    for element, node in fields.items():
        if element == ".":
            found.add(prefix)
        else:
            found |= as_paths(node, (*prefix, element))
    return found


def of_paths(paths: set[tuple[str, ...]]) -> FieldSet:
    made: FieldSet = {}
    for path in sorted(paths):
        node = made
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return made


path_sets = st.sets(st.lists(names, min_size=1, max_size=3).map(tuple), max_size=8)


@given(path_sets, path_sets)
def test_tries_are_sets_of_paths(one: set[Any], other: set[Any]) -> None:
    left, right = of_paths(one), of_paths(other)
    assert as_paths(field_set.union(left, right)) == one | other
    assert as_paths(field_set.intersection(left, right)) == one & other
    assert as_paths(field_set.difference(left, right)) == one - other
    below = {path for path in one if any(path[: len(top)] == top for top in other)}
    assert as_paths(field_set.recursive_difference(left, right)) == one - below


@given(path_sets, path_sets)
def test_no_operation_changes_its_operands_or_leaves_empty_nodes(one: set[Any], other: set[Any]) -> None:
    left, right = of_paths(one), of_paths(other)

    def full(fields: FieldSet) -> bool:
        return all(element == "." or (node and full(node)) for element, node in fields.items())

    for operation in (
        field_set.union,
        field_set.intersection,
        field_set.difference,
        field_set.recursive_difference,
        field_set.include,
    ):
        assert full(operation(left, right))
        assert as_paths(left) == one
        assert as_paths(right) == other


@given(path_sets)
def test_what_is_written_reads_the_same(paths: set[Any]) -> None:
    fields = of_paths(paths)
    assert as_paths(field_set.from_fields_v1(field_set.to_fields_v1(fields))) == paths


def test_a_node_where_one_path_ends_is_written_without_its_end() -> None:
    wire: dict[str, object] = {"f:spec": {".": {}, "f:a": {}, 'k:{"name":"x"}': {".": {}, "f:b": {}}}}
    fields = field_set.from_fields_v1(wire)
    assert field_set.to_fields_v1(fields) == wire
    assert list(field_set.paths(fields)) == [".spec", ".spec.a", '.spec[name="x"]', '.spec[name="x"].b']


def test_elements_are_in_upstreams_order() -> None:
    wire: dict[str, object] = {
        'v:"b"': {},
        "v:10": {},
        "v:9": {},
        'k:{"port":443}': {},
        'k:{"port":80}': {},
        "f:z": {},
        "f:a": {},
    }
    assert list(field_set.to_fields_v1(field_set.from_fields_v1(wire))) == [
        "f:a",
        "f:z",
        'k:{"port":80}',
        'k:{"port":443}',
        "v:9",
        "v:10",
        'v:"b"',
    ]


def test_keys_are_the_same_however_they_were_written() -> None:
    assert path_element.parse('k:{"protocol": "TCP", "port": 80}') == 'k:{"port":80,"protocol":"TCP"}'
    assert path_element.key({"name": "<&>"}) == 'k:{"name":"\\u003c\\u0026\\u003e"}'
    assert path_element.key({"a": 1}) != path_element.key({"a": True})
    assert path_element.key({"a": [1]}) == 'k:{"a":[1]}'


@pytest.mark.parametrize(
    ("element", "shown"),
    [
        ("f:spec", ".spec"),
        ('k:{"port":80,"protocol":"TCP"}', '[port=80,protocol="TCP"]'),
        ('v:"x"', '[="x"]'),
        ("i:3", "[3]"),
    ],
)
def test_elements_are_shown_as_messages_have_them(element: str, shown: str) -> None:
    assert path_element.to_string(element) == shown


def test_path_elements_of_an_unknown_kind_are_ignored() -> None:
    assert field_set.from_fields_v1({"x:new": {}, "f:a": {"x:new": {}}, ".": {}}) == {"f:a": field_set.LEAF}


@pytest.mark.parametrize(
    ("wire", "says"),
    [
        ({"a": {}}, "missing colon"),
        ({"f:a": 1}, "not an object"),
        ({"k:nothing": {}}, "malformed"),
        ({"k:[1]": {}}, "key is not an object"),
        ({"i:x": {}}, "invalid literal"),
    ],
)
def test_what_is_no_set_is_refused(wire: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        field_set.from_fields_v1(wire)


def test_a_set_can_be_kept_to_some_fields_with_any_element_between() -> None:
    wire: dict[str, object] = {
        "f:spec": {
            "f:containers": {'k:{"name":"x"}': {".": {}, "f:resources": {"f:limits": {}}, "f:image": {}}}
        }
    }
    kept = field_set.include(field_set.from_fields_v1(wire), field_set.of("spec.containers.*.resources"))
    expected: dict[str, object] = {
        "f:spec": {"f:containers": {'k:{"name":"x"}': {".": {}, "f:resources": {"f:limits": {}}}}}
    }
    assert field_set.to_fields_v1(kept) == expected


def test_a_field_is_found_by_its_name() -> None:
    fields = field_set.of("spec.replicas")
    assert field_set.has(fields, "spec.replicas")
    assert not field_set.has(fields, "spec")
    assert not field_set.has(fields, "status.replicas")
