"""How mistakes are shown: below the line they are in."""

from __future__ import annotations

import pytest

from steersman.api.cel.errors import NOWHERE, CelError, Problem


@pytest.mark.parametrize(
    ("source", "at", "shown"),
    [
        ("object.x > 1", 6, "ERROR: <input>:1:7: wrong\n | object.x > 1\n | ......^"),
        ("a\n\tb + c", 3, "ERROR: <input>:2:2: wrong\n |  b + c\n | .^"),
        ("a +", 3, "ERROR: <input>:1:4: wrong\n | a +\n | ...^"),
        ("'é' + 1", 4, "ERROR: <input>:1:5: wrong\n | 'é' + 1\n | .．..^"),
        ("a + é", 4, "ERROR: <input>:1:5: wrong\n | a + é\n | ....＾"),
        ("", 0, "ERROR: <input>:1:1: wrong"),
        ("a", NOWHERE, "ERROR: <input>:-1:0: wrong"),
        ("a" * 20_000, 1, "ERROR: <input>:1:2: wrong"),
    ],
)
def test_a_mistake_is_shown_below_its_line(source: str, at: int, shown: str) -> None:
    assert str(CelError(source, [Problem(at, "wrong")])) == shown


def test_mistakes_are_shown_in_the_order_of_the_text() -> None:
    text = str(CelError("a\nb", [Problem(2, "second"), Problem(0, "first")]))
    assert text == "ERROR: <input>:1:1: first\n | a\n | ^\nERROR: <input>:2:1: second\n | b\n | ^"


def test_more_than_a_hundred_mistakes_are_counted() -> None:
    lines = str(CelError("a", [Problem(0, "x")] * 103)).splitlines()
    assert len(lines) == 301
    assert lines[-1] == "3 more errors were truncated"
