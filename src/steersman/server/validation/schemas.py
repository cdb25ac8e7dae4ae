"""Schemas of custom resources: that they are structural, and use nothing the server does not know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.server.validation.found import Found

Level: TypeAlias = Literal["root", "item", "field"]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_MISSING_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_INT_OR_STRING = (JSONSchemaProps(type="integer"), JSONSchemaProps(type="string"))
_UNSUPPORTED = (
    ("id", "id", "id"),
    ("additionalItems", "additionalItems", "additionalItems"),
    ("patternProperties", "patternProperties", "patternProperties"),
    ("definitions", "definitions", "definitions"),
    ("dependencies", "dependencies", "dependencies"),
    ("ref", "$ref", "$ref"),
)
_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength "
    "Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
    "XPreserveUnknownFields XValidations"
)
_ROOT_FIELDS = frozenset(
    [
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "xKubernetesPreserveUnknownFields",
        "xKubernetesValidations",
    ]
)


def check(found: Found, path: str, schema: JSONSchemaProps | None, *, has_status: bool) -> None:
    """The schema of a version."""
    if schema is None:
        return
    if has_status:
        _at_root(found, path, schema)
    if schema.nullable:
        found.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    structural = Found()
    if not any(_unsupported(one) for one in _walk(schema)):
        _structural(structural, path, schema, "root")
        structural.sort(key=str)
    found.extend(structural)
    _features(found, path, schema)


def _at_root(found: Found, path: str, schema: JSONSchemaProps) -> None:
    if schema.type and schema.type != "object":
        only = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        found.invalid(f"{path}.type", schema.type, only)
        return
    default = JSONSchemaProps()
    for name in schema.__struct_fields__:
        if getattr(schema, name) != getattr(default, name) and name not in _ROOT_FIELDS:
            only = f"only [{_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled"
            found.invalid(path, schema, only)
            return


def _unsupported(schema: JSONSchemaProps) -> bool:
    return any(getattr(schema, name) for name, _, _ in _UNSUPPORTED) or isinstance(schema.items, tuple)


def _walk(schema: JSONSchemaProps) -> Iterator[JSONSchemaProps]:
    yield schema
    for inner in schema.properties.values():
        yield from _walk(inner)
    for one in (schema.items, schema.additionalProperties):
        if isinstance(one, JSONSchemaProps):
            yield from _walk(one)


# -- structural -------------------------------------------------------------------------------


def _structural(found: Found, path: str, schema: JSONSchemaProps, level: Level) -> None:
    items, more = schema.items, schema.additionalProperties
    if schema.type == "array" and items is None:
        found.required(f"{path}.items", "must be specified")
    if isinstance(items, JSONSchemaProps):
        _structural(found, f"{path}.items", items, "item")
    for name, inner in schema.properties.items():
        _structural(found, f"{path}.properties[{name}]", inner, "field")
    if more is not None:
        if level == "root":
            found.forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(more, JSONSchemaProps):
            _structural(found, f"{path}.additionalProperties", more, "field")
    _extensions(found, path, schema)
    _values(found, path, schema)
    _types(found, path, schema, level)
    _metadata(found, path, schema, level)


def _extensions(found: Found, path: str, schema: JSONSchemaProps) -> None:
    if schema.xKubernetesIntOrString:
        says = "must be false if x-kubernetes-int-or-string is true"
        if schema.xKubernetesPreserveUnknownFields:
            found.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", True, says)
        if schema.xKubernetesEmbeddedResource:
            found.invalid(f"{path}.x-kubernetes-embedded-resource", True, says)


def _types(found: Found, path: str, schema: JSONSchemaProps, level: Level) -> None:
    at, embedded = f"{path}.type", schema.xKubernetesEmbeddedResource
    if embedded and schema.type != "object":
        says = "must be object if x-kubernetes-embedded-resource is true"
        if schema.type:
            found.invalid(at, schema.type, says)
        else:
            found.required(at, says)
    elif not (schema.type or schema.xKubernetesIntOrString or schema.xKubernetesPreserveUnknownFields):
        found.required(at, _MISSING_TYPE[level])
    if embedded and schema.additionalProperties is not None:
        says = "must not be used if x-kubernetes-embedded-resource is set"
        found.forbidden(f"{path}.additionalProperties", says)
    if level == "root" and schema.type and schema.type != "object":
        found.invalid(at, schema.type, "must be object at the root")
    if embedded and not schema.xKubernetesPreserveUnknownFields and not schema.properties:
        found.required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields",
        )


def _metadata(found: Found, path: str, schema: JSONSchemaProps, level: Level) -> None:
    """A resource's own fields are what they are."""
    if not (level == "root" or schema.xKubernetesEmbeddedResource):
        return
    for name in ("kind", "apiVersion"):
        inner = schema.properties.get(name)
        if inner is not None and inner.type != "string":
            found.invalid(f"{path}.properties[{name}].type", inner.type, "must be string")
    meta = schema.properties.get("metadata")
    if meta is None:
        return
    at = f"{path}.properties[metadata]"
    if meta.type != "object":
        found.invalid(f"{at}.type", meta.type, "must be object")
    plain = JSONSchemaProps(type=meta.type, properties=meta.properties, default=meta.default)
    if level == "root" and (meta != plain or any(n not in ("name", "generateName") for n in meta.properties)):
        found.forbidden(
            at,
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        )


def _values(found: Found, path: str, schema: JSONSchemaProps, *, skip_any: bool = False) -> None:
    """Alternatives only narrow values down; what there is, is said outside of them."""
    if not (skip_any or tuple(schema.anyOf) == _INT_OR_STRING):
        for i, one in enumerate(schema.anyOf):
            _nested(found, f"{path}.anyOf[{i}]", one)
    for i, one in enumerate(schema.allOf):
        _nested(found, f"{path}.allOf[{i}]", one, skip_any=i == 0 and tuple(one.anyOf) == _INT_OR_STRING)
    for i, one in enumerate(schema.oneOf):
        _nested(found, f"{path}.oneOf[{i}]", one)
    if schema.not_ is not None:
        _nested(found, f"{path}.not", schema.not_)


_NESTED = (
    ("type", "type", "must be empty to be structural"),
    ("additionalProperties", "additionalProperties", "must be undefined to be structural"),
    ("default", "default", "must be undefined to be structural"),
    ("title", "title", "must be empty to be structural"),
    ("description", "description", "must be empty to be structural"),
    ("nullable", "nullable", "must be false to be structural"),
    (
        "xKubernetesPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        "must be false to be structural",
    ),
    ("xKubernetesEmbeddedResource", "x-kubernetes-embedded-resource", "must be false to be structural"),
    ("xKubernetesIntOrString", "x-kubernetes-int-or-string", "must be false to be structural"),
    ("xKubernetesListMapKeys", "x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("xKubernetesListType", "x-kubernetes-list-type", "must be undefined to be structural"),
    ("xKubernetesMapType", "x-kubernetes-map-type", "must be undefined to be structural"),
    ("xKubernetesValidations", "x-kubernetes-validations", "must be empty to be structural"),
)


def _nested(found: Found, path: str, schema: JSONSchemaProps, *, skip_any: bool = False) -> None:
    _values(found, path, schema, skip_any=skip_any)
    if isinstance(schema.items, JSONSchemaProps):
        _nested(found, f"{path}.items", schema.items)
    for name, inner in schema.properties.items():
        _nested(found, f"{path}.properties[{name}]", inner)
    for attribute, name, says in _NESTED:
        if getattr(schema, attribute) not in (None, "", (), False):
            found.forbidden(f"{path}.{name}", says)
    if "metadata" in schema.properties:
        says = "must not be specified in a nested context"
        found.forbidden(f"{path}.properties[metadata]", says)


# -- what the server does not know ------------------------------------------------------------


def _features(found: Found, path: str, schema: JSONSchemaProps) -> None:
    if schema.type and schema.type not in _TYPES:
        found.unsupported(f"{path}.type", schema.type, _TYPES)
    for attribute, name, called in _UNSUPPORTED:
        if getattr(schema, attribute):
            found.forbidden(f"{path}.{name}", f"{called} is not supported")
    if schema.type == "null":
        found.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.items, tuple):
        found.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.uniqueItems:
        quadratic = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.forbidden(f"{path}.uniqueItems", quadratic)
    more = schema.additionalProperties
    if schema.properties and more is not None and more is not True:
        both = "additionalProperties and properties are mutual exclusive"
        found.forbidden(f"{path}.additionalProperties", both)
    if isinstance(more, JSONSchemaProps):
        _features(found, f"{path}.additionalProperties", more)
    for name, inner in schema.properties.items():
        _features(found, f"{path}.properties[{name}]", inner)
    if isinstance(schema.items, JSONSchemaProps):
        _features(found, f"{path}.items", schema.items)
    if schema.xKubernetesPreserveUnknownFields is False:
        at = f"{path}.x-kubernetes-preserve-unknown-fields"
        found.invalid(at, False, "must be true or undefined")
    _list_type(found, path, schema)


def _list_type(found: Found, path: str, schema: JSONSchemaProps) -> None:
    for attribute, name, type_, choices in (
        ("xKubernetesMapType", "x-kubernetes-map-type", "object", ("atomic", "granular")),
        ("xKubernetesListType", "x-kubernetes-list-type", "array", ("atomic", "set", "map")),
    ):
        value = getattr(schema, attribute)
        if value is None:
            continue
        if schema.type != type_:
            says = f"must be {type_} if {name} is specified"
            if schema.type:
                found.invalid(f"{path}.type", schema.type, says)
            else:
                found.required(f"{path}.type", says)
        if value not in choices:
            found.unsupported(f"{path}.{name}", value, choices)
    keys, kind = schema.xKubernetesListMapKeys, schema.xKubernetesListType
    if keys and kind != "map":
        says = "must be map if x-kubernetes-list-map-keys is non-empty"
        at = f"{path}.x-kubernetes-list-type"
        if kind is None:
            found.required(at, says)
        else:
            found.invalid(at, kind, says)
    if kind != "map":
        return
    if not keys:
        says = "must not be empty if x-kubernetes-list-type is map"
        found.required(f"{path}.x-kubernetes-list-map-keys", says)
    items = schema.items
    if items is None:
        found.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if isinstance(items, JSONSchemaProps) and items.type == "object":
        for key in keys:
            if key not in items.properties:
                at = f"{path}.x-kubernetes-list-map-keys"
                found.invalid(at, keys, "entries must all be names of item properties")
            elif key not in items.required and items.properties[key].default is None:
                found.required(
                    f"{path}.items.properties[{key}].default",
                    "this property is in x-kubernetes-list-map-keys, so it must have a default or be a "
                    "required property",
                )
