"""The two ways a field can be missing, and how to fill it without copying what is whole."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")


def unset(obj: S, **defaults: Any) -> S:
    """Fill the fields nobody chose a value for: None is missing, zero is a choice."""
    changes = {name: value for name, value in defaults.items() if getattr(obj, name) is None}
    return msgspec.structs.replace(obj, **changes) if changes else obj


def zero(obj: S, **defaults: Any) -> S:
    """Fill the fields that are zero, empty or None: here all of those mean missing."""
    changes = {name: value for name, value in defaults.items() if not getattr(obj, name)}
    return msgspec.structs.replace(obj, **changes) if changes else obj


def put(obj: S, **values: Any) -> S:
    """Set fields, where they differ from what is there by more than their looks."""
    changes = {name: value for name, value in values.items() if getattr(obj, name) is not value}
    return msgspec.structs.replace(obj, **changes) if changes else obj


def each(items: tuple[T, ...], turn: Callable[[T], T]) -> tuple[T, ...]:
    """Every item filled; the same tuple where none needed it."""
    if not items:
        return items
    turned = tuple([turn(item) for item in items])
    return items if all(map(is_, turned, items)) else turned


def maybe(value: T | None, turn: Callable[[T], T]) -> T | None:
    """What is there, filled."""
    return None if value is None else turn(value)
