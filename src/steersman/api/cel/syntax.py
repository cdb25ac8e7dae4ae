"""What an expression is made of. Every part knows its position, and is itself: equal to no other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from steersman.api.cel.types import Type


@dataclass(eq=False, slots=True)
class Expr:
    at: int
    """The position of the character that problems with it are shown at."""

    @property
    def parts(self) -> tuple[Expr, ...]:
        return ()


@dataclass(eq=False, slots=True)
class Literal(Expr):
    type: Type
    value: object


@dataclass(eq=False, slots=True)
class Ident(Expr):
    name: str


@dataclass(eq=False, slots=True)
class Select(Expr):
    operand: Expr
    field: str
    test: bool = False
    """Whether the field is there, and not what it is: ``has(a.b)``."""

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.operand,)


@dataclass(eq=False, slots=True)
class Call(Expr):
    function: str
    args: tuple[Expr, ...]
    target: Expr | None = None

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.args if self.target is None else (self.target, *self.args)


@dataclass(eq=False, slots=True)
class ListOf(Expr):
    elements: tuple[Expr, ...]
    optional: tuple[bool, ...]

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.elements


@dataclass(eq=False, slots=True)
class Entry:
    """A key (or the name of a field) and its value."""

    at: int
    key: Expr
    value: Expr
    optional: bool


@dataclass(eq=False, slots=True)
class MapOf(Expr):
    entries: tuple[Entry, ...]

    @property
    def parts(self) -> tuple[Expr, ...]:
        return tuple(part for entry in self.entries for part in (entry.key, entry.value))


@dataclass(eq=False, slots=True)
class Field:
    at: int
    name: str
    value: Expr
    optional: bool


@dataclass(eq=False, slots=True)
class StructOf(Expr):
    name: str
    fields: tuple[Field, ...]

    @property
    def parts(self) -> tuple[Expr, ...]:
        return tuple(field.value for field in self.fields)


@dataclass(eq=False, slots=True)
class Fold(Expr):
    """A loop over a range: what all comprehension macros are short for."""

    range: Expr
    variable: str
    second: str
    """The second variable; empty where there is one."""
    accumulator: str
    init: Expr
    condition: Expr
    step: Expr
    result: Expr

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.range, self.init, self.condition, self.step, self.result)


def qualified(expr: Expr) -> str:
    """``a.b.c``, where an expression is nothing but that; else empty."""
    fields: list[str] = []
    while isinstance(expr, Select) and not expr.test:
        fields.append(expr.field)
        expr = expr.operand
    if not isinstance(expr, Ident):
        return ""
    return ".".join((expr.name, *reversed(fields)))


def walk(expr: Expr, above: tuple[Call, ...] = ()) -> Iterator[tuple[Expr, tuple[Call, ...]]]:
    """Every part before what it is part of, with the calls around it."""
    inside = (*above, expr) if isinstance(expr, Call) else above
    for part in expr.parts:
        yield from walk(part, inside)
    yield expr, above
