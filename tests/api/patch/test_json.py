"""JSON patch: RFC 6902, with the leniency, the words and the limits of upstream."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.nesting import MAX_DEPTH
from steersman.api.patch import PatchError, TooManyOperations
from steersman.api.patch import json as json_patch

DOCUMENT: dict[str, Any] = {"a": {"x": 1}, "l": [1, 2, 3], "m": {"/k": 1, "~k": 2}, "n": None}


def op(op: str, path: str | None = None, **rest: Any) -> dict[str, Any]:
    return {"op": op, **({} if path is None else {"path": path}), **rest}


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        (op("add", "/b", value=2), "b", 2),
        (op("add", "/a", value=2), "a", 2),
        (op("add", "/l/1", value=9), "l", [1, 9, 2, 3]),
        (op("add", "/l/3", value=9), "l", [1, 2, 3, 9]),
        (op("add", "/l/-", value=9), "l", [1, 2, 3, 9]),
        (op("add", "/l/-1", value=9), "l", [1, 2, 3, 9]),
        (op("add", "/l/-4", value=9), "l", [9, 1, 2, 3]),
        (op("add", "/a/y"), "a", {"x": 1, "y": None}),
        (op("remove", "/a/x"), "a", {}),
        (op("remove", "/l/0"), "l", [2, 3]),
        (op("remove", "/l/-1"), "l", [1, 2]),
        (op("remove", "/m/~1k"), "m", {"~k": 2}),
        (op("remove", "/m/~0k"), "m", {"/k": 1}),
        (op("replace", "/l/2", value=9), "l", [1, 2, 9]),
        (op("replace", "/b", value=2), "b", 2),
        (op("move", "/l/0", **{"from": "/l/2"}), "l", [3, 1, 2]),
        (op("move", "/b", **{"from": "/a/x"}), "a", {}),
        (op("copy", "/l/-", **{"from": "/a"}), "l", [1, 2, 3, {"x": 1}]),
        (op("copy", "/b", **{"from": "/missing"}), "b", None),
    ],
)
def test_an_operation_changes_what_it_points_at(
    operation: dict[str, Any], path: str, expected: object
) -> None:
    before = copy.deepcopy(DOCUMENT)
    result = json_patch.apply(DOCUMENT, [operation])
    assert isinstance(result, dict)
    assert result[path] == expected
    assert before == DOCUMENT


@pytest.mark.parametrize(
    "operation",
    [
        op("test", "/a", value={"x": 1}),
        op("test", "/l/0", value=1),
        op("test", "/n", value=None),
        op("test", "/n"),
        op("test", "/missing", value=None),
        op("test", "", value=DOCUMENT),
    ],
)
def test_a_test_that_holds_changes_nothing(operation: dict[str, Any]) -> None:
    assert json_patch.apply(DOCUMENT, [operation]) == DOCUMENT


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (op("test", "/a/x", value=2), "testing value /a/x failed: test failed"),
        (op("test", "/a/x", value=True), "testing value /a/x failed: test failed"),
        (op("test", "/a/x", value=1.0), "testing value /a/x failed: test failed"),
        (op("test", "/a/x"), "testing value /a/x failed: test failed"),
        (op("test", "/q/x", value=1), "test operation does not apply: is missing path: /q/x: missing value"),
        (
            op("add", "/q/x", value=1),
            'add operation does not apply: doc is missing path: "/q/x": missing value',
        ),
        (
            op("add", "/n/x", value=1),
            'add operation does not apply: doc is missing path: "/n/x": missing value',
        ),
        (op("add", "", value={}), 'add operation does not apply: doc is missing path: "": missing value'),
        (
            op("add", "/l/9", value=1),
            "error in add for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            op("add", "/l/x", value=1),
            "error in add for path: '/l/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
        ),
        (
            op("remove", "/q"),
            "error in remove for path: '/q': Unable to remove nonexistent key: q: missing value",
        ),
        (
            op("remove", "/l/3"),
            "error in remove for path: '/l/3': Unable to access invalid index: 3: invalid index referenced",
        ),
        (
            op("replace", "/l/3", value=1),
            "replace operation does not apply: doc is missing key: /l/3: missing value",
        ),
        (op("replace", "", value=1), "replace operation value must be object or array"),
        (
            op("move", "/b", **{"from": "/q"}),
            "error in move for path: 'q': Unable to remove nonexistent key: q: missing value",
        ),
        (
            op("copy", "/q/x", **{"from": "/a"}),
            "copy operation does not apply: doc is missing destination path: /q/x: missing value",
        ),
        (op("add", value=1), "add operation failed to decode path: missing value"),
        (
            op("replace", value=1),
            "replace operation failed to decode path: operation missing path field: missing value",
        ),
        (
            op("move", "/b"),
            "move operation failed to decode from: operation, missing from field: missing value",
        ),
        (op("frob", "/b"), "Unexpected kind: frob"),
        ({"path": "/b"}, "Unexpected kind: unknown"),
    ],
)
def test_an_operation_that_does_not_apply_says_why(operation: dict[str, Any], message: str) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch.apply(DOCUMENT, [operation])
    assert str(caught.value) == message


def test_the_whole_document_can_be_replaced() -> None:
    assert json_patch.apply(DOCUMENT, [op("replace", "", value={"b": 1})]) == {"b": 1}
    assert json_patch.apply(DOCUMENT, [op("replace", "", value=[1]), op("add", "/-", value=2)]) == [1, 2]


def test_later_operations_never_reach_into_the_patch() -> None:
    patch = [
        op("add", "/b", value={"c": []}),
        op("add", "/b/c/-", value=1),
        op("copy", "/d", **{"from": "/b"}),
    ]
    before = copy.deepcopy(patch)
    result = json_patch.apply({}, [*patch, op("add", "/b/c/-", value=2)])
    assert result == {"b": {"c": [1, 2]}, "d": {"c": [1]}}
    assert patch == before


def test_a_patch_is_a_list_of_objects() -> None:
    patches: list[Any] = [{}, ["x"], [None]]
    for patch in patches:
        with pytest.raises(PatchError, match="list of operations"):
            json_patch.apply({}, patch)


def test_too_many_operations_are_refused() -> None:
    test = op("test", "/a", value=None)
    assert json_patch.apply({}, [test] * 10_000) == {}
    with pytest.raises(TooManyOperations, match="maximum operations in a JSON patch is 10000, got 10001"):
        json_patch.apply({}, [test] * 10_001)


def test_a_patch_cannot_blow_a_document_up_by_copying() -> None:
    double = [op("copy", "/a/-", **{"from": "/a"}) for _ in range(40)]
    with pytest.raises(
        PatchError, match=r"accumulated size increase of copy is \d+, exceeding the limit 3145728"
    ):
        json_patch.apply({"a": ["x" * 100]}, double)


paths = st.sampled_from(("", "/", "/a", "/a/x", "/l", "/l/0", "/l/-", "/l/-1", "/l/7", "/l/x", "/n/x", "a/b"))
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(("add", "remove", "replace", "move", "copy", "test"))},
    optional={"path": paths, "from": paths, "value": st.sampled_from((None, 1, {"x": 1}, [1]))},
)


@given(st.lists(operations, max_size=5))
def test_any_patch_applies_or_is_refused_and_the_document_stays(patch: list[dict[str, Any]]) -> None:
    document, before = copy.deepcopy(DOCUMENT), copy.deepcopy(patch)
    try:
        json_patch.apply(document, patch)
    except PatchError:
        pass
    assert document == DOCUMENT
    assert patch == before


def test_operations_do_not_nest_a_document_ever_deeper() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH - 1):
        value = {"a": value}
    document = json_patch.apply({}, [op("add", "/a", value=value)])
    deepest = "/a" * MAX_DEPTH
    with pytest.raises(PatchError, match="nested too deeply"):
        json_patch.apply(document, [op("add", deepest, value={"a": {}})])
    assert json_patch.apply(document, [op("add", deepest, value={}), op("replace", "/a", value=1)]) == {
        "a": 1
    }


def test_the_items_that_operations_move_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_patch, "MAX_MOVED_ITEMS", 1000)
    items = {"l": [0] * 100}
    for operation in (
        op("add", "/l/0", value=1),
        op("remove", "/l/0"),
        op("move", "/l/0", **{"from": "/l/1"}),
    ):
        assert json_patch.apply(items, [operation] * 4)
        with pytest.raises(PatchError, match="its operations move more than 1000 items"):
            json_patch.apply(items, [operation] * 40)
    assert json_patch.apply(items, [op("add", "/l/-", value=1), op("remove", "/l/-1")] * 400) == items
