"""JSON paths into custom resources: of scale, selectable fields and validation rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.api.patch.values import deep_copy, format_as_go, type_name

_TOKENS = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+")


class InvalidPath(ValueError):
    """A path that does not lead to a value. The message is upstream's."""


def simple_path_error(path: str) -> str:
    """The error of a simple path such as ``.spec.replicas``; empty if it is valid."""
    if not path:
        return "must not be empty"
    return "" if path.startswith(".") else "must be a simple json path starting with ."


def field_at(schema: JSONSchemaProps, path: str, *, keys: bool = True) -> tuple[str, JSONSchemaProps | None]:
    """The field at a path, with its schema. ``keys`` is whether the notation ``['name']`` is allowed."""
    tokens = iter(_TOKENS.findall(path))
    here: JSONSchemaProps | None = schema
    where = ""
    for token in tokens:
        if token == "[":
            if not keys:
                raise InvalidPath("array notation is not allowed")
            name = next(tokens, None)
            if name is None:
                raise InvalidPath("unexpected end of JSON path")
            if len(name) < 2 or name[0] != "'" or name[-1] != "'":
                raise InvalidPath(f"expected single quoted string but got {name}")
            where, here = _inside(here, re.sub(r"\\(.)", r"\1", name[1:-1]), where)
            end = next(tokens, None)
            if end != "]":
                raise InvalidPath(
                    "unexpected end of JSON path" if end is None else f"expected ] but got {end}"
                )
        elif token == ".":
            name = next(tokens, None)
            if name is None:
                raise InvalidPath("unexpected end of JSON path")
            where, here = _inside(here, name, where)
        else:
            raise InvalidPath(f"expected [ or . but got: {token}")
    return where, here


def _inside(schema: JSONSchemaProps | None, name: str, where: str) -> tuple[str, JSONSchemaProps | None]:
    if schema is not None and schema.properties:
        if name not in schema.properties:
            raise InvalidPath("does not refer to a valid field")
        return (f"{where}.{name}" if where else name), schema.properties[name]
    if schema is not None and schema.additionalProperties is not None:
        additional = schema.additionalProperties
        return f"{where}[{name}]", additional if isinstance(additional, JSONSchemaProps) else None
    raise InvalidPath("does not refer to a valid field")


# -- values -----------------------------------------------------------------------------------


def split(path: str) -> tuple[str, ...]:
    """The names of a simple path."""
    return tuple(path.removeprefix(".").split("."))


def value_at(content: Mapping[str, Any], names: tuple[str, ...], type_: type) -> Any:
    """The value at a path, None if there is none. Raises `InvalidPath` for a value of another type."""
    here: Any = content
    for index, name in enumerate(names):
        if here is None:
            return None
        if not isinstance(here, Mapping):
            raise _wrong_type(names[: index + 1], here, "map[string]interface{}")
        if name not in here:
            return None
        here = here[name]
    if type(here) is not type_:
        raise _wrong_type(names, here, "int64" if type_ is int else "string")
    return here


def _wrong_type(names: tuple[str, ...], value: Any, wanted: str) -> InvalidPath:
    path = "".join(f".{name}" for name in names)
    shown = "<nil>" if value is None else type_name(value)
    return InvalidPath(
        f"{path} accessor error: {format_as_go(value)} is of the type {shown}, expected {wanted}"
    )


def with_value(content: Mapping[str, Any], names: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A deep copy of a content with a value set at a path.

    Raises `InvalidPath` if a value on the path is not an object.
    """
    made: dict[str, Any] = deep_copy(dict(content))
    here: Any = made
    for index, name in enumerate(names[:-1]):
        here = here.setdefault(name, {})
        if not isinstance(here, dict):
            path = "".join(f".{each}" for each in names[: index + 1])
            raise InvalidPath(f"value cannot be set because {path} is not a map[string]interface{{}}")
    here[names[-1]] = value
    return made


def text_at(content: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The value at a path as field selectors compare it; empty if there is none."""
    here: Any = content
    for name in names:
        here = here.get(name) if isinstance(here, Mapping) else None
    return "" if here is None else format_as_go(here)
