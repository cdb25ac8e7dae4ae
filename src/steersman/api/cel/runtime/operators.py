"""CEL's operators: arithmetic with its overflows, order, equality, membership and look-up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from steersman.api.cel.runtime.values import (
    INT_MAX,
    INT_MIN,
    MAX_SECONDS,
    MIN_SECONDS,
    NANOS,
    NONE,
    UINT_MAX,
    Duration,
    EvaluationError,
    MapList,
    NoOverload,
    Optional,
    SetList,
    Timestamp,
    Uint,
    show,
    type_name,
)

Binary: TypeAlias = Callable[[Any, Any], Any]
_NUMBERS = (int, Uint, float)
_LISTS = (list, tuple, SetList, MapList)
MAX_SIZE = 4_000_000
"""Characters or items of a value that an expression makes: more than any request has.

differs: upstream bounds them by the cost alone.
"""


def int_of(value: int) -> int:
    """An int of 64 bits. Raises `EvaluationError`."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def uint_of(value: int) -> Uint:
    """A uint of 64 bits. Raises `EvaluationError`."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def duration_of(nanos: int) -> Duration:
    """A duration of 64 bits of nanoseconds. Raises `EvaluationError`."""
    if INT_MIN <= nanos <= INT_MAX:
        return Duration(nanos)
    raise EvaluationError("duration overflow")


def timestamp_of(nanos: int, offset: int = 0) -> Timestamp:
    """A timestamp of the years 1 to 9999. Raises `EvaluationError`."""
    if MIN_SECONDS <= nanos // NANOS <= MAX_SECONDS:
        return Timestamp(nanos, offset)
    raise EvaluationError("timestamp overflow")


# -- arithmetic -----------------------------------------------------------------------------------


def _quotient(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("division by zero")
    found = abs(one) // abs(other)
    return found if (one < 0) == (other < 0) else -found


def _remainder(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("modulus by zero")
    if one == INT_MIN and other == -1:
        raise EvaluationError("integer overflow")
    found = abs(one) % abs(other)
    return -found if one < 0 else found


def _divide_doubles(one: float, other: float) -> float:
    if other:
        return one / other
    if one == 0 or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1.0, other)


def _multiply_doubles(one: float, other: float) -> float:
    return one * other


def _joined(one: Any, other: Any) -> Any:
    if len(one) + len(other) > MAX_SIZE:
        raise EvaluationError("operation cancelled: actual cost limit exceeded")
    return one + other


def _add_lists(one: Any, other: Any) -> Any:
    if type(one) is SetList:
        return SetList([*one, *(each for each in other if not contains(one, each))])
    if type(one) is MapList:
        return _merge_map_lists(one, list(other))
    return _joined(list(one), list(other))


def _merge_map_lists(one: MapList, other: list[Any]) -> MapList:
    """Items of the second list replace those of the first with the same keys."""
    places = {_key(item, one.keys): index for index, item in enumerate(one)}
    made = list(one)
    for item in other:
        place = places.get(_key(item, one.keys))
        if place is None:
            made.append(item)
        else:
            made[place] = item
    return MapList(made, one.keys)


def _key(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple((type(item.get(key)), repr(item.get(key))) for key in keys)


def _subtract_timestamps(one: Timestamp, other: Timestamp) -> Duration:
    return duration_of(one.nanos - other.nanos)


ADD: dict[tuple[type, type], Binary] = {
    (int, int): lambda one, other: int_of(one + other),
    (Uint, Uint): lambda one, other: uint_of(int(one) + int(other)),
    (float, float): lambda one, other: one + other,
    (str, str): _joined,
    (bytes, bytes): _joined,
    (Duration, Duration): lambda one, other: duration_of(one.nanos + other.nanos),
    (Timestamp, Duration): lambda one, other: timestamp_of(one.nanos + other.nanos, one.offset),
    (Duration, Timestamp): lambda one, other: timestamp_of(one.nanos + other.nanos, other.offset),
    **{(one, other): _add_lists for one in _LISTS for other in _LISTS},
}
_SUBTRACT: dict[tuple[type, type], Binary] = {
    (int, int): lambda one, other: int_of(one - other),
    (Uint, Uint): lambda one, other: uint_of(int(one) - int(other)),
    (float, float): lambda one, other: one - other,
    (Duration, Duration): lambda one, other: duration_of(one.nanos - other.nanos),
    (Timestamp, Duration): lambda one, other: timestamp_of(one.nanos - other.nanos, one.offset),
    (Timestamp, Timestamp): _subtract_timestamps,
}
_MULTIPLY: dict[tuple[type, type], Binary] = {
    (int, int): lambda one, other: int_of(one * other),
    (Uint, Uint): lambda one, other: uint_of(int(one) * int(other)),
    (float, float): _multiply_doubles,
}
_DIVIDE: dict[tuple[type, type], Binary] = {
    (int, int): lambda one, other: int_of(_quotient(one, other)),
    (Uint, Uint): lambda one, other: uint_of(_quotient(int(one), int(other))),
    (float, float): _divide_doubles,
}
_MODULO: dict[tuple[type, type], Binary] = {
    (int, int): _remainder,
    (Uint, Uint): lambda one, other: uint_of(_remainder(int(one), int(other))),
}


def _operator(name: str, table: dict[tuple[type, type], Binary]) -> Binary:
    firsts = {one for one, _ in table}

    def function(one: Any, other: Any) -> Any:
        found = table.get((type(one), type(other)))
        if found is None:
            # As cel-go: the first operand knows the operator, and refuses the second one.
            raise (
                NoOverload(bare=True)
                if type(one) in firsts
                else NoOverload(f"no such overload: {name}", bare=True)
            )
        return found(one, other)

    return function


def negate(value: Any) -> Any:
    """``-x``."""
    kind = type(value)
    if kind is int:
        return int_of(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return duration_of(-value.nanos)
    raise NoOverload("no such overload: -_", bare=True)


def negated(value: Any) -> bool:
    """``!x``."""
    if value is True:
        return False
    if value is False:
        return True
    raise NoOverload("no such overload: !_", bare=True)


# -- order ----------------------------------------------------------------------------------------


def compare(one: Any, other: Any, name: str = "") -> int:
    """-1, 0 or 1. Raises `EvaluationError` for values that have no order."""
    kind, second = type(one), type(other)
    if kind in _NUMBERS and second in _NUMBERS:
        if one != one or other != other:
            raise EvaluationError("NaN values cannot be ordered")
        if kind is not second and (kind is float or second is float):
            # As cel-go: compared as doubles, so that the largest int is not less than 2^63.
            one, other = float(one), float(other)
    elif kind is not second or kind not in _ORDERED:
        raise (
            NoOverload(bare=True)
            if kind in _ORDERED or kind in _NUMBERS
            else NoOverload(f"no such overload: {name}" if name else "no such overload", bare=True)
        )
    return -1 if one < other else 0 if one == other else 1


_ORDERED = (str, bytes, bool, Duration, Timestamp)


def _comparison(name: str, accept: Callable[[int], bool]) -> Binary:
    return lambda one, other: accept(compare(one, other, name))


# -- equality and membership ----------------------------------------------------------------------


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal. Values of different types are not, but numbers are compared by value."""
    kind = type(one)
    if kind is str:
        return type(other) is str and bool(one == other)
    if kind is bool or type(other) is bool:
        return one is other
    if isinstance(one, list | tuple):
        return isinstance(other, list | tuple) and _equal_lists(one, other)
    if isinstance(one, Mapping):
        if not isinstance(other, Mapping) or len(one) != len(other):
            return False
        return all(key in other and equal(value, other[key]) for key, value in one.items())
    if kind is Optional and type(other) is Optional:
        return one.present is other.present and (not one.present or equal(one.value, other.value))
    return bool(one == other)


def _equal_lists(one: Any, other: Any) -> bool:
    if len(one) != len(other):
        return False
    if type(one) is SetList:
        return all(contains(other, each) for each in one)
    if type(one) is MapList:
        theirs = {_key(item, one.keys): item for item in other if isinstance(item, Mapping)}
        return all((key := _key(item, one.keys)) in theirs and equal(item, theirs[key]) for item in one)
    return all(map(equal, one, other))


def contains(items: Any, value: object) -> bool:
    """Whether an item of a list equals a value."""
    if type(value) is str:
        return value in items
    return any(equal(each, value) for each in items)


def member(value: Any, within: Any) -> bool:
    """``x in y``."""
    if type(within) is list:
        return contains(within, value)
    if isinstance(within, Mapping):
        return find(within, value) is not ABSENT
    if isinstance(within, list | tuple):
        return contains(within, value)
    raise NoOverload("no such overload", bare=True)


# -- look-up --------------------------------------------------------------------------------------

ABSENT: Any = object()


def find(within: Mapping[Any, Any], key: Any) -> Any:
    """The value of a key; `ABSENT` if there is none. True is not 1."""
    try:
        found = within.get(key, ABSENT)
    except TypeError:
        raise NoOverload(f"unsupported key type: {type_name(key)}", bare=True) from None
    if found is ABSENT or type(key) is str:
        return _default(within, key) if found is ABSENT else found
    if key in (0, 1):
        is_bool = type(key) is bool
        return found if any(each == key and (type(each) is bool) is is_bool for each in within) else ABSENT
    return found


def _default(within: Mapping[Any, Any], key: Any) -> Any:
    missing = getattr(type(within), "__missing__", None)
    return ABSENT if missing is None else missing(within, key)


def index(value: Any, key: Any) -> Any:
    """``x[y]``. Raises `EvaluationError`."""
    if isinstance(value, Mapping):
        found = find(value, key)
        if found is ABSENT:
            raise EvaluationError(f"no such key: {show(key)}")
        return found
    if isinstance(value, list | tuple):
        return value[_position(value, key)]
    if type(value) is Optional:
        return optional_index(value, key)
    raise EvaluationError(f"no such key: {show(key)}")


def _position(value: Any, key: Any) -> int:
    if type(key) is float and key.is_integer():
        key = int(key)
    if type(key) not in (int, Uint):
        raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
    if not 0 <= key < len(value):
        raise EvaluationError(f"index out of bounds: {show(key)}")
    return int(key)


def optional_index(value: Any, key: Any) -> Optional:
    """``x[?y]`` and ``x.?y``."""
    if type(value) is Optional:
        if not value.present:
            return NONE
        value = value.value
    if isinstance(value, Mapping):
        found = find(value, key)
        return NONE if found is ABSENT else Optional(found, True)
    if isinstance(value, list | tuple):
        number = int(key) if type(key) is float and key.is_integer() else key
        if type(number) not in (int, Uint):
            raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
        return Optional(value[number], True) if 0 <= number < len(value) else NONE
    return NONE


def select(value: Any, field: str) -> Any:
    """``x.field``, where it is not simply there."""
    if isinstance(value, Mapping):
        found = find(value, field)
        if found is not ABSENT:
            return found
    elif type(value) is Optional:
        return optional_index(value, field)
    raise EvaluationError(f"no such key: {field}")


def has(value: Any, field: str) -> bool:
    """``has(x.field)``: false also where x has no fields at all."""
    if type(value) is Optional:
        return value.present and has(value.value, field)
    return isinstance(value, Mapping) and find(value, field) is not ABSENT


OPERATORS: dict[str, Callable[..., Any]] = {
    "_+_": _operator("_+_", ADD),
    "_-_": _operator("_-_", _SUBTRACT),
    "_*_": _operator("_*_", _MULTIPLY),
    "_/_": _operator("_/_", _DIVIDE),
    "_%_": _operator("_%_", _MODULO),
    "-_": negate,
    "!_": negated,
    "_==_": equal,
    "_!=_": lambda one, other: not equal(one, other),
    "_<_": _comparison("_<_", lambda order: order < 0),
    "_<=_": _comparison("_<=_", lambda order: order <= 0),
    "_>_": _comparison("_>_", lambda order: order > 0),
    "_>=_": _comparison("_>=_", lambda order: order >= 0),
    "@in": member,
    "_[_]": index,
    "_[?_]": optional_index,
    "_?._": optional_index,
}
