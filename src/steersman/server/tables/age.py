"""How long ago, for people: two or three figures are enough."""

from __future__ import annotations

from datetime import datetime, timedelta

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY

# Up to so many seconds a duration is written in these units; the smaller one is left out where it is nothing.
_STEPS = (
    (2 * _MINUTE, (1, "s"), None),
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (48 * _HOUR, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)


def human(duration: timedelta) -> str:
    """A duration: ``45s``, ``3m20s``, ``5h``, ``2d4h``, ``3y12d``."""
    # Towards zero: clocks may differ by a moment.
    seconds = int(duration / timedelta(seconds=1))
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    for limit, (unit, name), smaller in _STEPS:
        if seconds < limit:
            text = f"{seconds // unit}{name}"
            if smaller is not None and (rest := seconds % unit // smaller[0]):
                text += f"{rest}{smaller[1]}"
            return text
    return f"{seconds // _YEAR}y"


def since(then: datetime | None, now: datetime) -> str:
    """How long ago an instant was."""
    return "<unknown>" if then is None else human(now - then)
