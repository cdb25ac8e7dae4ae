"""The functions of CEL on plain Python values, for `evaluator`: operators, conversions, strings, quantities, versions.

A function raises `EvaluationError`, or `TypeError` where it has no overload for its arguments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import total_ordering
from typing import Any, TypeAlias

import msgspec

from steersman.api.go_regexp import InvalidPattern, compile_pattern
from steersman.api.quantity import Quantity

Function: TypeAlias = Callable[..., object]
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
_INT = range(-(2**63), 2**63)
MAX_TEXT = 1_000_000
"""Characters or items of a value that an expression makes."""


class EvaluationError(Exception):
    """An expression has no value. The message is cel-go's where it is a common one."""


class Optional(msgspec.Struct, frozen=True):
    """A value that may be absent: of ``a.?b``, ``optional.of(a)``."""

    value: Any = None
    present: bool = False


@total_ordering
class Semver(msgspec.Struct, frozen=True, eq=False):
    """A semantic version. Build metadata does not count when versions are compared."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()

    @property
    def _order(self) -> tuple[object, ...]:
        # A release comes after its prereleases; numbers come before words.
        parts = tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in self.prerelease)
        return self.major, self.minor, self.patch, not self.prerelease, parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._order == other._order

    def __hash__(self) -> int:
        return hash(self._order)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Semver):
            return NotImplemented
        return self._order < other._order


def parse_semver(text: str) -> Semver:
    """Parse a semantic version. Raises `EvaluationError`."""
    found = _SEMVER.fullmatch(text) if len(text) <= 256 else None
    if found is None:
        raise EvaluationError("invalid semantic version")
    prerelease = tuple(found[4].split(".")) if found[4] else ()
    return Semver(int(found[1]), int(found[2]), int(found[3]), prerelease)


def equal(one: object, other: object) -> bool:
    """Whether two values are equal. Values of different types are not, but numbers are compared by value."""
    if isinstance(one, bool) or isinstance(other, bool):
        return isinstance(one, bool) and isinstance(other, bool) and one == other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return one == other


def item(value: Any, key: object) -> object:
    """An item of a list or map. Raises `EvaluationError`."""
    if isinstance(value, Mapping):
        try:
            return value[key]
        except KeyError:
            raise EvaluationError(f"no such key: {key}") from None
    if isinstance(value, list) and isinstance(key, int) and not isinstance(key, bool):
        if not 0 <= key < len(value):
            raise EvaluationError(f"index out of bounds: {key}")
        return value[key]
    raise TypeError(key)


def _index(value: Any, key: object) -> object:
    if isinstance(value, Optional):
        return _optional_index(value, key)
    return item(value, key)


def _optional_index(value: Any, key: object) -> Optional:
    if isinstance(value, Optional):
        if not value.present:
            return value
        value = value.value
    try:
        return Optional(item(value, key), True)
    except EvaluationError:
        return Optional()


# -- operators --------------------------------------------------------------------------------


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same_sort(one: object, other: object) -> bool:
    if _is_number(one) or _is_number(other):
        return _is_number(one) and _is_number(other)
    return type(one) is type(other) and isinstance(one, bool | str | bytes)


def _ordered(compare: Callable[[Any, Any], bool]) -> Function:
    def function(one: object, other: object) -> bool:
        if not _same_sort(one, other):
            raise TypeError(one)
        return compare(one, other)

    return function


def _checked(value: int | float) -> int | float:
    if isinstance(value, int) and value not in _INT:
        raise EvaluationError("integer overflow")
    return value


def _arithmetic(compute: Callable[[Any, Any], int | float]) -> Function:
    def function(one: object, other: object) -> object:
        if not _is_number(one) or type(one) is not type(other):
            raise TypeError(one)
        return _checked(compute(one, other))

    return function


def _add(one: Any, other: Any) -> object:
    if _is_number(one):
        return _arithmetic(lambda a, b: a + b)(one, other)
    if type(one) is not type(other) or not isinstance(one, str | bytes | list):
        raise TypeError(one)
    if len(one) + len(other) > MAX_TEXT:
        raise EvaluationError("operation cancelled: actual cost limit exceeded")
    return one + other


def _divide(one: Any, other: Any) -> int | float:
    if isinstance(one, float):
        quotient: float = one / other if other else math.copysign(math.inf, one) if one else math.nan
        return quotient
    if other == 0:
        raise EvaluationError("division by zero")
    # Towards zero, unlike Python.
    return int(abs(one) // abs(other)) * (1 if (one < 0) == (other < 0) else -1)


def _modulo(one: Any, other: Any) -> int | float:
    if isinstance(one, float):
        raise TypeError(one)
    if other == 0:
        raise EvaluationError("modulus by zero")
    return int(one - other * _divide(one, other))


def _negate(value: Any) -> object:
    if not _is_number(value):
        raise TypeError(value)
    return _checked(-value)


def _not(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return not value


def _in(value: object, within: object) -> bool:
    if isinstance(within, list):
        return any(equal(value, each) for each in within)
    if isinstance(within, Mapping):
        return value in within
    raise TypeError(within)


# -- strings, sizes and conversions -----------------------------------------------------------


def _strings(compute: Callable[..., object]) -> Function:
    def function(*args: object) -> object:
        if not all(isinstance(arg, str) for arg in args):
            raise TypeError(args)
        return compute(*args)

    return function


def _matches(text: str, pattern: str) -> bool:
    try:
        return bool(compile_pattern(pattern).search(text))
    except InvalidPattern as error:
        raise EvaluationError(str(error)) from None


def _size(value: object) -> int:
    if not isinstance(value, str | bytes | list | Mapping):
        raise TypeError(value)
    return len(value)


def _int(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(value)
    if isinstance(value, str) and not re.fullmatch(r"[+-]?\d{1,19}", value, re.ASCII):
        raise EvaluationError(f"type conversion error from 'string' to 'int': {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise EvaluationError("integer overflow")
    return _checked(int(value))


def _double(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(value)
    try:
        return float(value)
    except ValueError:
        raise EvaluationError("type conversion error from 'string' to 'double'") from None


def _string(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, int | float | str):
        return str(value)
    raise TypeError(value)


# -- quantities, versions, optionals ----------------------------------------------------------


def _quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _succeeds(parse: Callable[[str], object]) -> Function:
    def function(text: str) -> bool:
        try:
            parse(text)
        except EvaluationError:
            return False
        return True

    return _strings(function)


def _compared(accept: Callable[[int], object]) -> Function:
    """A method that compares two quantities, or two versions."""

    def function(one: Any, other: Any) -> object:
        if type(one) is not type(other) or not isinstance(one, Quantity | Semver):
            raise TypeError(one)
        return accept((one > other) - (one < other))

    return function


def _sum(sign: int) -> Function:
    def function(one: object, other: object) -> object:
        if isinstance(other, int) and not isinstance(other, bool):
            other = Quantity.of(other)
        if not isinstance(one, Quantity) or not isinstance(other, Quantity):
            raise TypeError(one)
        return one + other if sign > 0 else one - other

    return function


def _of(type_: type, read: Callable[[Any], object]) -> Function:
    def function(value: object) -> object:
        if not isinstance(value, type_):
            raise TypeError(value)
        return read(value)

    return function


def _present(optional: Optional) -> object:
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _or_value(one: object, other: object) -> object:
    if not isinstance(one, Optional):
        raise TypeError(one)
    return one.value if one.present else other


def _or(one: object, other: object) -> object:
    if not isinstance(one, Optional):
        raise TypeError(one)
    return one if one.present else other


def _includes(one: object, other: object) -> bool:
    """Whether an attribute, which may be a list, has a value."""
    return _in(other, one) if isinstance(one, list) else equal(one, other)


FUNCTIONS: Mapping[str, Function] = {
    "_==_": equal,
    "_!=_": lambda one, other: not equal(one, other),
    "_<_": _ordered(lambda one, other: one < other),
    "_<=_": _ordered(lambda one, other: one <= other),
    "_>_": _ordered(lambda one, other: one > other),
    "_>=_": _ordered(lambda one, other: one >= other),
    "_+_": _add,
    "_-_": _arithmetic(lambda one, other: one - other),
    "_*_": _arithmetic(lambda one, other: one * other),
    "_/_": _arithmetic(_divide),
    "_%_": _arithmetic(_modulo),
    "-_": _negate,
    "!_": _not,
    "@in": _in,
    "_[_]": _index,
    "_[?_]": _optional_index,
    "_?._": _optional_index,
    "size": _size,
    "int": _int,
    "double": _double,
    "string": _string,
    "dyn": lambda value: value,
    "matches": _strings(_matches),
    "quantity": _strings(_quantity),
    "isQuantity": _succeeds(_quantity),
    "semver": _strings(parse_semver),
    "isSemver": _succeeds(parse_semver),
    "optional.of": lambda value: Optional(value, True),
    "optional.none": lambda: Optional(),
}
METHODS: Mapping[str, Function] = {
    "size": _size,
    "contains": _strings(lambda text, part: part in text),
    "startsWith": _strings(lambda text, part: text.startswith(part)),
    "endsWith": _strings(lambda text, part: text.endswith(part)),
    "matches": _strings(_matches),
    "lowerAscii": _strings(lambda text: text.lower() if text.isascii() else _ascii(text, str.lower)),
    "upperAscii": _strings(lambda text: text.upper() if text.isascii() else _ascii(text, str.upper)),
    "trim": _strings(lambda text: text.strip()),
    "split": _strings(lambda text, by: text.split(by) if by else list(text)),
    "compareTo": _compared(lambda order: order),
    "isGreaterThan": _compared(lambda order: order > 0),
    "isLessThan": _compared(lambda order: order < 0),
    "add": _sum(1),
    "sub": _sum(-1),
    "sign": _of(Quantity, lambda value: value.sign),
    "asApproximateFloat": _of(Quantity, float),
    "asInteger": _of(Quantity, lambda value: value.value()),
    "major": _of(Semver, lambda value: value.major),
    "minor": _of(Semver, lambda value: value.minor),
    "patch": _of(Semver, lambda value: value.patch),
    "value": _of(Optional, _present),
    "hasValue": _of(Optional, lambda value: value.present),
    "orValue": _or_value,
    "or": _or,
    "includes": _includes,
}


def _ascii(text: str, change: Callable[[str], str]) -> str:
    return "".join(change(char) if char.isascii() else char for char in text)
