"""The typed schemas of custom resources, from their structural schemas (or any OpenAPI schema of Kubernetes)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.apply.schema import DEDUCED, UNTYPED, List, Map, Scalar, TypedSchema
from steersman.server.apply.structs import struct_schema

_NO_SCHEMA: Mapping[str, Any] = {}
_OVERRIDES = {
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", ""): TypedSchema("untyped"),
    ("io.k8s.apimachinery.pkg.runtime.RawExtension", ""): UNTYPED,
}
"""Definitions that are atomic, whatever their schema says."""


def custom_resource_schema(schema: Mapping[str, Any], *, preserve: bool = False) -> TypedSchema:
    """The typed schema of a custom resource, with the fields every object has.

    ``preserve`` is the definition's ``preserveUnknownFields``.
    """
    return _schema(schema, _Definitions({}), preserve, root=True)


def schemas_by_name(schemas: Mapping[str, Any]) -> Callable[[str], TypedSchema]:
    """The typed schemas of OpenAPI definitions that refer to each other, by name."""
    definitions = _Definitions(schemas)
    return definitions.at


class _Definitions:
    """OpenAPI definitions by name, each converted once: some are recursive."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self.schemas = schemas
        self._known: dict[tuple[str, str], TypedSchema] = dict(_OVERRIDES)

    def at(self, name: str, map_type: str = "") -> TypedSchema:
        """The schema of a definition; a reference may override its map type."""
        schema = self._known.get((name, map_type))
        if schema is None:
            override = {"x-kubernetes-map-type": map_type} if map_type else {}
            # preserveUnknownFields is not inherited through a reference.
            schema = self._known[name, map_type] = _schema({**self.schemas[name], **override}, self, False)
        return schema


def _schema(
    schema: Mapping[str, Any], definitions: _Definitions, preserve: bool, *, root: bool = False
) -> TypedSchema:
    reference = _reference(schema)
    if reference:
        return definitions.at(reference, schema.get("x-kubernetes-map-type", ""))
    preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
    sort = schema.get("type") or ""
    if sort == "object":
        return TypedSchema(map=_map(schema, definitions, preserve, root))
    if sort == "array":
        return TypedSchema(list=_list(schema, definitions, preserve))
    if sort:
        return TypedSchema(_scalar(sort, schema.get("format") or ""))
    return TypedSchema(
        "untyped", _list(schema, definitions, preserve), _map(schema, definitions, preserve, root)
    )


def _reference(schema: Mapping[str, Any]) -> str:
    """The definition a schema refers to, directly or through an ``allOf`` of one; empty if none."""
    reference = schema.get("$ref")
    if reference is None and len(schema.get("allOf", ())) == 1:
        reference = schema["allOf"][0].get("$ref")
    return reference.rpartition("/")[2] if reference else ""


def _scalar(sort: str, format_: str) -> Scalar:
    if sort in ("integer", "number"):
        return "numeric"
    if sort == "boolean":
        return "boolean"
    return "string" if sort == "string" and format_ in ("", "byte") else "untyped"


def _map(schema: Mapping[str, Any], definitions: _Definitions, preserve: bool, root: bool) -> Map:
    properties = schema.get("properties") or {}
    fields: dict[str, Callable[[], TypedSchema]] = {
        name: partial(_schema, part, definitions, preserve) for name, part in properties.items()
    }
    if root or schema.get("x-kubernetes-embedded-resource"):
        fields |= {"apiVersion": _text, "kind": _text, "metadata": _metadata}
    others: Callable[[], TypedSchema] | None = None
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping) and additional:
        others = partial(_schema, additional, definitions, preserve)
    elif additional is None or isinstance(additional, Mapping):
        # An object without declared fields accepts any.
        others = _deduced if preserve or not fields or additional is not None else None
    elif additional:
        others = _deduced
    return Map(fields, others=others, atomic=schema.get("x-kubernetes-map-type") == "atomic")


def _list(schema: Mapping[str, Any], definitions: _Definitions, preserve: bool) -> List:
    keys: tuple[str, ...] = ()
    granular = False
    if "x-kubernetes-list-type" in schema:
        granular = schema["x-kubernetes-list-type"] in ("set", "map")
        if schema["x-kubernetes-list-type"] == "map":
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    elif "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
        granular = True
        keys = tuple(filter(None, (schema.get("x-kubernetes-patch-merge-key"),)))
    items = schema.get("items")
    if not items:
        return List(_untyped, keys=keys, atomic=not granular)
    defaults = _defaults(items, definitions, keys) if keys else {}
    item = partial(_schema, items, definitions, preserve)
    return List(item, keys=keys, defaults=defaults, atomic=not granular)


def _defaults(items: Mapping[str, Any], definitions: _Definitions, keys: tuple[str, ...]) -> dict[str, Any]:
    reference = _reference(items)
    properties = (definitions.schemas[reference] if reference else items).get("properties") or {}
    found = {name: properties.get(name, _NO_SCHEMA).get("default") for name in keys}
    return {name: default for name, default in found.items() if default is not None}


def _text() -> TypedSchema:
    return TypedSchema("string")


def _metadata() -> TypedSchema:
    return struct_schema(ObjectMeta)


def _untyped() -> TypedSchema:
    return UNTYPED


def _deduced() -> TypedSchema:
    return DEDUCED
