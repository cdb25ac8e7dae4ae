"""Quotes are Go's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.go_quote import printable, quote


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ("plain", '"plain"'),
        ('a "word"', '"a \\"word\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("two\nlines\tand\rmore", '"two\\nlines\\tand\\rmore"'),
        ("\x00\x1b[31m\x7f", '"\\x00\\x1b[31m\\x7f"'),
        ("café ☃", '"café ☃"'),
        ("\u200b\u2028", '"\\u200b\\u2028"'),
        ("\U000e0001", '"\\U000e0001"'),
        ("\udcff", '"\\xff"'),
    ],
)
def test_a_text_is_quoted_as_go_does_it(text: str, quoted: str) -> None:
    assert quote(text) == quoted


@given(st.text())
def test_nothing_in_a_text_can_end_its_line_or_its_quotes(text: str) -> None:
    inner = quote(text)[1:-1]
    assert inner.isprintable()
    assert '"' not in inner.replace("\\\\", "").replace('\\"', "")
    assert printable(text).isprintable()
