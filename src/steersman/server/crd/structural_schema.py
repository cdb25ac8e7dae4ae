"""Structural schemas: which schemas say of every field what it is, before they say what is wrong with it.

Outside of anyOf, oneOf, allOf and not a schema gives each value its type; inside them it may only speak of
values that were given one outside.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec.structs import replace

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.api.kinds import EMPTY
from steersman.server.crd.patterns import BadPattern, Unsupported, compile_pattern
from steersman.server.status_errors import FieldError
from steersman.server.validation.field_errors import FieldErrors

Level: TypeAlias = Literal["root", "item", "field"]

_NOTHING = JSONSchemaProps()
_INT_OR_STRING = (JSONSchemaProps(type="integer"), JSONSchemaProps(type="string"))
_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_UNSUPPORTED = (
    ("id", "id"),
    ("schema", "schema"),
    ("ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("definitions", "definitions"),
)
_FORBIDDEN_INSIDE = (
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


def structural_problems(schema: JSONSchemaProps, path: str) -> list[FieldError]:
    """Why a schema is not structural; empty if it is. Sorted, as upstream does."""
    errors = FieldErrors()
    _node(schema, "root", path, errors)
    _complete(schema, schema, path, path, errors)
    return sorted(errors, key=str)


def unreadable(schema: JSONSchemaProps) -> str:
    """Why a schema cannot even be asked whether it is structural; empty if it can."""
    for name, said in _UNSUPPORTED:
        if getattr(schema, name):
            return f"OpenAPIV3Schema '{said}' is not supported"
    if schema.additionalItems is not None:
        return "OpenAPIV3Schema 'additionalItems' is not supported"
    if isinstance(schema.items, tuple):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    if schema.xKubernetesPreserveUnknownFields is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    return next((why for inner in inner_schemas(schema) if (why := unreadable(inner))), "")


def inner_schemas(schema: JSONSchemaProps) -> list[JSONSchemaProps]:
    """The schemas a schema is made of, one level down."""
    inner = [*schema.allOf, *schema.anyOf, *schema.oneOf, *schema.properties.values()]
    for one in (schema.not_, schema.items, schema.additionalProperties):
        if isinstance(one, JSONSchemaProps):
            inner.append(one)
    if isinstance(schema.items, tuple):
        inner += schema.items
    return inner


def depth(schema: JSONSchemaProps) -> int:
    """How many levels of schemas there are inside of each other."""
    level, levels = [schema], 0
    while level:
        levels += 1
        level = [inner for each in level for inner in inner_schemas(each)]
    return levels


def every_schema(schema: JSONSchemaProps) -> list[JSONSchemaProps]:
    """A schema and all it is made of."""
    errors = [schema]
    for each in errors:
        errors += inner_schemas(each)
    return errors


def _single(said: JSONSchemaProps | tuple[JSONSchemaProps, ...] | bool | None) -> JSONSchemaProps | None:
    return said if isinstance(said, JSONSchemaProps) else None


# -- outside ----------------------------------------------------------------------------------


def _node(schema: JSONSchemaProps, level: Level, path: str, errors: FieldErrors) -> None:
    items, additional = _single(schema.items), schema.additionalProperties
    if schema.type == "array" and items is None:
        errors.required(f"{path}.items", "must be specified")
    if items is not None:
        _node(items, "item", f"{path}.items", errors)
    for name, each in schema.properties.items():
        _node(each, "field", f"{path}.properties[{name}]", errors)
    if additional is not None:
        if level == "root":
            errors.forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(additional, JSONSchemaProps):
            _node(additional, "field", f"{path}.additionalProperties", errors)
    if schema.xKubernetesIntOrString:
        for name, said in (
            ("preserve-unknown-fields", bool(schema.xKubernetesPreserveUnknownFields)),
            ("embedded-resource", schema.xKubernetesEmbeddedResource),
        ):
            if said:
                says = "must be false if x-kubernetes-int-or-string is true"
                errors.invalid(f"{path}.x-kubernetes-{name}", True, says)
    _values(
        schema,
        path,
        errors,
        skip_any=schema.anyOf == _INT_OR_STRING,
        skip_first=bool(schema.allOf) and schema.allOf[0].anyOf == _INT_OR_STRING,
    )
    _typed(schema, level, path, errors)
    _metadata(schema, level, path, errors)


def _typed(schema: JSONSchemaProps, level: Level, path: str, errors: FieldErrors) -> None:
    embedded, open_ = schema.xKubernetesEmbeddedResource, bool(schema.xKubernetesPreserveUnknownFields)
    if embedded and schema.type != "object":
        says = "must be object if x-kubernetes-embedded-resource is true"
        if schema.type:
            errors.invalid(f"{path}.type", schema.type, says)
        else:
            errors.required(f"{path}.type", says)
    elif not schema.type and not schema.xKubernetesIntOrString and not open_:
        errors.required(f"{path}.type", _EMPTY_TYPE[level])
    if embedded and schema.additionalProperties is not None:
        says = "must not be used if x-kubernetes-embedded-resource is set"
        errors.forbidden(f"{path}.additionalProperties", says)
    if level == "root" and schema.type and schema.type != "object":
        errors.invalid(f"{path}.type", schema.type, "must be object at the root")
    if embedded and not open_ and not schema.properties:
        errors.required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields",
        )


def _metadata(schema: JSONSchemaProps, level: Level, path: str, errors: FieldErrors) -> None:
    """An object's metadata is known: a schema may only restrict its name."""
    whole = level == "root" or schema.xKubernetesEmbeddedResource
    for name in ("kind", "apiVersion"):
        said = schema.properties.get(name)
        if whole and said is not None and said.type != "string":
            errors.invalid(f"{path}.properties[{name}].type", said.type, "must be string")
    meta = schema.properties.get("metadata")
    if meta is None:
        return
    if whole and meta.type != "object":
        errors.invalid(f"{path}.properties[metadata].type", meta.type, "must be object")
    if level != "root":
        return
    if all(name in ("name", "generateName") for name in meta.properties):
        meta = replace(meta, properties=EMPTY)
    if replace(meta, type="", default=None) != _NOTHING:
        errors.forbidden(
            f"{path}.properties[metadata]",
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        )


# -- inside -----------------------------------------------------------------------------------


def _values(
    schema: JSONSchemaProps,
    path: str,
    errors: FieldErrors,
    *,
    skip_any: bool = False,
    skip_first: bool = False,
) -> None:
    if not skip_any:
        for index, each in enumerate(schema.anyOf):
            _inside(each, f"{path}.anyOf[{index}]", errors)
    for index, each in enumerate(schema.allOf):
        _inside(each, f"{path}.allOf[{index}]", errors, skip_any=skip_first and index == 0)
    for index, each in enumerate(schema.oneOf):
        _inside(each, f"{path}.oneOf[{index}]", errors)
    if schema.not_ is not None:
        _inside(schema.not_, f"{path}.not", errors)
    if schema.pattern:
        try:
            compile_pattern(schema.pattern)
        except BadPattern as error:
            says = f"must be a valid regular expression, but isn't: {error}"
            errors.invalid(f"{path}.pattern", schema.pattern, says)
        except Unsupported:
            pass  # told by `steersman.server.crd.warnings`


def _inside(schema: JSONSchemaProps, path: str, errors: FieldErrors, *, skip_any: bool = False) -> None:
    _values(schema, path, errors, skip_any=skip_any)
    items = _single(schema.items)
    if items is not None:
        _inside(items, f"{path}.items", errors)
    for name, each in schema.properties.items():
        _inside(each, f"{path}.properties[{name}]", errors)
    if schema.type:
        errors.forbidden(f"{path}.type", "must be empty to be structural")
    if schema.additionalProperties not in (None, False):
        errors.forbidden(f"{path}.additionalProperties", "must be undefined to be structural")
    for name, said, why in _FORBIDDEN_INSIDE:
        value = getattr(schema, name)
        if value if name != "default" else value is not None:
            errors.forbidden(f"{path}.{said}", why)
    if "metadata" in schema.properties:
        errors.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _complete(
    schema: JSONSchemaProps, outside: JSONSchemaProps, path: str, outside_path: str, errors: FieldErrors
) -> None:
    """What is spoken of inside must be there outside."""
    junctions = [(f"{path}.not", schema.not_)] if schema.not_ is not None else []
    for name, schemas in (("allOf", schema.allOf), ("anyOf", schema.anyOf), ("oneOf", schema.oneOf)):
        junctions += [(f"{path}.{name}[{index}]", each) for index, each in enumerate(schemas)]
    for where, each in junctions:
        _complete_inside(each, outside, where, outside_path, errors)


def _complete_inside(
    schema: JSONSchemaProps,
    outside: JSONSchemaProps | None,
    path: str,
    outside_path: str,
    errors: FieldErrors,
) -> None:
    if outside is None:
        errors.required(outside_path, f"because it is defined in {path}")
        return
    _complete(schema, outside, path, outside_path, errors)
    items = _single(schema.items)
    if items is not None:
        _complete_inside(items, _single(outside.items), f"{path}.items", f"{outside_path}.items", errors)
    for name, each in schema.properties.items():
        where = f"properties[{name}]"
        _complete_inside(
            each, outside.properties.get(name), f"{path}.{where}", f"{outside_path}.{where}", errors
        )
