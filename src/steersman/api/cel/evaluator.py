"""Evaluates expressions that are only parsed, on plain Python values: those of device selectors.

Values of variables are bool, int, float, str, bytes, None, lists, maps and those of `runtime`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from steersman.api.cel.libraries import TYPE_NAMES
from steersman.api.cel.program import PER_CALL_LIMIT, Program, compile_program
from steersman.api.cel.runtime.values import EvaluationError
from steersman.api.cel.syntax import Expr

Variables: TypeAlias = Mapping[str, object]


def evaluate(expr: Expr, variables: Variables, limit: int = PER_CALL_LIMIT) -> object:
    """Return the value of an expression. Raises `EvaluationError`."""
    return compiled(expr, *variables).evaluate(*variables.values(), limit=limit).value


def compiled(expr: Expr, *variables: str) -> Program:
    """An expression, compiled without types."""
    return compile_program(expr, variables, type_names=TYPE_NAMES)


__all__ = ["EvaluationError", "Variables", "compiled", "evaluate"]
