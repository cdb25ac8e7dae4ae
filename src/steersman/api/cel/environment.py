"""The environment of an expression: variables, functions, and structs with their fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from steersman.api.cel.libraries import LIBRARY, TYPE_NAMES
from steersman.api.cel.parser import RESERVED
from steersman.api.cel.signatures import Overload
from steersman.api.cel.types import INT, Type, struct, type_of

Fields: TypeAlias = Mapping[str, Type]


class Structs:
    """The fields of structs, by the struct's name. Fields may be computed on first use."""

    def __init__(self) -> None:
        self._known: dict[str, Fields] = {}
        self._lazy: dict[str, Callable[[], Fields]] = {}
        self._others: tuple[Structs, ...] = ()

    def add(self, name: str, fields: Fields | Callable[[], Fields]) -> Type:
        """Declare a struct and return its type."""
        if callable(fields):
            self._lazy[name] = fields
        else:
            self._known[name] = fields
        return struct(name)

    def fields(self, name: str) -> Fields | None:
        """Return the fields of a struct; None for an undeclared one."""
        known = self._known.get(name)
        if known is None and name in self._lazy:
            known = self._known[name] = self._lazy.pop(name)()
        if known is None:
            return next((found for one in self._others if (found := one.fields(name)) is not None), None)
        return known

    def field(self, name: str, field: str) -> Type | None:
        """Return the type of a field. A field named as a reserved word of CEL may be written unescaped."""
        fields = self.fields(name)
        if fields is None:
            return None
        found = fields.get(field)
        return fields.get(f"__{field}__") if found is None and field in RESERVED else found

    def include(self, others: Structs) -> None:
        """Add all structs of ``others``."""
        self._others = (*self._others, others)

    def copy(self) -> Structs:
        """Return a copy to which structs can be added."""
        copied = Structs()
        copied.include(self)
        return copied


def _time_structs() -> Structs:
    """Declare Duration and Timestamp, which can be constructed from their fields."""
    structs = Structs()
    for name in ("google.protobuf.Duration", "google.protobuf.Timestamp"):
        structs.add(name, {"seconds": INT, "nanos": INT})
    return structs


@dataclass(frozen=True, slots=True)
class Environment:
    """The variables, structs, functions and types that an expression may use."""

    variables: Mapping[str, Type] = field(default_factory=dict)
    structs: Structs = field(default_factory=_time_structs)
    functions: Mapping[str, tuple[Overload, ...]] = field(default_factory=lambda: LIBRARY)
    types: Mapping[str, Type] = field(default_factory=lambda: TYPE_NAMES)

    def with_variables(self, /, **variables: Type) -> Environment:
        """Return the environment with additional variables."""
        return Environment({**self.variables, **variables}, self.structs, self.functions, self.types)

    def with_types(self, *structs: Type) -> Environment:
        """Return the environment with structs whose names can be used as types."""
        named = {one.name: type_of(one) for one in structs}
        return Environment(self.variables, self.structs, self.functions, {**self.types, **named})

    def name(self, name: str) -> Type | None:
        """Return the type of a variable or type name; None for an undeclared one."""
        name = name.removeprefix(".")
        return self.variables.get(name) or self.types.get(name)

    def function(self, name: str) -> tuple[Overload, ...] | None:
        """Return the overloads of a function; None for an undeclared one."""
        return self.functions.get(name.removeprefix("."))
