"""Queries, with the answers of Go's url.ParseQuery."""

from __future__ import annotations

import pytest

from steersman.api.cel.runtime.network import parse_request_uri
from steersman.api.go_query import MAX_PAIRS, parse_query

ROWS: dict[str, dict[str, list[str]]] = {
    "": {},
    "a=1": {"a": ["1"]},
    "a=1&b=2": {"a": ["1"], "b": ["2"]},
    "a=1&a=2&a=banana": {"a": ["1", "2", "banana"]},
    "ascii=%3Ckey%3A+0x90%3E": {"ascii": ["<key: 0x90>"]},
    "a=1;b=2": {},
    "a;b=1": {},
    "a=%3B": {"a": [";"]},
    "a%3Bb=1": {"a;b": ["1"]},
    "a=1&a=2;a=3": {"a": ["1"]},
    "a=1;": {},
    ";": {},
    "a=1&;": {"a": ["1"]},
    "a=1&a=2;&c=3": {"a": ["1"], "c": ["3"]},
    "a=%": {},
    "a=%4": {},
    "a=%zz": {},
    "%zz=a": {},
    "a=%u0041&b=1": {"b": ["1"]},
    "a=%&a=1": {"a": ["1"]},
    "a": {"a": [""]},
    "a=": {"a": [""]},
    "=a": {"": ["a"]},
    "=": {"": [""]},
    "&&a=1&": {"a": ["1"]},
    "a=b=c": {"a": ["b=c"]},
    "a+b=c+d": {"a b": ["c d"]},
    "a=%2B": {"a": ["+"]},
    "a=1?b=2": {"a": ["1?b=2"]},
    "%61=1": {"a": ["1"]},
    "a=%C3%BC": {"a": ["ü"]},
    "&".join(["a"] * MAX_PAIRS): {"a": [""] * MAX_PAIRS},
    "&".join(["a"] * (MAX_PAIRS + 1)): {},
}


@pytest.mark.parametrize(("query", "parsed"), ROWS.items(), ids=[text[:32] for text in ROWS])
def test_a_query_is_parsed_as_go_parses_it(query: str, parsed: dict[str, list[str]]) -> None:
    assert parse_query(query) == parsed


def test_a_url_of_an_expression_has_the_same_query() -> None:
    assert parse_query(parse_request_uri("https://a/b?c=1;&d=2").query) == {"d": ["2"]}
