"""The smallest faults that still break the same rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, replace
from typing import TypeAlias

from steersman.sim.faults.fault import Fault

Faults: TypeAlias = tuple[Fault, ...]
TRIES = 60
"""How many runs it may cost."""


def shrink(faults: Sequence[Fault], breaks: Callable[[Faults], bool], tries: int = TRIES) -> Faults:
    """Leave out what is not needed, then make what is left plainer, for as long as it still ``breaks``."""
    smallest = tuple(faults)
    again = True
    while again:
        again = False
        for smaller in _smaller(smallest):
            if tries <= 0:
                return smallest
            tries -= 1
            if breaks(smaller):
                smallest = smaller
                again = True
                break
    return smallest


def _smaller(faults: Faults) -> Iterator[Faults]:
    for i in range(len(faults)):
        yield faults[:i] + faults[i + 1 :]
    for i, fault in enumerate(faults):
        for plainer in _plainer(fault):
            yield (*faults[:i], plainer, *faults[i + 1 :])


def _plainer(fault: Fault) -> Iterator[Fault]:
    """The same with one thing as it is by default, or with a smaller number."""
    for field in fields(fault):
        value = getattr(fault, field.name)
        if field.default is not MISSING and value != field.default:
            yield replace(fault, **{field.name: field.default})
        if field.name in ("times", "revisions") and isinstance(value, int) and value > 1:
            yield replace(fault, **{field.name: value // 2})
