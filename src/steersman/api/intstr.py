"""IntOrString values: a number or a percentage, such as ``maxSurge: 2`` or ``maxSurge: 25%``."""

from __future__ import annotations

import re

_PERCENT = re.compile(r"([+-]?[0-9]{1,18})%")


def scaled(value: int | str | None, total: int, *, round_up: bool) -> int:
    """Return the number, or the percentage of ``total``, as upstream's GetScaledValueFromIntOrPercent.

    Raises `ValueError` for None, and for a string that is not a whole percentage.
    """
    if value is None:
        raise ValueError("nil value for IntOrString")
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    match = _PERCENT.fullmatch(value)
    if match is None:
        raise ValueError(f'invalid value for IntOrString: invalid value "{value}": not a whole number')
    share = int(match[1]) * total
    return -(-share // 100) if round_up else share // 100
