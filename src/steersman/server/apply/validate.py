"""Validates a document against its typed schema, with structured-merge-diff's error texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steersman.api import go_quote
from steersman.api.patch.values import format_as_go
from steersman.server.apply import path_element
from steersman.server.apply.schema import List, Map, Scalar, SchemaError, TypedSchema, deduce


def validate(document: Any, schema: TypedSchema, *, duplicates: bool = False) -> None:
    """Raises `SchemaError` for a document that does not match its schema.

    ``duplicates`` allows several items with one key, which live objects may have and applied ones may not.
    """
    errors = list(_errors(document, schema, "", duplicates))
    if errors:
        raise SchemaError(errors[0] if len(errors) == 1 else "\n  ".join(("errors:", *errors)))


def _errors(value: Any, schema: TypedSchema, path: str, duplicates: bool) -> Iterator[str]:
    typed = deduce(schema, value)
    message = ""
    if typed is None:
        message = _scalar(schema.scalar, value)
    elif value is None:
        return
    elif isinstance(typed, Map):
        if type(value) is dict:
            yield from _map(typed, value, path, duplicates)
            return
        message = f"expected map, got &{{{format_as_go(value)}}}"
    elif type(value) is list:
        yield from _list(typed, value, path, duplicates)
        return
    else:
        message = f"expected list, got &{{{format_as_go(value)}}}"
    if message:
        yield f"{path}: {message}" if path else message


def _map(typed: Map, value: dict[str, Any], path: str, duplicates: bool) -> Iterator[str]:
    for name, part in value.items():
        if not typed.allows(name):
            yield f"{path}.{name}: field not declared in schema"
            return
        yield from _errors(part, typed.at(name), f"{path}.{name}", duplicates)


def _list(typed: List, value: list[Any], path: str, duplicates: bool) -> Iterator[str]:
    seen: dict[str, None] = {}
    where = f"{path}: " if path else ""
    for index, item in enumerate(value):
        if typed.atomic:
            yield from _errors(item, typed.item, f"{path}[{index}]", duplicates)
            continue
        try:
            element = typed.element(item)
        except SchemaError as error:
            yield f"{where}element {index}: {error}"
            return
        if element in seen and not duplicates:
            yield f"{where}duplicate entries for key {path_element.to_string(element)}"
        seen[element] = None
        yield from _errors(item, typed.item, path + path_element.to_string(element), duplicates)


def _scalar(scalar: Scalar, value: Any) -> str:
    if value is None:
        return ""
    if scalar == "numeric" and (isinstance(value, bool) or not isinstance(value, (int, float))):
        return f"expected numeric (int or float), got {_type(value)}"
    if scalar == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{_as_go_source(value)}}}"
    if scalar == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got &{{{format_as_go(value)}}}"
    if scalar == "untyped" and isinstance(value, (dict, list)):
        return f"expected any scalar, got &{{{format_as_go(value)}}}"
    return ""


def _type(value: Any) -> str:
    """The Go type of a value, as upstream's messages have it."""
    for sort, name in _GO_TYPES:
        if isinstance(value, sort):
            return name
    return "<nil>"


_GO_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (int, "int64"),
    (float, "float64"),
    (str, "string"),
    (dict, "map[string]interface {}"),
    (list, "[]interface {}"),
)


def _as_go_source(value: Any) -> str:
    """A value as Go prints its source."""
    if isinstance(value, dict):
        parts = (f"{go_quote.quote(name)}:{_as_go_source(part)}" for name, part in sorted(value.items()))
        return f"map[string]interface {{}}{{{', '.join(parts)}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_as_go_source, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return go_quote.quote(value) if isinstance(value, str) else format_as_go(value)
