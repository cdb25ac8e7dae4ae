"""Plain JSON documents for the targets that read, patch or apply them: strategies, encoding and comparison."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from steersman.api.go_yaml import MalformedDocument
from steersman.server.codec.json_yaml import decode_json

SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(("", "a", "b", "1", "yes", "é", "~"))
)


def values(
    names: st.SearchStrategy[str], scalars: st.SearchStrategy[Any] = SCALARS
) -> st.SearchStrategy[Any]:
    """Return a strategy of JSON values whose objects have these names."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=8,
    )


def encoded(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    """Return a strategy of the JSON text of values."""
    return strategy.map(lambda value: json.dumps(value).encode())


def decoded(data: bytes) -> dict[str, Any]:
    """Return the JSON object of an input as the server reads it; an empty one for other inputs."""
    try:
        document = decode_json(data)
    except MalformedDocument:
        return {}
    return document if isinstance(document, dict) else {}


def equal(one: Any, other: Any) -> bool:
    """Report whether values are equal as JSON: numbers by their value, and true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, float) or isinstance(other, float):
        return isinstance(one, int | float) and isinstance(other, int | float) and float(one) == float(other)
    return type(one) is type(other) and bool(one == other)


def without_nulls(value: Any) -> Any:
    """Return a value without the fields that are null."""
    if isinstance(value, dict):
        return {key: without_nulls(child) for key, child in value.items() if child is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
