"""Converts plain JSON to the values that CEL has for a schema: numbers to doubles, texts of a format to times, durations and bytes.

Most schemas need no conversion, and their values are used as they are.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from steersman.api.cel.checker import Checked
from steersman.api.cel.runtime.conversions import parse_timestamp, to_duration
from steersman.api.cel.runtime.values import EvaluationError, MapList, SetList
from steersman.api.cel.syntax import Call, walk
from steersman.api.cel.types import Sort

Schema: TypeAlias = Mapping[str, Any]
Convert: TypeAlias = Callable[[Any], Any]

_COMPARING = frozenset(
    (
        "_==_", "_!=_", "_+_", "@in", "indexOf", "lastIndexOf", "distinct",
        "sets.contains", "sets.equivalent", "sets.intersects",
        "contains", "equivalent", "intersects",
    )
)  # fmt: skip
"""Functions that compare or join lists."""
_PLAIN = frozenset(
    (
        Sort.BOOL,
        Sort.INT,
        Sort.UINT,
        Sort.DOUBLE,
        Sort.STRING,
        Sort.BYTES,
        Sort.NULL,
        Sort.DURATION,
        Sort.TIMESTAMP,
    )
)


def needs_list_types(found: Checked) -> bool:
    """Whether an expression compares or joins lists, or values that may contain some."""
    return any(
        isinstance(part, Call)
        and part.function in _COMPARING
        and any(arg in found.types and found.types[arg].sort not in _PLAIN for arg in part.parts)
        for part, _ in walk(found.expr)
    )


def compile_conversion(schema: Schema, *, list_types: bool) -> Convert | None:
    """A function that converts values of a schema; None if they need no conversion.

    With ``list_types`` lists know whether they are sets or list maps.
    """
    if schema.get("x-kubernetes-int-or-string") is True:
        return None
    match schema.get("type"):
        case "number":
            return _number
        case "string":
            return _FORMATS.get(schema.get("format") or "")
        case "array":
            return _array(schema, list_types)
        case "object":
            return _object(schema, list_types)
    return None


def _number(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _timestamp(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return parse_timestamp(value)


def _date(value: Any) -> Any:
    return parse_timestamp(f"{value}T00:00:00Z") if isinstance(value, str) else value


def _duration(value: Any) -> Any:
    return to_duration(value) if isinstance(value, str) else value


def _bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError):
        raise EvaluationError("invalid base64") from None


_FORMATS: Mapping[str, Convert] = {
    "date-time": _timestamp,
    "date": _date,
    "duration": _duration,
    "byte": _bytes,
}


def _array(schema: Schema, list_types: bool) -> Convert | None:
    items = schema.get("items")
    inner = compile_conversion(items, list_types=list_types) if isinstance(items, Mapping) else None
    list_type = schema.get("x-kubernetes-list-type") if list_types else None
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if inner is None and list_type not in ("set", "map"):
        return None

    def convert(value: Any) -> Any:
        if type(value) is not list:
            return value
        made = value if inner is None else [inner(each) for each in value]
        if list_type == "set":
            return SetList(made)
        return MapList(made, keys) if list_type == "map" else made

    return convert


def _object(schema: Schema, list_types: bool) -> Convert | None:
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        inner = compile_conversion(additional, list_types=list_types)
        if inner is None:
            return None

        def convert_entries(value: Any) -> Any:
            return {name: inner(each) for name, each in value.items()} if type(value) is dict else value

        return convert_entries
    properties = schema.get("properties") or {}
    inners = {
        name: found
        for name, each in properties.items()
        if (found := compile_conversion(each, list_types=list_types)) is not None
    }
    if not inners:
        return None

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            return value
        made = dict(value)
        for name, inner in inners.items():
            if name in made:
                made[name] = inner(made[name])
        return made

    return convert
