"""Structural schemas: schemas that specify the type of every field, and walks along them.

Outside of anyOf, oneOf, allOf and not, a schema specifies the type of each value; inside of them it may only add
value validations for fields that are specified outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.api.go_regexp import InvalidPattern, compile_pattern
from steersman.api.kinds import EMPTY
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


def structural_errors(schema: JSONSchemaProps, path: str) -> list[FieldError]:
    """Errors that make a schema not structural, sorted as upstream does; empty if it is structural."""
    errors = FieldErrors()
    _node(schema, "root", path, errors)
    _check_complete(schema, schema, path, path, errors)
    return sorted(errors, key=str)


def unsupported_schema_error(schema: JSONSchemaProps) -> str:
    """The error of a schema with unsupported keywords, which cannot be structural; empty if it has none."""
    for name, given in _UNSUPPORTED:
        if getattr(schema, name):
            return f"OpenAPIV3Schema '{given}' is not supported"
    if schema.additionalItems is not None:
        return "OpenAPIV3Schema 'additionalItems' is not supported"
    if isinstance(schema.items, tuple):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    if schema.xKubernetesPreserveUnknownFields is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    return next((why for inner in inner_schemas(schema) if (why := unsupported_schema_error(inner))), "")


def inner_schemas(schema: JSONSchemaProps) -> list[JSONSchemaProps]:
    """The schemas directly inside of a schema."""
    inner = [*schema.allOf, *schema.anyOf, *schema.oneOf, *schema.properties.values()]
    for one in (schema.not_, schema.items, schema.additionalProperties):
        if isinstance(one, JSONSchemaProps):
            inner.append(one)
    if isinstance(schema.items, tuple):
        inner += schema.items
    return inner


def depth(schema: JSONSchemaProps) -> int:
    """The nesting depth of a schema."""
    level, levels = [schema], 0
    while level:
        levels += 1
        level = [inner for each in level for inner in inner_schemas(each)]
    return levels


def every_schema(schema: JSONSchemaProps) -> list[JSONSchemaProps]:
    """A schema and all schemas inside of it."""
    errors = [schema]
    for each in errors:
        errors += inner_schemas(each)
    return errors


def _single(given: JSONSchemaProps | tuple[JSONSchemaProps, ...] | bool | None) -> JSONSchemaProps | None:
    return given if isinstance(given, JSONSchemaProps) else None


VisitNode: TypeAlias = Callable[[JSONSchemaProps, Any, str, FieldErrors], None]
"""Visits a value, given its schema, the value, its path, and the list for errors."""

Walk: TypeAlias = Callable[[Any, str, FieldErrors], None]


def compile_walk(
    schema: JSONSchemaProps, is_visited: Callable[[JSONSchemaProps], bool], visit: VisitNode
) -> Walk | None:
    """A walk through values of a schema that visits those whose schema passes a test; None if none does.

    Most schemas have no embedded resources and no sets, and so need no walk.
    """
    fields = {
        name: inner
        for name, each in schema.properties.items()
        if (inner := compile_walk(each, is_visited, visit)) is not None
    }
    additional, items = schema.additionalProperties, schema.items
    others = compile_walk(additional, is_visited, visit) if isinstance(additional, JSONSchemaProps) else None
    each_item = compile_walk(items, is_visited, visit) if isinstance(items, JSONSchemaProps) else None
    visited = is_visited(schema)
    if not (fields or others or each_item or visited):
        return None

    def go(value: Any, path: str, errors: FieldErrors) -> None:
        if visited:
            visit(schema, value, path, errors)
        if type(value) is dict:
            for name, field in value.items():
                if name in fields:
                    fields[name](field, f"{path}.{name}" if path else name, errors)
                elif others is not None and name not in schema.properties:
                    others(field, f"{path}[{name}]", errors)
        elif type(value) is list and each_item is not None:
            for index, item in enumerate(value):
                each_item(item, f"{path}[{index}]", errors)

    return go


# -- types ------------------------------------------------------------------------------------


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
        for name, given in (
            ("preserve-unknown-fields", bool(schema.xKubernetesPreserveUnknownFields)),
            ("embedded-resource", schema.xKubernetesEmbeddedResource),
        ):
            if given:
                detail = "must be false if x-kubernetes-int-or-string is true"
                errors.invalid(f"{path}.x-kubernetes-{name}", True, detail)
    _value_validations(
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
        detail = "must be object if x-kubernetes-embedded-resource is true"
        if schema.type:
            errors.invalid(f"{path}.type", schema.type, detail)
        else:
            errors.required(f"{path}.type", detail)
    elif not schema.type and not schema.xKubernetesIntOrString and not open_:
        errors.required(f"{path}.type", _EMPTY_TYPE[level])
    if embedded and schema.additionalProperties is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        errors.forbidden(f"{path}.additionalProperties", detail)
    if level == "root" and schema.type and schema.type != "object":
        errors.invalid(f"{path}.type", schema.type, "must be object at the root")
    if embedded and not open_ and not schema.properties:
        errors.required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields",
        )


def _metadata(schema: JSONSchemaProps, level: Level, path: str, errors: FieldErrors) -> None:
    """Checks the schema of metadata, which is implicit: only its name may be restricted."""
    is_resource = level == "root" or schema.xKubernetesEmbeddedResource
    for name in ("kind", "apiVersion"):
        given = schema.properties.get(name)
        if is_resource and given is not None and given.type != "string":
            errors.invalid(f"{path}.properties[{name}].type", given.type, "must be string")
    meta = schema.properties.get("metadata")
    if meta is None:
        return
    if is_resource and meta.type != "object":
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


# -- value validations ------------------------------------------------------------------------


def _value_validations(
    schema: JSONSchemaProps,
    path: str,
    errors: FieldErrors,
    *,
    skip_any: bool = False,
    skip_first: bool = False,
) -> None:
    if not skip_any:
        for index, each in enumerate(schema.anyOf):
            _nested_value_validation(each, f"{path}.anyOf[{index}]", errors)
    for index, each in enumerate(schema.allOf):
        _nested_value_validation(each, f"{path}.allOf[{index}]", errors, skip_any=skip_first and index == 0)
    for index, each in enumerate(schema.oneOf):
        _nested_value_validation(each, f"{path}.oneOf[{index}]", errors)
    if schema.not_ is not None:
        _nested_value_validation(schema.not_, f"{path}.not", errors)
    if schema.pattern:
        try:
            compile_pattern(schema.pattern)
        except InvalidPattern as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            errors.invalid(f"{path}.pattern", schema.pattern, detail)


def _nested_value_validation(
    schema: JSONSchemaProps, path: str, errors: FieldErrors, *, skip_any: bool = False
) -> None:
    _value_validations(schema, path, errors, skip_any=skip_any)
    items = _single(schema.items)
    if items is not None:
        _nested_value_validation(items, f"{path}.items", errors)
    for name, each in schema.properties.items():
        _nested_value_validation(each, f"{path}.properties[{name}]", errors)
    if schema.type:
        errors.forbidden(f"{path}.type", "must be empty to be structural")
    if schema.additionalProperties not in (None, False):
        errors.forbidden(f"{path}.additionalProperties", "must be undefined to be structural")
    for name, given, why in _FORBIDDEN_INSIDE:
        value = getattr(schema, name)
        if value if name != "default" else value is not None:
            errors.forbidden(f"{path}.{given}", why)
    if "metadata" in schema.properties:
        errors.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _check_complete(
    schema: JSONSchemaProps, outside: JSONSchemaProps, path: str, outside_path: str, errors: FieldErrors
) -> None:
    """Checks that fields inside of combinators are specified outside."""
    junctions = [(f"{path}.not", schema.not_)] if schema.not_ is not None else []
    for name, schemas in (("allOf", schema.allOf), ("anyOf", schema.anyOf), ("oneOf", schema.oneOf)):
        junctions += [(f"{path}.{name}[{index}]", each) for index, each in enumerate(schemas)]
    for where, each in junctions:
        _check_complete_nested(each, outside, where, outside_path, errors)


def _check_complete_nested(
    schema: JSONSchemaProps,
    outside: JSONSchemaProps | None,
    path: str,
    outside_path: str,
    errors: FieldErrors,
) -> None:
    if outside is None:
        errors.required(outside_path, f"because it is defined in {path}")
        return
    _check_complete(schema, outside, path, outside_path, errors)
    items = _single(schema.items)
    if items is not None:
        _check_complete_nested(
            items, _single(outside.items), f"{path}.items", f"{outside_path}.items", errors
        )
    for name, each in schema.properties.items():
        where = f"properties[{name}]"
        _check_complete_nested(
            each, outside.properties.get(name), f"{path}.{where}", f"{outside_path}.{where}", errors
        )
