"""What is refused of a definition's schemas, besides that they must be structural."""

from __future__ import annotations

from typing import NamedTuple

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.server.crd.defaults import default_problems
from steersman.server.crd.paths import BadPath, field_at
from steersman.server.crd.pruning import META
from steersman.server.crd.structural_schema import depth, structural_problems, unreadable
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
_DEEPEST = 100
"""differs: upstream sets no limit; beyond this, Python does."""
_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength "
    "Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
    "XPreserveUnknownFields XValidations"
)
_FIELDS_AT_ROOT = frozenset(
    [name[0].lower() + name[1:] for name in _AT_ROOT.split() if not name.startswith("X")]
    + ["xKubernetesPreserveUnknownFields", "xKubernetesValidations"]
)


class _Context(NamedTuple):
    """Where in a resource a schema is."""

    defaults: str | None = None
    """Why there may be no default here; None where there may."""
    metadata: bool = False
    """Whether this is about the metadata of an object."""


def schema_problems(schema: JSONSchemaProps, path: str, *, status: bool) -> list[FieldError]:
    """All that is wrong with the schema of a version; ``status`` is whether that is a subresource."""
    errors = FieldErrors()
    where = f"{path}.openAPIV3Schema"
    if depth(schema) > _DEEPEST:
        errors.invalid(where, "", f"may not be nested deeper than {_DEEPEST} levels")
        return errors
    if status:
        _status(schema, path, errors)
    if schema.nullable:
        errors.forbidden(f"{where}.nullable", "nullable cannot be true at the root")
    obscure = unreadable(schema)
    if not obscure:
        errors += structural_problems(schema, where) or default_problems(schema, where)
    _node(schema, where, _Context(), True, errors)
    if obscure and not errors:
        errors.invalid(where, "", obscure)
    return errors


def _status(schema: JSONSchemaProps, path: str, errors: FieldErrors) -> None:
    """Where the status is checked by itself, nothing at the root may reach into it."""
    if schema.type and schema.type != "object":
        says = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        errors.invalid(f"{path}.openAPIV3Schema.type", schema.type, says)
        return
    empty = JSONSchemaProps()
    for name in schema.__struct_fields__:
        if name not in _FIELDS_AT_ROOT and getattr(schema, name) != getattr(empty, name):
            # differs: upstream prints the whole schema, in the form it has in memory.
            says = f"only [{_AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled"
            errors.invalid(f"{path}.openAPIV3Schema", Verbatim("{…}"), says)
            return


def _node(schema: JSONSchemaProps, path: str, here: _Context, root: bool, errors: FieldErrors) -> None:
    _allowed(schema, path, here, errors)
    if schema.uniqueItems:
        says = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.forbidden(f"{path}.uniqueItems", says)
    additional = schema.additionalProperties
    if additional is not None and additional is not True and schema.properties:
        says = "additionalProperties and properties are mutual exclusive"
        errors.forbidden(f"{path}.additionalProperties", says)
    if isinstance(additional, JSONSchemaProps):
        inner = (
            here._replace(defaults="inside additionalProperties applying to object metadata")
            if here.metadata
            else here
        )
        _node(additional, f"{path}.additionalProperties", inner, False, errors)
    for name, each in schema.properties.items():
        inner = here
        if name in META and (root or schema.xKubernetesEmbeddedResource):
            inner = inner._replace(metadata=True)
            if root:
                inner = inner._replace(defaults=f"in top-level {name}")
        _node(each, f"{path}.properties[{name}]", inner, False, errors)
    if schema.not_ is not None:
        _node(schema.not_, f"{path}.not", here, False, errors)
    for name, schemas in (("allOf", schema.allOf), ("oneOf", schema.oneOf), ("anyOf", schema.anyOf)):
        for index, each in enumerate(schemas):
            _node(each, f"{path}.{name}[{index}]", here, False, errors)
    if isinstance(schema.items, JSONSchemaProps):
        _node(schema.items, f"{path}.items", here, False, errors)
    if schema.xKubernetesPreserveUnknownFields is False:
        errors.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    _topology(schema, path, errors)
    _rules(schema, path, errors)


def _allowed(schema: JSONSchemaProps, path: str, here: _Context, errors: FieldErrors) -> None:
    if schema.type and schema.type not in _TYPES:
        errors.not_supported(f"{path}.type", schema.type, _TYPES)
    if schema.default is not None and here.defaults is not None:
        errors.forbidden(f"{path}.default", f"must not be set {here.defaults}")
    for name, said in _NOT_SUPPORTED:
        if getattr(schema, name) not in (None, "") and (
            name in ("additionalItems", "ref") or getattr(schema, name)
        ):
            errors.forbidden(f"{path}.{said}", f"{said} is not supported")
    if schema.type == "null":
        says = "type cannot be set to null, use nullable as an alternative"
        errors.forbidden(f"{path}.type", says)
    if isinstance(schema.items, tuple):
        errors.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if here.metadata and schema.xKubernetesEmbeddedResource:
        says = "must not be used inside of resource meta"
        errors.forbidden(f"{path}.x-kubernetes-embedded-resource", says)


# -- lists and maps ---------------------------------------------------------------------------


def _topology(schema: JSONSchemaProps, path: str, errors: FieldErrors) -> None:
    list_type, map_type, keys = (
        schema.xKubernetesListType,
        schema.xKubernetesMapType,
        schema.xKubernetesListMapKeys,
    )
    if map_type is not None:
        _must_be(schema, "object", "x-kubernetes-map-type", path, errors)
        if map_type not in ("atomic", "granular"):
            errors.not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))
    items = schema.items if isinstance(schema.items, JSONSchemaProps) else None
    if list_type is not None:
        if _must_be(schema, "array", "x-kubernetes-list-type", path, errors) and list_type == "set":
            _atomic(items, path, errors)
        if list_type not in ("atomic", "set", "map"):
            errors.not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        says = "must be map if x-kubernetes-list-map-keys is non-empty"
        if list_type is None:
            errors.required(f"{path}.x-kubernetes-list-type", says)
        else:
            errors.invalid(f"{path}.x-kubernetes-list-type", list_type, says)
    if list_type == "map":
        _map(schema, items, path, errors)
    if list_type in ("set", "map") and items is not None:
        _keyed(schema, items, path, errors)


def _must_be(schema: JSONSchemaProps, type_: str, extension: str, path: str, errors: FieldErrors) -> bool:
    if schema.type == type_:
        return True
    says = f"must be {type_} if {extension} is specified"
    if schema.type:
        errors.invalid(f"{path}.type", schema.type, says)
    else:
        errors.required(f"{path}.type", says)
    return False


def _atomic(items: JSONSchemaProps | None, path: str, errors: FieldErrors) -> None:
    """Items of a set are compared as a whole, so they must be one."""
    says = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items is None:
        return
    if items.type == "array" and items.xKubernetesListType not in (None, "atomic"):
        errors.invalid(f"{path}.items.x-kubernetes-list-type", items.xKubernetesListType, says)
    if items.type == "object" and items.xKubernetesMapType != "atomic":
        # Upstream shows the list type where it means the map type.
        value = Verbatim("null") if items.xKubernetesListType is None else items.xKubernetesListType
        errors.invalid(f"{path}.items.x-kubernetes-map-type", value, says)


def _map(schema: JSONSchemaProps, items: JSONSchemaProps | None, path: str, errors: FieldErrors) -> None:
    keys = schema.xKubernetesListMapKeys
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        errors.required(where, "must not be empty if x-kubernetes-list-type is map")
    if schema.items is None:
        errors.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if items is None:
        return
    if items.type != "object":
        says = "must be object if parent array's x-kubernetes-list-type is map"
        errors.invalid(f"{path}.items.type", items.type, says)
        return
    for index, key in enumerate(keys):
        said = items.properties.get(key)
        if said is None:
            errors.invalid(where, keys, "entries must all be names of item properties")
        elif said.type in ("array", "object"):
            says = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.invalid(f"{path}.items.properties[{key}].type", items.type, says)
        if key in keys[:index]:
            errors.invalid(where, keys, "must not contain duplicate entries")


def _keyed(schema: JSONSchemaProps, items: JSONSchemaProps, path: str, errors: FieldErrors) -> None:
    if items.nullable:
        says = f"cannot be nullable when x-kubernetes-list-type is {schema.xKubernetesListType}"
        errors.forbidden(f"{path}.items.nullable", says)
    if schema.xKubernetesListType != "map":
        return
    because = "this property is in x-kubernetes-list-map-keys, so it"
    for key in schema.xKubernetesListMapKeys:
        said = items.properties.get(key)
        if said is None:
            continue
        where = f"{path}.items.properties[{key}]"
        if key not in items.required and said.default is None:
            errors.required(f"{where}.default", f"{because} must have a default or be a required property")
        if said.nullable:
            errors.forbidden(f"{where}.nullable", f"{because} cannot be nullable")


# -- rules ------------------------------------------------------------------------------------


def _rules(schema: JSONSchemaProps, path: str, errors: FieldErrors) -> None:
    """What is wrong with the form of validation rules; their expressions are not looked into."""
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
            says = "messageExpression must be non-empty if specified"
            errors.required(f"{where}.messageExpression", says)
        if rule.reason is not None and rule.reason not in _REASONS:
            errors.not_supported(f"{where}.reason", rule.reason, _REASONS)
        if rule.fieldPath:
            if not rule.fieldPath.strip():
                errors.invalid(f"{where}.fieldPath", rule.fieldPath, "must be non-empty if specified")
            if _has_breaks(rule.fieldPath):
                errors.invalid(f"{where}.fieldPath", rule.fieldPath, "must not contain line breaks")
            try:
                field_at(schema, rule.fieldPath)
            except BadPath:
                errors.invalid(f"{where}.fieldPath", rule.fieldPath, "must be a valid path")


def _has_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text
