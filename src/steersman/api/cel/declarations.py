"""Declarations: the CEL types of a structural schema, with the sizes that bound what a rule on its values can cost.

As Kubernetes declares them for CustomResourceDefinitions: fields without a type are not visible, int-or-string is dynamic,
and what a schema does not limit is limited by the largest request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from steersman.api.cel.environment import Structs
from steersman.api.cel.schemas import escape
from steersman.api.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
)

Schema: TypeAlias = Mapping[str, Any]

MAX_REQUEST = 3 * 1024 * 1024
"""Bytes of the largest request."""
_TEXT: Schema = {"type": "string"}
_MAX_TIME, _DATE, _MIN_TIME, _MIN_DURATION = 32, 12, 21, 3
"""Bytes of a date-time or duration at most, of a date, and of a date-time and a duration at least, with quotes."""
_ITEMS, _VALUES, _KEYS = "@items", "@values", "@keys"


@dataclass(frozen=True, slots=True, eq=False)
class Declaration:
    """A type, and the sizes of its values."""

    type: Type
    min_size: int
    """Bytes of the smallest value in JSON."""
    max_elements: int = 0
    """Characters, items or entries of the largest value; 0 for other types."""
    fields: Mapping[str, Declaration] = field(default_factory=dict)
    """The fields of an object, by their escaped names."""
    element: Declaration | None = None
    key: Declaration | None = None

    def at(self, path: tuple[str, ...]) -> Declaration | None:
        """The declaration at a path of field names, ``@items``, ``@values`` and ``@keys``; None if there is none."""
        found: Declaration | None = self
        for name in path:
            if found is None:
                return None
            if name in (_ITEMS, _VALUES):
                found = found.element
            elif name == _KEYS:
                found = found.key
            else:
                found = found.fields.get(name)
        return found


_KEY = Declaration(STRING, 2)


def declare(schema: Schema, structs: Structs, name: str, *, root: bool = False) -> Declaration | None:
    """The declaration of a schema, whose structs are added under ``name`` and their path; None if it has no type.

    The ``root`` of a resource always has apiVersion, kind and metadata.
    """
    if schema.get("x-kubernetes-int-or-string") is True:
        return Declaration(DYN, 1, _text_length(schema, MAX_REQUEST - 2))
    match schema.get("type"):
        case "array":
            return _array(schema, structs, name)
        case "object":
            return _object(schema, structs, name, root)
        case "string":
            return _string(schema)
        case "boolean":
            return Declaration(BOOL, 4)
        case "number":
            return Declaration(DOUBLE, 1)
        case "integer":
            return Declaration(INT, 1)
    return None


def _embedded(schema: Schema) -> bool:
    return schema.get("x-kubernetes-embedded-resource") is True


def _array(schema: Schema, structs: Structs, name: str) -> Declaration | None:
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return None
    element = declare(items, structs, f"{name}.@idx", root=_embedded(items))
    if element is None:
        return None
    most = schema.get("maxItems")
    limit = (MAX_REQUEST - 2) // (element.min_size + 1) if most is None else max(int(most), 0)
    return Declaration(list_of(element.type), 2, limit, element=element)


def _object(schema: Schema, structs: Structs, name: str, root: bool) -> Declaration | None:
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        element = declare(values, structs, f"{name}.@elem", root=_embedded(values))
        if element is None:
            return None
        most = schema.get("maxProperties")
        limit = (MAX_REQUEST - 2) // (element.min_size + 6) if most is None else max(int(most), 0)
        return Declaration(map_of(STRING, element.type), 2, limit, element=element, key=_KEY)
    properties: Schema = schema.get("properties") or {}
    if root:
        properties = _with_metadata(properties)
    required = schema.get("required") or ()
    fields: dict[str, Declaration] = {}
    size = 2
    for key, each in properties.items():
        escaped = escape(key)
        inner = declare(each, structs, f"{name}.{escaped or key}", root=_embedded(each))
        if inner is None:
            continue
        if escaped is not None:
            fields[escaped] = inner
        if key in required and each.get("default") is None:
            size += len(key) + inner.min_size + 4
    made = structs.add(name, {key: each.type for key, each in fields.items()})
    return Declaration(made, size, fields=fields)


def _with_metadata(properties: Schema) -> Schema:
    meta = properties.get("metadata") or {}
    known = meta.get("properties") or {}
    texts = (
        properties.get("kind"),
        properties.get("apiVersion"),
        known.get("name"),
        known.get("generateName"),
    )
    if meta.get("type") == "object" and all((each or {}).get("type") == "string" for each in texts):
        return properties
    metadata = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
    return {**properties, "kind": _TEXT, "apiVersion": _TEXT, "metadata": metadata}


def _string(schema: Schema) -> Declaration:
    match schema.get("format"):
        case "byte":
            most = schema.get("maxLength")
            return Declaration(BYTES, 2, MAX_REQUEST - 2 if most is None else max(int(most), 0))
        case "duration":
            return Declaration(DURATION, _MIN_DURATION, _MAX_TIME)
        case "date":
            return Declaration(TIMESTAMP, _DATE, _DATE)
        case "date-time":
            return Declaration(TIMESTAMP, _MIN_TIME, _MAX_TIME)
    longest = MAX_REQUEST - 2
    if schema.get("enum"):
        longest = max((len(each.encode()) for each in schema["enum"] if isinstance(each, str)), default=0)
    return Declaration(STRING, 2, _text_length(schema, longest))


def _text_length(schema: Schema, otherwise: int) -> int:
    """The bytes of the longest text; a character has up to four."""
    most = schema.get("maxLength")
    return otherwise if most is None else max(int(most), 0) * 4
