"""Patterns of schemas and of CEL: compiled or refused, matched in linear time, and as Python matches the common syntax."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from steersman.api.cel.literals import is_pattern
from steersman.api.go_regexp import InvalidPattern, compile_pattern
from tests.fuzz.target import Target

_COMMON = re.compile(r"(?:[ab]|\((?:\?:)?|\)|\||[*+?](?![*+?])|\.|\^|\$|\[\^?[ab]+\])*")
"""Syntax that means the same in Go and in Python, for texts of one line."""


def check(data: bytes) -> None:
    """The first line is a pattern, the second a text."""
    pattern, _, text = data.decode("utf-8", "replace").partition("\n")
    try:
        compiled = compile_pattern(pattern)
    except InvalidPattern:
        assert not is_pattern(pattern)
        return
    assert is_pattern(pattern)
    found = compiled.search(text) is not None
    if len(pattern) <= 12 and len(text) <= 20 and "\n" not in text and _COMMON.fullmatch(pattern):
        try:
            expected = re.search(pattern, text) is not None
        except re.error:
            # Go allows repetitions of nothing.
            return
        assert found is expected


_atoms = st.sampled_from(("a", "b", ".", "[ab]", "[^a]", "^", "$"))
_patterns = st.recursive(
    _atoms,
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("({}|{})".format, inner, inner),
        st.builds("({}){}".format, inner, st.sampled_from("*+?")),
        st.builds("({}){{{}}}".format, inner, st.sampled_from(("2", "1,", "1001", "1000", "2,1"))),
    ),
    max_leaves=5,
)

TARGET = Target(
    name="regexp",
    check=check,
    seeds=(
        b"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)+$\naaaaaaaaaaaaaaaaaaaaaaaaaa!",
        b"(a*)*b\naaaaaaaaaaaaaaaaaaaaaaaa",
        b"\\Qa.b\\E\\pL[[:alpha:]](?i:x)(?P<n>y)\\C\nab",
        b"((a{100}){100}){100}\naa",
    ),
    strategy=st.builds("{}\n{}".format, _patterns, st.text(st.sampled_from("ab"), max_size=8)).map(str.encode),
    dictionary=(
        b"(?:", b"(?P<a>", b"(?<a>", b"(?i)", b"(?=", b"[[:alpha:]]", b"\\p{Greek}", b"\\pN", b"\\Q", b"\\E", b"\\C", b"\\z", b"{1000}",
        b"{2,}", b"|", b"[^]]", b"\\x{10FFFF}", b"\\1", b"*?", b"\n",
    ),
)  # fmt: skip
