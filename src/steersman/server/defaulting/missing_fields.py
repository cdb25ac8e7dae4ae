"""The ways a field can be missing, and how to fill it without copying what is whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import is_
from typing import Any, TypeVar

import msgspec

from steersman.api.generated.base import Quantity as Amount
from steersman.api.quantity import Quantity

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")

_MILLI = 10**6


class Malformed(ValueError):
    """A value that cannot be read at all, so that the object is none of its kind."""


def unset(obj: S, **defaults: Any) -> S:
    """Fill the fields nobody chose a value for: None is missing, zero is a choice."""
    changes = {
        name: value for name, value in defaults.items() if value is not None and getattr(obj, name) is None
    }
    return msgspec.structs.replace(obj, **changes) if changes else obj


def zero(obj: S, **defaults: Any) -> S:
    """Fill the fields that are zero, empty or None: here all of those mean missing."""
    changes = {name: value for name, value in defaults.items() if not getattr(obj, name)}
    return msgspec.structs.replace(obj, **changes) if changes else obj


def put(obj: S, **values: Any) -> S:
    """Set fields, where another thing is there, or another text."""
    changes = {
        name: value
        for name, value in values.items()
        if (there := getattr(obj, name)) is not value and not (type(there) is str and there == value)
    }
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


# -- amounts ----------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def amount(value: Amount) -> str:
    """An amount as the server writes it. Raises `Malformed` for what is none."""
    try:
        return str(Quantity.parse(value))
    except ValueError as error:
        raise Malformed(str(error).partition(": ")[2]) from None


@lru_cache(maxsize=4096)
def _rounded(value: Amount) -> str:
    """The same in whole thousandths, which is the finest that resources are counted in."""
    text = amount(value)
    exact = Quantity.parse(text)
    if exact.nanos % _MILLI:
        return str(Quantity(exact.milli() * _MILLI, exact.format))
    return text


def amounts(given: Mapping[str, Amount]) -> Mapping[str, Amount]:
    """Amounts of resources as the server writes them; the same map where they are written so already."""
    changes = {name: text for name, value in given.items() if (text := _rounded(value)) != value}
    return {**given, **changes} if changes else given
