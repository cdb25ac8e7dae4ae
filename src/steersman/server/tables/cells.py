"""Formatting of values that the cells of many kinds show: labels, selectors, quantities, ages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from steersman.api.label_selectors import LabelSelectorLike, compile_selector
from steersman.api.quantity import Quantity


def format_labels(labels: Mapping[str, str]) -> str:
    """``app=web,tier=front``, in the order of the keys."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or "<none>"


def format_selector(selector: LabelSelectorLike | None) -> str:
    """A label selector as a query spells it."""
    try:
        return str(compile_selector(selector)) or "<none>"
    except ValueError:
        return "<error>"


class NamedImage(Protocol):
    """The fields of a container that a table shows."""

    @property
    def name(self) -> str: ...
    @property
    def image(self) -> str: ...


def container_cells(containers: Iterable[NamedImage]) -> tuple[str, str]:
    """Two cells: the names and the images of containers."""
    shown = tuple(containers)
    return ",".join(each.name for each in shown), ",".join(each.image for each in shown)


def format_first(items: Sequence[str], limit: int = 3) -> str:
    """The first ``limit`` items and the number of the others: ``a,b,c + 2 more...``."""
    text = ",".join(items[:limit])
    return f"{text} + {len(items) - limit} more..." if len(items) > limit else text


def format_quantity(value: str | float | None) -> str:
    """A quantity in canonical form; None is zero."""
    if value is None:
        return "0"
    try:
        return str(Quantity.parse(value))
    except ValueError:
        # Validation refuses such a quantity; a stored one is shown as it is.
        return str(value)


def format_bool(value: bool | None) -> str:
    """A boolean, or ``<unset>`` for None."""
    return "<unset>" if value is None else str(value)


_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def format_access_modes(modes: Iterable[str]) -> str:
    """Access modes in short: ``RWO,ROX``."""
    granted = tuple(modes)
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in granted)


# -- durations --------------------------------------------------------------------------------

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY

# Below a limit in seconds, a duration shows these units; the smaller one is left out where it is zero.
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


def human_duration(duration: timedelta) -> str:
    """A duration in at most two units: ``45s``, ``3m20s``, ``5h``, ``2d4h``, ``3y12d``."""
    # Rounded towards zero, since clocks differ slightly.
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


def age(timestamp: datetime | None, now: datetime) -> str:
    """The time since a timestamp, or ``<unknown>`` for None."""
    return "<unknown>" if timestamp is None else human_duration(now - timestamp)
