"""The phrases that cells of many kinds are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from steersman.api.label_selectors import Described, compile_selector
from steersman.api.quantity import Quantity


def labels(found: Mapping[str, str]) -> str:
    """``app=web,tier=front``, in the order of the keys."""
    return ",".join(f"{key}={found[key]}" for key in sorted(found)) or "<none>"


def selector(described: Described | None) -> str:
    """A label selector as a query spells it."""
    try:
        return str(compile_selector(described)) or "<none>"
    except ValueError:
        return "<error>"


class Named(Protocol):
    """A container, as far as it is shown."""

    @property
    def name(self) -> str: ...
    @property
    def image(self) -> str: ...


def containers(found: Iterable[Named]) -> tuple[str, str]:
    """The names and the images of containers."""
    listed = tuple(found)
    return ",".join(each.name for each in listed), ",".join(each.image for each in listed)


def some(found: Sequence[str], most: int = 3) -> str:
    """The first of many, and how many more there are."""
    text = ",".join(found[:most])
    return f"{text} + {len(found) - most} more..." if len(found) > most else text


def quantity(value: str | float | None) -> str:
    """An amount as the server would write it; nothing is zero."""
    if value is None:
        return "0"
    try:
        return str(Quantity.parse(value))
    except ValueError:
        # Nobody may store such a thing; showing it as it is serves best whoever looks for it.
        return str(value)


def truth(value: bool | None) -> str:
    """A switch that may not have been set."""
    return "<unset>" if value is None else str(value)


_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def access_modes(modes: Iterable[str]) -> str:
    """How a volume may be mounted, in short."""
    had = tuple(modes)
    return ",".join(short for mode, short in _MODES.items() if mode in had)
