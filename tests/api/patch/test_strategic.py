"""Strategic merge patch: lists that merge, directives, and differences that say just enough."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.generated import load
from steersman.api.patch import Field, PatchError, Schema, schema_of, strategic


@dataclass(frozen=True)
class Handmade:
    """A schema written by hand."""

    name: str
    fields: Mapping[str, Field]

    def field(self, name: str) -> Field | None:
        return self.fields.get(name)


ITEM = Handmade("Item", {"tags": Field(merges=True), "inner": Field(merges=True, key="id", schema=None)})
SCHEMA: Schema = Handmade(
    "Thing",
    {
        "items": Field(merges=True, key="name", schema=ITEM),
        "sources": Field(merges=True, retains=True, key="name", schema=ITEM),
        "tags": Field(merges=True),
        "args": Field(),
        "labels": Field(),
        "strategy": Field(retains=True, schema=ITEM),
        "whole": Field(replaces=True, schema=ITEM),
        "keyless": Field(merges=True, schema=ITEM),
        "object": Field(schema=ITEM),
    },
)


def named(*names: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": name, **fields} for name in names]


def apply(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    before = copy.deepcopy((document, patch))
    try:
        return strategic.apply(document, patch, SCHEMA)
    finally:
        assert (document, patch) == before


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        pytest.param({"x": 1}, {"x": 2}, {"x": 2}, id="a scalar is set"),
        pytest.param({"x": 1, "y": 2}, {"x": None}, {"y": 2}, id="null deletes"),
        pytest.param({}, {"x": None}, {}, id="null of nothing is nothing"),
        pytest.param(
            {"labels": {"a": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}, id="a map"
        ),
        pytest.param({"x": [1]}, {"x": {"y": None, "z": 1}}, {"x": {"z": 1}}, id="another type replaces"),
        pytest.param({"args": ["a"]}, {"args": ["b"]}, {"args": ["b"]}, id="an atomic list is replaced"),
        pytest.param(
            {"items": [{"name": "a", "v": 1}, {"name": "b", "v": 1}]},
            {"items": [{"name": "b", "v": 2}]},
            {"items": [{"name": "a", "v": 1}, {"name": "b", "v": 2}]},
            id="items merge by key",
        ),
        pytest.param(
            {"items": named("a")},
            {"items": [{"name": "b", "v": None, "tags": ["x"]}]},
            {"items": [{"name": "b", "tags": ["x"]}, {"name": "a"}]},
            id="a new item goes first, without nulls",
        ),
        pytest.param(
            {"items": [{"name": "a", "tags": ["x"]}]},
            {"items": [{"name": "a", "tags": ["y"]}]},
            {"items": [{"name": "a", "tags": ["y", "x"]}]},
            id="lists in items merge too",
        ),
        pytest.param(
            {"tags": ["a", "b"]}, {"tags": ["c", "a"]}, {"tags": ["c", "a", "b"]}, id="scalars merge"
        ),
        pytest.param({"whole": {"a": 1}}, {"whole": {"b": 1}}, {"whole": {"b": 1}}, id="replace strategy"),
    ],
)
def test_a_patch_merges(document: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    assert apply(document, patch) == result


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        pytest.param(
            {"object": {"a": 1}},
            {"object": {"$patch": "replace", "b": 1}},
            {"object": {"b": 1}},
            id="replace an object",
        ),
        pytest.param(
            {"object": {"a": 1}}, {"object": {"$patch": "delete"}}, {"object": {}}, id="empty an object"
        ),
        pytest.param({}, {"object": {"$patch": "delete"}}, {}, id="empty no object"),
        pytest.param({"a": 1}, {"$patch": "replace", "b": 1}, {"b": 1}, id="replace all"),
        pytest.param(
            {"items": named("a", "b", "a")},
            {"items": [{"name": "a", "$patch": "delete"}]},
            {"items": named("b")},
            id="delete items",
        ),
        pytest.param(
            {"items": named("a", "b")},
            {"items": [{"$patch": "replace"}, {"name": "c"}]},
            {"items": named("c")},
            id="replace a merged list",
        ),
        pytest.param(
            {}, {"items": [{"name": "a", "$patch": "delete"}]}, {"items": []}, id="delete from no list"
        ),
        pytest.param(
            {"tags": ["a", "b", "c"]},
            {"$deleteFromPrimitiveList/tags": ["b", "z"]},
            {"tags": ["a", "c"]},
            id="delete scalars",
        ),
        pytest.param(
            {"tags": ["a"]},
            {"$deleteFromPrimitiveList/tags": ["b"], "tags": ["b"]},
            {"tags": ["a"]},
            id="what is added and deleted is gone",
        ),
        pytest.param({}, {"$deleteFromPrimitiveList/tags": ["b"]}, {}, id="delete scalars from no list"),
        pytest.param(
            {"items": named("a", "b", "c")},
            {"$setElementOrder/items": named("c", "a")},
            {"items": named("b", "c", "a")},
            id="reorder items",
        ),
        pytest.param(
            {"items": named("a", "s", "b")},
            {"$setElementOrder/items": named("b", "n", "a"), "items": [{"name": "n"}]},
            {"items": named("s", "b", "n", "a")},
            id="what the order does not name keeps its place among the rest",
        ),
        pytest.param(
            {"tags": ["a", "b", "c"]},
            {"$setElementOrder/tags": ["c", "b", "d"], "tags": ["d"]},
            {"tags": ["a", "c", "b", "d"]},
            id="reorder scalars",
        ),
        pytest.param({}, {"$setElementOrder/items": named("a")}, {}, id="order of nothing"),
        pytest.param(
            {"strategy": {"type": "A", "rolling": {"x": 1}}},
            {"strategy": {"$retainKeys": ["type"], "type": "B"}},
            {"strategy": {"type": "B"}},
            id="retain keys",
        ),
        pytest.param(
            {},
            {"object": {"$retainKeys": ["a"], "a": {"$setElementOrder/b": [], "c": [{"$patch": "delete"}]}}},
            {"object": {"a": {"c": []}}},
            id="no directive is left in what is new",
        ),
    ],
)
def test_a_directive_is_followed(
    document: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]
) -> None:
    assert apply(document, patch) == result


@pytest.mark.parametrize(
    ("document", "patch", "message"),
    [
        ({}, {"$patch": "frob"}, "unknown patch type: frob in map: map[$patch:frob]"),
        ({}, {"$patch": 3}, "unknown patch type: %!s(int64=3) in map: map[$patch:3]"),
        (
            {"unknown": {"a": 1}},
            {"unknown": {"a": 2}},
            'unable to find api field in struct Thing for the json field "unknown"',
        ),
        (
            {"labels": {"a": {"b": 1}}},
            {"labels": {"a": {"b": 2}}},
            "merging an object in json but data type is not struct, instead is: map",
        ),
        (
            {"items": named("a")},
            {"items": [{"v": 1}]},
            "map: map[v:1] does not contain declared merge key: name",
        ),
        (
            {"items": named("a")},
            {"items": [{"$patch": "delete"}]},
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            {"items": named("a")},
            {"items": [{"name": "a", "$patch": "merge"}]},
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"items": named("a")},
            {"items": ["a"]},
            "list element types are not identical: [[map[name:a]] [a]]",
        ),
        ({"tags": ["a"]}, {"tags": [True]}, "list element types are not identical: [[a] [true]]"),
        ({"tags": [["a"]]}, {"tags": [["b"]]}, "lists of lists are not supported"),
        ({"keyless": [{}]}, {"keyless": [{}]}, "cannot merge lists without merge key for struct"),
        ({}, {"$retainKeys": "a"}, "invalid patch format of retainKeys"),
        ({}, {"$retainKeys": ["a"], "b": 1}, "invalid patch format of retainKeys"),
        ({}, {"$deleteFromPrimitiveList": []}, "invalid patch format of primitive list"),
        (
            {"items": named("a")},
            {"$deleteFromPrimitiveList/items": named("a")},
            "invalid patch format of primitive list",
        ),
        ({}, {"$setElementOrder": []}, "invalid patch format of setElementOrder list"),
        ({}, {"$setElementOrder/tags": "a"}, "expected a []interface {}, but received a string"),
        (
            {"tags": {}},
            {"$setElementOrder/tags": ["a"]},
            "expected a []interface {}, but received a map[string]interface {}",
        ),
        (
            {"tags": ["b"]},
            {"$setElementOrder/tags": ["a", "b"], "tags": ["b", "a"]},
            "The order in patch list:\n[b a]\n doesn't match $setElementOrder list:\n[a b]\n",
        ),
        ({"tags": []}, {"$setElementOrder/tags": ["a"]}, "no elements in any of the given slices"),
    ],
)
def test_a_patch_that_makes_no_sense_is_refused(
    document: dict[str, Any], patch: dict[str, Any], message: str
) -> None:
    with pytest.raises(PatchError) as caught:
        apply(document, patch)
    assert str(caught.value) == message


def test_merging_long_lists_does_not_take_forever() -> None:
    # Quadratic work would be a hundred million comparisons.
    many = [{"name": f"n{i}", "v": 1} for i in range(10_000)]
    patch = strategic.diff({"items": many}, {"items": many[::-1]}, SCHEMA)
    assert apply({"items": many}, patch) == {"items": many[::-1]}


# -- differences ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        pytest.param({"x": 1, "items": named("a")}, {"x": 1, "items": named("a")}, {}, id="nothing"),
        pytest.param({"x": 1}, {"x": True}, {"x": True}, id="true is not 1"),
        pytest.param({"unknown": {"a": 1}}, {"unknown": {"a": 1}}, {}, id="unknown but alike"),
        pytest.param(
            {"items": named("a", "b")},
            {"items": [{"name": "a"}, {"name": "b", "v": 1}]},
            {"items": [{"name": "b", "v": 1}], "$setElementOrder/items": named("a", "b")},
            id="an item changed",
        ),
        pytest.param(
            {"items": named("a", "b", "c")},
            {"items": named("c", "d")},
            {
                "items": [
                    {"name": "d"},
                    {"name": "a", "$patch": "delete"},
                    {"name": "b", "$patch": "delete"},
                ],
                "$setElementOrder/items": named("c", "d"),
            },
            id="items come and go",
        ),
        pytest.param(
            {"items": named("a", "b")},
            {"items": named("b", "a")},
            {"$setElementOrder/items": named("b", "a")},
            id="items reordered",
        ),
        pytest.param({"items": []}, {"items": named("a")}, {"items": named("a")}, id="the first items"),
        pytest.param(
            {"tags": ["b", "a", "c"]},
            {"tags": ["c", "d"]},
            {
                "tags": ["d"],
                "$deleteFromPrimitiveList/tags": ["a", "b"],
                "$setElementOrder/tags": ["c", "d"],
            },
            id="scalars come and go",
        ),
        pytest.param({"args": ["a"]}, {"args": ["b"]}, {"args": ["b"]}, id="an atomic list"),
        pytest.param(
            {"strategy": {"type": "A", "x": 1}},
            {"strategy": {"type": "B"}},
            {"strategy": {"$retainKeys": ["type"], "type": "B", "x": None}},
            id="retain keys",
        ),
        pytest.param({"whole": {"a": 1}}, {"whole": {"a": 2}}, {"whole": {"a": 2}}, id="replace strategy"),
    ],
)
def test_a_difference_says_only_what_differs(
    old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert strategic.diff(old, new, SCHEMA) == patch


def test_a_difference_in_an_unknown_field_is_refused() -> None:
    with pytest.raises(PatchError, match="unable to find api field in struct Thing"):
        strategic.diff({"unknown": {"a": 1}}, {"unknown": {"a": 2}}, SCHEMA)


names = st.sampled_from("abcd")
tags = st.lists(names, max_size=4, unique=True)
items = st.lists(
    st.fixed_dictionaries({"name": names}, optional={"v": st.integers(0, 2) | st.booleans(), "tags": tags}),
    max_size=4,
    unique_by=lambda item: str(item["name"]),
)
things = st.fixed_dictionaries(
    {},
    optional={
        "x": st.integers(0, 1) | st.booleans() | names,
        "items": items,
        "sources": items,
        "tags": tags,
        "args": st.lists(names, max_size=3),
        "labels": st.dictionaries(names, names, max_size=3),
        "strategy": st.fixed_dictionaries({}, optional={"type": names, "tags": tags}),
        "whole": st.dictionaries(names, names, max_size=2),
        "object": st.fixed_dictionaries({}, optional={"tags": tags, "v": names}),
    },
)


@given(things, things)
def test_the_difference_makes_the_new_of_the_old(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = strategic.diff(old, new, SCHEMA)
    result = apply(old, patch)
    assert result == new
    assert strategic.diff(result, new, SCHEMA) == {}


@given(things, things)
def test_a_whole_document_as_a_patch_takes_nothing_away(
    document: dict[str, Any], patch: dict[str, Any]
) -> None:
    result = apply(document, patch)
    assert set(result) == set(document) | set(patch)
    for key in ("tags", "args"):
        assert set(patch.get(key, ())) <= set(result.get(key, ()))


# -- our own types ----------------------------------------------------------------------------

POD = schema_of(load("", "v1", "Pod").type)
DEPLOYMENT = schema_of(load("apps", "v1", "Deployment").type)


def test_the_types_of_the_api_say_how_they_merge() -> None:
    pod = {
        "metadata": {"finalizers": ["x/a"], "labels": {"a": "1"}},
        "spec": {
            "containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]}],
            "tolerations": [{"key": "a"}],
        },
    }
    patch = {
        "metadata": {"finalizers": ["x/b"]},
        "spec": {
            "containers": [{"name": "web", "ports": [{"containerPort": 81}]}, {"name": "log"}],
            "tolerations": [{"key": "b"}],
        },
    }
    assert strategic.apply(pod, patch, POD) == {
        "metadata": {"finalizers": ["x/b", "x/a"], "labels": {"a": "1"}},
        "spec": {
            "containers": [
                {"name": "web", "image": "web:1", "ports": [{"containerPort": 81}, {"containerPort": 80}]},
                {"name": "log"},
            ],
            "tolerations": [{"key": "b"}],
        },
    }


def test_a_deployments_strategy_retains_only_the_keys_named() -> None:
    old = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    new = {"spec": {"strategy": {"type": "Recreate"}}}
    patch = strategic.diff(old, new, DEPLOYMENT)
    assert patch["spec"]["strategy"]["$retainKeys"] == ["type"]
    assert strategic.apply(old, patch, DEPLOYMENT) == new


def test_an_unknown_field_of_a_type_is_named() -> None:
    with pytest.raises(PatchError, match='in struct PodSpec for the json field "frob"'):
        strategic.apply({"spec": {"frob": {}}}, {"spec": {"frob": {"a": 1}}}, POD)


def test_many_retained_keys_are_looked_up_in_linear_time() -> None:
    keys = [f"k{n}" for n in range(20_000)]
    patch = {"strategy": {"$retainKeys": keys, **dict.fromkeys(keys, "x")}}
    assert len(apply({"strategy": {"old": 1}}, patch)["strategy"]) == len(keys)
