"""Finds invalid literals, which would fail at every evaluation.

Checked after the types: invalid durations, timestamps and regular expressions, lists and maps with elements of
different types, and format strings that do not fit their arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from steersman.api.cel.errors import Problem
from steersman.api.cel.syntax import Call, Expr, ListOf, Literal, MapOf, walk
from steersman.api.cel.types import STRING, Sort, Type, unwrapped
from steersman.api.go_regexp import InvalidPattern, compile_pattern

Types = Mapping[Expr, Type]


def problems(expr: Expr, types: Types) -> Iterator[Problem]:
    """Yield the errors in the literals of an expression."""
    for part, above in walk(expr):
        if isinstance(part, Call):
            yield from _argument(part)
            yield from _formatted(part, types)
        elif isinstance(part, ListOf | MapOf) and all(call.function != "format" for call in above):
            yield from _mixed(part, types)


# -- arguments that are parsed --------------------------------------------------------------------

_DURATION = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,]\d+)?(?:Z|[+-](?:[01]\d|2[0-4]):[0-5]\d)", re.ASCII
)


def _argument(call: Call) -> Iterator[Problem]:
    is_fine = _READ.get(call.function)
    if is_fine is None or not call.args:
        return
    arg = call.args[0]
    if isinstance(arg, Literal) and arg.type == STRING and not is_fine(str(arg.value)):
        yield Problem(arg.at, f"invalid {call.function} argument")


def is_duration(text: str) -> bool:
    """Report whether a text is a Go duration, such as ``1h30m``."""
    return _DURATION.fullmatch(text) is not None


def is_timestamp(text: str) -> bool:
    """Report whether a text is an RFC 3339 timestamp."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    try:
        datetime.fromisoformat(match[1])
    except ValueError:
        return False
    return True


def is_pattern(text: str) -> bool:
    """Report whether a text is a regular expression of Go's regexp package."""
    try:
        compile_pattern(text)
    except InvalidPattern:
        return False
    return True


_READ = {"duration": is_duration, "timestamp": is_timestamp, "matches": is_pattern}


# -- elements that differ -------------------------------------------------------------------------


def _mixed(expr: ListOf | MapOf, types: Types) -> Iterator[Problem]:
    if isinstance(expr, ListOf):
        elements = zip(expr.elements, expr.optional, strict=True)
        # As cel-go: only the first for a list, all for a map.
        yield from list(_differing(((one, optional) for one, optional in elements), types))[:1]
        return
    yield from _differing(((entry.key, False) for entry in expr.entries), types)
    yield from _differing(((entry.value, entry.optional) for entry in expr.entries), types)


def _differing(elements: Iterable[tuple[Expr, bool]], types: Types) -> Iterator[Problem]:
    first: Type | None = None
    for element, optional in elements:
        type_ = unwrapped(types[element])[0] if optional else types[element]
        if first is None:
            first = type_
        elif type_ != first:
            yield Problem(element.at, f"expected type '{first}' but found '{type_}'")


# -- formats --------------------------------------------------------------------------------------

_WHOLE = (Sort.INT, Sort.UINT)
_SHOWABLE = (
    *_WHOLE,
    Sort.LIST,
    Sort.MAP,
    Sort.DOUBLE,
    Sort.BOOL,
    Sort.STRING,
    Sort.TIMESTAMP,
    Sort.BYTES,
    Sort.DURATION,
    Sort.TYPE,
    Sort.NULL,
)
_HEX = "only integers, byte buffers, and strings can be formatted as hex"
_CLAUSES = {
    "s": (
        _SHOWABLE,
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
        "and timestamps",
    ),
    "d": (_WHOLE, "decimal clause can only be used on integers"),
    "f": ((Sort.DOUBLE, Sort.STRING), "fixed-point clause can only be used on doubles"),
    "e": ((Sort.DOUBLE, Sort.STRING), "scientific clause can only be used on doubles"),
    "b": ((*_WHOLE, Sort.BOOL), "only integers and bools can be formatted as binary"),
    "x": ((*_WHOLE, Sort.STRING, Sort.BYTES), _HEX),
    "X": ((*_WHOLE, Sort.STRING, Sort.BYTES), _HEX),
    "o": (_WHOLE, "octal clause can only be used on integers"),
}
"""The types that each clause accepts, and the error for others."""
_CLAUSE = re.compile(r"%(?:%|(\.[0-9]*)?(.?))", re.DOTALL)


def _formatted(call: Call, types: Types) -> Iterator[Problem]:
    if call.function != "format" or len(call.args) != 1 or not isinstance(call.args[0], ListOf):
        return
    text, given = call.target, call.args[0].elements
    if not isinstance(text, Literal) or text.type != STRING:
        return
    used = 0
    for match in _CLAUSE.finditer(str(text.value)):
        if match[0] == "%%":
            continue
        problem = _clause(call, match, given[used] if used < len(given) else None, used, types)
        if problem is not None:
            yield problem
            return
        used += 1
    if len(given) > used:
        message = f"too many arguments supplied to string.format (expected {used}, got {len(given)})"
        yield Problem(call.at, message)


def _clause(call: Call, match: re.Match[str], given: Expr | None, index: int, types: Types) -> Problem | None:
    """Return the error of one clause of a format string, or of its argument."""
    precision, letter = match[1], match[2]
    if match[0] == "%":
        return Problem(call.at, "unexpected end of string")
    if given is None:
        return Problem(call.at, f"index {index} out of range")
    parse_error = "could not parse formatting clause"
    if precision is not None and not letter:
        end = "error while parsing precision: could not find end of precision specifier"
        return Problem(call.at, f"{parse_error}: {end}")
    if precision == ".":
        number = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
        return Problem(call.at, f"{parse_error}: error while parsing precision: {number}")
    if letter not in _CLAUSES:
        return Problem(call.at, f'{parse_error}: unrecognized formatting clause "{letter}"')
    takes, expected = _CLAUSES[letter]
    misfit = _misfit(given, takes, types, deep=letter == "s")
    if misfit is None:
        return None
    return Problem(misfit.at, f"error during formatting: {expected}, was given {types[misfit].name}")


def _misfit(given: Expr, takes: Iterable[Sort], types: Types, deep: bool) -> Expr | None:
    """Return the argument that a clause cannot format or, with ``deep``, the part of it."""
    sort = types[given].sort
    if sort is not Sort.DYN and sort not in takes:
        return given
    if not deep or not isinstance(given, ListOf | MapOf):
        return None
    return next((bad for part in given.parts if (bad := _misfit(part, takes, types, deep))), None)
