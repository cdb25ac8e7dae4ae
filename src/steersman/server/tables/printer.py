"""Printer: the columns of a kind's table and the function that makes an object's cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import msgspec

Cell: TypeAlias = str | int | float | bool | None


class Column(NamedTuple):
    """One column. Columns with a priority above zero are shown by ``kubectl get -o wide`` only."""

    name: str
    type: str = "string"
    format: str = ""
    # differs: empty where upstream quotes its API reference.
    description: str = ""
    priority: int = 0


class Condition(NamedTuple):
    """A condition of a table row, such as Completed."""

    type: str
    status: str
    reason: str
    message: str


class Printer(msgspec.Struct, frozen=True):
    """The columns and cells of one kind."""

    columns: tuple[Column, ...]
    cells: Callable[[Any, datetime], Sequence[Cell]]
    """Returns one cell per column; ages are relative to the given time."""
    conditions: Callable[[Any], tuple[Condition, ...]] | None = None
    order: Callable[[Any], Any] | None = None
    """The sort key of rows; None keeps the order of the list."""


Printers: TypeAlias = Mapping[str, Printer]
"""Printers by resource: ``pods``, ``deployments.apps``."""

NAME = Column("Name", format="name")


def columns(*parts: str | Column) -> tuple[Column, ...]:
    """Columns from names (of type string) and from columns as they are."""
    return tuple(part if isinstance(part, Column) else Column(part) for part in parts)


def integer(name: str) -> Column:
    return Column(name, type="integer")


def boolean(name: str) -> Column:
    return Column(name, type="boolean")


def wide(name: str, format: str = "") -> Column:
    """A column that only ``-o wide`` shows."""
    return Column(name, format=format, priority=1)
