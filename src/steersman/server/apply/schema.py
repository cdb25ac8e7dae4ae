"""Typed schemas: the types of a document's fields, and whether each is atomic or granular.

A `TypedSchema` (upstream's ``schema.Atom``) says which types a field accepts. Most accept one; an untyped field
accepts any, and its value decides. Schemas come from the generated structs (`structs`) or from the OpenAPI
schema of a custom resource (`openapi`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from steersman.server.apply import path_element

Scalar: TypeAlias = Literal["", "numeric", "string", "boolean", "untyped"]


class TypedSchema(msgspec.Struct, frozen=True):
    """The types one field accepts; at least one is set."""

    scalar: Scalar = ""
    list: List | None = None
    map: Map | None = None


class Map:
    """An object or a map: its declared fields, the type of other keys, and whether it is atomic."""

    __slots__ = ("_fields", "_known", "_make", "_other", "atomic")

    def __init__(
        self,
        fields: Mapping[str, Callable[[], TypedSchema]] | None = None,
        *,
        others: Callable[[], TypedSchema] | None = None,
        atomic: bool = False,
    ) -> None:
        """Field schemas are made on first use, since some types are recursive."""
        self._fields = fields or {}
        self._make = others
        self._other: TypedSchema | None = None
        self._known: dict[str, TypedSchema] = {}
        self.atomic = atomic

    @property
    def names(self) -> tuple[str, ...]:
        """The declared fields."""
        return tuple(self._fields)

    def declares(self, name: str) -> bool:
        """Whether a field is declared, as opposed to a map key."""
        return name in self._fields

    def allows(self, name: str) -> bool:
        """Whether the schema accepts a field or key of this name."""
        return self._make is not None or name in self._fields

    @property
    def values(self) -> TypedSchema | None:
        """The schema of keys that are not declared; None if none are accepted."""
        if self._other is None and self._make is not None:
            self._other = self._make()
        return self._other

    def at(self, name: str) -> TypedSchema:
        """The schema of a field or key; unknown fields are atomic."""
        schema = self._known.get(name)
        if schema is None:
            make = self._fields.get(name)
            if make is None:
                return self.values or UNTYPED
            schema = self._known[name] = make()
        return schema


class List:
    """A list: atomic, or granular as a set or as a map with keys."""

    __slots__ = ("_known", "_make", "atomic", "defaults", "keys")

    def __init__(
        self,
        item: Callable[[], TypedSchema],
        *,
        keys: tuple[str, ...] = (),
        defaults: Mapping[str, Any] | None = None,
        atomic: bool = False,
    ) -> None:
        """``defaults`` are the values of key fields that an item omits."""
        self._make = item
        self._known: TypedSchema | None = None
        self.keys = keys
        self.defaults = defaults or {}
        self.atomic = atomic

    @property
    def item(self) -> TypedSchema:
        """The schema of each item."""
        if self._known is None:
            self._known = self._make()
        return self._known

    def element(self, item: Any) -> str:
        """The path element of an item. Raises `SchemaError` if it has none."""
        if not self.keys:
            if isinstance(item, (dict, list)) or item is None:
                raise SchemaError(_NO_MEMBER[type(item)])
            return path_element.value(item)
        if item is None:
            raise SchemaError("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise SchemaError("associative list with keys may not have non-map elements")
        found = {}
        for name in self.keys:
            if name in item:
                found[name] = item[name]
            elif name in self.defaults:
                found[name] = self.defaults[name]
        if not found:
            names = " ".join(f'"{name}"' for name in self.keys)
            raise SchemaError(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return path_element.key(found)


_NO_MEMBER: Mapping[type, str] = {
    dict: "associative list without keys has an element that's a map type",
    list: "not supported: associative list with lists as elements",
    type(None): "associative list without keys has an element that's an explicit null",
}


class SchemaError(ValueError):
    """A document does not match its schema; the text is upstream's."""


def deduce(schema: TypedSchema, value: Any) -> Map | List | None:
    """The type by which to handle a value (upstream's ``deduceAtom``): a map, a list, or None for a scalar.

    A null or a value of the wrong type is typed by the declared type.
    """
    sort = type(value)
    if sort is dict:
        if schema.map is not None:
            return schema.map
    elif sort is list:
        if schema.list is not None:
            return schema.list
    elif value is not None and schema.scalar:
        return None
    if schema.map is not None:
        return schema.map
    return None if schema.scalar else schema.list


# -- untyped fields ---------------------------------------------------------------------------


def _untyped() -> TypedSchema:
    return UNTYPED


def _deduced() -> TypedSchema:
    return DEDUCED


UNTYPED = TypedSchema("untyped", List(_untyped, atomic=True), Map(others=_untyped, atomic=True))
"""Any value, atomic."""

DEDUCED = TypedSchema("untyped", List(_untyped, atomic=True), Map(others=_deduced))
"""Any value: maps are granular, lists atomic."""
