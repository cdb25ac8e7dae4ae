"""Determines the type of an expression, or its errors.

Checking continues after an error, so that all are reported at once. An erroneous part has the type `ERROR`, which
causes no further errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from steersman.api.cel import literals
from steersman.api.cel.bindings import Bindings, more_general, substituted
from steersman.api.cel.environment import Environment
from steersman.api.cel.errors import NOWHERE, CelError, Problem
from steersman.api.cel.parser import MAX_DEPTH, parse
from steersman.api.cel.signatures import Overload
from steersman.api.cel.syntax import (
    Call,
    Expr,
    Fold,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Select,
    StructOf,
    qualified,
)
from steersman.api.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    Sort,
    Type,
    list_of,
    map_of,
    optional_of,
    unwrapped,
)

MAX_NODES = 100_000
"""Parts of an expression with all macros expanded. A chain of optMap doubles with each link.

differs: upstream has no limit, and checks all of them.
"""
MAX_TYPE_SIZE = 500
"""Types that the type of a part may consist of. ``[x].map(y, {y: y})`` doubles the type of x.

differs: upstream has no limit.
"""


class Checked(NamedTuple):
    """An expression, and the types of all of its parts."""

    expr: Expr
    types: Mapping[Expr, Type]

    @property
    def type(self) -> Type:
        """The type of the whole expression."""
        return self.types[self.expr]


def check(source: str, environment: Environment) -> Type:
    """Return the type of an expression. Raises `CelError` with all errors."""
    return checked(source, environment).type


def checked(source: str, environment: Environment) -> Checked:
    """Return an expression with its types. Raises `CelError` with all errors."""
    expr = parse(source)
    checker = _Checker(environment)
    try:
        checker.check(expr)
        types = checker.types()
        problems = checker.problems or list(literals.problems(expr, types))
    except RecursionError:
        message = f"Internal error: expression recursion limit exceeded: {MAX_DEPTH}"
        raise CelError(source, [Problem(NOWHERE, message)]) from None
    except _TooLarge as error:
        raise CelError(source, [*checker.problems, error.problem]) from None
    if problems:
        raise CelError(source, problems)
    return Checked(expr, types)


class _TooLarge(Exception):
    """An expression that is too large to be checked."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self._env = environment
        self._scopes: list[Mapping[str, Type]] = []
        self._bindings = Bindings()
        self._types: dict[Expr, Type] = {}
        self.problems: list[Problem] = []
        self._nodes = 0

    def types(self) -> dict[Expr, Type]:
        """Return the types of all parts, without type parameters."""
        return {expr: self._bindings.resolved(type_, settle=True) for expr, type_ in self._types.items()}

    def check(self, expr: Expr) -> Type:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            message = f"Internal error: expression size limit exceeded: {MAX_NODES}"
            raise _TooLarge(Problem(NOWHERE, message))
        found = self._types[expr] = _CHECKS[type(expr)](self, expr)
        if found.size > MAX_TYPE_SIZE:
            raise _TooLarge(Problem(expr.at, f"Internal error: type size limit exceeded: {MAX_TYPE_SIZE}"))
        return found

    def _problem(self, at: int, message: str) -> None:
        self.problems.append(Problem(at, message))

    def _mismatch(self, at: int, expected: Type, found: Type) -> None:
        self._problem(at, f"expected type '{expected}' but found '{found}'")

    def _undeclared(self, at: int, name: str) -> Type:
        self._problem(at, f"undeclared reference to '{name}' (in container '')")
        return ERROR

    def _name(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            found = scope.get(name.removeprefix("."))
            if found is not None:
                return found
        return self._env.name(name)

    # -- types of expressions -----------------------------------------------------------------

    def _literal(self, expr: Literal) -> Type:
        return expr.type

    def _ident(self, expr: Ident) -> Type:
        return self._name(expr.name) or self._undeclared(expr.at, expr.name)

    def _select(self, expr: Select) -> Type:
        name = qualified(expr)
        known = self._name(name) if name else None
        if known is not None:
            return known
        found = self._field(expr, expr.operand, expr.field, optional=False)
        return BOOL if expr.test else self._bindings.resolved(found)

    def _field(self, expr: Expr, operand: Expr, field: str, *, optional: bool) -> Type:
        holder, was_optional = unwrapped(self._bindings.resolved(self.check(operand)))
        match holder.sort:
            case Sort.MAP:
                found = holder.of[1]
            case Sort.STRUCT:
                found = self._declared_field(expr.at, holder.name, field)
            case Sort.PARAMETER:
                self._bindings.fit((DYN,), (holder,))
                found = DYN
            case _:
                if not holder.lenient:
                    self._problem(expr.at, f"type '{holder}' does not support field selection")
                found = DYN
        return optional_of(found) if optional or was_optional else found

    def _declared_field(self, at: int, struct: str, field: str) -> Type:
        if self._env.structs.fields(struct) is None:
            self._problem(at, f"unexpected failed resolution of '{struct}'")
            return ERROR
        found = self._env.structs.field(struct, field)
        if found is None:
            self._problem(at, f"undefined field '{field}'")
            return ERROR
        return found

    def _call(self, expr: Call) -> Type:
        if expr.function == "_?._":
            operand, field = expr.args
            assert isinstance(field, Literal)
            return self._bindings.resolved(self._field(expr, operand, str(field.value), optional=True))
        args = [self.check(arg) for arg in expr.args]
        if expr.target is None:
            static = self._env.function(expr.function)
            if static is None:
                return self._undeclared(expr.at, expr.function)
            return self._resolve(expr, expr.function, static, args)
        # A call that looks like a method may be a function with dots in its name.
        prefix = qualified(expr.target)
        dotted = self._env.function(f"{prefix}.{expr.function}") if prefix else None
        if dotted is not None:
            return self._resolve(expr, f"{prefix}.{expr.function}", dotted, args)
        target = self.check(expr.target)
        overloads = self._env.function(expr.function)
        if overloads is None:
            return self._undeclared(expr.at, expr.function)
        return self._resolve(expr, expr.function, overloads, [target, *args], method=True)

    def _resolve(
        self, expr: Call, name: str, overloads: Sequence[Overload], args: list[Type], *, method: bool = False
    ) -> Type:
        if name in ("_&&_", "_||_"):
            return self._logical(expr, args)
        result: Type | None = None
        for overload in overloads:
            if overload.method is not method:
                continue
            opened = {parameter: self._bindings.fresh() for parameter in overload.parameters}
            if not self._bindings.fit(args, [substituted(one, opened) for one in overload.args]):
                continue
            found = self._bindings.resolved(substituted(overload.result, opened))
            if result is None:
                result = found
            elif not result.dynamic and found != result:
                result = DYN
        if result is not None:
            return result
        settled = [str(self._bindings.resolved(arg, settle=True)) for arg in args]
        on = f"{settled.pop(0)}." if method else ""
        applied = f"{on}({', '.join(settled)})"
        self._problem(
            expr.at, f"found no matching overload for '{name.removeprefix('.')}' applied to '{applied}'"
        )
        return ERROR

    def _logical(self, expr: Call, args: list[Type]) -> Type:
        fine = True
        for arg, type_ in zip(expr.args, args, strict=True):
            if not self._bindings.fit((type_,), (BOOL,)):
                self._mismatch(arg.at, BOOL, type_)
                fine = False
        return BOOL if fine else ERROR

    def _list(self, expr: ListOf) -> Type:
        joined: Type | None = None
        for element, optional in zip(expr.elements, expr.optional, strict=True):
            type_ = self._value(element, optional)
            joined = self._joined(joined, type_)
        return list_of(joined or self._bindings.fresh())

    def _map(self, expr: MapOf) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for entry in expr.entries:
            keys = self._joined(keys, self.check(entry.key))
            value = self._value(entry.value, entry.optional)
            values = self._joined(values, value)
        if keys is None or values is None:
            return map_of(self._bindings.fresh(), self._bindings.fresh())
        return map_of(keys, values)

    def _value(self, expr: Expr, optional: bool) -> Type:
        """Return the type of an element; for an optional element, the type of its value."""
        found = self.check(expr)
        if not optional:
            return found
        inner, was_optional = unwrapped(found)
        if not was_optional and not inner.dynamic:
            self._mismatch(expr.at, optional_of(inner), inner)
        return inner

    def _joined(self, before: Type | None, found: Type) -> Type:
        """Return the common type of elements. That they differ is reported later, by `literals`."""
        if before is None:
            return found
        return more_general(before, found) if self._bindings.fit((before,), (found,)) else DYN

    def _struct(self, expr: StructOf) -> Type:
        known = self._name(expr.name)
        if known is None:
            return self._undeclared(expr.at, expr.name)
        made = ERROR
        if known.sort is not Sort.TYPE:
            if known.sort is not Sort.ERROR:
                self._problem(expr.at, f"'{known.name}' is not a type")
        elif known.of[0].sort in (Sort.STRUCT, Sort.DURATION, Sort.TIMESTAMP):
            made = known.of[0]
        else:
            self._problem(expr.at, f"'{known.of[0].name}' is not a message type")
        for field in expr.fields:
            value = self._value(field.value, field.optional)
            wanted = self._declared_field(field.at, made.name if made is not ERROR else expr.name, field.name)
            if not self._bindings.fit((wanted,), (value,)):
                message = (
                    f"expected type of field '{field.name}' is '{wanted}' but provided type is '{value}'"
                )
                self._problem(field.at, message)
        return made

    def _fold(self, expr: Fold) -> Type:
        over = self._bindings.resolved(self.check(expr.range))
        # The accumulator is visible in the whole loop; the loop's variables are not visible in the result.
        accumulated = self.check(expr.init)
        first, second = self._looped(expr, self._bindings.resolved(over))
        self._scopes.append({expr.accumulator: accumulated})
        loop = {expr.variable: first}
        if expr.second:
            loop[expr.second] = second
        self._scopes.append(loop)
        self._assert(expr.condition, BOOL)
        self._assert(expr.step, accumulated)
        self._scopes.pop()
        result = self.check(expr.result)
        self._scopes.pop()
        return self._bindings.resolved(result)

    def _looped(self, expr: Fold, over: Type) -> tuple[Type, Type]:
        """Return the types of a loop's variables."""
        match over.sort:
            case Sort.LIST:
                return (INT, over.of[0]) if expr.second else (over.of[0], ERROR)
            case Sort.MAP:
                return over.of[0], over.of[1]
            case Sort.DYN | Sort.ERROR | Sort.PARAMETER:
                self._bindings.fit((DYN,), (over,))
                return DYN, DYN
        message = (
            f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
        )
        self._problem(expr.range.at, message)
        return ERROR, ERROR

    def _assert(self, expr: Expr, wanted: Type) -> None:
        found = self.check(expr)
        if not self._bindings.fit((wanted,), (found,)):
            self._mismatch(expr.at, wanted, found)


_CHECKS: Mapping[type[Expr], Callable[[_Checker, Any], Type]] = {
    Literal: _Checker._literal,
    Ident: _Checker._ident,
    Select: _Checker._select,
    Call: _Checker._call,
    ListOf: _Checker._list,
    MapOf: _Checker._map,
    StructOf: _Checker._struct,
    Fold: _Checker._fold,
}
