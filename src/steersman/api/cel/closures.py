"""The closures that operators and calls are compiled to: each a function of a frame, with a quick way for common types."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from steersman.api.cel.call_costs import COSTS
from steersman.api.cel.code import COST, Frame, Run, Stop
from steersman.api.cel.runtime import operators
from steersman.api.cel.runtime.values import EvaluationError, NoOverload, type_name
from steersman.api.cel.syntax import Literal


def selecting(run: Run, field: str) -> Run:
    """``x.field``."""
    slow = operators.select

    def select(frame: Frame) -> Any:
        value = run(frame)
        if type(value) is dict and field in value:
            return value[field]
        return slow(value, field)

    return select


def indexing(operand: Run, key: Run) -> Run:
    """``x[y]``."""
    slow = operators.index

    def index(frame: Frame) -> Any:
        value, at = operand(frame), key(frame)
        if type(at) is str and type(value) is dict and at in value:
            return value[at]
        return slow(value, at)

    return index


def equals_literal(run: Run, literal: Any, positive: bool) -> Run:
    """``x == "a"``, or ``!=``."""
    # A string equals strings only; true is not 1, so that bools are compared by identity.
    if isinstance(literal, bool):
        return (
            (lambda frame: run(frame) is literal) if positive else (lambda frame: run(frame) is not literal)
        )
    return (lambda frame: run(frame) == literal) if positive else (lambda frame: run(frame) != literal)


def literal_cost(literal: Literal) -> int:
    """The cost of a comparison with a literal."""
    return ceil(len(literal.value) * 0.1) if isinstance(literal.value, str) else 1


def compared_plainly(one: Run, other: Run, positive: bool) -> Run:
    """``x == y`` of two ints or two bools, or ``!=``."""
    if positive:
        return lambda frame: one(frame) == other(frame)
    return lambda frame: one(frame) != other(frame)


def equals(one: Run, other: Run, positive: bool) -> Run:
    """``x == y`` of values of any type, or ``!=``."""
    equal, cost_of = operators.equal, COSTS["_==_"]
    assert callable(cost_of)

    def run(frame: Frame) -> bool:
        first, second = one(frame), other(frame)
        kind = type(first)
        if kind is type(second):
            if kind is str:
                frame[COST] -= (min(len(first), len(second)) + 9) // 10
                return (first == second) is positive
            if kind is int or kind is bool:
                frame[COST] -= 1
                return (first == second) is positive
        frame[COST] -= cost_of((first, second))
        return equal(first, second) is positive

    return run


def ordered(one: Run, other: Run, fast: Callable[[Any, Any], bool], slow: Callable[..., Any]) -> Run:
    """``x < y`` and the like."""
    cost_of = COSTS["_<_"]
    assert callable(cost_of)

    def run(frame: Frame) -> Any:
        first, second = one(frame), other(frame)
        if type(first) is int and type(second) is int:
            return fast(first, second)
        frame[COST] -= cost_of((first, second)) - 1
        return slow(first, second)

    return run


def either(one: Run, other: Run, cost: int, deciding: bool) -> Run:
    """``a && b`` or ``a || b``."""

    def run(frame: Frame) -> Any:
        error: EvaluationError | None = None
        try:
            first = one(frame)
            if first is deciding:
                return deciding
            if first is not (not deciding):
                error = NoOverload()
        except EvaluationError as raised:
            error = raised
        frame[COST] -= cost
        try:
            second = other(frame)
        except EvaluationError as raised:
            raise error or raised from None
        if second is deciding:
            return deciding
        if error is not None:
            raise error
        if second is not (not deciding):
            raise NoOverload
        return not deciding

    return run


def any_of(terms: list[tuple[Run, int]], deciding: bool) -> Run:
    """A chain of ``&&`` or of ``||``."""

    def run(frame: Frame) -> Any:
        error: EvaluationError | None = None
        for term, cost in terms:
            frame[COST] -= cost
            try:
                value = term(frame)
            except EvaluationError as raised:
                error = error or raised
                continue
            if value is deciding:
                return deciding
            if value is not (not deciding):
                error = error or NoOverload()
        if error is not None:
            raise error
        return not deciding

    return run


def refusal(name: str, args: list[Any]) -> EvaluationError:
    """The error of a function that does not take such arguments."""
    return EvaluationError(f"no such overload: {name}({', '.join(map(type_name, args))})")


def calling(name: str, function: Callable[..., Any], runs: list[Run]) -> Run:
    """A call whose cost does not depend on its arguments."""
    if len(runs) == 1:
        (only,) = runs

        def call_one(frame: Frame) -> Any:
            arg = only(frame)
            try:
                return function(arg)
            except NoOverload as error:
                raise error if error.bare else refusal(name, [arg]) from None

        return call_one

    def call(frame: Frame) -> Any:
        args = [run(frame) for run in runs]
        try:
            return function(*args)
        except NoOverload as error:
            raise error if error.bare else refusal(name, args) from None
        except TypeError:
            raise refusal(name, args) from None

    return call


def charging(name: str, function: Callable[..., Any], runs: list[Run], cost_of: Callable[[Any], int]) -> Run:
    """A call that is charged by its arguments, before it is made."""

    def call(frame: Frame) -> Any:
        args = [run(frame) for run in runs]
        try:
            frame[COST] -= cost_of(args)
            if frame[COST] < 0:
                raise Stop
            return function(*args)
        except NoOverload as error:
            raise error if error.bare else refusal(name, args) from None
        except (TypeError, ValueError, IndexError):
            raise refusal(name, args) from None

    return call
