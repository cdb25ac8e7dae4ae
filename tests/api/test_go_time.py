"""Times in RFC 3339 as Go reads them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.go_time import parse_rfc3339


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05+02:00", datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05-00:30", datetime(2026, 1, 2, 3, 34, 5, tzinfo=UTC)),
        ("2026-01-02T3:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.5Z", datetime(2026, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC)),
        ("2026-01-02T03:04:05,25Z", datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=UTC)),
        ("2026-01-02T03:04:05.1234567899Z", datetime(2026, 1, 2, 3, 4, 5, 123_456, tzinfo=UTC)),
        ("2026-01-02T03:04:05+24:00", datetime(2026, 1, 1, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05+00:60", datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)),
        ("9999-12-31T23:59:59-14:00", datetime.max.replace(tzinfo=UTC)),
        ("0001-01-01T00:00:00+14:00", datetime.min.replace(tzinfo=UTC)),
        ("0000-02-29T00:00:00Z", datetime.min.replace(tzinfo=UTC)),
    ],
)
def test_a_time_is_read_as_go_reads_it(text: str, time: datetime) -> None:
    assert parse_rfc3339(text) == time


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02 03:04:05Z",
        "2026-01-02t03:04:05z",
        "2026-1-02T03:04:05Z",
        "2026-01-02T03:4:05Z",
        "2026-13-02T03:04:05Z",
        "2026-02-30T03:04:05Z",
        "2025-02-29T03:04:05Z",
        "0000-02-30T03:04:05Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T03:60:05Z",
        "2026-01-02T03:04:60Z",
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05+0200",
        "2026-01-02T03:04:05+25:00",
        "2026-01-02T03:04:05+00:61",
        "2026-01-02T03:04:05Z ",
        "٢٠٢٦-01-02T03:04:05Z",
    ],
)
def test_what_go_does_not_read_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="not a time in RFC 3339"):
        parse_rfc3339(text)


@given(st.datetimes(), st.integers(-14 * 60, 14 * 60))
def test_a_time_in_any_zone_is_read_back(time: datetime, minutes: int) -> None:
    sign, (hours, rest) = ("-" if minutes < 0 else "+"), divmod(abs(minutes), 60)
    text = f"{time.isoformat()}{sign}{hours:02}:{rest:02}"
    if 1 < time.year < 9999:
        assert parse_rfc3339(text) == time.replace(tzinfo=UTC) - timedelta(minutes=minutes)
