"""Expands macros, such as ``all``, ``map`` and ``has``, most of them into loops.

Macros are expanded before type checking. The position of all generated parts is the bracket of the macro's call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from steersman.api.cel.syntax import Call, Expr, Fold, Ident, ListOf, Literal, MapOf, Select
from steersman.api.cel.types import BOOL, INT

ACCUMULATOR = "@result"
OLD_ACCUMULATOR = "__result__"
UNUSED = "#unused"
"""The loop variable of a loop that only binds a value to a name."""

Args: TypeAlias = tuple[Expr, ...]
Macro: TypeAlias = Callable[[int, Expr | None, Args], Expr]


class MacroError(Exception):
    """Invalid arguments of a macro."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at
        self.message = message


def _accumulated(at: int) -> Expr:
    return Ident(at, ACCUMULATOR)


def _true(at: int, value: bool = True) -> Expr:
    return Literal(at, BOOL, value)


def _one(at: int, value: int = 1) -> Expr:
    return Literal(at, INT, value)


def _name(arg: Expr, message: str) -> str:
    if not isinstance(arg, Ident):
        raise MacroError(arg.at, message)
    if arg.name in (ACCUMULATOR, OLD_ACCUMULATOR):
        raise MacroError(arg.at, "iteration variable overwrites accumulator variable")
    return arg.name


def _names(args: Args, count: int, message: str = "argument must be a simple name") -> tuple[str, str]:
    first = _name(args[0], message)
    if count == 1:
        return first, ""
    second = _name(args[1], message)
    if first == second:
        raise MacroError(args[1].at, f"duplicate variable name: {first}")
    return first, second


def _target(target: Expr | None) -> Expr:
    assert target is not None
    return target


def _has(at: int, target: Expr | None, args: Args) -> Expr:
    field = args[0]
    if not isinstance(field, Select):
        raise MacroError(field.at, "invalid argument to has() macro")
    return Select(at, field.operand, field.field, test=True)


def _fold(
    at: int, over: Expr | None, names: tuple[str, str], init: Expr, condition: Expr, step: Expr, result: Expr
) -> Expr:
    return Fold(at, _target(over), *names, ACCUMULATOR, init, condition, step, result)


def _all(count: int) -> Macro:
    def expand(at: int, target: Expr | None, args: Args) -> Expr:
        names = _names(args, count)
        condition = Call(at, "@not_strictly_false", (_accumulated(at),))
        step = Call(at, "_&&_", (_accumulated(at), args[-1]))
        return _fold(at, target, names, _true(at), condition, step, _accumulated(at))

    return expand


def _exists(count: int) -> Macro:
    def expand(at: int, target: Expr | None, args: Args) -> Expr:
        names = _names(args, count)
        condition = Call(at, "@not_strictly_false", (Call(at, "!_", (_accumulated(at),)),))
        step = Call(at, "_||_", (_accumulated(at), args[-1]))
        return _fold(at, target, names, _true(at, False), condition, step, _accumulated(at))

    return expand


def _exists_one(count: int) -> Macro:
    def expand(at: int, target: Expr | None, args: Args) -> Expr:
        names = _names(args, count)
        more = Call(at, "_+_", (_accumulated(at), _one(at)))
        step = Call(at, "_?_:_", (args[-1], more, _accumulated(at)))
        result = Call(at, "_==_", (_accumulated(at), _one(at)))
        return _fold(at, target, names, _one(at, 0), _true(at), step, result)

    return expand


def _gather(at: int, kept: Expr | None, grown: Expr) -> Expr:
    """Return the step of a loop: the grown value if the filter holds, else the accumulator."""
    return grown if kept is None else Call(at, "_?_:_", (kept, grown, _accumulated(at)))


def _listed(at: int, target: Expr | None, names: tuple[str, str], kept: Expr | None, what: Expr) -> Expr:
    """Return a loop that appends to a list."""
    grown = Call(at, "_+_", (_accumulated(at), ListOf(at, (what,), (False,))))
    empty = ListOf(at, (), ())
    return _fold(at, target, names, empty, _true(at), _gather(at, kept, grown), _accumulated(at))


def _map(at: int, target: Expr | None, args: Args) -> Expr:
    names = _names(args, 1, "argument is not an identifier")
    return _listed(at, target, names, args[1] if len(args) == 3 else None, args[-1])


def _filter(at: int, target: Expr | None, args: Args) -> Expr:
    names = _names(args, 1, "argument is not an identifier")
    return _listed(at, target, names, args[1], args[0])


def _transform_list(at: int, target: Expr | None, args: Args) -> Expr:
    return _listed(at, target, _names(args, 2), args[2] if len(args) == 4 else None, args[-1])


def _transform_map(entries: bool) -> Macro:
    """Return a macro for loops that insert into a map: by the range's key, or whole entries."""

    def expand(at: int, target: Expr | None, args: Args) -> Expr:
        names = _names(args, 2)
        what = (args[-1],) if entries else (Ident(at, names[0]), args[-1])
        grown = Call(at, "cel.@mapInsert", (_accumulated(at), *what))
        step = _gather(at, args[2] if len(args) == 4 else None, grown)
        return _fold(at, target, names, MapOf(at, ()), _true(at), step, _accumulated(at))

    return expand


def _bound(at: int, name: str, value: Expr, result: Expr) -> Expr:
    """Return an expression with a value bound to a name."""
    nothing = ListOf(at, (), ())
    return Fold(at, nothing, UNUSED, "", name, value, _true(at, False), Ident(at, name), result)


def _opt_map(function: str) -> Macro:
    def expand(at: int, target: Expr | None, args: Args) -> Expr:
        optional = _target(target)
        name = args[0]
        if not isinstance(name, Ident):
            raise MacroError(name.at, f"{function}() variable name must be a simple identifier")
        value = _bound(at, name.name, Call(at, "value", (), optional), args[1])
        existing = Call(at, "optional.of", (value,)) if function == "optMap" else value
        has = Call(at, "hasValue", (), optional)
        return Call(at, "_?_:_", (has, existing, Call(at, "optional.none", ())))

    return expand


def _sort_by(at: int, target: Expr | None, args: Args) -> Expr:
    what = _target(target)
    if isinstance(what, Literal | MapOf):
        words = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(what.at, words)
    name = "@__sortBy_input__"
    keys = _map(at, Ident(at, name), args)
    return _bound(at, name, what, Call(at, "@sortByAssociatedKeys", (keys,), Ident(at, name)))


MACROS: Mapping[tuple[str, int, bool], Macro] = {
    ("has", 1, False): _has,
    ("all", 2, True): _all(1),
    ("all", 3, True): _all(2),
    ("exists", 2, True): _exists(1),
    ("exists", 3, True): _exists(2),
    ("exists_one", 2, True): _exists_one(1),
    ("exists_one", 3, True): _exists_one(2),
    ("existsOne", 3, True): _exists_one(2),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map(entries=False),
    ("transformMap", 4, True): _transform_map(entries=False),
    ("transformMapEntry", 3, True): _transform_map(entries=True),
    ("transformMapEntry", 4, True): _transform_map(entries=True),
    ("optMap", 2, True): _opt_map("optMap"),
    ("optFlatMap", 2, True): _opt_map("optFlatMap"),
    ("sortBy", 2, True): _sort_by,
}
"""By name, number of arguments, and whether the macro is called as a method."""
