"""Validation of numbers: integer ranges, bounds and multiples, as upstream does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps

ViolationFields: TypeAlias = tuple[Any, ...]
"""The fields of a `steersman.server.crd.errors.SchemaViolation`."""

_FLOAT32 = 3.4028235677973366e38
"""The limit from which a float32 rounds to infinity."""

_SAFE = 2**53 - 1
"""The largest integer up to which float64 is exact."""


def number(value: float) -> str:
    """A number as Go prints it."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e21):
        return str(int(value))
    return repr(value)


def is_whole(value: float) -> bool:
    """Whether a number is an integer, within upstream's tolerance."""
    if abs(value) > _SAFE:
        return False
    below = int(value)
    return value == below or (below > 0 and value - below < 1e-9 * (value + below))


def number_check(
    schema: JSONSchemaProps, type_: str, format_: str
) -> Callable[[Any, str], list[ViolationFields]] | None:
    """The check of a schema's numbers; None if every number is valid."""
    bounds = [
        (detail, limit, test)
        for detail, limit, test in (
            ("MultipleOf", schema.multipleOf, _multiple_check),
            ("Minimum boundary", schema.minimum, _minimum_check(schema.exclusiveMinimum)),
            ("Maximum boundary", schema.maximum, _maximum_check(schema.exclusiveMaximum)),
        )
        if limit is not None
    ]
    if type_ != "integer" and format_ != "float" and not bounds:
        return None

    def check(value: Any, path: str) -> list[ViolationFields]:
        found: list[ViolationFields] = []
        if not _in_range(value, type_, format_):
            found.append(("whole", path, _out_of_range("Checked", type_, format_, path)))
        for detail, limit, test in bounds:
            if _in_range(limit, type_, format_):
                found += test(value, int(limit) if isinstance(value, int) else limit, path)
            else:
                # Upstream refuses the value if a bound does not fit the type.
                found.append(("whole", path, _out_of_range(detail, type_, format_, path)))
                found += test(float(value), limit, path)
        return found

    return check


def _in_range(value: float, type_: str, format_: str) -> bool:
    if type_ == "integer":
        most = 1 << (31 if format_ == "int32" else 63)
        return value == int(value) and -most <= value < most
    return format_ != "float" or abs(value) < _FLOAT32


def _out_of_range(detail: str, type_: str, format_: str, path: str) -> str:
    form = f"with format {format_}" if format_ else "(default format)"
    return f"{detail} value must be of type {type_} {form} in {path}"


BoundCheck: TypeAlias = Callable[[Any, Any, str], list[ViolationFields]]


def _maximum_check(exclusive: bool) -> BoundCheck:
    words = "less than" if exclusive else "less than or equal to"

    def test(value: Any, limit: Any, path: str) -> list[ViolationFields]:
        if value > limit or (exclusive and value == limit):
            return [("invalid", path, f"{path} in body should be {words} {number(limit)}", value)]
        return []

    return test


def _minimum_check(exclusive: bool) -> BoundCheck:
    words = "greater than" if exclusive else "greater than or equal to"

    def test(value: Any, limit: Any, path: str) -> list[ViolationFields]:
        if value < limit or (exclusive and value == limit):
            return [("invalid", path, f"{path} in body should be {words} {number(limit)}", value)]
        return []

    return test


def _multiple_check(value: Any, factor: Any, path: str) -> list[ViolationFields]:
    if factor <= 0:
        detail = f"factor MultipleOf declared for {path} must be positive: {number(factor)}"
        return [("invalid", path, detail, factor)]
    if isinstance(value, int):
        fits = value % factor == 0
    else:
        # Upstream multiplies by the inverse of small factors, which is more exact.
        times = 1 / factor * value if factor < 1 else value / factor
        fits = is_whole(times)
    if fits:
        return []
    return [("invalid", path, f"{path} in body should be a multiple of {number(factor)}", value)]
