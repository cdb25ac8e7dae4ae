"""What all patches are about: plain JSON documents, compared and copied as JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

Document: TypeAlias = dict[str, Any]
"""A JSON object: str, int, float, bool, None, lists and objects of those."""

P = ParamSpec("P")
R = TypeVar("R")


class PatchError(ValueError):
    """A patch that is malformed, or does not fit the document. The message is upstream's."""


class TooManyOperations(PatchError):
    """A JSON patch with more operations than the server is willing to carry out."""


def limits_nesting(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse what is nested deeper than the interpreter can follow, like any other bad patch."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            raise PatchError("the document or the patch is nested too deeply") from None

    return guarded


def json_equal(a: Any, b: Any) -> bool:
    """Whether two values are the same JSON. Unlike in Python, true is not 1."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return len(a) == len(b) and all(key in b and json_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(json_equal, a, b))
    return bool(a == b)


def deep_copy(value: Any) -> Any:
    """A value that shares nothing with the one given."""
    if isinstance(value, dict):
        return {key: deep_copy(child) for key, child in value.items()}
    if isinstance(value, list):
        return [deep_copy(item) for item in value]
    return value


def without_nulls(value: Any) -> Any:
    """A value without the fields that are null, which in a patch means: not there."""
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
    """What upstream's messages call the type of a value."""
    return _TYPES.get(type(value), "%!s(<nil>)")


def format_as_go(value: Any) -> str:
    """A value as upstream's messages print it, and as it sorts the keys of items."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{format_as_go(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(format_as_go, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def wrong_type(expected: type, value: Any) -> PatchError:
    """A value of another type than the patch needs there."""
    return PatchError(f"expected a {_TYPES[expected]}, but received a {type_name(value)}")
