"""The values of CEL in Python, and what the errors of an evaluation say about them.

bool, int, float, str, bytes, None, lists and maps are Python's own; the other types have a class here. A uint is an int of
its own class, so that ``1u`` and ``1`` are equal, and are the same key of a map, as in CEL.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec

from steersman.api.quantity import Quantity

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1
MIN_SECONDS, MAX_SECONDS = -62135596800, 253402300799
"""The seconds since 1970 of the first and the last timestamp: of the years 1 to 9999."""
NANOS = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EvaluationError(Exception):
    """An expression has no value. The message is cel-go's."""

    cost: int = 0
    """The cost of the evaluation up to the error."""


class NoOverload(EvaluationError):
    """A function does not take values of these types. The message names the function, unless it is bare."""

    def __init__(self, message: str = "no such overload", *, bare: bool = False) -> None:
        super().__init__(message)
        self.bare = bare


class CostLimitExceeded(EvaluationError):
    """An expression costs more than it may."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Uint(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class Duration(msgspec.Struct, frozen=True, order=True):
    """A duration, in nanoseconds."""

    nanos: int


class Timestamp(msgspec.Struct, frozen=True, eq=False):
    """A point in time, in nanoseconds since 1970, and the offset from UTC in seconds with which it was written."""

    nanos: int
    offset: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Timestamp) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Timestamp) -> bool:
        return self.nanos <= other.nanos

    def at(self, zone: Any) -> datetime:
        """The time in a time zone, to the second."""
        return (_EPOCH + timedelta(seconds=self.nanos // NANOS)).astimezone(zone)

    def __str__(self) -> str:
        """The time as Go's RFC3339Nano has it."""
        time = self.at(timezone(timedelta(seconds=self.offset)))
        fraction = f".{self.nanos % NANOS:09d}".rstrip("0").rstrip(".")
        zone = "Z"
        if self.offset:
            hours, minutes = divmod(abs(self.offset) // 60, 60)
            zone = f"{'-' if self.offset < 0 else '+'}{hours:02d}:{minutes:02d}"
        return f"{time.year:04d}-{time.month:02d}-{time.day:02d}T{time.hour:02d}:{time.minute:02d}:{time.second:02d}{fraction}{zone}"


class Optional(msgspec.Struct, frozen=True):
    """A value that may be absent: of ``a.?b``, ``optional.of(a)``."""

    value: Any = None
    present: bool = False


NONE = Optional()


class TypeValue(msgspec.Struct, frozen=True):
    """A type as a value: of ``type(1)``, ``int``."""

    name: str


class StructValue(dict[str, Any]):
    """A struct that an expression makes, with the name of its type."""

    __slots__ = ("cel_type",)

    def __init__(self, fields: dict[str, Any], type_name: str) -> None:
        super().__init__(fields)
        self.cel_type = type_name


class SetList(list[Any]):
    """A list of a schema with ``x-kubernetes-list-type: set``: equal whatever the order is, without duplicates."""

    __slots__ = ()


class MapList(list[Any]):
    """A list of a schema with ``x-kubernetes-list-type: map``: equal whatever the order is, items known by their keys."""

    __slots__ = ("keys",)

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys


_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    tuple: "list",
    SetList: "list",
    MapList: "list",
    dict: "map",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Optional: "optional_type",
    TypeValue: "type",
    Quantity: "kubernetes.Quantity",
}


def type_name(value: object) -> str:
    """The name of a value's type: ``int``, ``google.protobuf.Timestamp``, ``kubernetes.Quantity``."""
    found = _TYPE_NAMES.get(type(value))
    if found is None:
        found = getattr(value, "cel_type", None) or ("map" if isinstance(value, Mapping) else "list")
    return str(found)


def show(value: object) -> str:
    """A value as Go prints it in an error message."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return format_double(value)
        case None:
            return "NullValue"
        case Duration():
            return f"{format_seconds(value.nanos)}s"
        case TypeValue():
            return value.name
    return str(value)


def format_double(value: float) -> str:
    """A number as Go's ``%g`` with the shortest exact precision prints it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    digits, _, power = repr(abs(value)).partition("e")
    sign = "-" if value < 0 else ""
    whole, _, fraction = digits.partition(".")
    figures = (whole + fraction).strip("0")
    ten = _exponent(whole, fraction, int(power or 0))
    if ten < -4 or ten >= 6:
        rest = f".{figures[1:]}" if len(figures) > 1 else ""
        return f"{sign}{figures[0]}{rest}e{'-' if ten < 0 else '+'}{abs(ten):02d}"
    if ten < 0:
        return f"{sign}0.{'0' * (-ten - 1)}{figures}"
    if len(figures) <= ten + 1:
        return f"{sign}{figures}{'0' * (ten + 1 - len(figures))}"
    return f"{sign}{figures[: ten + 1]}.{figures[ten + 1 :]}"


def _exponent(whole: str, fraction: str, power: int) -> int:
    """The power of ten of a number's first figure."""
    stripped = whole.lstrip("0")
    if stripped:
        return len(stripped) - 1 + power
    return power - 1 - (len(fraction) - len(fraction.lstrip("0")))


def format_seconds(nanos: int) -> str:
    """The seconds of a duration, without an exponent and with the shortest exact fraction."""
    # Go converts the duration to a float of seconds first.
    seconds = (
        nanos // NANOS + (nanos % NANOS) / NANOS
        if nanos >= 0
        else -(-nanos // NANOS + (-nanos % NANOS) / NANOS)
    )
    text = repr(float(seconds))
    if "e" in text:
        text = f"{seconds:.20f}".rstrip("0")
    return text.removesuffix(".0")


def size_of(value: object) -> int:
    """The size of a value as the cost of a call counts it: of texts, lists and maps their length, else 1."""
    kind = type(value)
    if kind is str or kind is dict or kind is list or kind is bytes:
        return len(value)  # type: ignore[arg-type]
    if kind is Optional:
        return size_of(value.value) if value.present else 1  # type: ignore[attr-defined]
    size = getattr(value, "cel_size", None)
    if size is not None:
        return int(size)
    return len(value) if isinstance(value, list | tuple | Mapping) else 1
