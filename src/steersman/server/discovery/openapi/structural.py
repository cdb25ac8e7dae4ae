"""OpenAPI definitions of custom resources, from their structural schemas.

OpenAPI v3 has them nearly unchanged. For v2 the parts it cannot express are removed, and with them the parts that
kubectl would misunderstand alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.server.discovery.documents import CustomResource
from steersman.server.discovery.openapi.descriptions import METADATA, TYPE_META
from steersman.server.discovery.openapi.schemas import OBJECT_META, Dialect, Document, gvk, list_definition

_PRESERVE_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_NOT_IN_V2 = ("default", "nullable", "allOf", "anyOf", "oneOf", "not")
_INT_OR_STRING_TYPES = [{"type": "integer"}, {"type": "string"}]


def definition_name(resource: CustomResource) -> str:
    """``things.example.com/v1`` -> ``com.example.v1.Thing``."""
    reverse = ".".join(reversed(resource.group.split(".")))
    return f"{reverse}.{resource.version}.{resource.kind}"


def custom_definitions(dialect: Dialect, resource: CustomResource) -> dict[str, Document]:
    """The definitions of a custom resource and of a list of it."""
    name = definition_name(resource)
    kind = gvk(resource.group, resource.version, resource.kind)
    result: Document = {**_root_schema(dialect, resource.schema), "x-kubernetes-group-version-kind": [kind]}
    list_kind = gvk(resource.group, resource.version, resource.list_kind or f"{resource.kind}List")
    return {name: result, f"{name}List": list_definition(dialect, name, list_kind)}


def _root_schema(dialect: Dialect, schema: Mapping[str, Any] | None) -> Document:
    # With only the fields of every object, kubectl would refuse all others as unknown.
    if schema is None or (dialect.version == 2 and schema.get(_PRESERVE_UNKNOWN)):
        return {"type": "object"}
    result = _convert_schema(dialect, schema)
    properties = {**result.get("properties", {}), **_object_fields(dialect)}
    return {**result, "properties": {key: properties[key] for key in sorted(properties)}}


def _convert_schema(dialect: Dialect, schema: Mapping[str, Any]) -> Document:
    result = dict(schema)
    if dialect.version == 2:
        _reduce_to_v2(result)
    elif result.get(_INT_OR_STRING) and "anyOf" not in result and "allOf" not in result:
        result["anyOf"] = _INT_OR_STRING_TYPES
    if isinstance(result.get("properties"), Mapping):
        result["properties"] = {
            key: _convert_schema(dialect, result["properties"][key]) for key in sorted(result["properties"])
        }
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), Mapping):
            result[key] = _convert_schema(dialect, result[key])
    if result.get(_EMBEDDED) and not (dialect.version == 2 and result.get(_PRESERVE_UNKNOWN)):
        _add_object_fields(dialect, result)
    return result


def _reduce_to_v2(result: Document) -> None:
    """Removes the parts that v2 cannot express, and those that would be misunderstood without them."""
    nullable, preserves = result.get("nullable"), result.get(_PRESERVE_UNKNOWN)
    for key in _NOT_IN_V2:
        result.pop(key, None)
    if nullable or preserves:
        for key in ("items", "properties"):
            result.pop(key, None)
    if (
        nullable
        or result.get(_INT_OR_STRING)
        or (preserves and result.get("type") == "object")
        or (result.get("type") == "array" and "items" not in result)
    ):
        result.pop("type", None)
    properties = result.get("properties", {})
    # A nullable field is not required, since v2 cannot express that it may be null.
    required = [name for name in result.pop("required", ()) if not properties.get(name, {}).get("nullable")]
    if required:
        result["required"] = required


def _add_object_fields(dialect: Dialect, result: Document) -> None:
    """Adds apiVersion, kind and metadata to an embedded object."""
    result["properties"] = {**result.get("properties", {}), **_object_fields(dialect)}
    required = list(result.get("required", ()))
    result["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]


def _object_fields(dialect: Dialect) -> Document:
    """The fields that every object has, with their descriptions."""
    return {
        **{name: {"type": "string", "description": text} for name, text in TYPE_META.items()},
        "metadata": dialect.ref(OBJECT_META, description=METADATA),
    }
