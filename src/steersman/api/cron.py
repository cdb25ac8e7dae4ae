"""Parses the schedules of CronJobs and computes their next times, by the rules of robfig/cron.

A schedule has five fields (lists, ranges, steps, names of months and days, ``?`` for ``*``) or is a descriptor such
as ``@daily``, in a time zone. If both day of month and day of week are restricted, either may match. Times that a
daylight saving change skips are skipped; times that it repeats occur twice.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

import msgspec

from steersman.api.bounded_cache import MAX_SHORT, short_cache
from steersman.api.go_duration import parse_duration
from steersman.api.go_quote import quote

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
YEARS = 5
"""Years to search for the next time; beyond that there is none."""

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_ZONE_PART = re.compile(r"[A-Za-z._0-9+][A-Za-z.\-_0-9+]{0,13}")


class ScheduleSyntaxError(ValueError):
    """A schedule that cannot be parsed, with upstream's error message."""


class Field(msgspec.Struct, frozen=True):
    """The values that match in one field of a schedule."""

    values: frozenset[int]
    any: bool = False
    """The field is unrestricted (``*``)."""


class ConstantDelaySchedule(msgspec.Struct, frozen=True):
    """A schedule with a constant interval (``@every``)."""

    distance: timedelta

    def next(self, after: datetime) -> datetime | None:
        """Return the next time after ``after``."""
        return after.replace(microsecond=0) + self.distance


class Schedule(msgspec.Struct, frozen=True):
    """A schedule of five fields, in a time zone."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        """Return the next time after ``after`` in UTC, or None."""
        if not (self.minute.values and self.hour.values and self.month.values):
            # A field of commas alone is valid and matches nothing: no need to try every hour of five years.
            return None
        at = after.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
        last = at.astimezone(self.zone).year + YEARS
        while True:
            local = at.astimezone(self.zone)
            if local.year > last:
                return None
            if local.month not in self.month.values:
                year, month = divmod(local.year * 12 + local.month, 12)
                at = self._midnight(year, month + 1, 1)
            elif not self._matches_day(local):
                following = local.date() + timedelta(days=1)
                at = self._midnight(following.year, following.month, following.day)
            elif local.hour not in self.hour.values:
                at = self._hour(at, local)
            elif local.second or local.minute not in self.minute.values:
                # Go to the next matching minute, or to the next hour, in one step.
                later = [minute for minute in self.minute.values if minute > local.minute]
                at += timedelta(minutes=min(later, default=60) - local.minute, seconds=-local.second)
            else:
                return at

    def _hour(self, at: datetime, local: datetime) -> datetime:
        """Return the start of the next matching hour, or of the next day. At a clock change go hour by hour."""
        later = [hour for hour in self.hour.values if hour > local.hour]
        begin = at - timedelta(minutes=local.minute, seconds=local.second)
        candidate = begin + timedelta(hours=min(later, default=24) - local.hour)
        same_offset = candidate.astimezone(self.zone).utcoffset() == local.utcoffset()
        return candidate if same_offset else begin + timedelta(hours=1)

    def _matches_day(self, local: datetime) -> bool:
        by_date = local.day in self.day.values
        by_weekday = local.isoweekday() % 7 in self.weekday.values
        if self.day.any or self.weekday.any:
            return by_date and by_weekday
        return by_date or by_weekday

    def _midnight(self, year: int, month: int, day: int) -> datetime:
        """Return the start of a day: after midnight if the clocks go forward at midnight."""
        return datetime(year, month, day, tzinfo=self.zone).astimezone(UTC)


def parse(text: str, zone: str = "") -> Schedule | ConstantDelaySchedule:
    """Parse a schedule. Raises `ScheduleSyntaxError`, or `LookupError` for an unknown time zone."""
    return (_parse if len(text) + len(zone) <= MAX_SHORT else _parse.__wrapped__)(text, zone)


@lru_cache(4096)
def _parse(text: str, zone: str) -> Schedule | ConstantDelaySchedule:
    where: tzinfo = time_zone(zone)
    if not text:
        raise ScheduleSyntaxError("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        name, _, text = text.partition("=")[2].partition(" ")
        try:
            where = time_zone(name)
        except LookupError as error:
            raise ScheduleSyntaxError(f"provided bad location {name}: {error}") from None
        text = text.strip()
    if text.startswith("@every "):
        return _every(text)
    if text.startswith("@"):
        try:
            text = _DESCRIPTORS[text]
        except KeyError:
            raise ScheduleSyntaxError(f"unrecognized descriptor: {text}") from None
    fields = text.split()
    if len(fields) != 5:
        raise ScheduleSyntaxError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minute, hour, day, month, weekday = fields
    return Schedule(
        minute=_field(minute, 0, 59),
        hour=_field(hour, 0, 23),
        day=_field(day, 1, 31),
        month=_field(month, 1, 12, MONTHS),
        weekday=_field(weekday, 0, 6, DAYS),
        zone=where,
    )


@short_cache(1024)
def time_zone(name: str) -> tzinfo:
    """Return a time zone by name. Raises `LookupError` with upstream's message."""
    if name in ("", "UTC", "Local"):
        return UTC
    if name[0] in "/\\" or ".." in re.split(r"[/\\]", name):
        raise LookupError("time: invalid location name")
    from zoneinfo import ZoneInfo

    try:
        if all(map(_is_zone_part, name.split("/"))):
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    raise LookupError(f"unknown time zone {name}")


def _is_zone_part(text: str) -> bool:
    """Report whether a text may be part of a zone's name, as opposed to the path of another file."""
    return _ZONE_PART.fullmatch(text) is not None and text not in (".", "..")


def _every(text: str) -> ConstantDelaySchedule:
    given = text.removeprefix("@every ")
    try:
        seconds = parse_duration(given)
    except ValueError as error:
        raise ScheduleSyntaxError(f"failed to parse duration {text}: {error}") from None
    return ConstantDelaySchedule(timedelta(seconds=max(1, int(seconds))))


def _field(text: str, least: int, most: int, names: tuple[str, ...] = ()) -> Field:
    values: set[int] = set()
    unrestricted = False
    for part in filter(None, text.split(",")):
        some, free = _range(part, least, most, names)
        values.update(some)
        unrestricted = unrestricted or free
    return Field(frozenset(values), unrestricted)


def _range(text: str, least: int, most: int, names: tuple[str, ...]) -> tuple[range, bool]:
    bounds, *steps = text.split("/")
    low, *high = bounds.split("-")
    free = low in ("*", "?")
    if free:
        start, end = least, most
    else:
        start = _number(low, names, least)
        if len(high) > 1:
            raise ScheduleSyntaxError(f"too many hyphens: {text}")
        end = _number(high[0], names, least) if high else start
    step = 1
    if len(steps) > 1:
        raise ScheduleSyntaxError(f"too many slashes: {text}")
    if steps:
        step = _number(steps[0])
        if not high:
            end = most
        free = free and step <= 1
    if start < least:
        raise ScheduleSyntaxError(f"beginning of range ({start}) below minimum ({least}): {text}")
    if end > most:
        raise ScheduleSyntaxError(f"end of range ({end}) above maximum ({most}): {text}")
    if start > end:
        raise ScheduleSyntaxError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ScheduleSyntaxError(f"step of range should be a positive number: {text}")
    return range(start, end + 1, step), free


def _number(text: str, names: tuple[str, ...] = (), least: int = 0) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + least
    match = re.fullmatch(r"([+-]?)0*([0-9]+)", text, re.ASCII)
    if match is None or len(match[2]) > 18:
        why = "invalid syntax" if match is None else "value out of range"
        raise ScheduleSyntaxError(
            f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: {why}"
        )
    number = int(match[1] + match[2])
    if number < 0:
        raise ScheduleSyntaxError(f"negative number ({number}) not allowed: {text}")
    return number
