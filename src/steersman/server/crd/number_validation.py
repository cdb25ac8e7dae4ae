"""Numbers against a schema: range, bounds and multiples, with upstream's care about integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps

Complaint: TypeAlias = tuple[Any, ...]
"""The parts of a `steersman.server.crd.value_validation.Fault`."""

_FLOAT32 = 3.4028235677973366e38
"""From here on a number rounds to infinity."""

_SAFE = 2**53 - 1
"""Up to here all integers have a number of their own."""


def number(value: float) -> str:
    """A number as Go prints it."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e21):
        return str(int(value))
    return repr(value)


def is_whole(value: float) -> bool:
    """Whether a number is an integer, as far as JSON can tell."""
    if abs(value) > _SAFE:
        return False
    below = int(value)
    return value == below or (below > 0 and value - below < 1e-9 * (value + below))


def number_check(
    schema: JSONSchemaProps, type_: str, format_: str
) -> Callable[[Any, str], list[Complaint]] | None:
    """What a schema with this one type has against a number; None where it never has anything."""
    bounds = [
        (says, limit, test)
        for says, limit, test in (
            ("MultipleOf", schema.multipleOf, _multiple),
            ("Minimum boundary", schema.minimum, _above(schema.exclusiveMinimum)),
            ("Maximum boundary", schema.maximum, _below(schema.exclusiveMaximum)),
        )
        if limit is not None
    ]
    if type_ != "integer" and format_ != "float" and not bounds:
        return None

    def check(value: Any, path: str) -> list[Complaint]:
        found: list[Complaint] = []
        if not _in_range(value, type_, format_):
            found.append(("whole", path, _out_of_range("Checked", type_, format_, path)))
        for says, limit, test in bounds:
            if _in_range(limit, type_, format_):
                found += test(value, int(limit) if isinstance(value, int) else limit, path)
            else:
                # A bound that is none for this type is no fault of the value's, yet upstream refuses it.
                found.append(("whole", path, _out_of_range(says, type_, format_, path)))
                found += test(float(value), limit, path)
        return found

    return check


def _in_range(value: float, type_: str, format_: str) -> bool:
    if type_ == "integer":
        most = 1 << (31 if format_ == "int32" else 63)
        return value == int(value) and -most <= value < most
    return format_ != "float" or abs(value) < _FLOAT32


def _out_of_range(says: str, type_: str, format_: str, path: str) -> str:
    form = f"with format {format_}" if format_ else "(default format)"
    return f"{says} value must be of type {type_} {form} in {path}"


Test: TypeAlias = Callable[[Any, Any, str], list[Complaint]]


def _below(exclusive: bool) -> Test:
    words = "less than" if exclusive else "less than or equal to"

    def test(value: Any, limit: Any, path: str) -> list[Complaint]:
        if value > limit or (exclusive and value == limit):
            return [("invalid", path, f"{path} in body should be {words} {number(limit)}", value)]
        return []

    return test


def _above(exclusive: bool) -> Test:
    words = "greater than" if exclusive else "greater than or equal to"

    def test(value: Any, limit: Any, path: str) -> list[Complaint]:
        if value < limit or (exclusive and value == limit):
            return [("invalid", path, f"{path} in body should be {words} {number(limit)}", value)]
        return []

    return test


def _multiple(value: Any, factor: Any, path: str) -> list[Complaint]:
    if factor <= 0:
        says = f"factor MultipleOf declared for {path} must be positive: {number(factor)}"
        return [("invalid", path, says, factor)]
    if isinstance(value, int):
        fits = value % factor == 0
    else:
        # Upstream multiplies by the inverse of small factors: it is more exact.
        times = 1 / factor * value if factor < 1 else value / factor
        fits = is_whole(times)
    if fits:
        return []
    return [("invalid", path, f"{path} in body should be a multiple of {number(factor)}", value)]
