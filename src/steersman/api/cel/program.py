"""Programs: expressions compiled to Python closures, evaluated within a budget.

An expression is compiled once and evaluated often. Each node becomes a function of a *frame*: a list whose first item is
the cost that is left, followed by the values of variables and of loop variables, whose places are known at compile time.
The cost of parts that are evaluated in any case is added up at compile time; only branches, loops and calls whose cost
depends on their arguments charge the frame.

As in CEL, ``&&`` and ``||`` ignore an error of one side where the other side decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from steersman.api.cel.code import BLANK, COST, VARIABLES, Allowance, Code, Frame, Lazy, Scope, Stop
from steersman.api.cel.loops import Loops
from steersman.api.cel.operations import Operations
from steersman.api.cel.runtime.values import CostLimitExceeded, EvaluationError
from steersman.api.cel.syntax import Call, Expr, Fold, Ident, ListOf, Literal, MapOf, Select, StructOf
from steersman.api.cel.types import Type

PER_CALL_LIMIT = 1_000_000
"""The cost of one expression."""

Types: TypeAlias = Mapping[Expr, Type]


class _Compiler(Loops, Operations):
    """Compiles every kind of node."""


_Compiler.handlers = {
    Literal: _Compiler.literal,
    Ident: _Compiler.ident,
    Select: _Compiler.select,
    Call: _Compiler.call,
    ListOf: _Compiler.list_of,
    MapOf: _Compiler.map_of,
    StructOf: _Compiler.struct_of,
    Fold: _Compiler.fold,
}


class Result(NamedTuple):
    """The value of an expression, and what it cost."""

    value: Any
    cost: int


class Program:
    """A compiled expression with the names of its variables, in the order of their values."""

    __slots__ = ("_blank", "_cost", "_run", "variables")

    def __init__(self, code: Code, variables: tuple[str, ...], temporaries: int) -> None:
        self._run = code.run
        self._cost = code.cost
        self._blank = [BLANK] * temporaries
        self.variables = variables

    def evaluate(self, *values: object, limit: int = PER_CALL_LIMIT) -> Result:
        """The value for these values of the variables. Raises `EvaluationError`, which has the cost until then."""
        frame = [limit - self._cost, 0, *values, *self._blank]
        try:
            value = self._run(frame)
        except (EvaluationError, Stop, RecursionError) as error:
            raise self._failure(error, frame, limit) from None
        left = frame[COST]
        if left < 0:
            raise self._failure(Stop(), frame, limit)
        return Result(value, limit - left)

    def evaluate_in(self, shared: Frame, limit: int = PER_CALL_LIMIT) -> Result:
        """The value in a frame that other programs of the same variables share, with lazy values computed once."""
        frame = [*shared, *self._blank]
        frame[COST], frame[VARIABLES] = limit - self._cost, 0
        try:
            value = self._run(frame)
            if frame[COST] < 0:
                raise Stop
        except (EvaluationError, Stop, RecursionError) as error:
            raise self._failure(error, frame, limit) from None
        return Result(value, limit - frame[COST] + frame[VARIABLES])

    def _failure(self, error: Exception, frame: Frame, limit: int) -> EvaluationError:
        """The error of an evaluation, with what it has cost."""
        if isinstance(error, Stop):
            failed: EvaluationError = CostLimitExceeded()
        elif isinstance(error, EvaluationError):
            failed = error
        else:
            failed = EvaluationError("internal error: expression is nested too deeply")
        failed.cost = limit - frame[COST] + frame[VARIABLES]
        return failed


def compile_program(
    expr: Expr,
    variables: Sequence[str],
    types: Types | None = None,
    *,
    type_names: Mapping[str, Type] | None = None,
    composed: Mapping[str, int] | None = None,
) -> Program:
    """Compiles an expression. With the types that a checker found, code for these is made.

    ``composed`` has the places of lazy values in the frame, by the name that follows ``variables.``.
    """
    width = VARIABLES + 1 + len(variables)
    scope = Scope({name: VARIABLES + 1 + index for index, name in enumerate(variables)}, width)
    compiler = _Compiler(types or {}, scope, type_names or {}, composed or {})
    code = compiler.compile(expr)
    return Program(code, tuple(variables), scope.highest - width)


def lazy(name: str, program: Program, allowance: Allowance) -> Lazy:
    """A named value that is computed when it is first used, as the variables of a policy are, within what all of them may cost."""
    return Lazy(name, program._run, program._cost, len(program._blank), PER_CALL_LIMIT, allowance)


__all__ = ["PER_CALL_LIMIT", "Allowance", "Program", "Result", "compile_program", "lazy"]
