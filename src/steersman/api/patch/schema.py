"""What strategic merge patch asks about the fields of a type, and the words of its directives."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from steersman.api.generated.merge import fields_of
from steersman.api.kinds import Struct
from steersman.api.patch.values import PatchError

DIRECTIVE = "$patch"
RETAIN = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
ORDER = "$setElementOrder"


class Field(NamedTuple):
    """How one field is patched."""

    merges: bool = False
    """Whether a list is merged item by item; else it is replaced whole."""
    replaces: bool = False
    """Whether an object is replaced whole; else it is merged."""
    retains: bool = False
    """Whether patches of the object, or of the list's items, say which keys to keep."""
    key: str = ""
    """The field that tells the items of a merged list apart; empty for scalars."""
    schema: Schema | None = None
    """The fields of the object, or of the list's items; None if those are not structs."""


class Schema(Protocol):
    """A type whose fields are known."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def field(self, name: str) -> Field | None:
        """How a field is patched; None if there is no such field."""
        ...


def find_field(schema: Schema | None, name: str) -> Field:
    """How a field is patched. Raises `PatchError` if there is no such field."""
    if schema is None:
        raise PatchError("merging an object in json but data type is not struct, instead is: map")
    field = schema.field(name)
    if field is None:
        raise PatchError(f'unable to find api field in struct {schema.name} for the json field "{name}"')
    return field


class StructSchema:
    """The schema of one of our own structs, read off its annotations."""

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
    """The schema of a struct of `steersman.api.generated`."""
    if struct not in _schemas:
        _schemas[struct] = StructSchema(struct)
    return _schemas[struct]
