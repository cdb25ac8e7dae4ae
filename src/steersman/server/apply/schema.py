"""What may stand where in a document, and how it is owned: the schema that all of apply works on.

A `Shape` says which sorts of values a place takes. Most take one; a place without a type takes any, and
the value tells which facet counts. Shapes come from the generated structs (`structs`) or from the OpenAPI
schema of a custom resource (`openapi`); whatever else has a `Shape` can be applied just as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from steersman.server.apply import path_element

Scalar: TypeAlias = Literal["", "numeric", "string", "boolean", "untyped"]


class Shape(NamedTuple):
    """The sorts of values one place takes; at least one."""

    scalar: Scalar = ""
    list: List | None = None
    map: Map | None = None


class Map:
    """An object or a map: named fields, others, and whether it is owned as a whole."""

    __slots__ = ("_fields", "_known", "_make", "_other", "atomic")

    def __init__(
        self,
        fields: Mapping[str, Callable[[], Shape]] | None = None,
        *,
        others: Callable[[], Shape] | None = None,
        atomic: bool = False,
    ) -> None:
        """Shapes are asked for when needed, since some types contain themselves."""
        self._fields = fields or {}
        self._make = others
        self._other: Shape | None = None
        self._known: dict[str, Shape] = {}
        self.atomic = atomic

    @property
    def names(self) -> tuple[str, ...]:
        """The fields it names."""
        return tuple(self._fields)

    def named(self, name: str) -> bool:
        """Whether this is one of the fields it names, and not just some key."""
        return name in self._fields

    def takes(self, name: str) -> bool:
        """Whether there may be such a field at all."""
        return self._make is not None or name in self._fields

    @property
    def other(self) -> Shape | None:
        """The shape of what it does not name; None where there may be nothing else."""
        if self._other is None and self._make is not None:
            self._other = self._make()
        return self._other

    def at(self, name: str) -> Shape:
        """The shape of a field; what the schema does not know is owned as a whole."""
        shape = self._known.get(name)
        if shape is None:
            make = self._fields.get(name)
            if make is None:
                return self.other or UNTYPED
            shape = self._known[name] = make()
        return shape


class List:
    """A list: owned as a whole, or item by item as a set or as a map with keys."""

    __slots__ = ("_known", "_make", "atomic", "defaults", "keys")

    def __init__(
        self,
        item: Callable[[], Shape],
        *,
        keys: tuple[str, ...] = (),
        defaults: Mapping[str, Any] | None = None,
        atomic: bool = False,
    ) -> None:
        """``defaults`` are what the keys count as that an item leaves out."""
        self._make = item
        self._known: Shape | None = None
        self.keys = keys
        self.defaults = defaults or {}
        self.atomic = atomic

    @property
    def item(self) -> Shape:
        """The shape of each item."""
        if self._known is None:
            self._known = self._make()
        return self._known

    def element(self, item: Any) -> str:
        """Which item this is. Raises `ShapeError` where that cannot be told."""
        if not self.keys:
            if isinstance(item, (dict, list)) or item is None:
                raise ShapeError(_NO_MEMBER[type(item)])
            return path_element.value(item)
        if item is None:
            raise ShapeError("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise ShapeError("associative list with keys may not have non-map elements")
        found = {}
        for name in self.keys:
            if name in item:
                found[name] = item[name]
            elif name in self.defaults:
                found[name] = self.defaults[name]
        if not found:
            names = " ".join(f'"{name}"' for name in self.keys)
            raise ShapeError(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return path_element.key(found)


_NO_MEMBER: Mapping[type, str] = {
    dict: "associative list without keys has an element that's a map type",
    list: "not supported: associative list with lists as elements",
    type(None): "associative list without keys has an element that's an explicit null",
}


class ShapeError(ValueError):
    """A document that does not have the shape it should, in upstream's words."""


def facet(shape: Shape, value: Any) -> Map | List | None:
    """How a value is to be handled: as this map, as this list, or (None) as one scalar.

    Null does not tell, and a value that does not fit is handled as what should be there.
    """
    sort = type(value)
    if sort is dict:
        if shape.map is not None:
            return shape.map
    elif sort is list:
        if shape.list is not None:
            return shape.list
    elif value is not None and shape.scalar:
        return None
    if shape.map is not None:
        return shape.map
    return None if shape.scalar else shape.list


# -- places without a type --------------------------------------------------------------------


def _untyped() -> Shape:
    return UNTYPED


def _deduced() -> Shape:
    return DEDUCED


UNTYPED = Shape("untyped", List(_untyped, atomic=True), Map(others=_untyped, atomic=True))
"""Anything, owned as a whole."""

DEDUCED = Shape("untyped", List(_untyped, atomic=True), Map(others=_deduced))
"""Anything: maps are owned key by key, lists as a whole."""
