"""What a table of a kind is made of: its columns, and the cells of an object in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import msgspec

Cell: TypeAlias = str | int | float | bool | None


class Column(NamedTuple):
    """One column. Those with a priority are shown only on demand: ``kubectl get -o wide``."""

    name: str
    type: str = "string"
    format: str = ""
    # differs: empty where upstream quotes its API reference.
    description: str = ""
    priority: int = 0


class Condition(NamedTuple):
    """What a row says of itself besides its cells."""

    type: str
    status: str
    reason: str
    message: str


class Printer(msgspec.Struct, frozen=True):
    """How objects of a kind are shown."""

    columns: tuple[Column, ...]
    cells: Callable[[Any, datetime], Sequence[Cell]]
    """One cell per column, at a given time."""
    conditions: Callable[[Any], tuple[Condition, ...]] | None = None
    order: Callable[[Any], Any] | None = None
    """A key to sort the rows of a list by; the list's own order by default."""


Printers: TypeAlias = Mapping[str, Printer]
"""By resource: ``pods``, ``deployments.apps``."""

NAME = Column("Name", format="name")


def columns(*parts: str | Column) -> tuple[Column, ...]:
    """Columns of text by their names, and others as they are."""
    return tuple(part if isinstance(part, Column) else Column(part) for part in parts)


def integer(name: str) -> Column:
    return Column(name, type="integer")


def boolean(name: str) -> Column:
    return Column(name, type="boolean")


def wide(name: str, format: str = "") -> Column:
    """A column that is shown on demand only."""
    return Column(name, format=format, priority=1)
