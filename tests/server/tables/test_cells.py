"""Human-readable durations at the limits between units."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.server.tables.cells import age, human_duration

MINUTE, HOUR, DAY = 60, 3600, 86400
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.5, "0s"),
        (-1, "0s"),
        (-0.5, "0s"),
        (0, "0s"),
        (0.999, "0s"),
        (119.9, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 5, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + MINUTE, "3h1m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR + MINUTE, "8h"),
        (48 * HOUR - 1, "47h"),
        (48 * HOUR, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY + HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR + DAY, "8y"),
    ],
)
def test_a_duration_has_two_or_three_figures(seconds: float, text: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == text


def test_an_age_is_told_from_an_instant_and_unknown_without_one() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert age(now - timedelta(hours=5), now) == "5h"
    assert age(None, now) == "<unknown>"


@given(st.integers(min_value=0, max_value=20 * YEAR))
def test_no_duration_is_told_as_longer_than_it_is(seconds: int) -> None:
    units = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "y": YEAR}
    total, number = 0, ""
    for sign in human_duration(timedelta(seconds=seconds)):
        if sign.isdigit():
            number += sign
        else:
            total, number = total + int(number) * units[sign], ""
    assert total <= seconds
    assert total >= seconds * 8 // 10 - 1
