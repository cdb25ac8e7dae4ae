"""Numbers and percentages."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.intstr import scaled


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (2, 10, 2, 2),
        (0, 10, 0, 0),
        ("25%", 10, 3, 2),
        ("100%", 7, 7, 7),
        ("0%", 7, 0, 0),
        ("150%", 3, 5, 4),
        ("-5%", 10, 0, -1),
    ],
)
def test_a_percentage_is_a_share_and_a_number_itself(
    value: int | str, total: int, up: int, down: int
) -> None:
    assert (scaled(value, total, round_up=True), scaled(value, total, round_up=False)) == (up, down)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "nil value for IntOrString"),
        ("5", "string is not a percentage"),
        ("", "string is not a percentage"),
        ("x%", 'invalid value "x%"'),
        ("%", 'invalid value "%"'),
        ("1.5%", 'invalid value "1.5%"'),
        ("\u0665%", "not a whole number"),
    ],
)
def test_anything_else_is_a_value_error(value: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scaled(value, 10, round_up=True)


@given(st.integers(0, 1000), st.integers(0, 10**9))
def test_shares_are_rounded_exactly(percent: int, total: int) -> None:
    share = Fraction(percent * total, 100)
    assert scaled(f"{percent}%", total, round_up=True) == math.ceil(share)
    assert scaled(f"{percent}%", total, round_up=False) == math.floor(share)
