"""Matching of objects against expected fields: ``{status: {readyReplicas: ">= 2"}}``.

Maps are compared by the expected fields only; a list must contain every expected element. ``null`` matches an absent
field, ``"*"`` any present one, and a string such as ``">= 2"`` compares numbers.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_COMPARED = re.compile(r"^(>=|<=|!=|>|<) *(-?\d+(?:\.\d+)?)$")


def mismatches(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """Descriptions of the differences between expected and actual fields."""
    at = path or "it"
    if wanted is None:
        if found not in (None, {}, [], ""):
            yield f"{at} is {short(found)}, not absent"
    elif isinstance(wanted, Mapping):
        if not isinstance(found, Mapping):
            found = {}
        for field, inner in wanted.items():
            yield from mismatches(inner, found.get(field), f"{path}.{field}" if path else field)
    elif isinstance(wanted, Sequence) and not isinstance(wanted, str):
        elements = found if isinstance(found, Sequence) and not isinstance(found, str) else ()
        for inner in wanted:
            if not any(matches(inner, each) for each in elements):
                yield f"{at} has no {short(inner)}: {short(list(elements))}"
    elif wanted == "*":
        if found is None:
            yield f"{at} is absent"
    elif isinstance(wanted, str) and (compared := _COMPARED.match(wanted)):
        # Zero is omitted on the wire.
        number = 0 if found is None else found
        if not isinstance(number, int | float) or not COMPARE[compared[1]](number, float(compared[2])):
            yield f"{at} is {short(found)}, not {wanted}"
    elif found != wanted and not (wanted in (0, False, "") and found is None):
        yield f"{at} is {short(found)}, not {short(wanted)}"


def matches(wanted: Any, found: Any) -> bool:
    """Whether the actual fields match the expected ones."""
    return next(mismatches(wanted, found), None) is None


def short(value: object, longest: int = 160) -> str:
    """A value, truncated to ``longest`` characters."""
    text = repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"
