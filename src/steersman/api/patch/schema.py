"""Schemas for strategic merge patch: the patch strategy of each field, and the names of the directives."""

from __future__ import annotations

from typing import Protocol

import msgspec

from steersman.api.generated.merge import fields_of
from steersman.api.kinds import Struct
from steersman.api.patch.values import PatchError

DIRECTIVE = "$patch"
RETAIN = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
ORDER = "$setElementOrder"


class Field(msgspec.Struct, frozen=True):
    """The patch strategy of one field."""

    merges: bool = False
    """A list is merged item by item; otherwise it is replaced."""
    replaces: bool = False
    """An object is replaced; otherwise it is merged."""
    retains: bool = False
    """Patches of the object, or of the list's items, list the keys to retain."""
    key: str = ""
    """The merge key of a list's items; empty for scalars."""
    schema: Schema | None = None
    """The fields of the object, or of the list's items; None if those are not structs."""


class Schema(Protocol):
    """The patch schema of a type."""

    @property
    def name(self) -> str:
        """The type's name in messages."""
        ...

    def field(self, name: str) -> Field | None:
        """Return the patch strategy of a field; None if there is no such field."""
        ...


def find_field(schema: Schema | None, name: str) -> Field:
    """Return the patch strategy of a field. Raises `PatchError` if there is no such field."""
    if schema is None:
        raise PatchError("merging an object in json but data type is not struct, instead is: map")
    field = schema.field(name)
    if field is None:
        raise PatchError(f'unable to find api field in struct {schema.name} for the json field "{name}"')
    return field


class StructSchema:
    """The schema of a generated struct, from its annotations."""

    def __init__(self, struct: type[Struct]) -> None:
        self.name = struct.__name__
        self._struct = struct
        self._fields: dict[str, Field] = {}

    def field(self, name: str) -> Field | None:
        if name not in fields_of(self._struct):
            return None
        if name not in self._fields:
            self._fields[name] = self._described(name)
        return self._fields[name]

    def _described(self, name: str) -> Field:
        found = fields_of(self._struct)[name]
        strategies = found.merge.strategy.split(",") if found.merge is not None else []
        return Field(
            merges="merge" in strategies,
            replaces="replace" in strategies,
            retains="retainKeys" in strategies,
            key=found.merge.key if found.merge is not None else "",
            schema=schema_of(found.struct) if found.struct is not None and found.shape != "map" else None,
        )


_schemas: dict[type, StructSchema] = {}


def schema_of(struct: type[Struct]) -> Schema:
    """Return the schema of a struct of `steersman.api.generated`."""
    if struct not in _schemas:
        _schemas[struct] = StructSchema(struct)
    return _schemas[struct]
