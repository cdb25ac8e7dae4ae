"""Schedules as CronJobs write them: five fields, or ``@daily`` and its like, in a time zone.

By the rules of the library upstream uses: a list, range or step for each field, names for months and days,
``?`` for ``*``. Where both the day of the month and the day of the week are restricted, either will do. In
spring, times that do not exist are skipped; in autumn, times that come twice count twice.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

import msgspec

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
YEARS = 5
"""A time that does not come within so many years never does."""

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+|[-+]?0")
_ZONE_PART = re.compile(r"[A-Za-z._0-9+][A-Za-z.\-_0-9+]{0,13}")
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


class ScheduleSyntaxError(ValueError):
    """This is not a schedule. Says why in upstream's words."""


class Field(msgspec.Struct, frozen=True):
    """The values of a field that match."""

    values: frozenset[int]
    any: bool = False
    """Whether it is unrestricted."""


class ConstantDelaySchedule(msgspec.Struct, frozen=True):
    """At a constant distance."""

    distance: timedelta

    def next(self, after: datetime) -> datetime | None:
        return after.replace(microsecond=0) + self.distance


class Schedule(msgspec.Struct, frozen=True):
    """At certain times of certain days."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        """The first time after this one, in UTC; None where there is none."""
        at = after.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
        last = at.astimezone(self.zone).year + YEARS
        while True:
            local = at.astimezone(self.zone)
            if local.year > last:
                return None
            if local.month not in self.month.values:
                year, month = divmod(local.year * 12 + local.month, 12)
                at = self._midnight(year, month + 1, 1)
            elif not self._on(local):
                following = local.date() + timedelta(days=1)
                at = self._midnight(following.year, following.month, following.day)
            elif local.hour not in self.hour.values:
                at = self._hour(at, local)
            elif local.second or local.minute not in self.minute.values:
                # At once to the next minute that matches, or to the next hour: not minute by minute.
                later = [minute for minute in self.minute.values if minute > local.minute]
                at += timedelta(minutes=min(later, default=60) - local.minute, seconds=-local.second)
            else:
                return at

    def _hour(self, at: datetime, local: datetime) -> datetime:
        """The beginning of the next hour that matches, or of the next day; where clocks change, of the next hour."""
        later = [hour for hour in self.hour.values if hour > local.hour]
        begin = at - timedelta(minutes=local.minute, seconds=local.second)
        there = begin + timedelta(hours=min(later, default=24) - local.hour)
        same = there.astimezone(self.zone).utcoffset() == local.utcoffset()
        return there if same else begin + timedelta(hours=1)

    def _on(self, local: datetime) -> bool:
        by_date = local.day in self.day.values
        by_weekday = local.isoweekday() % 7 in self.weekday.values
        if self.day.any or self.weekday.any:
            return by_date and by_weekday
        return by_date or by_weekday

    def _midnight(self, year: int, month: int, day: int) -> datetime:
        """When a day begins. Where clocks go forward at midnight, that is later than midnight."""
        return datetime(year, month, day, tzinfo=self.zone).astimezone(UTC)


@lru_cache(4096)
def parse(text: str, zone: str = "") -> Schedule | ConstantDelaySchedule:
    """A schedule. Raises `ScheduleSyntaxError`; `LookupError` where there is no such zone."""
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


@lru_cache(1024)
def time_zone(name: str) -> tzinfo:
    """A time zone by its name. Raises `LookupError` in upstream's words."""
    if name in ("", "UTC", "Local"):
        return UTC
    try:
        if all(map(_is_zone_part, name.split("/"))):
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    raise LookupError(f"unknown time zone {name}")


def _is_zone_part(text: str) -> bool:
    """Part of the name of a zone, and not of the path of some other file."""
    return _ZONE_PART.fullmatch(text) is not None and text not in (".", "..")


def _every(text: str) -> ConstantDelaySchedule:
    given = text.removeprefix("@every ")
    if not _DURATION.fullmatch(given):
        raise ScheduleSyntaxError(f'failed to parse duration {text}: time: invalid duration "{given}"')
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(given))
    return ConstantDelaySchedule(timedelta(seconds=1 if given.startswith("-") else max(1, int(seconds))))


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
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise ScheduleSyntaxError(
            f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
        )
    number = int(text)
    if number < 0:
        raise ScheduleSyntaxError(f"negative number ({number}) not allowed: {text}")
    return number
