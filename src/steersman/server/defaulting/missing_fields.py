"""Helpers for setting missing fields of frozen structs without copying the structs that need no change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from typing import Any, TypeAlias, TypeVar

import msgspec

from steersman.api.bounded_cache import short_cache
from steersman.api.generated.base import Quantity as Amount
from steersman.api.go_base64 import CorruptBase64, canonical
from steersman.api.quantity import Quantity

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")

GroupKind: TypeAlias = tuple[str, str]
Default: TypeAlias = Callable[[Any], Any]
"""Returns an object of a kind with its defaults set; the same object where none is missing."""

_MILLI = 10**6


def canonical_base64(value: str) -> str:
    """A base64 text as Go writes it. Raises `MalformedValue`."""
    try:
        return canonical(value)
    except CorruptBase64 as error:
        raise MalformedValue(str(error)) from None


class MalformedValue(ValueError):
    """A value that cannot be parsed, so that the object cannot be decoded as its kind."""


def default_if_none(obj: S, **defaults: Any) -> S:
    """Sets the fields that are None; zero and empty values are kept."""
    changes = {
        name: value for name, value in defaults.items() if value is not None and getattr(obj, name) is None
    }
    return msgspec.structs.replace(obj, **changes) if changes else obj


def default_if_zero(obj: S, **defaults: Any) -> S:
    """Sets the fields that are zero, empty or None."""
    changes = {name: value for name, value in defaults.items() if not getattr(obj, name)}
    return msgspec.structs.replace(obj, **changes) if changes else obj


def put(obj: S, **values: Any) -> S:
    """Sets fields; returns the same object where each has that value (by identity, or an equal string)."""
    changes = {
        name: value
        for name, value in values.items()
        if (current := getattr(obj, name)) is not value and not (type(current) is str and current == value)
    }
    return msgspec.structs.replace(obj, **changes) if changes else obj


def map_items(items: tuple[T, ...], function: Callable[[T], T]) -> tuple[T, ...]:
    """Applies a function to each item; returns the same tuple where no item changes."""
    if not items:
        return items
    mapped = tuple([function(item) for item in items])
    return items if all(map(is_, mapped, items)) else mapped


def map_optional(value: T | None, function: Callable[[T], T]) -> T | None:
    """Applies a function to a value; None stays None."""
    return None if value is None else function(value)


# -- quantities -------------------------------------------------------------------------------


@short_cache(4096)
def canonical_quantity(value: Amount) -> str:
    """A quantity in canonical form. Raises `MalformedValue` where it cannot be parsed."""
    try:
        return str(Quantity.parse(value))
    except ValueError as error:
        raise MalformedValue(str(error).partition(": ")[2]) from None


@short_cache(4096)
def _canonical_milli(value: Amount) -> str:
    """A quantity in canonical form, rounded up to whole thousandths: the precision of resource lists."""
    text = canonical_quantity(value)
    exact = Quantity.parse(text)
    if exact.nanos % _MILLI:
        return str(Quantity(exact.milli() * _MILLI, exact.format))
    return text


def canonical_quantities(given: Mapping[str, Amount]) -> Mapping[str, Amount]:
    """A resource list in canonical form; the same map where it is canonical already."""
    changes = {name: text for name, value in given.items() if (text := _canonical_milli(value)) != value}
    return {**given, **changes} if changes else given
