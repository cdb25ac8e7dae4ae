"""Plain JSON documents for all patch types: comparison, copying, and Go's formatting in error messages."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

Document: TypeAlias = dict[str, Any]
"""A JSON object: str, int, float, bool, None, lists and objects of those."""

P = ParamSpec("P")
R = TypeVar("R")


class PatchError(ValueError):
    """A malformed patch, or one that does not fit the document, with upstream's message."""


class PatchTestFailed(PatchError):
    """A JSON patch whose test operation finds another value."""


class TooManyOperations(PatchError):
    """A JSON patch with more operations than the server allows."""


def limits_nesting(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function to raise `PatchError` for documents that are nested too deeply."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            raise PatchError("the document or the patch is nested too deeply") from None

    return guarded


def json_equal(a: Any, b: Any) -> bool:
    """Report whether two values are equal as JSON. Unlike in Python, true is not 1."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return len(a) == len(b) and all(key in b and json_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(json_equal, a, b))
    return bool(a == b)


def deep_copy(value: Any) -> Any:
    """Return a deep copy."""
    if isinstance(value, dict):
        return {key: deep_copy(child) for key, child in value.items()}
    if isinstance(value, list):
        return [deep_copy(item) for item in value]
    return value


def without_nulls(value: Any) -> Any:
    """Return a value without fields that are null."""
    if isinstance(value, dict):
        return {key: without_nulls(child) for key, child in value.items() if child is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


_TYPES = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}


def type_name(value: Any) -> str:
    """Return the Go type of a value, for upstream's messages."""
    return _TYPES.get(type(value), "%!s(<nil>)")


def format_as_go(value: Any) -> str:
    """Format a value as Go prints it, for messages and for sorting merge keys."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{format_as_go(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(format_as_go, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return "<nil>" if value is None else str(value)


def wrong_type(expected: type, value: Any) -> PatchError:
    """Return the error of a value with an unexpected type."""
    return PatchError(f"expected a {_TYPES[expected]}, but received a {type_name(value)}")
