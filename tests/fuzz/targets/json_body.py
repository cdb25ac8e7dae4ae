"""JSON bodies: the document is what Python's ``json`` reads, or the body is refused for a reason.

Python's ``json`` accepts what JSON does not have (NaN, Infinity) and what Go and this server refuse or replace: numbers beyond
float64, nesting without end, halves of surrogate pairs, invalid UTF-8.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
from hypothesis import strategies as st

from steersman.api.go_yaml import MalformedDocument
from steersman.api.nesting import MAX_DEPTH
from steersman.server.codec.field_validation import strict_errors
from steersman.server.codec.json_yaml import NumberOutOfRange, decode_json
from tests.fuzz.target import Target


def check(data: bytes) -> None:
    oracle: Any = None
    accepted = False
    beyond: list[str] = []
    """Numbers that no float64 can hold, also those of a key that occurs again."""

    def number(literal: str) -> int | float:
        value = float(literal)
        if math.isinf(value):
            beyond.append(literal)
            return 0
        return int(literal) if literal.lstrip("-").isdigit() else value

    try:
        oracle = json.loads(
            data.decode("utf-8", "replace"), parse_int=number, parse_float=number, parse_constant=no_constant
        )
        accepted = True
    except (ValueError, RecursionError):
        pass
    try:
        document = decode_json(data)
    except NumberOutOfRange:
        assert accepted
        assert beyond
        return
    except MalformedDocument as error:
        assert len(str(error)) < 200
        assert not accepted or depth(oracle) > MAX_DEPTH, f"refused, but json accepts it: {error}"
        return
    assert accepted, "accepted, but json refuses it"
    assert depth(document) <= MAX_DEPTH
    assert same(document, oracle), "json reads another document"
    # What was accepted can be stored and sent.
    assert same(decode_json(msgspec.json.encode(document)), oracle)
    assert bool(strict_errors(data, document)) == has_duplicates(data)


def has_duplicates(data: bytes) -> bool:
    found = False

    def pairs(items: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len({replaced(key) for key, _ in items}) < len(items)

    json.loads(data.decode("utf-8", "replace"), object_pairs_hook=pairs, parse_int=float)
    return found


def no_constant(literal: str) -> None:
    raise ValueError(literal)


def depth(document: Any) -> int:
    if isinstance(document, dict):
        return 1 + max(map(depth, document.values()), default=0)
    if isinstance(document, list):
        return 1 + max(map(depth, document), default=0)
    return 0


def same(ours: Any, oracle: Any) -> bool:
    """Whether two documents are equal, with halves of surrogate pairs replaced as Go replaces them."""
    if isinstance(oracle, dict):
        # Two keys may become one by the replacement: then the last one counts, as for any duplicate.
        theirs = {replaced(key): value for key, value in oracle.items()}
        return (
            isinstance(ours, dict)
            and ours.keys() == theirs.keys()
            and all(same(ours[key], value) for key, value in theirs.items())
        )
    if isinstance(oracle, list):
        return isinstance(ours, list) and len(ours) == len(oracle) and all(map(same, ours, oracle))
    if isinstance(oracle, str):
        return isinstance(ours, str) and ours == replaced(oracle)
    if isinstance(oracle, bool) or oracle is None:
        return ours is oracle
    return isinstance(ours, int | float) and not isinstance(ours, bool) and ours == oracle


def replaced(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


SCALARS = st.sampled_from(
    [
        b"0", b"-0", b"1", b"-1", b"1.0", b"1e3", b"1E+400", b"-1e-400", b"9223372036854775808", b"18446744073709551616", b"01", b"1.",
        b".5", b"-", b"1" * 310, b"NaN", b"-Infinity", b"true", b"null", b"tru", b'""', b'"a"', b'"\\ud800"', b'"\\udc00\\ud800"',
        b'"\\ud83d\\ude00"', b'"\\u00"', b'"\\x"', b'"\xff"', b'"\xed\xa0\x80"', b'"\x00"', b'"\\u0000"', b"'a'", b'"', b"",
    ]
)  # fmt: skip
BLANK = st.sampled_from([b"", b"", b" ", b"\n\t\r", b"\x0c", b"\xc2\xa0", b"\xef\xbb\xbf", b"//\n"])


def containers(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    members = st.tuples(BLANK, st.one_of(SCALARS, st.just(b'"a"')), BLANK, inner).map(
        lambda parts: b"%b%b%b:%b" % parts
    )
    return st.one_of(
        st.lists(inner, max_size=3).map(lambda items: b"[" + b",".join(items) + b"]"),
        st.lists(members, max_size=3).map(lambda items: b"{" + b",".join(items) + b"}"),
        st.tuples(inner, st.integers(1, 300)).map(lambda pair: b"[" * pair[1] + pair[0] + b"]" * pair[1]),
    )


TARGET = Target(
    name="json_body",
    check=check,
    seeds=(
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"b":"c"}},"data":{"d":"e\\n\\u00e9"}}',
        b'[1,-2,3.5e-3,true,false,null,"",{},[]]',
        b'{"a":1,"a":{"b":[9007199254740993,1e308]}}',
        b"[" * 120 + b"]" * 120,
    ),
    strategy=st.recursive(SCALARS, containers, max_leaves=8),
    dictionary=(
        b"{", b"}", b"[", b"]", b":", b",", b'"', b"\\", b"\\u", b"\\ud800", b"\\udc00", b"null", b"true", b"NaN", b"Infinity", b"e999", b"-", b".",
        b'{"a":', b'"a":1,', b"[[[[[[[[[[[[[[[[", b"9" * 310, b"\xef\xbb\xbf", b"\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x00", b"/*",
    ),
)  # fmt: skip
