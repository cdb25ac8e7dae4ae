"""``"%s".format([x])``: strings of values, as the strings extension of cel-go 0.26 writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from steersman.api.cel.runtime.conversions import to_string
from steersman.api.cel.runtime.operators import MAX_SIZE
from steersman.api.cel.runtime.values import (
    CostLimitExceeded,
    Duration,
    EvaluationError,
    Timestamp,
    TypeValue,
    Uint,
    type_name,
)
from steersman.api.go_quote import quote

_CLAUSE = re.compile(r"%(?:(?P<percent>%)|(?:\.(?P<precision>[0-9]*))?(?P<letter>.?))", re.DOTALL)
_DEFAULT_PRECISION = 6
_MAX_PRECISION = 1000
_INTEGERS = (int, Uint)


def format_string(text: str, args: Any) -> str:
    """A text with its clauses replaced by the arguments. Raises `EvaluationError`, also where it would be larger than `MAX_SIZE`."""
    used = 0
    left = MAX_SIZE

    def replaced(match: re.Match[str]) -> str:
        nonlocal used, left
        if match["percent"]:
            return "%"
        if used >= len(args):
            raise EvaluationError(f"index {used} out of range")
        if match[0] == "%":
            raise EvaluationError("unexpected end of string")
        argument = args[used]
        used += 1
        clause = _clause(match)
        # Before it is written: a list of a large text, many times, would not fit into memory.
        _take(argument, left)
        try:
            written = clause(argument)
        except _Unformattable as error:
            raise EvaluationError(f"error during formatting: {error}") from None
        left = _left(left, len(written))
        return written

    return _CLAUSE.sub(replaced, text)


def _take(value: Any, left: int) -> int:
    """The characters that are left after those of a value, about. Raises `EvaluationError` where there are none."""
    match value:
        case str() | bytes():
            return _left(left, len(value))
        case Mapping():
            for key, each in value.items():
                left = _take(each, _take(key, left))
        case list() | tuple():
            for each in value:
                left = _take(each, left)
    return _left(left, 2)


def _left(left: int, size: int) -> int:
    if size > left:
        raise CostLimitExceeded
    return left - size


class _Unformattable(Exception):
    pass


def _clause(match: re.Match[str]) -> Callable[[Any], str]:
    precision, letter = match["precision"], match["letter"]
    problem = "could not parse formatting clause: "
    if precision is not None and not letter:
        raise EvaluationError(
            f"{problem}error while parsing precision: could not find end of precision specifier"
        )
    if precision == "":
        raise EvaluationError(
            f"{problem}error while parsing precision: error while converting precision to integer: "
            'strconv.Atoi: parsing "": invalid syntax'
        )
    digits = _DEFAULT_PRECISION if precision is None else min(int(precision[:9]), _MAX_PRECISION)
    if letter == "f":
        return lambda value: _fixed(value, digits)
    if letter == "e":
        return lambda value: _scientific(value, digits)
    found = _CLAUSES.get(letter)
    if found is None:
        raise EvaluationError(f'{problem}unrecognized formatting clause "{letter}"')
    return found


# -- clauses --------------------------------------------------------------------------------------


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, Mapping):
        return _map(value)
    if isinstance(value, list | tuple):
        return _list(value)
    if getattr(value, "cel_type", None) is None:
        try:
            return to_string(value)
        except EvaluationError:
            pass
    raise _Unformattable(
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
        f"timestamps, was given {type_name(value)}"
    )


def _list(value: Any) -> str:
    return f"[{', '.join(map(_inner, value))}]"


def _map(value: Mapping[Any, Any]) -> str:
    pairs = sorted((_inner(key), _inner(each)) for key, each in value.items())
    return "{" + ", ".join(f"{key}:{each}" for key, each in pairs) + "}"


def _inner(value: Any) -> str:
    """A value inside a list or a map: as CEL writes it."""
    match value:
        case str():
            return quote(value)
        case bytes():
            return f"b{quote(to_string(value))}"
        case float():
            if math.isfinite(value):
                return f"{value:.6f}"
            return '"NaN"' if math.isnan(value) else '"+Inf"' if value > 0 else '"-Inf"'
        case Timestamp():
            return f"timestamp({quote(to_string(value))})"
        case Duration():
            return f"duration({quote(to_string(value))})"
    if getattr(value, "cel_type", None) is not None:
        raise EvaluationError(f"error during formatting: no formatting function for {type_name(value)}")
    return _shown(value)


def _number(value: Any, problem: str) -> float:
    if type(value) is float:
        return value
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise _Unformattable(f"{problem} clause can only be used on doubles, was given {type_name(value)}")


def _fixed(value: Any, digits: int) -> str:
    number = _number(value, "fixed-point")
    return f"{number:,.{digits}f}" if math.isfinite(number) else _special(number)


def _special(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _scientific(value: Any, digits: int) -> str:
    number = _number(value, "scientific")
    if not math.isfinite(number):
        return _special(number)
    # Go's printer for a locale writes powers of ten out.
    mantissa, _, exponent = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
    sign = "⁻" if exponent.startswith("-") else ""
    raised = exponent[1:].translate(_SUPERSCRIPT)
    return f"{mantissa}\u202f×\u202f10{sign}{raised}".rjust(digits)


_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _decimal(value: Any) -> str:
    if type(value) in _INTEGERS:
        return str(value)
    raise _Unformattable(f"decimal clause can only be used on integers, was given {type_name(value)}")


def _binary(value: Any) -> str:
    if type(value) in _INTEGERS:
        return f"{value:b}"
    if type(value) is bool:
        return "1" if value else "0"
    raise _Unformattable(f"only integers and bools can be formatted as binary, was given {type_name(value)}")


def _hex(value: Any) -> str:
    if type(value) in _INTEGERS:
        return f"{value:x}"
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass").hex()
    if type(value) is bytes:
        return value.hex()
    raise _Unformattable(
        f"only integers, byte buffers, and strings can be formatted as hex, was given {type_name(value)}"
    )


def _octal(value: Any) -> str:
    if type(value) in _INTEGERS:
        return f"{value:o}"
    raise _Unformattable(f"octal clause can only be used on integers, was given {type_name(value)}")


_CLAUSES: dict[str, Callable[[Any], str]] = {
    "s": _shown,
    "d": _decimal,
    "b": _binary,
    "x": _hex,
    "X": lambda value: _hex(value).upper(),
    "o": _octal,
}
