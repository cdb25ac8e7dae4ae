"""Compiles loops: the comprehensions into which macros expand, each recognized by its form and run as a plain loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steersman.api.cel.call_costs import LIST
from steersman.api.cel.code import COST, Code, Compiler, Frame, Stop
from steersman.api.cel.runtime.lists import map_insert
from steersman.api.cel.runtime.values import EvaluationError, NoOverload
from steersman.api.cel.syntax import Call, Expr, Fold, ListOf, Literal, MapOf


class Loops(Compiler):
    """Loops over lists and maps."""

    def fold(self, expr: Fold) -> Code:
        if isinstance(expr.range, ListOf) and not expr.range.elements and _is_literal(expr.condition, False):
            return self._bound(expr)
        over = self.compile(expr.range)
        match expr.step, expr.init:
            case Call(function="_&&_"), _:
                return self._quantified(expr, over, deciding=False)
            case Call(function="_||_"), _:
                return self._quantified(expr, over, deciding=True)
            case _, ListOf():
                return self._listed(expr, over)
            case _, MapOf():
                return self._mapped(expr, over)
        return self._exists_one(expr, over)

    def _bound(self, expr: Fold) -> Code:
        """A value bound to a name: of optMap() and sortBy()."""
        value = self.compile(expr.init)
        with self.scope.local(expr.accumulator) as (place,):
            result = self.compile(expr.result)
        value_run, result_run = value.run, result.run

        def run(frame: Frame) -> Any:
            frame[place] = value_run(frame)
            return result_run(frame)

        return Code(run, value.cost + result.cost)

    def _quantified(self, expr: Fold, over: Code, *, deciding: bool) -> Code:
        """``all`` is decided by false, ``exists`` by true; an error counts if no element decides."""
        assert isinstance(expr.step, Call)
        body, places = self._inside(expr, expr.step.args[-1])
        # The condition, the accumulator, and for exists its negation.
        each_cost = body.cost + (4 if deciding else 3)
        range_run, body_run = over.run, body.run
        single = places[0] if len(places) == 1 else -1

        def run(frame: Frame) -> Any:
            error: EvaluationError | None = None
            for item in _items(range_run(frame), places):
                left = frame[COST] = frame[COST] - each_cost
                if left < 0:
                    raise Stop
                if single >= 0:
                    frame[single] = item
                else:
                    frame[places[0]], frame[places[1]] = item
                try:
                    value = body_run(frame)
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

        return Code(run, over.cost + 1)

    def _listed(self, expr: Fold, over: Code) -> Code:
        """``map``, ``filter`` and ``transformList``."""
        kept, grown = _filtered(expr.step)
        what = grown.args[1]
        assert isinstance(what, ListOf)
        condition, value, places = self._filter_and_value(expr, kept, what.elements[0])
        keep_cost = 1 + LIST + value.cost
        range_run, value_run = over.run, value.run
        keep = None if condition is None else condition.run
        each_cost = 1 if condition is None else condition.cost + 1

        def run(frame: Frame) -> list[Any]:
            made: list[Any] = []
            for item in _items(range_run(frame), places):
                frame[COST] -= each_cost
                _bind(frame, places, item)
                if keep is not None:
                    decision = keep(frame)
                    if decision is not True:
                        if decision is False and frame[COST] >= 0:
                            continue
                        raise Stop if decision is False else NoOverload()
                left = frame[COST] = frame[COST] - keep_cost
                if left < 0:
                    raise Stop
                made.append(value_run(frame))
            return made

        return Code(run, over.cost + 1)

    def _mapped(self, expr: Fold, over: Code) -> Code:
        """``transformMap`` and ``transformMapEntry``."""
        kept, grown = _filtered(expr.step)
        condition, entry, places = self._filter_and_value(expr, kept, grown.args[-1])
        whole_entries = len(grown.args) == 2
        keep = None if condition is None else condition.run
        each_cost = (0 if condition is None else condition.cost) + entry.cost + (2 if whole_entries else 3)
        range_run, entry_run = over.run, entry.run

        def run(frame: Frame) -> dict[Any, Any]:
            made: dict[Any, Any] = {}
            for item in _items(range_run(frame), places):
                left = frame[COST] = frame[COST] - each_cost
                if left < 0:
                    raise Stop
                _bind(frame, places, item)
                if keep is not None:
                    decision = keep(frame)
                    if decision is False:
                        continue
                    if decision is not True:
                        raise NoOverload
                value = entry_run(frame)
                if whole_entries:
                    if not isinstance(value, Mapping):
                        raise NoOverload
                    map_insert(made, value)
                else:
                    map_insert(made, frame[places[0]], value)
            return made

        return Code(run, over.cost + 1)

    def _exists_one(self, expr: Fold, over: Code) -> Code:
        step = expr.step
        assert isinstance(step, Call)
        body, places = self._inside(expr, step.args[0])
        each_cost = body.cost + 1
        range_run, body_run = over.run, body.run

        def run(frame: Frame) -> bool:
            count = 0
            for item in _items(range_run(frame), places):
                left = frame[COST] = frame[COST] - each_cost
                if left < 0:
                    raise Stop
                _bind(frame, places, item)
                value = body_run(frame)
                if value is True:
                    count += 1
                    frame[COST] -= 1
                elif value is not False:
                    raise NoOverload
            return count == 1

        return Code(run, over.cost + 2)

    def _inside(self, expr: Fold, body: Expr) -> tuple[Code, list[int]]:
        with self.scope.local(*_variables(expr)) as places:
            return self.compile(body), places

    def _filter_and_value(
        self, expr: Fold, kept: Expr | None, value: Expr
    ) -> tuple[Code | None, Code, list[int]]:
        with self.scope.local(*_variables(expr)) as places:
            return None if kept is None else self.compile(kept), self.compile(value), places


def _variables(expr: Fold) -> tuple[str, ...]:
    return (expr.variable, expr.second) if expr.second else (expr.variable,)


def _filtered(step: Expr) -> tuple[Expr | None, Call]:
    """The filter of a step, if it has one, and the call that grows the accumulator."""
    assert isinstance(step, Call)
    if step.function == "_?_:_":
        grown = step.args[1]
        assert isinstance(grown, Call)
        return step.args[0], grown
    return None, step


def _is_literal(expr: Expr, value: object) -> bool:
    return isinstance(expr, Literal) and expr.value is value


def _items(over: Any, places: list[int]) -> Iterable[Any]:
    """The items that a loop runs over: the elements of a list, the keys of a map; with two variables pairs."""
    if isinstance(over, list | tuple):
        return over if len(places) == 1 else enumerate(over)
    if isinstance(over, Mapping):
        return list(over) if len(places) == 1 else list(over.items())
    raise EvaluationError(f"got '{_go_type(over)}', expected iterable type")


def _go_type(value: object) -> str:
    names = {bool: "types.Bool", int: "types.Int", float: "types.Double", str: "types.String"}
    return names.get(type(value), "types.Null" if value is None else "types.Dyn")


def _bind(frame: Frame, places: list[int], item: Any) -> None:
    if len(places) == 1:
        frame[places[0]] = item
    else:
        frame[places[0]], frame[places[1]] = item
