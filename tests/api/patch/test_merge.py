"""Merge patch: RFC 7386, as upstream's library applies and writes it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.patch import PatchError, merge

scalars = st.booleans() | st.integers(-2, 2) | st.sampled_from(("", "a", "b")) | st.sampled_from((0.5, 1.0))
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        # The examples of the RFC that are about objects.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        # Where upstream goes beyond it.
        ({}, {"a": [{"b": None, "c": 1}]}, {"a": [{"c": 1}]}),
        ({"a": {}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
        ({"a": None}, {"a": {"b": None}}, {"a": {}}),
    ],
)
def test_a_patch_changes_what_it_names(
    document: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]
) -> None:
    before = copy.deepcopy((document, patch))
    assert merge.apply(document, patch) == result
    assert (document, patch) == before


@pytest.mark.parametrize("patch", [None, [], "x", 1])
def test_a_patch_that_is_no_object_is_refused(patch: object) -> None:
    with pytest.raises(PatchError, match="Invalid JSON Patch"):
        merge.apply({}, patch)


def test_what_is_nested_too_deeply_is_refused_like_any_bad_patch() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(PatchError, match="too deeply"):
        merge.apply({}, deep)


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {}, {"a": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 2]}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": {}}, {"a": []}, {"a": []}),
        ({}, {"a": {}}, {"a": {}}),
    ],
)
def test_a_difference_says_only_what_differs(
    old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert merge.diff(old, new) == patch


@given(documents, documents)
def test_the_difference_makes_the_new_of_the_old(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = merge.diff(old, new)
    assert repr_sorted(merge.apply(old, patch)) == repr_sorted(new)
    assert (patch == {}) == (repr_sorted(old) == repr_sorted(new))


@given(documents, documents)
def test_applying_a_patch_twice_is_applying_it_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge.apply(document, patch)
    assert merge.apply(once, patch) == once


def repr_sorted(value: Any) -> str:
    """Tells true from 1, which == does not, and not the order of keys."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{repr_sorted(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(repr_sorted, value)) + "]"
    return repr(value)
