"""The table of situations: functions that look at one object and yield findings, by the kinds they look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from steersman.explain.model import Case, Finding, Weight

Situation: TypeAlias = Callable[[Case], Iterator[Finding]]

ANY = "*"
"""A situation that every kind can be in."""
_table: dict[str, list[Situation]] = {}


def situation(*kinds: str) -> Callable[[Situation], Situation]:
    """Enter a function in the table, for objects of some kinds."""

    def enter(function: Situation) -> Situation:
        for kind in kinds:
            _table.setdefault(kind, []).append(function)
        return function

    return enter


def findings(case: Case) -> Iterator[Finding]:
    """All that the table finds about an object. A function that cannot make sense of an odd object says so."""
    for function in (*_table.get(case.ref.kind, ()), *_table.get(ANY, ())):
        try:
            yield from function(case)
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            yield Finding(
                code="odd",
                subject=case.ref,
                cause=f"it has odd fields, so {function.__name__.replace('_', ' ')} cannot be told ({type(error).__name__})",
                weight=Weight.NOTE,
            )


def knows(kind: str) -> bool:
    """Whether there are situations of a kind, besides those that every kind can be in."""
    return kind in _table


def situations() -> dict[str, tuple[str, ...]]:
    """The names of the functions by kind, for the documentation and its test."""
    return {kind: tuple(function.__name__ for function in table) for kind, table in _table.items()}
