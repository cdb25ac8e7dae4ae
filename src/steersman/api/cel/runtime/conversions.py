"""CEL's conversions between types, and the parts of timestamps and durations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from steersman.api.cel.runtime.operators import duration_of, int_of, timestamp_of, uint_of
from steersman.api.cel.runtime.values import (
    INT_MAX,
    INT_MIN,
    NANOS,
    UINT_MAX,
    Duration,
    EvaluationError,
    NoOverload,
    Timestamp,
    TypeValue,
    Uint,
    format_double,
    format_seconds,
    type_name,
)
from steersman.api.go_duration import duration_nanos

_INTEGER = re.compile(r"[+-]?[0-9]+")
_UNSIGNED = re.compile(r"[0-9]+")
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|infinity)|nan",
    re.IGNORECASE,
)
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_MAX_DIGITS = 20


def _cannot(value: object, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_name(value)}' to '{target}'")


def to_int(value: Any) -> int:
    """``int(x)``."""
    kind = type(value)
    if kind is int:
        return int(value)
    if kind is Uint:
        return int_of(int(value))
    if kind is float:
        # Doubles at the limits are not exact, so upstream leaves them out.
        if math.isnan(value) or not INT_MIN < value < INT_MAX + 1:
            raise EvaluationError("integer overflow")
        return int(value)
    if kind is str:
        digits = value.lstrip("+-0")
        if _INTEGER.fullmatch(value) and len(digits) <= _MAX_DIGITS:
            # Without the zeros in front: Python refuses a text of thousands of digits.
            number = int(digits or "0") * (-1 if value[0] == "-" else 1)
            if INT_MIN <= number <= INT_MAX:
                return number
        raise _cannot(value, "int")
    if kind is Timestamp:
        return int(value.nanos // NANOS)
    if kind is Duration:
        return int(value.nanos)
    raise NoOverload


def to_uint(value: Any) -> Uint:
    """``uint(x)``."""
    kind = type(value)
    if kind is Uint:
        return Uint(value)
    if kind is int:
        return uint_of(value)
    if kind is float:
        if math.isnan(value) or not 0 <= value < UINT_MAX + 1:
            raise EvaluationError("unsigned integer overflow")
        return Uint(value)
    if kind is str:
        digits = value.lstrip("0") or "0"
        if _UNSIGNED.fullmatch(value) and len(digits) <= _MAX_DIGITS and int(digits) <= UINT_MAX:
            return Uint(digits)
        raise _cannot(value, "uint")
    raise NoOverload


def to_double(value: Any) -> float:
    """``double(x)``."""
    kind = type(value)
    if kind is float or kind is int or kind is Uint:
        return float(value)
    if kind is str:
        if _NUMBER.fullmatch(value):
            number = float(value)
            if not math.isinf(number) or "n" in value.lower():
                return number
        raise _cannot(value, "double")
    raise NoOverload


def to_string(value: Any) -> str:
    """``string(x)``."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint or kind is Timestamp:
        return str(value)
    if kind is float:
        return format_double(value)
    if kind is bytes:
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if kind is Duration:
        return f"{format_seconds(value.nanos)}s"
    text = getattr(value, "cel_string", None)
    if text is not None:
        return str(text)
    raise NoOverload


def to_bytes(value: Any) -> bytes:
    """``bytes(x)``."""
    if type(value) is bytes:
        return bytes(value)
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass")
    raise NoOverload


def to_bool(value: Any) -> bool:
    """``bool(x)``."""
    if type(value) is bool:
        return bool(value)
    if type(value) is str:
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
        raise _cannot(value, "bool")
    raise NoOverload


def to_duration(value: Any) -> Duration:
    """``duration(x)``."""
    kind = type(value)
    if kind is str:
        try:
            return duration_of(duration_nanos(value))
        except ValueError:
            raise _cannot(value, "google.protobuf.Duration") from None
    if kind is int:
        return Duration(int_of(value))
    if kind is Duration:
        return Duration(value.nanos)
    raise NoOverload


def to_timestamp(value: Any) -> Timestamp:
    """``timestamp(x)``."""
    kind = type(value)
    if kind is str:
        return parse_timestamp(value)
    if kind is int:
        return timestamp_of(value * NANOS)
    if kind is Timestamp:
        return Timestamp(value.nanos, value.offset)
    raise NoOverload


def parse_timestamp(text: str) -> Timestamp:
    """A timestamp in RFC 3339. Raises `EvaluationError`."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise _cannot(text, "google.protobuf.Timestamp")
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    hours, minutes = int(match[9] or 0), int(match[10] or 0)
    days = _days(year, month, day)
    if days is None or hour > 23 or minute > 59 or second > 59 or hours > 24 or minutes > 60:
        raise _cannot(text, "google.protobuf.Timestamp")
    offset = (hours * 60 + minutes) * 60 * (-1 if match[8] == "-" else 1)
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - offset
    return timestamp_of(seconds * NANOS + int((match[7] or "0")[:9].ljust(9, "0")), offset)


_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _days(year: int, month: int, day: int) -> int | None:
    """The days since 1970 of a date, which may be in the year 0; None if there is no such date."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1] + (leap and month == 2):
        return None
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400
    return days + sum(_MONTH_DAYS[: month - 1]) + (leap and month > 2) + day - 719163


def type_of_value(value: object) -> TypeValue:
    """``type(x)``."""
    return TypeValue(type_name(value))


# -- parts of times -------------------------------------------------------------------------------

_PARTS: dict[str, Callable[[Any], int]] = {
    "getFullYear": lambda time: int(time.year),
    "getMonth": lambda time: int(time.month) - 1,
    "getDayOfYear": lambda time: int(time.timetuple().tm_yday) - 1,
    "getDayOfMonth": lambda time: int(time.day) - 1,
    "getDate": lambda time: int(time.day),
    "getDayOfWeek": lambda time: int(time.isoweekday()) % 7,
    "getHours": lambda time: int(time.hour),
    "getMinutes": lambda time: int(time.minute),
    "getSeconds": lambda time: int(time.second),
}
_DURATION_PARTS = {
    "getHours": 3600 * NANOS,
    "getMinutes": 60 * NANOS,
    "getSeconds": NANOS,
}
_OFFSET = re.compile(r"([+-]?)([0-9]+):([0-9]+)")


def _zone(name: str) -> tzinfo:
    if name in ("", "UTC"):
        return UTC
    match = _OFFSET.fullmatch(name)
    if match is not None and len(name) <= 8:
        minutes = int(match[2]) * 60 + int(match[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _part(name: str, read: Callable[[Any], int]) -> Callable[..., int]:
    unit = _DURATION_PARTS.get(name)

    def function(value: Any, zone: Any = "") -> int:
        if type(value) is Timestamp and type(zone) is str:
            try:
                return read(value.at(_zone(zone)))
            except OverflowError:
                raise EvaluationError("timestamp overflow") from None
        if type(value) is Duration and unit is not None and zone == "":
            whole = abs(value.nanos) // unit
            return -whole if value.nanos < 0 else whole
        raise NoOverload

    return function


def _milliseconds(value: Any, zone: Any = "") -> int:
    if type(value) is Timestamp and type(zone) is str:
        return int(value.nanos % NANOS // 10**6)
    if type(value) is Duration:
        millis = abs(value.nanos) // 10**6
        return -millis if value.nanos < 0 else millis
    raise NoOverload


def _struct_time(make: Callable[[int], object]) -> Callable[[Any], object]:
    def function(fields: Any) -> object:
        return make(int(fields.get("seconds", 0)) * NANOS + int(fields.get("nanos", 0)))

    return function


STRUCTS = {
    "google.protobuf.Duration": _struct_time(duration_of),
    "google.protobuf.Timestamp": _struct_time(timestamp_of),
}
"""Makes structs of the standard library from their fields."""

CONVERSIONS: dict[str, Callable[..., object]] = {
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "string": to_string,
    "bytes": to_bytes,
    "bool": to_bool,
    "duration": to_duration,
    "timestamp": to_timestamp,
    "dyn": lambda value: value,
    "type": type_of_value,
    **{name: _part(name, read) for name, read in _PARTS.items()},
    "getMilliseconds": _milliseconds,
}
