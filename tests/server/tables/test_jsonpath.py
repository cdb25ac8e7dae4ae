"""JSONPath in kubectl's dialect."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.server.tables.jsonpath import compile_path

DOCUMENT = {
    "name": "n",
    "a.b/c": "dotted",
    "list": [1, 2, 3, 4],
    "items": [
        {"k": "a", "n": 1},
        {"k": "b", "n": 2, "on": True},
        {"k": "c", "n": 3.5, "on": False},
        {"n": 4},
    ],
    "deep": {"x": {"y": 1}, "z": [{"y": 2}]},
    "null": None,
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".name", ["n"]),
        ("$.name", ["n"]),
        ("@.name", ["n"]),
        (".none", []),
        (".none.deeper", []),
        (".name.deeper", []),
        (".null", [None]),
        (".null.deeper", []),
        (r".a\.b/c", ["dotted"]),
        ("['name']", ["n"]),
        (r"['a\.b/c']", ["dotted"]),
        (".list[0]", [1]),
        (".list[-1]", [4]),
        (".list[1:3]", [2, 3]),
        (".list[:2]", [1, 2]),
        (".list[2:]", [3, 4]),
        (".list[-2:]", [3, 4]),
        (".list[::2]", [1, 3]),
        (".list[*]", [1, 2, 3, 4]),
        (".list[2:2]", []),
        (".list[0,2]", [1, 3]),
        (".deep['x','z']", [{"y": 1}, [{"y": 2}]]),
        (".null[0]", []),
        (".deep.*", [{"y": 1}, [{"y": 2}]]),
        ("..y", [1, 2]),
        (".items[*].k", ["a", "b", "c"]),
        ('.items[?(@.k=="b")].n', [2]),
        (".items[?(@.k=='b')].n", [2]),
        ('.items[?(@.k == "b")].n', [2]),
        ('.items[?(@.k!="b")].n', [1, 3.5]),
        (".items[?(@.on==true)].k", ["b"]),
        (".items[?(@.k)].k", ["a", "b", "c"]),
        ('.items[?(@.k=="(x)")].k', []),
        (".list[?(@>2)]", [3, 4]),
        (".list[?(@>=2)]", [2, 3, 4]),
        (".list[?(@<2)]", [1]),
        (".list[?(@<=-2)]", []),
    ],
)
def test_a_path_leads_to_what_it_names(path: str, found: list[Any]) -> None:
    assert compile_path(path).find(DOCUMENT) == found


@pytest.mark.parametrize(
    "path",
    [
        ".list[9]",
        ".list[1:9]",
        ".list[3:1]",
        ".list[::0]",
        ".name[0]",
        ".deep[?(@.x==1)]",
        '.list[?(@=="1")]',
        ".items[?(@.n>2)].k",
        ".items[?(@..k==1)]",
    ],
)
def test_what_cannot_be_is_an_error_and_not_nothing(path: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_path(path).find(DOCUMENT)


@pytest.mark.parametrize(
    "path",
    [
        ".a[",
        ".a[?(@.b",
        ".a[?(@.b==1)",
        ".a[x]",
        ".a[]",
        ".a[?(@.b=~1)]",
        "{range .a}",
        "..[0]....a",
        ".a 'b",
        "+",
    ],
)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_path(path)


@given(st.text(alphabet=".[]?()@*:,'\"ab01-=<>!\\ $", max_size=24))
def test_no_path_does_anything_but_lead_or_be_refused(path: str) -> None:
    try:
        found = compile_path(path).find(DOCUMENT)
    except ValueError:
        return
    assert isinstance(found, list)
