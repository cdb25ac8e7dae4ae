"""Derives CEL types from OpenAPI v3 schemas, as Kubernetes does.

Fields without a type, and lists and maps of such, are omitted. int-or-string is `DYN`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from steersman.api.cel.environment import Structs
from steersman.api.cel.parser import RESERVED
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

_PREFIX = "#/components/schemas/"
_GVK = "x-kubernetes-group-version-kind"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_SCALARS = {"boolean": BOOL, "number": DOUBLE, "integer": INT, "string": STRING}
_FORMATS = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}
_OBJECT: Schema = {"type": "object"}
_TEXT: Schema = {"type": "string"}
_SHORT_META: Schema = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}


class UnknownKind(Exception):
    """A kind that is missing from an OpenAPI document."""


def kind_type(document: Schema, group: str, version: str, kind: str, structs: Structs, name: str) -> Type:
    """Return the type of a kind from an OpenAPI v3 document. Structs are named by ``name`` and their path.

    Raises `UnknownKind`. A kind with an empty schema is `DYN`.
    """
    schemas = (document.get("components") or {}).get("schemas") or {}
    meant = {"group": group, "version": version, "kind": kind}
    for reference, schema in schemas.items():
        if meant in (schema.get(_GVK) or ()):
            reader = _Reader(schemas, structs)
            return reader.type_of(schema, name, frozenset((reference,)), whole=True) or DYN
    raise UnknownKind(f"{group}/{version}, Kind={kind}")


class _Reader:
    def __init__(self, schemas: Mapping[str, Schema], structs: Structs) -> None:
        self._schemas = schemas
        self._structs = structs

    def type_of(
        self, schema: Schema, name: str, inside: frozenset[str], *, whole: bool = False
    ) -> Type | None:
        """Return the type of a schema; None if it has no type.

        ``inside`` are the references being resolved: a recursive reference becomes an object without fields. A
        ``whole`` object always has kind, apiVersion and metadata.
        """
        if schema.get("format") == "int-or-string" or schema.get(_INT_OR_STRING) is True:
            return DYN
        properties: Schema = schema.get("properties") or {}
        if whole:
            properties = self._with_metadata(properties)
        match _type(schema):
            case "array":
                return self._list(schema, name, inside)
            case "object":
                values = schema.get("additionalProperties")
                if isinstance(values, Mapping):
                    element = self._part(values, f"{name}.@elem", inside)
                    return None if element is None else map_of(STRING, element)
                # Fields are computed on first use: expressions use few fields of a pod.
                return self._structs.add(name, lambda: self._fields(properties, name, inside))
            case "string":
                return _FORMATS.get(schema.get("format") or "", STRING)
            case scalar:
                return _SCALARS.get(scalar)

    def _list(self, schema: Schema, name: str, inside: frozenset[str]) -> Type | None:
        items = schema.get("items")
        element = self._part(items, f"{name}.@idx", inside) if isinstance(items, Mapping) else None
        return None if element is None else list_of(element)

    def _fields(self, properties: Schema, name: str, inside: frozenset[str]) -> dict[str, Type]:
        fields: dict[str, Type] = {}
        for key, schema in properties.items():
            escaped = escape(key)
            if escaped is None:
                continue
            type_ = self._part(schema, f"{name}.{escaped}", inside)
            if type_ is not None:
                fields[escaped] = type_
        return fields

    def _part(self, schema: Schema, name: str, inside: frozenset[str]) -> Type | None:
        reference = _reference(schema)
        if reference in inside:
            return self.type_of(_OBJECT, name, inside)
        if reference:
            schema, inside = self._schemas.get(reference, {}), inside | {reference}
        return self.type_of(schema, name, inside, whole=schema.get(_EMBEDDED) is True)

    def _with_metadata(self, properties: Schema) -> Schema:
        def follow(schema: Schema | None) -> Schema:
            reference = _reference(schema or {})
            return self._schemas.get(reference, {}) if reference else schema or {}

        meta = follow(properties.get("metadata"))
        known = meta.get("properties") or {}
        texts = (
            properties.get("kind"),
            properties.get("apiVersion"),
            known.get("name"),
            known.get("generateName"),
        )
        if _type(meta) == "object" and all(_type(follow(text)) == "string" for text in texts):
            return properties
        return {**properties, "kind": _TEXT, "apiVersion": _TEXT, "metadata": _SHORT_META}


def _type(schema: Schema) -> str:
    found = schema.get("type") or ""
    return str(found[0]) if isinstance(found, list | tuple) else str(found)


def _reference(schema: Schema) -> str:
    """Return the reference of a schema: its ``$ref``, or that of its single ``allOf``."""
    direct = schema.get("$ref")
    if direct:
        return str(direct).removeprefix(_PREFIX)
    return next(filter(None, map(_reference, schema.get("allOf") or ())), "")


_SPECIAL = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME = re.compile(r"[A-Za-z_.\-/][A-Za-z0-9_.\-/]*")


def escape(name: str) -> str | None:
    """Escape a field's name for use in expressions; None if that is not possible."""
    if name in RESERVED:
        return f"__{name}__"
    if _NAME.fullmatch(name) is None:
        return None
    return re.sub(r"__|[.\-/]", lambda match: _SPECIAL[match[0]], name)


_UNESCAPED = {escaped: plain for plain, escaped in _SPECIAL.items()} | {
    f"__{word}__": word for word in RESERVED
}
_ESCAPED = re.compile("|".join(map(re.escape, _UNESCAPED)))


def unescape(name: str) -> str:
    """The name of a field from its name in expressions."""
    if "__" not in name:
        return name
    word = _UNESCAPED.get(name)
    if word is not None:
        return word
    return _ESCAPED.sub(
        lambda match: _UNESCAPED[match[0]] if match[0] in _SPECIAL.values() else match[0], name
    )
