"""Validation of a definition's schemas and their defaults, beyond being structural."""

from __future__ import annotations

from typing import NamedTuple

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.api.patch.values import deep_copy, json_equal
from steersman.server.crd.embedded import compile_coercion, compile_embedded_validation
from steersman.server.crd.errors import MISSING, SchemaViolation, field_errors
from steersman.server.crd.paths import InvalidPath, field_at
from steersman.server.crd.pruning import OBJECT_FIELDS, compile_pruning
from steersman.server.crd.structural_schema import (
    depth,
    every_schema,
    structural_errors,
    unsupported_schema_error,
)
from steersman.server.crd.value_validation import compile_schema
from steersman.server.status_errors import FieldError
from steersman.server.validation.field_errors import FieldErrors, Verbatim

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_NOT_SUPPORTED = (
    ("id", "id"),
    ("additionalItems", "additionalItems"),
    ("patternProperties", "patternProperties"),
    ("definitions", "definitions"),
    ("dependencies", "dependencies"),
    ("ref", "$ref"),
)
_MAX_DEPTH = 100
"""differs: upstream has no limit; Python's recursion limit requires one."""
_ALLOWED_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength "
    "Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
    "XPreserveUnknownFields XValidations"
)
_FIELDS_AT_ROOT = frozenset(
    [name[0].lower() + name[1:] for name in _ALLOWED_AT_ROOT.split() if not name.startswith("X")]
    + ["xKubernetesPreserveUnknownFields", "xKubernetesValidations"]
)


class _Context(NamedTuple):
    """The place of a schema in a resource."""

    defaults: str | None = None
    """Why a default is forbidden here; None if it is allowed."""
    metadata: bool = False
    """Whether the schema is inside of an object's metadata."""


def validate_schema(schema: JSONSchemaProps, path: str, *, status: bool) -> list[FieldError]:
    """Validates the schema of a version; ``status`` is whether the status subresource is enabled."""
    errors = FieldErrors()
    where = f"{path}.openAPIV3Schema"
    if depth(schema) > _MAX_DEPTH:
        errors.invalid(where, "", f"may not be nested deeper than {_MAX_DEPTH} levels")
        return errors
    if status:
        _validate_status_schema(schema, path, errors)
    if schema.nullable:
        errors.forbidden(f"{where}.nullable", "nullable cannot be true at the root")
    unsupported = unsupported_schema_error(schema)
    broken: list[FieldError] = []
    if not unsupported:
        broken = structural_errors(schema, where) or validate_defaults(schema, where)
        errors += broken
    found = FieldErrors()
    _validate_node(schema, where, _Context(), True, found)
    errors += found
    if not unsupported and not broken and any(each.xKubernetesValidations for each in every_schema(schema)):
        # Few definitions have rules, and all of CEL comes with them.
        from steersman.server.crd.rule_validation import validate_expressions

        errors += validate_expressions(schema, where, found)
    if unsupported and not errors:
        errors.invalid(where, "", unsupported)
    return errors


def _validate_status_schema(schema: JSONSchemaProps, path: str, errors: FieldErrors) -> None:
    """Validates the root of a schema whose status is validated separately: no keyword may reach into it."""
    if schema.type and schema.type != "object":
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        errors.invalid(f"{path}.openAPIV3Schema.type", schema.type, detail)
        return
    empty = JSONSchemaProps()
    for name in schema.__struct_fields__:
        if name not in _FIELDS_AT_ROOT and getattr(schema, name) != getattr(empty, name):
            # differs: upstream prints the whole schema, in the form it has in memory.
            detail = f"only [{_ALLOWED_AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled"
            errors.invalid(f"{path}.openAPIV3Schema", Verbatim("{…}"), detail)
            return


def _validate_node(
    schema: JSONSchemaProps, path: str, context: _Context, root: bool, errors: FieldErrors
) -> None:
    _validate_keywords(schema, path, context, errors)
    if schema.uniqueItems:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.forbidden(f"{path}.uniqueItems", detail)
    additional = schema.additionalProperties
    if additional is not None and additional is not True and schema.properties:
        detail = "additionalProperties and properties are mutual exclusive"
        errors.forbidden(f"{path}.additionalProperties", detail)
    if isinstance(additional, JSONSchemaProps):
        inner = (
            context._replace(defaults="inside additionalProperties applying to object metadata")
            if context.metadata
            else context
        )
        _validate_node(additional, f"{path}.additionalProperties", inner, False, errors)
    for name, each in schema.properties.items():
        inner = context
        if name in OBJECT_FIELDS and (root or schema.xKubernetesEmbeddedResource):
            inner = inner._replace(metadata=True)
            if root:
                inner = inner._replace(defaults=f"in top-level {name}")
        _validate_node(each, f"{path}.properties[{name}]", inner, False, errors)
    if schema.not_ is not None:
        _validate_node(schema.not_, f"{path}.not", context, False, errors)
    for name, schemas in (("allOf", schema.allOf), ("oneOf", schema.oneOf), ("anyOf", schema.anyOf)):
        for index, each in enumerate(schemas):
            _validate_node(each, f"{path}.{name}[{index}]", context, False, errors)
    if isinstance(schema.items, JSONSchemaProps):
        _validate_node(schema.items, f"{path}.items", context, False, errors)
    if schema.xKubernetesPreserveUnknownFields is False:
        errors.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    _validate_list_and_map_types(schema, path, errors)
    _validate_rules(schema, path, errors)


def _validate_keywords(schema: JSONSchemaProps, path: str, context: _Context, errors: FieldErrors) -> None:
    if schema.type and schema.type not in _TYPES:
        errors.not_supported(f"{path}.type", schema.type, _TYPES)
    if schema.default is not None and context.defaults is not None:
        errors.forbidden(f"{path}.default", f"must not be set {context.defaults}")
    for name, property_schema in _NOT_SUPPORTED:
        if getattr(schema, name) not in (None, "") and (
            name in ("additionalItems", "ref") or getattr(schema, name)
        ):
            errors.forbidden(f"{path}.{property_schema}", f"{property_schema} is not supported")
    if schema.type == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        errors.forbidden(f"{path}.type", detail)
    if isinstance(schema.items, tuple):
        errors.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if context.metadata and schema.xKubernetesEmbeddedResource:
        detail = "must not be used inside of resource meta"
        errors.forbidden(f"{path}.x-kubernetes-embedded-resource", detail)


# -- lists and maps ---------------------------------------------------------------------------


def _validate_list_and_map_types(schema: JSONSchemaProps, path: str, errors: FieldErrors) -> None:
    list_type, map_type, keys = (
        schema.xKubernetesListType,
        schema.xKubernetesMapType,
        schema.xKubernetesListMapKeys,
    )
    if map_type is not None:
        _require_type(schema, "object", "x-kubernetes-map-type", path, errors)
        if map_type not in ("atomic", "granular"):
            errors.not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))
    items = schema.items if isinstance(schema.items, JSONSchemaProps) else None
    if list_type is not None:
        if _require_type(schema, "array", "x-kubernetes-list-type", path, errors) and list_type == "set":
            _require_atomic_items(items, path, errors)
        if list_type not in ("atomic", "set", "map"):
            errors.not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        if list_type is None:
            errors.required(f"{path}.x-kubernetes-list-type", detail)
        else:
            errors.invalid(f"{path}.x-kubernetes-list-type", list_type, detail)
    if list_type == "map":
        _validate_list_map(schema, items, path, errors)
    if list_type in ("set", "map") and items is not None:
        _validate_keys(schema, items, path, errors)


def _require_type(
    schema: JSONSchemaProps, type_: str, extension: str, path: str, errors: FieldErrors
) -> bool:
    if schema.type == type_:
        return True
    detail = f"must be {type_} if {extension} is specified"
    if schema.type:
        errors.invalid(f"{path}.type", schema.type, detail)
    else:
        errors.required(f"{path}.type", detail)
    return False


def _require_atomic_items(items: JSONSchemaProps | None, path: str, errors: FieldErrors) -> None:
    """Requires the items of a set to be atomic, since they are compared as a whole."""
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items is None:
        return
    if items.type == "array" and items.xKubernetesListType not in (None, "atomic"):
        errors.invalid(f"{path}.items.x-kubernetes-list-type", items.xKubernetesListType, detail)
    if items.type == "object" and items.xKubernetesMapType != "atomic":
        # Upstream shows the list type where it means the map type.
        value = Verbatim("null") if items.xKubernetesListType is None else items.xKubernetesListType
        errors.invalid(f"{path}.items.x-kubernetes-map-type", value, detail)


def _validate_list_map(
    schema: JSONSchemaProps, items: JSONSchemaProps | None, path: str, errors: FieldErrors
) -> None:
    keys = schema.xKubernetesListMapKeys
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        errors.required(where, "must not be empty if x-kubernetes-list-type is map")
    if schema.items is None:
        errors.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if items is None:
        return
    if items.type != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        errors.invalid(f"{path}.items.type", items.type, detail)
        return
    for index, key in enumerate(keys):
        property_schema = items.properties.get(key)
        if property_schema is None:
            errors.invalid(where, keys, "entries must all be names of item properties")
        elif property_schema.type in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.invalid(f"{path}.items.properties[{key}].type", items.type, detail)
        if key in keys[:index]:
            errors.invalid(where, keys, "must not contain duplicate entries")


def _validate_keys(schema: JSONSchemaProps, items: JSONSchemaProps, path: str, errors: FieldErrors) -> None:
    if items.nullable:
        detail = f"cannot be nullable when x-kubernetes-list-type is {schema.xKubernetesListType}"
        errors.forbidden(f"{path}.items.nullable", detail)
    if schema.xKubernetesListType != "map":
        return
    because = "this property is in x-kubernetes-list-map-keys, so it"
    for key in schema.xKubernetesListMapKeys:
        property_schema = items.properties.get(key)
        if property_schema is None:
            continue
        where = f"{path}.items.properties[{key}]"
        if key not in items.required and property_schema.default is None:
            errors.required(f"{where}.default", f"{because} must have a default or be a required property")
        if property_schema.nullable:
            errors.forbidden(f"{where}.nullable", f"{because} cannot be nullable")


# -- rules ------------------------------------------------------------------------------------


def _validate_rules(schema: JSONSchemaProps, path: str, errors: FieldErrors) -> None:
    """Validates the fields of validation rules; `rule_validation` validates their expressions."""
    for index, rule in enumerate(schema.xKubernetesValidations):
        where = f"{path}.x-kubernetes-validations[{index}]"
        text, message = rule.rule.strip(), rule.message.strip()
        if not text:
            errors.required(f"{where}.rule", "rule is not specified")
        elif rule.message and not message:
            errors.invalid(f"{where}.message", rule.message, "must be non-empty if specified")
        elif _has_breaks(message):
            errors.invalid(f"{where}.message", rule.message, "must not contain line breaks")
        elif _has_breaks(text) and not message:
            errors.required(f"{where}.message", "message must be specified if rule contains line breaks")
        if rule.messageExpression and not rule.messageExpression.strip():
            detail = "messageExpression must be non-empty if specified"
            errors.required(f"{where}.messageExpression", detail)
        if rule.reason is not None and rule.reason not in _REASONS:
            errors.not_supported(f"{where}.reason", rule.reason, _REASONS)
        if rule.fieldPath:
            if not rule.fieldPath.strip():
                errors.invalid(f"{where}.fieldPath", rule.fieldPath, "must be non-empty if specified")
            if _has_breaks(rule.fieldPath):
                errors.invalid(f"{where}.fieldPath", rule.fieldPath, "must not contain line breaks")
            try:
                field_at(schema, rule.fieldPath)
            except InvalidPath:
                errors.invalid(f"{where}.fieldPath", rule.fieldPath, "must be a valid path")


def _has_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


# -- defaults ---------------------------------------------------------------------------------


def validate_defaults(
    schema: JSONSchemaProps, path: str, *, root: bool = True, inside_metadata: bool = False
) -> FieldErrors:
    """Validates the defaults in a structural schema: they must be valid by the schema themselves."""
    errors = FieldErrors()
    if schema.default is not None:
        _validate_default(schema, path, errors, inside_metadata)
    if isinstance(schema.items, JSONSchemaProps):
        errors += validate_defaults(
            schema.items, f"{path}.items", root=False, inside_metadata=inside_metadata
        )
    is_resource = root or schema.xKubernetesEmbeddedResource
    for name, each in schema.properties.items():
        inside = (is_resource and name in OBJECT_FIELDS) or (
            inside_metadata and not schema.xKubernetesEmbeddedResource
        )
        errors += validate_defaults(each, f"{path}.properties[{name}]", root=False, inside_metadata=inside)
    return errors


def _validate_default(schema: JSONSchemaProps, path: str, errors: FieldErrors, inside_metadata: bool) -> None:
    where = f"{path}.default"
    value = deep_copy(schema.default)
    if not inside_metadata and type(value) in (dict, list):
        compile_pruning(schema, root=schema.xKubernetesEmbeddedResource)(value, "", None)
        if not json_equal(value, schema.default):
            errors.invalid(where, schema.default, "must not have unknown fields")
            value = deep_copy(schema.default)
    for visit in (compile_coercion(schema), compile_embedded_validation(schema)):
        wrong = FieldErrors()
        if visit is not None:
            visit(value, where, wrong)
        if wrong:
            errors += wrong
            return
    violations: list[SchemaViolation] = []
    compile_schema(schema)(value, "", violations, MISSING)
    errors += field_errors(violations, where)
    if not violations and any(each.xKubernetesValidations for each in every_schema(schema)):
        from steersman.server.crd.rules import compile_rules

        rules = compile_rules(schema, root=schema.xKubernetesEmbeddedResource)
        if rules is not None:
            # As the value of an update that changes nothing, and as a new one.
            errors += rules.check(value, value, where)[0] or rules.check(value, None, where)[0]
