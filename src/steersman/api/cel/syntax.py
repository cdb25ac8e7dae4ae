"""The syntax tree of expressions. Nodes have a position and are compared by identity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from steersman.api.cel.types import Type


@dataclass(eq=False, slots=True)
class Expr:
    """A node of the syntax tree."""

    at: int
    """The position at which errors are reported."""

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
    """Tests whether the field is present (``has(a.b)``) instead of selecting it."""

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
    """A key and its value."""

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
    """A loop over a range (comprehension), into which macros expand."""

    range: Expr
    variable: str
    second: str
    """The second variable; empty if there is only one."""
    accumulator: str
    init: Expr
    condition: Expr
    step: Expr
    result: Expr

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.range, self.init, self.condition, self.step, self.result)


def qualified(expr: Expr) -> str:
    """Return ``a.b.c`` for an expression that is a chain of selections; else ""."""
    fields: list[str] = []
    while isinstance(expr, Select) and not expr.test:
        fields.append(expr.field)
        expr = expr.operand
    if not isinstance(expr, Ident):
        return ""
    return ".".join((expr.name, *reversed(fields)))


def walk(expr: Expr, above: tuple[Call, ...] = ()) -> Iterator[tuple[Expr, tuple[Call, ...]]]:
    """Yield all nodes, children first, with the calls that enclose them."""
    inside = (*above, expr) if isinstance(expr, Call) else above
    for part in expr.parts:
        yield from walk(part, inside)
    yield expr, above
