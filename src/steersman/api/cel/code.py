"""Code: a node compiled to a function of a frame, and what compilers of nodes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from steersman.api.cel.runtime.values import CostLimitExceeded, EvaluationError
from steersman.api.cel.syntax import Expr
from steersman.api.cel.types import DYN, Type

Frame: TypeAlias = list[Any]
"""The cost that is left, the cost of variables, then the values of variables and of loop variables."""
Run: TypeAlias = Callable[[Frame], Any]
COST, VARIABLES = 0, 1
BLANK: Any = None


class Stop(Exception):
    """The cost that is left is used up. Not an `EvaluationError`, which a logical operator would ignore."""


class Code(NamedTuple):
    """A compiled node, and the cost of its parts that are evaluated in any case."""

    run: Run
    cost: int


class Scope:
    """The places of variables in the frame, by name."""

    def __init__(self, names: Mapping[str, int], width: int) -> None:
        self._names = dict(names)
        self._local: list[str] = []
        self._next = self.highest = width

    def place(self, name: str) -> int | None:
        """The place of a variable, whose name may have dots; a loop variable hides those that begin with its name."""
        if "." in name[1:] and name.partition(".")[0] in self._local:
            return None
        return self._names.get(name.removeprefix("."))

    @contextmanager
    def local(self, *names: str) -> Iterator[list[int]]:
        """Places for variables that are known inside only."""
        places = [self._next + index for index in range(len(names))]
        former = {name: self._names.get(name) for name in names}
        self._next += len(names)
        self.highest = max(self.highest, self._next)
        self._names.update(zip(names, places, strict=True))
        self._local += names
        try:
            yield places
        finally:
            del self._local[len(self._local) - len(names) :]
            self._next -= len(names)
            for name, place in former.items():
                if place is None:
                    del self._names[name]
                else:
                    self._names[name] = place


class Compiler:
    """Compiles nodes by their class. Nodes whose type is unknown are taken for dynamic ones."""

    def __init__(
        self,
        types: Mapping[Expr, Type],
        scope: Scope,
        type_names: Mapping[str, Type],
        composed: Mapping[str, int],
    ) -> None:
        self._types = types
        self.scope = scope
        self.type_names = type_names
        self.composed = composed

    handlers: Mapping[type[Expr], Callable[[Any, Any], Code]] = {}

    def compile(self, expr: Expr) -> Code:
        return self.handlers[type(expr)](self, expr)

    def type_of(self, expr: Expr) -> Type:
        return self._types.get(expr, DYN)


class Allowance:
    """The cost that some lazy values may have in all."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class Lazy:
    """A variable whose value is computed when it is first used; an error is kept, too."""

    __slots__ = ("_allowance", "_blank", "_cost", "_error", "_limit", "_name", "_run", "_value")

    def __init__(
        self, name: str, run: Run, cost: int, temporaries: int, limit: int, allowance: Allowance
    ) -> None:
        """``limit`` is what the value may cost by itself."""
        self._name = name
        self._run: Run | None = run
        self._cost = cost
        self._blank = [BLANK] * temporaries
        self._limit = limit
        self._allowance = allowance
        self._value: Any = None
        self._error: EvaluationError | None = None

    def force(self, frame: Frame, width: int) -> Any:
        """The value, computed with the variables of a frame. Its cost is not that of the expression that uses it."""
        run, self._run = self._run, None
        if run is not None:
            inner = [*frame[:width], *self._blank]
            limit = min(self._limit, max(self._allowance.left, 0))
            inner[COST], inner[VARIABLES] = limit - self._cost, 0
            try:
                self._value = run(inner)
                if inner[COST] < 0:
                    raise Stop
            except EvaluationError as error:
                self._error = self._failed(error)
            except Stop:
                self._error = self._failed(CostLimitExceeded())
            self._allowance.left -= limit - inner[COST]
            frame[VARIABLES] += limit - inner[COST] + inner[VARIABLES]
        if self._error is not None:
            raise self._error
        return self._value

    def _failed(self, error: EvaluationError) -> EvaluationError:
        return EvaluationError(f'composited variable "{self._name}" fails to evaluate: {error}')
