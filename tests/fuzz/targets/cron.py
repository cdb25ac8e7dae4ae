"""Schedules of CronJobs: the next time is later, matches, and no earlier minute does, in any time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from steersman.api.cron import ConstantDelaySchedule, Schedule, ScheduleSyntaxError, parse
from tests.fuzz.target import Target

_SEARCHED = timedelta(days=2)
"""The time in which every minute is evaluated."""
_EPOCH = datetime(1975, 1, 1, tzinfo=UTC)
"""Since then all time zones differ from UTC by whole minutes."""
_RANGE = 60 * 365 * 24 * 3600


def check(data: bytes) -> None:
    """Lines: a schedule, the name of a time zone, seconds since 1975."""
    text, zone, seconds = [*data.decode("utf-8", "replace").split("\n"), "", ""][:3]
    try:
        schedule = parse(text, zone)
    except (ScheduleSyntaxError, LookupError):
        return
    after = _EPOCH + timedelta(seconds=int(seconds[:15]) % _RANGE if seconds[:15].isdecimal() else 0)
    at = schedule.next(after)
    if isinstance(schedule, ConstantDelaySchedule):
        assert at is not None
        assert at > after.replace(microsecond=0)
        return
    limit = after + _SEARCHED
    expected = _first_match(schedule, after, limit)
    if at is None or at > limit:
        assert expected is None, f"{expected} matches, and the next time is {at}"
    else:
        assert at == expected
    if at is not None:
        assert at > after
        assert _matches(schedule, at)
        following = schedule.next(at)
        assert following is None or following > at


def _first_match(schedule: Schedule, after: datetime, limit: datetime) -> datetime | None:
    minute = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
    while minute <= limit:
        if _matches(schedule, minute):
            return minute
        minute += timedelta(minutes=1)
    return None


def _matches(schedule: Schedule, at: datetime) -> bool:
    local = at.astimezone(schedule.zone)
    if local.minute not in schedule.minute.values or local.hour not in schedule.hour.values:
        return False
    day, weekday = local.day in schedule.day.values, local.isoweekday() % 7 in schedule.weekday.values
    is_day = day and weekday if schedule.day.any or schedule.weekday.any else day or weekday
    return is_day and local.month in schedule.month.values and local.second == 0


_numbers = st.integers(0, 60).map(str)
_parts = st.one_of(
    st.just("*"),
    st.just("?"),
    _numbers,
    st.builds("{}-{}".format, _numbers, _numbers),
    st.builds("{}/{}".format, st.just("*") | _numbers, _numbers),
    st.sampled_from(("jan", "SUN", "mon-fri", "feb", "")),
)
_fields = st.lists(_parts, min_size=1, max_size=2).map(",".join)
_schedules = st.one_of(
    st.lists(st.just("*") | _fields, min_size=5, max_size=5).map(" ".join),
    st.sampled_from(
        ("@daily", "@every 90s", "@every -1h", "30 2 * * *", "0 0 30 2 *", "0 0 29 2 *", "*/7 1 * * *", "@x")
    ),
)
_zones = st.sampled_from(
    (
        "", "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Asia/Kathmandu", "Pacific/Apia",
        "America/Sao_Paulo", "Africa/Casablanca", "Pacific/Chatham", "Antarctica/Troll", "../etc/passwd", "America",
    )
)  # fmt: skip
# Most of the clock changes there are: each last and first Sunday of some months.
_moments = st.integers(0, _RANGE) | st.sampled_from(
    tuple(int((datetime(year, month, day, tzinfo=UTC) - _EPOCH).total_seconds()) for year in (1990, 2011, 2024)
    for month in (3, 4, 10, 11, 12) for day in (1, 7, 14, 25, 28, 30))
)  # fmt: skip

TARGET = Target(
    name="cron",
    check=check,
    seeds=(
        b"*/15 0 1,15 * 1-5\nEurope/Berlin\n1600000000",
        b"0 0 30 2 *\nUTC\n0",
        b"TZ=America/New_York 30 2 * 3 sun\n\n1552000000",
        b"@every 1h30m\n\n5",
        b"@hourly\nAsia/Kathmandu\n77",
        b"0 0 29 2 1\nPacific/Apia\n1130000000",
    ),
    strategy=st.builds("{}\n{}\n{}".format, _schedules, _zones, _moments).map(str.encode),
    dictionary=(
        b"*/",
        b"? ",
        b" * ",
        b"-",
        b",",
        b"/",
        b"@every ",
        b"@yearly",
        b"TZ=",
        b"CRON_TZ=",
        b"Europe/Berlin",
        b"59",
        b"jan",
        b"\n",
    ),
    max_bytes=256,
)
