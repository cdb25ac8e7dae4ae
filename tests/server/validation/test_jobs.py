"""Validation of cron schedules and time zones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.server.validation.jobs import cron_schedule_error, time_zone_error

LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


@st.composite
def parts(draw: st.DrawFn, low: int, high: int) -> str:
    """One field: stars, numbers, ranges, steps, and lists of them."""

    def one() -> str:
        start = draw(st.integers(low, high))
        span = draw(st.sampled_from(("*", "?", str(start), f"{start}-{draw(st.integers(start, high))}")))
        step = draw(st.integers(0, 9))
        return f"{span}/{step}" if step else span

    return ",".join(one() for _ in range(draw(st.integers(1, 3))))


schedules = st.tuples(*(parts(*limits) for limits in LIMITS)).map(" ".join)


@given(schedules)
def test_every_schedule_that_is_well_formed_can_be_read(schedule: str) -> None:
    assert cron_schedule_error(schedule) is None
    assert cron_schedule_error(f"TZ=UTC {schedule}") is None


@given(schedules, st.integers(0, 4), st.integers(60, 99))
def test_a_number_beyond_its_field_is_refused(schedule: str, index: int, number: int) -> None:
    fields = schedule.split()
    fields[index] = str(number)
    _, high = LIMITS[index]
    assert (
        cron_schedule_error(" ".join(fields)) == f"end of range ({number}) above maximum ({high}): {number}"
    )


@pytest.mark.parametrize(
    ("schedule", "wrong"),
    [
        ("@hourly", None),
        ("@every 1h30m", None),
        ("* * * jan-MAR mon,Fri", None),
        ("5/15 * * * *", None),
        ("", "empty spec string"),
        ("@fortnightly", "unrecognized descriptor: @fortnightly"),
        ("@every now", 'failed to parse duration @every now: time: invalid duration "now"'),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("9-1 * * * *", "beginning of range (9) beyond end of range (1): 9-1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("TZ=Moon * * * * *", "provided bad location Moon: unknown time zone Moon"),
    ],
)
def test_what_cannot_be_read_is_said_to_be_so(schedule: str, wrong: str | None) -> None:
    assert cron_schedule_error(schedule) == wrong


@pytest.mark.parametrize(
    ("zone", "known"),
    [
        ("UTC", True),
        ("Europe/Berlin", True),
        ("America/Argentina/Buenos_Aires", True),
        ("Etc/GMT+1", True),
        ("Local", True),
        ("Mars/Olympus", False),
        ("Europe/Berlin ", False),
        ("Europe", False),
        ("", False),
    ],
)
def test_a_zone_is_one_of_those_that_are_known(zone: str, known: bool) -> None:
    assert time_zone_error(zone) == (None if known else f"unknown time zone {zone}")


@pytest.mark.parametrize("zone", ["../etc/passwd", "/etc/localtime", "Europe/../UTC"])
def test_a_zone_is_no_path(zone: str) -> None:
    assert time_zone_error(zone) == "time: invalid location name"
