"""The shapes of custom resources, from their structural schemas (or any OpenAPI schema of Kubernetes)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.apply.schema import DEDUCED, UNTYPED, List, Map, Scalar, Shape
from steersman.server.apply.structs import part_of

_NOTHING: Mapping[str, Any] = {}
_HARD = {
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", ""): Shape("untyped"),
    ("io.k8s.apimachinery.pkg.runtime.RawExtension", ""): UNTYPED,
}
"""What is owned as a whole, whatever its schema says."""


def custom(schema: Mapping[str, Any], *, preserve: bool = False) -> Shape:
    """The shape of a custom resource: its schema, with the fields every object has.

    ``preserve`` is the definition's ``preserveUnknownFields``.
    """
    return _shape(schema, _Definitions({}), preserve, root=True)


def shapes(schemas: Mapping[str, Any]) -> Callable[[str], Shape]:
    """The shapes of schemas that refer to each other, by their names."""
    definitions = _Definitions(schemas)
    return definitions.at


class _Definitions:
    """What references name, each made into a shape once: some contain themselves."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self.schemas = schemas
        self._known: dict[tuple[str, str], Shape] = dict(_HARD)

    def at(self, name: str, map_type: str = "") -> Shape:
        """A shape by its name; whoever refers to it may have a say about how it is owned."""
        shape = self._known.get((name, map_type))
        if shape is None:
            said = {"x-kubernetes-map-type": map_type} if map_type else {}
            # Preserving is not handed on: what is referred to stands for itself.
            shape = self._known[name, map_type] = _shape({**self.schemas[name], **said}, self, False)
        return shape


def _shape(
    schema: Mapping[str, Any], definitions: _Definitions, preserve: bool, *, root: bool = False
) -> Shape:
    reference = _reference(schema)
    if reference:
        return definitions.at(reference, schema.get("x-kubernetes-map-type", ""))
    preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
    sort = schema.get("type") or ""
    if sort == "object":
        return Shape(map=_map(schema, definitions, preserve, root))
    if sort == "array":
        return Shape(list=_list(schema, definitions, preserve))
    if sort:
        return Shape(_scalar(sort, schema.get("format") or ""))
    return Shape("untyped", _list(schema, definitions, preserve), _map(schema, definitions, preserve, root))


def _reference(schema: Mapping[str, Any]) -> str:
    """What a schema refers to; it may stand in an ``allOf`` of its own to have company."""
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
    fields: dict[str, Callable[[], Shape]] = {
        name: partial(_shape, part, definitions, preserve) for name, part in properties.items()
    }
    if root or schema.get("x-kubernetes-embedded-resource"):
        fields |= {"apiVersion": _text, "kind": _text, "metadata": _metadata}
    others: Callable[[], Shape] | None = None
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping) and additional:
        others = partial(_shape, additional, definitions, preserve)
    elif additional is None or isinstance(additional, Mapping):
        # An object of which nothing is said takes anything.
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
    item = partial(_shape, items, definitions, preserve)
    return List(item, keys=keys, defaults=defaults, atomic=not granular)


def _defaults(items: Mapping[str, Any], definitions: _Definitions, keys: tuple[str, ...]) -> dict[str, Any]:
    reference = _reference(items)
    properties = (definitions.schemas[reference] if reference else items).get("properties") or {}
    found = {name: properties.get(name, _NOTHING).get("default") for name in keys}
    return {name: default for name, default in found.items() if default is not None}


def _text() -> Shape:
    return Shape("string")


def _metadata() -> Shape:
    return part_of(ObjectMeta)


def _untyped() -> Shape:
    return UNTYPED


def _deduced() -> Shape:
    return DEDUCED
