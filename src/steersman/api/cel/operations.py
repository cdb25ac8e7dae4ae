"""Compiles what is no loop: literals, names, fields, operators, calls, lists, maps and structs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import ceil
from operator import itemgetter
from typing import Any

from steersman.api.cel.call_costs import COSTS, LIST, MAP, REGEX, STRUCT
from steersman.api.cel.closures import (
    any_of,
    calling,
    charging,
    compared_plainly,
    either,
    equals,
    equals_literal,
    indexing,
    literal_cost,
    ordered,
    selecting,
)
from steersman.api.cel.code import COST, Code, Compiler, Frame, Stop
from steersman.api.cel.runtime import operators
from steersman.api.cel.runtime.conversions import CONVERSIONS, STRUCTS
from steersman.api.cel.runtime.kubernetes import KUBERNETES
from steersman.api.cel.runtime.lists import LISTS, sum_from, zero_of
from steersman.api.cel.runtime.network import NETWORK
from steersman.api.cel.runtime.operators import OPERATORS, int_of
from steersman.api.cel.runtime.text import TEXT, pattern_of
from steersman.api.cel.runtime.values import (
    EvaluationError,
    NoOverload,
    Optional,
    StructValue,
    TypeValue,
    Uint,
    show,
    type_name,
)
from steersman.api.cel.schemas import unescape
from steersman.api.cel.syntax import (
    Call,
    Expr,
    Field,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Select,
    StructOf,
    qualified,
)
from steersman.api.cel.types import BOOL, STRING, UINT, Sort, unwrapped
from steersman.api.go_regexp import InvalidPattern

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **OPERATORS,
    **CONVERSIONS,
    **TEXT,
    **NETWORK,
    **KUBERNETES,
    **LISTS,
}
_FOLDED = frozenset(("duration", "timestamp", "int", "uint", "double", "string", "bytes", "bool"))
"""Functions of a constant that are computed when the expression is compiled, as upstream does."""
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
_AFFIXES: dict[str, Callable[[str, str], bool]] = {"startsWith": str.startswith, "endsWith": str.endswith}
_ARITHMETIC: dict[str, Callable[[Any, Any], int]] = {
    "_+_": operator.add,
    "_-_": operator.sub,
    "_*_": operator.mul,
}


def constant(value: object) -> Code:
    return Code(lambda frame: value, 0)


class Operations(Compiler):
    """Nodes that are no loops."""

    # -- names and fields ---------------------------------------------------------------------

    def literal(self, expr: Literal) -> Code:
        value = expr.value
        return constant(Uint(value) if expr.type == UINT else value)  # type: ignore[call-overload]

    def ident(self, expr: Ident) -> Code:
        place = self.scope.place(expr.name)
        if place is not None:
            return Code(itemgetter(place), 1)
        return self._type_name(expr.name) or self._raising(f"no such attribute(s): {expr.name}")

    def _type_name(self, name: str) -> Code | None:
        known = self.type_names.get(name.removeprefix("."))
        return constant(TypeValue(known.of[0].name)) if known is not None and known.of else None

    def _raising(self, message: str) -> Code:
        def run(frame: Frame) -> Any:
            raise EvaluationError(message)

        return Code(run, 1)

    def select(self, expr: Select) -> Code:
        name = qualified(expr)
        if name and not expr.test:
            place = self.scope.place(name)
            if place is not None:
                return Code(itemgetter(place), 1)
            if self.scope.place(name.partition(".")[0]) is None:
                made = self._composed(expr) or self._type_name(name)
                if made is not None:
                    return made
        operand, field = self.compile(expr.operand), self._field_name(expr.operand, expr.field)
        if expr.test:
            return self._has(operand, field)
        # A chain that does not begin with a name costs one more, for the chain itself.
        extra = 1 if isinstance(expr.operand, Ident | Select) or self._is_index(expr.operand) else 2
        return Code(selecting(operand.run, field), operand.cost + extra)

    def _is_index(self, expr: Expr) -> bool:
        return isinstance(expr, Call) and expr.function == "_[_]"

    def _field_name(self, operand: Expr, field: str) -> str:
        """The name that a field has in values: expressions have the names of declared fields escaped."""
        holder = unwrapped(self.type_of(operand))[0]
        return unescape(field) if holder.sort is Sort.STRUCT else field

    def _composed(self, expr: Select) -> Code | None:
        """``variables.x`` of an admission policy, computed when first used."""
        operand = expr.operand
        if not isinstance(operand, Ident) or operand.name != "variables":
            return None
        place = self.composed.get(expr.field)
        if place is None:
            return self._raising(f"no such key: {expr.field}") if self.composed else None
        width = max(self.composed.values()) + 1

        def run(frame: Frame) -> Any:
            return frame[place].force(frame, width)

        return Code(run, 2)

    def _has(self, operand: Code, field: str) -> Code:
        run, has = operand.run, operators.has

        def test(frame: Frame) -> bool:
            value = run(frame)
            return field in value if type(value) is dict else has(value, field)

        return Code(test, operand.cost)

    # -- calls --------------------------------------------------------------------------------

    def call(self, expr: Call) -> Code:
        name, args = self._function(expr)
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, expr, args)
        if name in _FOLDED and len(args) == 1 and isinstance(args[0], Literal):
            try:
                return constant(FUNCTIONS[name](self.literal(args[0]).run([])))
            except EvaluationError:
                pass
        return self._plain_call(expr, name, args)

    def _function(self, expr: Call) -> tuple[str, tuple[Expr, ...]]:
        """The name of the function and its arguments; a call that looks like a method may have dots in its name."""
        name = expr.function.removeprefix(".")
        if expr.target is None:
            return name, expr.args
        prefix = qualified(expr.target)
        dotted = f"{prefix}.{name}"
        if prefix and dotted in FUNCTIONS and self.scope.place(prefix.partition(".")[0]) is None:
            return dotted, expr.args
        return name, expr.parts

    def _plain_call(self, expr: Call, name: str, args: tuple[Expr, ...]) -> Code:
        function = FUNCTIONS.get(name)
        if function is None:
            return self._raising(f"no such overload: {name}")
        if name == "sum":
            of = self.type_of(args[0]).of
            function = sum_from(zero_of(of[0].name if of else "int"))
        codes = [self.compile(arg) for arg in args]
        runs = [code.run for code in codes]
        fixed = sum(code.cost for code in codes)
        cost = COSTS.get(name, 1)
        if isinstance(cost, int):
            return Code(calling(name, function, runs), fixed + cost)
        return Code(charging(name, function, runs, cost), fixed)

    # -- operators with code of their own -----------------------------------------------------

    def logical(self, expr: Call, args: tuple[Expr, ...]) -> Code:
        """``&&`` is decided by false, ``||`` by true, whatever the other terms are."""
        deciding = expr.function == "_||_"
        first, *rest = (self.compile(arg) for arg in args)
        if len(rest) == 1:
            return Code(either(first.run, rest[0].run, rest[0].cost, deciding), first.cost)
        terms = [(first.run, 0), *((code.run, code.cost) for code in rest)]
        return Code(any_of(terms, deciding), first.cost)

    def conditional(self, expr: Call, args: tuple[Expr, ...]) -> Code:
        condition, yes, no = (self.compile(arg) for arg in args)
        (decide, cost), (yes_run, yes_cost), (no_run, no_cost) = condition, yes, no

        def run(frame: Frame) -> Any:
            decision = decide(frame)
            if decision is True:
                frame[COST] -= yes_cost
                return yes_run(frame)
            if decision is False:
                frame[COST] -= no_cost
                return no_run(frame)
            raise NoOverload

        return Code(run, cost)

    def not_strictly_false(self, expr: Call, args: tuple[Expr, ...]) -> Code:
        inner = self.compile(args[0])

        def run(frame: Frame) -> bool:
            try:
                return inner.run(frame) is not False
            except EvaluationError:
                return True

        return Code(run, inner.cost + 1)

    def equality(self, expr: Call, args: tuple[Expr, ...]) -> Code:
        one, other = args
        if isinstance(one, Literal) and not isinstance(other, Literal):
            one, other = other, one
        first, positive = self.compile(one), expr.function == "_==_"
        if isinstance(other, Literal) and other.type in (STRING, BOOL):
            return Code(equals_literal(first.run, other.value, positive), first.cost + literal_cost(other))
        second = self.compile(other)
        sorts = {self.type_of(one).sort, self.type_of(other).sort}
        fixed = first.cost + second.cost
        if sorts in ({Sort.INT}, {Sort.BOOL}):
            return Code(compared_plainly(first.run, second.run, positive), fixed + 1)
        return Code(equals(first.run, second.run, positive), fixed)

    def order(self, expr: Call, args: tuple[Expr, ...]) -> Code:
        name = expr.function
        first, second = self.compile(args[0]), self.compile(args[1])
        run = ordered(first.run, second.run, _ORDER[name], OPERATORS[name])
        return Code(run, first.cost + second.cost + 1)

    def arithmetic(self, expr: Call, args: tuple[Expr, ...]) -> Code:
        if {self.type_of(arg).sort for arg in args} != {Sort.INT}:
            return self._plain_call(expr, expr.function, args)
        first, second = self.compile(args[0]), self.compile(args[1])
        a, b, compute, slow = first.run, second.run, _ARITHMETIC[expr.function], OPERATORS[expr.function]

        def run(frame: Frame) -> Any:
            one, other = a(frame), b(frame)
            if type(one) is int and type(other) is int:
                return int_of(compute(one, other))
            return slow(one, other)

        return Code(run, first.cost + second.cost + 1)

    def affix(self, expr: Call, args: tuple[Expr, ...]) -> Code:
        """``x.startsWith('a')`` and ``x.endsWith('a')``."""
        text, part = args if len(args) == 2 else (None, None)
        if text is None or not isinstance(part, Literal) or part.type != STRING:
            return self._plain_call(expr, expr.function, args)
        inner, fits, slow = self.compile(text), _AFFIXES[expr.function], FUNCTIONS[expr.function]
        run, constant_part = inner.run, str(part.value)

        def test(frame: Frame) -> Any:
            value = run(frame)
            if type(value) is str:
                frame[COST] -= (len(value) + 9) // 10
                return fits(value, constant_part)
            return slow(value, constant_part)

        return Code(test, inner.cost)

    def pattern(self, expr: Call, args: tuple[Expr, ...]) -> Code:
        """``x.matches('pattern')``, with the pattern compiled once."""
        text, pattern = args if len(args) == 2 else (None, None)
        if text is None or not isinstance(pattern, Literal) or pattern.type != STRING:
            return self._plain_call(expr, "matches", args)
        source = str(pattern.value)
        try:
            search = pattern_of(source).search
        except InvalidPattern:
            return self._plain_call(expr, "matches", args)
        inner, per_unit, slow = self.compile(text), ceil(len(source) * REGEX), FUNCTIONS["matches"]
        run = inner.run

        def test(frame: Frame) -> Any:
            value = run(frame)
            if type(value) is not str:
                return slow(value, source)
            left = frame[COST] = frame[COST] - (len(value) + 10) // 10 * per_unit
            if left < 0:
                raise Stop
            # In bytes: the library takes most of its time to count characters.
            return search(value.encode("utf-8", "surrogatepass")) is not None

        return Code(test, inner.cost)

    def membership(self, expr: Call, args: tuple[Expr, ...]) -> Code:
        within = args[1]
        if isinstance(within, ListOf) and within.elements and not any(within.optional):
            values = [
                each.value for each in within.elements if isinstance(each, Literal) and each.type == STRING
            ]
            if len(values) == len(within.elements):
                item, known = self.compile(args[0]), frozenset(values)
                run = item.run

                def within_constants(frame: Frame) -> bool:
                    value = run(frame)
                    return type(value) is str and value in known

                return Code(within_constants, item.cost)
        return self._plain_call(expr, "@in", args)

    def optional_select(self, expr: Call, args: tuple[Expr, ...]) -> Code:
        """``x.?field``."""
        operand, field = args
        assert isinstance(field, Literal)
        inner, name = self.compile(operand), self._field_name(operand, str(field.value))
        run = inner.run
        return Code(lambda frame: operators.optional_index(run(frame), name), inner.cost + 1)

    def index(self, expr: Call, args: tuple[Expr, ...]) -> Code:
        operand, key = self.compile(args[0]), self.compile(args[1])
        cost = operand.cost + 1 + (0 if isinstance(args[1], Ident) else key.cost)
        return Code(indexing(operand.run, key.run), cost)

    def bind(self, expr: Call, args: tuple[Expr, ...]) -> Code:
        """``cel.bind(name, value, result)``, which device selectors have."""
        name, value, result = args[-3:]
        if not isinstance(name, Ident):
            return self._raising("cel.bind() variable names must be simple identifiers")
        bound = self.compile(value)
        with self.scope.local(name.name) as (place,):
            inner = self.compile(result)

        def run(frame: Frame) -> Any:
            frame[place] = bound.run(frame)
            return inner.run(frame)

        return Code(run, bound.cost + inner.cost)

    # -- lists, maps and structs --------------------------------------------------------------

    def list_of(self, expr: ListOf) -> Code:
        codes = [self.compile(element) for element in expr.elements]
        if all(isinstance(element, Literal) for element in expr.elements) and not any(expr.optional):
            values = [code.run([]) for code in codes]
            return Code(lambda frame: values, 0)
        runs = [code.run for code in codes]
        cost = sum(code.cost for code in codes) + LIST
        if not any(expr.optional):
            return Code(lambda frame: [run(frame) for run in runs], cost)
        pairs = list(zip(runs, expr.optional, strict=True))

        def run_optional(frame: Frame) -> list[Any]:
            made: list[Any] = []
            for run, optional in pairs:
                value = run(frame)
                if not optional:
                    made.append(value)
                elif type(value) is not Optional:
                    raise EvaluationError(
                        f"cannot initialize optional list element from non-optional value {show(value)}"
                    )
                elif value.present:
                    made.append(value.value)
            return made

        return Code(run_optional, cost)

    def map_of(self, expr: MapOf) -> Code:
        entries = [(self.compile(each.key), self.compile(each.value), each.optional) for each in expr.entries]
        cost = sum(key.cost + value.cost for key, value, _ in entries) + MAP
        parts = [(key.run, value.run, optional) for key, value, optional in entries]

        def run(frame: Frame) -> dict[Any, Any]:
            made: dict[Any, Any] = {}
            for key_run, value_run, optional in parts:
                key, value = key_run(frame), value_run(frame)
                if type(key) not in (str, int, bool, Uint):
                    raise EvaluationError(f"unsupported key type: {type_name(key)}")
                if optional:
                    value = _optional_value(value, show(key))
                    if value is _ABSENT:
                        continue
                if key in made:
                    raise EvaluationError(f"Failed with repeated key: {show(key)}")
                made[key] = value
            return made

        if all(isinstance(part, Literal) for part in expr.parts) and not any(
            each.optional for each in expr.entries
        ):
            try:
                return constant(run([]))
            except EvaluationError:
                pass
        return Code(run, cost)

    def struct_of(self, expr: StructOf) -> Code:
        fields: list[tuple[Field, Code]] = [(each, self.compile(each.value)) for each in expr.fields]
        name = expr.name.removeprefix(".")
        make = STRUCTS.get(name)
        cost = sum(code.cost for _, code in fields) + STRUCT

        def run(frame: Frame) -> Any:
            made: dict[str, Any] = {}
            for field, code in fields:
                value = code.run(frame)
                if field.optional:
                    value = _optional_value(value, field.name)
                    if value is _ABSENT:
                        continue
                made[field.name] = value
            return StructValue(made, name) if make is None else make(made)

        return Code(run, cost)


_ABSENT: Any = object()


def _optional_value(value: Any, name: str) -> Any:
    if type(value) is not Optional:
        raise EvaluationError(
            f"cannot initialize optional entry '{name}' from non-optional value {show(value)}"
        )
    return value.value if value.present else _ABSENT


_SPECIAL: dict[str, Callable[[Any, Call, tuple[Expr, ...]], Code]] = {
    "_&&_": Operations.logical,
    "_||_": Operations.logical,
    "_?_:_": Operations.conditional,
    "@not_strictly_false": Operations.not_strictly_false,
    "_==_": Operations.equality,
    "_!=_": Operations.equality,
    **dict.fromkeys(_ORDER, Operations.order),
    **dict.fromkeys(_ARITHMETIC, Operations.arithmetic),
    **dict.fromkeys(_AFFIXES, Operations.affix),
    "matches": Operations.pattern,
    "@in": Operations.membership,
    "_[_]": Operations.index,
    "_?._": Operations.optional_select,
    "bind": Operations.bind,
}
