"""Evaluates expressions on plain Python values.

Values are bool, int, float, str, bytes, None, lists, maps and the values of `functions` (quantities, versions, optionals).
As in CEL, ``&&`` and ``||`` ignore an error of one side where the other side decides. Each node evaluated counts as a step,
and the number of steps is limited, so that no expression takes long.

differs: times, durations, URLs, IP addresses, formats and unsigned integers have no functions here; an expression that uses
them fails with ``no such overload``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from steersman.api.cel.functions import FUNCTIONS, METHODS, EvaluationError, Optional, item
from steersman.api.cel.syntax import Call, Expr, Fold, Ident, ListOf, Literal, MapOf, Select, qualified

MAX_STEPS = 100_000
"""Nodes that are evaluated for one result."""

Variables: TypeAlias = Mapping[str, object]


def evaluate(expr: Expr, variables: Variables, steps: int = MAX_STEPS) -> object:
    """Return the value of an expression. Raises `EvaluationError`."""
    return _Evaluation(steps).value(expr, variables)


class _Evaluation:
    """One evaluation, and the steps that are left for it."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def value(self, expr: Expr, variables: Variables) -> object:
        self._left -= 1
        if self._left < 0:
            raise EvaluationError("operation cancelled: actual cost limit exceeded")
        match expr:
            case Literal():
                return expr.value
            case Ident():
                return _variable(expr.name, variables)
            case Select():
                return self._select(expr, variables)
            case Call():
                return self._call(expr, variables)
            case ListOf():
                return self._list(expr, variables)
            case MapOf():
                return self._map(expr, variables)
            case Fold():
                return self._fold(expr, variables)
        raise EvaluationError("objects cannot be constructed here")

    def _select(self, expr: Select, variables: Variables) -> object:
        name = qualified(expr)
        if name in variables:
            return variables[name]
        operand = self.value(expr.operand, variables)
        if isinstance(operand, Optional):
            if not operand.present:
                return False if expr.test else operand
            value: object = operand.value
        else:
            value = operand
        if not isinstance(value, Mapping):
            raise EvaluationError("no such overload")
        if expr.test:
            return expr.field in value
        if isinstance(operand, Optional):
            return Optional(value[expr.field], True) if expr.field in value else Optional()
        return item(value, expr.field)

    def _call(self, expr: Call, variables: Variables) -> object:
        special = _SPECIAL.get(expr.function)
        if special is not None and expr.target is None:
            return special(self, expr, variables)
        if expr.function == "bind" and isinstance(expr.target, Ident) and expr.target.name == "cel":
            return self._bind(expr, variables)
        if expr.target is None:
            function = FUNCTIONS.get(expr.function.removeprefix("."))
            args = [self.value(arg, variables) for arg in expr.args]
        else:
            name = qualified(expr.target)
            # optional.of() is written as a method of a name that is no variable.
            namespaced = f"{name}.{expr.function}"
            if name and namespaced in FUNCTIONS and name.partition(".")[0] not in variables:
                function = FUNCTIONS[namespaced]
                args = [self.value(arg, variables) for arg in expr.args]
            else:
                function = METHODS.get(expr.function)
                args = [self.value(part, variables) for part in expr.parts]
        if function is None:
            raise EvaluationError(f"no such overload: {expr.function}")
        # Work of a function grows with its arguments.
        self._left -= sum(len(arg) // 10 for arg in args if isinstance(arg, str | bytes | list | dict))
        try:
            return function(*args)
        except TypeError:
            raise EvaluationError("no such overload") from None

    def _bind(self, expr: Call, variables: Variables) -> object:
        """``cel.bind(name, value, result)``: a result with a value bound to a name."""
        if len(expr.args) != 3 or not isinstance(expr.args[0], Ident):
            raise EvaluationError("cel.bind() variable names must be simple identifiers")
        name, value, result = expr.args[0].name, expr.args[1], expr.args[2]
        return self.value(result, {**variables, name: self.value(value, variables)})

    def _list(self, expr: ListOf, variables: Variables) -> object:
        found: list[object] = []
        for element, optional in zip(expr.elements, expr.optional, strict=True):
            value = self.value(element, variables)
            if not optional:
                found.append(value)
            elif isinstance(value, Optional) and value.present:
                found.append(value.value)
        return found

    def _map(self, expr: MapOf, variables: Variables) -> object:
        found: dict[object, object] = {}
        for entry in expr.entries:
            key, value = self.value(entry.key, variables), self.value(entry.value, variables)
            if entry.optional and isinstance(value, Optional):
                if not value.present:
                    continue
                value = value.value
            if key in found:
                raise EvaluationError(f"Failed with repeated key: {key}")
            found[key] = value
        return found

    def _fold(self, expr: Fold, variables: Variables) -> object:
        over = self.value(expr.range, variables)
        result = self.value(expr.init, variables)
        if isinstance(over, Mapping):
            pairs = [(key, over[key]) for key in over]
        elif isinstance(over, list):
            pairs = list(enumerate(over)) if expr.second else [(each, each) for each in over]
        else:
            raise EvaluationError("got a value that cannot be iterated")
        error: EvaluationError | None = None
        for first, second in pairs:
            inside = {**variables, expr.variable: first, expr.accumulator: result}
            if expr.second:
                inside[expr.second] = second
            if self.value(expr.condition, inside) is False:
                break
            try:
                result, error = self.value(expr.step, inside), None
            except EvaluationError as raised:
                # all() and exists() go on: another element may decide.
                if not _is_logical(expr.step):
                    raise
                error = error or raised
        if error is not None:
            raise error
        return self.value(expr.result, {**variables, expr.accumulator: result})

    # -- functions that do not evaluate all of their arguments --------------------------------

    def conditional(self, expr: Call, variables: Variables) -> object:
        condition, yes, no = expr.args
        return self.value(yes if self._bool(condition, variables) else no, variables)

    def logical(self, expr: Call, variables: Variables) -> object:
        """``&&`` is decided by false, ``||`` by true, whatever the other terms are."""
        deciding = expr.function == "_||_"
        error: EvaluationError | None = None
        for arg in expr.args:
            try:
                if self._bool(arg, variables) is deciding:
                    return deciding
            except EvaluationError as raised:
                error = error or raised
        if error is not None:
            raise error
        return not deciding

    def not_strictly_false(self, expr: Call, variables: Variables) -> object:
        try:
            return self._bool(expr.args[0], variables)
        except EvaluationError:
            return True

    def _bool(self, expr: Expr, variables: Variables) -> bool:
        value = self.value(expr, variables)
        if not isinstance(value, bool):
            raise EvaluationError("no such overload")
        return value


def _is_logical(step: Expr) -> bool:
    return isinstance(step, Call) and step.function in ("_&&_", "_||_")


def _variable(name: str, variables: Variables) -> object:
    try:
        return variables[name.removeprefix(".")]
    except KeyError:
        raise EvaluationError(f"no such attribute(s): {name}") from None


_SPECIAL: Mapping[str, Callable[[_Evaluation, Call, Variables], object]] = {
    "_?_:_": _Evaluation.conditional,
    "_&&_": _Evaluation.logical,
    "_||_": _Evaluation.logical,
    "@not_strictly_false": _Evaluation.not_strictly_false,
}

__all__ = ["MAX_STEPS", "EvaluationError", "Variables", "evaluate"]
