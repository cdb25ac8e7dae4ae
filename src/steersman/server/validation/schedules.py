"""Schedules of CronJobs: whether one can be read, and why not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS = (
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
)
_EVERY = "@every "
_DURATION = re.compile(r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+|[-+]?0")
_is_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


class _Field(NamedTuple):
    low: int
    high: int
    names: Mapping[str, int]


_FIELDS = (
    _Field(0, 59, {}),
    _Field(0, 23, {}),
    _Field(1, 31, {}),
    _Field(1, 12, {name: i for i, name in enumerate(_MONTHS, 1)}),
    _Field(0, 6, {name: i for i, name in enumerate(_DAYS)}),
)


@lru_cache(maxsize=1024)
def schedule_error(text: str) -> str | None:
    """Why a schedule cannot be read; None if it can."""
    try:
        _parse(text)
    except ValueError as error:
        return str(error)
    return None


def _parse(text: str) -> None:
    if not text:
        raise ValueError("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        head, _, rest = text.partition(" ")
        zone = head.partition("=")[2]
        if (why := zone_error(zone)) is not None:
            raise ValueError(f"provided bad location {zone}: {why}")
        text = rest.strip()
    if text.startswith("@"):
        _descriptor(text)
        return
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]")
    for part, field in zip(parts, _FIELDS, strict=True):
        for expression in filter(None, part.split(",")):
            _range(expression, field)


def _descriptor(text: str) -> None:
    if text in _DESCRIPTORS:
        return
    if not text.startswith(_EVERY):
        raise ValueError(f"unrecognized descriptor: {text}")
    duration = text.removeprefix(_EVERY)
    if not _DURATION.fullmatch(duration):
        raise ValueError(f'failed to parse duration {text}: time: invalid duration "{duration}"')


def _range(expression: str, field: _Field) -> None:
    span, *steps = expression.split("/")
    low, *highs = span.split("-")
    if low in ("*", "?"):
        start, end = field.low, field.high
    else:
        start = _number(low, field)
        if len(highs) > 1:
            raise ValueError(f"too many hyphens: {expression}")
        end = _number(highs[0], field) if highs else start
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {expression}")
    step = 1
    if steps:
        step = _integer(steps[0])
        # A single number with a step runs to the end.
        end = end if highs else field.high
    if start < field.low:
        raise ValueError(f"beginning of range ({start}) below minimum ({field.low}): {expression}")
    if end > field.high:
        raise ValueError(f"end of range ({end}) above maximum ({field.high}): {expression}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {expression}")


def _number(text: str, field: _Field) -> int:
    named = field.names.get(text.lower())
    return _integer(text) if named is None else named


def _integer(text: str) -> int:
    if not re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        why = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ValueError(f"failed to parse int from {text}: {why}")
    number = int(text)
    if number < 0:
        raise ValueError(f"negative number ({number}) not allowed: {text}")
    return number


def zone_error(name: str) -> str | None:
    """Why a time zone is none; None if it is one."""
    unknown = f"unknown time zone {name}"
    for part in name.split("/"):
        if part in (".", "..") or part.startswith("-") or not _is_zone_part(part):
            return unknown
    if name == "Local":
        return None
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return unknown
    return None
