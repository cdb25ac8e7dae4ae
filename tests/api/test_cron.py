"""Schedules: which times they mean, in which zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.cron import Schedule, ScheduleSyntaxError, parse, time_zone


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "following"),
    [
        # every few minutes
        ("0/15 * * * *", "2012-07-09 14:45:00", "2012-07-09 15:00:00"),
        ("0/15 * * * *", "2012-07-09 14:59:59", "2012-07-09 15:00:00"),
        ("20-35/15 * * * *", "2012-07-09 15:45:00", "2012-07-09 16:20:00"),
        # around hours, days, months and years
        ("*/15 * * * *", "2012-07-09 23:46:00", "2012-07-10 00:00:00"),
        ("20-35/15 1/2 * * *", "2012-07-09 23:45:00", "2012-07-10 01:20:00"),
        ("20-35/15 1/2 */2 * *", "2012-07-09 23:45:00", "2012-07-11 01:20:00"),
        ("0 0 9 Apr-Oct ?", "2012-07-09 23:35:00", "2012-08-09 00:00:00"),
        ("0 0 */5 Apr,Aug,Oct Mon", "2012-07-09 23:35:00", "2012-08-01 00:00:00"),
        ("0 0 */5 Oct Mon", "2012-07-09 23:35:00", "2012-10-01 00:00:00"),
        ("0 0 * Feb Mon", "2012-07-09 23:35:00", "2013-02-04 00:00:00"),
        ("0 0 * Feb Mon/2", "2012-07-09 23:35:00", "2013-02-01 00:00:00"),
        # leap years, and the day of either sort
        ("0 0 29 Feb ?", "2012-07-09 23:35:00", "2016-02-29 00:00:00"),
        ("0 0 1 * 1", "2026-01-02 00:00:00", "2026-01-05 00:00:00"),
        ("0 0 1,15 * Sun", "2012-07-15 00:00:00", "2012-07-22 00:00:00"),
        # descriptors
        ("@hourly", "2026-01-01 00:00:01", "2026-01-01 01:00:00"),
        ("@daily", "2026-01-01 00:00:00", "2026-01-02 00:00:00"),
        ("@midnight", "2026-01-01 12:00:00", "2026-01-02 00:00:00"),
        ("@weekly", "2026-01-01 00:00:00", "2026-01-04 00:00:00"),
        ("@monthly", "2026-01-01 00:00:00", "2026-02-01 00:00:00"),
        ("@yearly", "2026-01-01 00:00:00", "2027-01-01 00:00:00"),
        ("@every 1h30m", "2026-01-01 00:00:10", "2026-01-01 01:30:10"),
        ("@every 1ms", "2026-01-01 00:00:00", "2026-01-01 00:00:01"),
    ],
)
def test_the_next_time(schedule: str, after: str, following: str) -> None:
    assert parse(schedule).next(at(after)) == at(following)


@pytest.mark.parametrize(
    ("schedule", "after", "following"),
    [
        # New York, in March 2012: clocks go from 2 to 3 on the 11th
        ("30 2 11 Mar ?", "2012-03-11 05:00:00", "2013-03-11 06:30:00"),
        ("0 * * * ?", "2012-03-11 06:00:00", "2012-03-11 07:00:00"),
        ("0 1 * * ?", "2012-03-11 05:00:00", "2012-03-11 06:00:00"),
        ("0 2 * * ?", "2012-03-11 05:00:00", "2012-03-12 06:00:00"),
        # and in November from 2 back to 1 on the 4th: what comes twice counts twice
        ("30 1 4 Nov ?", "2012-11-04 04:00:00", "2012-11-04 05:30:00"),
        ("30 1 4 Nov ?", "2012-11-04 05:30:00", "2012-11-04 06:30:00"),
        ("0 * * * ?", "2012-11-04 05:00:00", "2012-11-04 06:00:00"),
        ("0 2 * * ?", "2012-11-04 05:00:00", "2012-11-04 07:00:00"),
    ],
)
def test_what_clocks_do_in_spring_and_autumn(schedule: str, after: str, following: str) -> None:
    assert parse(schedule, "America/New_York").next(at(after)) == at(following)


def test_a_day_that_does_not_begin_at_midnight_begins_when_it_does() -> None:
    # In São Paulo clocks went from midnight to 1 on the 4th of November 2018.
    assert parse("0 9 4 Nov ?", "America/Sao_Paulo").next(at("2018-10-29 05:00:00")) == at(
        "2018-11-04 11:00:00"
    )
    assert parse("0 0 * * *", "America/Sao_Paulo").next(at("2018-11-03 12:00:00")) == at(
        "2018-11-05 02:00:00"
    )


@pytest.mark.parametrize("schedule", ["0 0 31 2 *", "0 0 30 Feb ?", "0 0 31 Apr,Jun *"])
def test_a_time_that_never_comes(schedule: str) -> None:
    assert parse(schedule).next(at("2026-01-01 00:00:00")) is None


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* 5-3 * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        (
            "9999999999999999999 * * * *",
            'failed to parse int from 9999999999999999999: strconv.Atoi: parsing "9999999999999999999": '
            "value out of range",
        ),
        ("\x7f * * * *", 'failed to parse int from \x7f: strconv.Atoi: parsing "\\x7f": invalid syntax'),
        ("TZ=../x * * * * *", "provided bad location ../x: time: invalid location name"),
        ("@often", "unrecognized descriptor: @often"),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
        (
            "TZ=Nowhere/At_all * * * * *",
            "provided bad location Nowhere/At_all: unknown time zone Nowhere/At_all",
        ),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
    ],
)
def test_what_is_not_a_schedule(schedule: str, why: str) -> None:
    with pytest.raises(ScheduleSyntaxError) as caught:
        parse(schedule)
    assert str(caught.value) == why


@pytest.mark.parametrize("name", ["../etc/passwd", "Europe/../Paris", "", "UTC"])
def test_the_name_of_a_zone_is_no_path(name: str) -> None:
    if ".." in name:
        with pytest.raises(LookupError):
            time_zone(name)
    else:
        assert time_zone(name) is UTC


@given(
    schedule=st.sampled_from(["*/7 3 * * *", "0 0 1 * 1", "30 1 * * *", "0 2 29 2 *", "15 */6 10-20 * 1-5"]),
    zone=st.sampled_from(["", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"]),
    after=st.integers(0, 8_000_000).map(lambda n: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=n)),
)
def test_the_next_time_is_later_fits_and_leaves_none_out(schedule: str, zone: str, after: datetime) -> None:
    parsed = parse(schedule, zone)
    assert isinstance(parsed, Schedule)
    following = parsed.next(after)
    assert following is not None
    assert following > after
    local = following.astimezone(parsed.zone)
    assert local.minute in parsed.minute.values
    assert local.hour in parsed.hour.values
    # Nothing that fits lies in between: looking again from just before finds the same.
    assert parsed.next(following - timedelta(seconds=1)) == following


@given(
    schedule=st.sampled_from(
        ["30 2 * * *", "0 3 * 3,10,11 *", "15,45 */5 * * 0", "0 23 31 * *", "5 0 * * *"]
    ),
    zone=st.sampled_from(
        ["", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo"]
    ),
    after=st.integers(0, 8_000_000).map(lambda n: datetime(2017, 1, 1, tzinfo=UTC) + timedelta(minutes=n)),
)
def test_hours_that_are_skipped_at_once_are_those_that_would_be_one_by_one(
    schedule: str, zone: str, after: datetime
) -> None:
    """Upstream goes from hour to hour, which tells what to do where clocks change."""
    parsed = parse(schedule, zone)
    assert isinstance(parsed, Schedule)

    class Slowly(Schedule, frozen=True):
        def _hour(self, at: datetime, local: datetime) -> datetime:
            return at + timedelta(hours=1, minutes=-local.minute, seconds=-local.second)

    slowly = Slowly(parsed.minute, parsed.hour, parsed.day, parsed.month, parsed.weekday, parsed.zone)
    assert parsed.next(after) == slowly.next(after)


@pytest.mark.parametrize("text", [", * * * *", "* , * * *", "* * * , *"])
def test_a_field_of_commas_matches_nothing_and_no_hour_is_tried(text: str) -> None:
    class CountingZone(tzinfo):
        asked = 0

        def utcoffset(self, at: datetime | None) -> timedelta:
            self.asked += 1
            return timedelta()

        def dst(self, at: datetime | None) -> timedelta:
            return timedelta()

        def tzname(self, at: datetime | None) -> str:
            return "counting"

    schedule = parse(text)
    assert isinstance(schedule, Schedule)
    zone = CountingZone()
    assert replace(schedule, zone=zone).next(datetime(2026, 1, 1, tzinfo=UTC)) is None
    assert zone.asked < 10
