"""Custom resources: their structural schemas as definitions.

Version 3 takes them nearly as they are. What version 2 cannot say is left out of it, and where kubectl would
draw the wrong conclusion from half of a schema, so is the other half.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.server.discovery.documents import CustomResource
from steersman.server.discovery.openapi.schemas import OBJECT_META, Dialect, Document, gvk, list_definition

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_NOT_IN_V2 = ("default", "nullable", "allOf", "anyOf", "oneOf", "not")
_EITHER = [{"type": "integer"}, {"type": "string"}]


def definition_name(resource: CustomResource) -> str:
    """``things.example.com/v1`` -> ``com.example.v1.Thing``."""
    reverse = ".".join(reversed(resource.group.split(".")))
    return f"{reverse}.{resource.version}.{resource.kind}"


def custom_definitions(dialect: Dialect, resource: CustomResource) -> dict[str, Document]:
    """The definitions of a custom resource and of a list of it."""
    name = definition_name(resource)
    kind = gvk(resource.group, resource.version, resource.kind)
    found: Document = {**_root(dialect, resource.schema), "x-kubernetes-group-version-kind": [kind]}
    listed = gvk(resource.group, resource.version, resource.list_kind or f"{resource.kind}List")
    return {name: found, f"{name}List": list_definition(dialect, name, listed)}


def _root(dialect: Dialect, schema: Mapping[str, Any] | None) -> Document:
    # Naming only the fields every object has would tell kubectl that there are no others.
    if schema is None or (dialect.version == 2 and schema.get(_PRESERVE)):
        return {"type": "object"}
    found = _schema(dialect, schema)
    properties = {
        **found.get("properties", {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": dialect.ref(OBJECT_META),
    }
    return {**found, "properties": {key: properties[key] for key in sorted(properties)}}


def _schema(dialect: Dialect, schema: Mapping[str, Any]) -> Document:
    found = dict(schema)
    if dialect.version == 2:
        _reduce(found)
    elif found.get(_INT_OR_STRING) and "anyOf" not in found and "allOf" not in found:
        found["anyOf"] = _EITHER
    if isinstance(found.get("properties"), Mapping):
        found["properties"] = {
            key: _schema(dialect, found["properties"][key]) for key in sorted(found["properties"])
        }
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), Mapping):
            found[key] = _schema(dialect, found[key])
    if found.get(_EMBEDDED) and not (dialect.version == 2 and found.get(_PRESERVE)):
        _embed(dialect, found)
    return found


def _reduce(found: Document) -> None:
    """Take out what version 2 cannot say, or what would be misunderstood without it."""
    nullable, open_ = found.get("nullable"), found.get(_PRESERVE)
    for key in _NOT_IN_V2:
        found.pop(key, None)
    if nullable or open_:
        for key in ("items", "properties"):
            found.pop(key, None)
    if (
        nullable
        or found.get(_INT_OR_STRING)
        or (open_ and found.get("type") == "object")
        or (found.get("type") == "array" and "items" not in found)
    ):
        found.pop("type", None)
    properties = found.get("properties", {})
    # A field that may be null cannot be said to be required, since null is not said.
    required = [each for each in found.pop("required", ()) if not properties.get(each, {}).get("nullable")]
    if required:
        found["required"] = required


def _embed(dialect: Dialect, found: Document) -> None:
    """A whole object inside another has what every object has."""
    found["properties"] = {
        **found.get("properties", {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": dialect.ref(OBJECT_META),
    }
    required = list(found.get("required", ()))
    found["required"] = [*required, *(each for each in ("kind", "apiVersion") if each not in required)]
