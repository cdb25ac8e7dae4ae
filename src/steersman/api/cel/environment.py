"""What an expression may speak of: variables, functions, and structs with their fields."""

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
    """The fields of structs by their names. What fields there are is found out when first asked."""

    def __init__(self) -> None:
        self._known: dict[str, Fields] = {}
        self._later: dict[str, Callable[[], Fields]] = {}
        self._others: tuple[Structs, ...] = ()

    def add(self, name: str, fields: Fields | Callable[[], Fields]) -> Type:
        """Declare a struct; answers with its type."""
        if callable(fields):
            self._later[name] = fields
        else:
            self._known[name] = fields
        return struct(name)

    def fields(self, name: str) -> Fields | None:
        """The fields of a struct; None for one that nobody declared."""
        known = self._known.get(name)
        if known is None and name in self._later:
            known = self._known[name] = self._later.pop(name)()
        if known is None:
            return next((found for one in self._others if (found := one.fields(name)) is not None), None)
        return known

    def field(self, name: str, field: str) -> Type | None:
        """The type of a field. One that is called as a word of CEL is found by that word."""
        fields = self.fields(name) or {}
        found = fields.get(field)
        return fields.get(f"__{field}__") if found is None and field in RESERVED else found

    def include(self, others: Structs) -> None:
        """Know the structs of others as well."""
        self._others = (*self._others, others)

    def copy(self) -> Structs:
        """The same structs, to add others to."""
        copied = Structs()
        copied.include(self)
        return copied


def _clockwork() -> Structs:
    """Times can be made of their parts."""
    structs = Structs()
    for name in ("google.protobuf.Duration", "google.protobuf.Timestamp"):
        structs.add(name, {"seconds": INT, "nanos": INT})
    return structs


@dataclass(frozen=True, slots=True)
class Environment:
    """What can be named in an expression."""

    variables: Mapping[str, Type] = field(default_factory=dict)
    structs: Structs = field(default_factory=_clockwork)
    functions: Mapping[str, tuple[Overload, ...]] = field(default_factory=lambda: LIBRARY)
    types: Mapping[str, Type] = field(default_factory=lambda: TYPE_NAMES)

    def with_variables(self, **variables: Type) -> Environment:
        """The same with more variables."""
        return Environment({**self.variables, **variables}, self.structs, self.functions, self.types)

    def with_types(self, *structs: Type) -> Environment:
        """The same with structs that can be called by their names."""
        named = {one.name: type_of(one) for one in structs}
        return Environment(self.variables, self.structs, self.functions, {**self.types, **named})

    def name(self, name: str) -> Type | None:
        """What a name stands for; None for one that was never declared."""
        name = name.removeprefix(".")
        return self.variables.get(name) or self.types.get(name)

    def function(self, name: str) -> tuple[Overload, ...] | None:
        return self.functions.get(name.removeprefix("."))
