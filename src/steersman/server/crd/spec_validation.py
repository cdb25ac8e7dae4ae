"""Validation of the spec of a definition.

Errors in fields that all versions share are reported once, at the path of earlier API versions:
``spec.validation`` rather than ``spec.versions[0].schema``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from steersman.api.generated.apiextensions_v1 import (
    CustomResourceColumnDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
    CustomResourceValidation,
    SelectableField,
)
from steersman.api.label_syntax import subdomain_errors
from steersman.server.crd import webhooks
from steersman.server.crd.paths import InvalidPath, field_at, simple_path_error
from steersman.server.crd.schema_validation import validate_schema
from steersman.server.crd.structural_schema import every_schema
from steersman.server.validation.field_errors import FieldErrors, Verbatim, go_struct
from steersman.server.validation.names import dns1035_label

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAX_SELECTABLE_FIELDS = 8
_PER_VERSION_FIELDS = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def _all_equal(values: Sequence[Any]) -> bool:
    return all(value == values[0] for value in values)


def validate_spec(spec: CustomResourceDefinitionSpec, errors: FieldErrors) -> None:
    """Validates the spec of a definition."""
    _validate_group(spec.group, errors)
    errors.enum("spec.scope", spec.scope, ("Cluster", "Namespaced"))
    for index, version in enumerate(spec.versions):
        if version.schema is None or version.schema.openAPIV3Schema is None:
            errors.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    if spec.preserveUnknownFields and any(
        schema.default is not None
        for version in spec.versions
        if version.schema is not None and version.schema.openAPIV3Schema is not None
        for schema in every_schema(version.schema.openAPIV3Schema)
    ):
        errors.invalid(
            "spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema"
        )
    _validate_versions(spec.versions, errors)
    names = spec.names
    for name in ("plural", "singular", "kind", "listKind"):
        if not getattr(names, name):
            errors.required(f"spec.names.{name}")
    validate_names(names, "spec.names", errors)
    if spec.versions:
        _validate_shared(spec.versions, errors)
    conversion = spec.conversion
    if conversion is not None:
        if conversion.strategy != "None" and spec.preserveUnknownFields:
            detail = "must be None if spec.preserveUnknownFields is true"
            errors.invalid("spec.conversion.strategy", conversion.strategy, detail)
        webhooks.validate_conversion(conversion, "spec.conversion", errors)


def _validate_group(group: str, errors: FieldErrors) -> None:
    if not group:
        errors.required("spec.group")
    elif problems := subdomain_errors(group):
        errors.invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        errors.invalid("spec.group", group, "should be a domain with at least one dot")


def _validate_versions(versions: tuple[CustomResourceDefinitionVersion, ...], errors: FieldErrors) -> None:
    differs = {
        name: not _all_equal([getattr(version, name) for version in versions]) for name in _PER_VERSION_FIELDS
    }
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if problems := dns1035_label(version.name):
            errors.invalid(f"{path}.name", version.name, ",".join(problems))
        _validate_deprecation(version, path, errors)
        if differs["schema"]:
            _validate_schema(version.schema, f"{path}.schema", _has_status(version.subresources), errors)
        if differs["subresources"]:
            _validate_subresources(version.subresources, f"{path}.subresources", errors)
        if differs["additionalPrinterColumns"]:
            _validate_columns(version.additionalPrinterColumns, f"{path}.additionalPrinterColumns", errors)
        if differs["selectableFields"]:
            _validate_selectable_fields(version, f"{path}.selectableFields", errors)
    if len({version.name: 0 for version in versions}) != len(versions):
        errors.invalid("spec.versions", _printed(versions, differs), "must contain unique version names")
    if sum(version.storage for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.invalid("spec.versions", _printed(versions, differs), detail)
    if versions and (problems := dns1035_label(versions[0].name)):
        errors.invalid("spec.version", versions[0].name, ",".join(problems))


def _printed(versions: tuple[CustomResourceDefinitionVersion, ...], differs: Mapping[str, bool]) -> Verbatim:
    """Versions as upstream prints them: with the field names of its internal type.

    differs: fields in which the versions differ are printed with their wire names.
    """
    printed = [
        go_struct(
            Name=version.name,
            Served=version.served,
            Storage=version.storage,
            Deprecated=version.deprecated,
            DeprecationWarning=version.deprecationWarning,
            **{
                name[0].upper() + name[1:]: (getattr(version, name) or None) if differs[name] else None
                for name in _PER_VERSION_FIELDS
            },
        )
        for version in versions
    ]
    return Verbatim(f"[{','.join(printed)}]")


def _validate_shared(versions: tuple[CustomResourceDefinitionVersion, ...], errors: FieldErrors) -> None:
    """Validates the fields that all versions share."""
    first = versions[0]
    if _all_equal([version.schema for version in versions]):
        status = any(_has_status(version.subresources) for version in versions)
        _validate_schema(first.schema, "spec.validation", status, errors)
    if _all_equal([version.subresources for version in versions]):
        _validate_subresources(first.subresources, "spec.subresources", errors)
    if _all_equal([version.additionalPrinterColumns for version in versions]):
        _validate_columns(first.additionalPrinterColumns, "spec.additionalPrinterColumns", errors)
    if _all_equal([version.selectableFields for version in versions]):
        _validate_selectable_fields(first, "spec.selectableFields", errors)


def _has_status(subresources: CustomResourceSubresources | None) -> bool:
    return subresources is not None and subresources.status is not None


def _validate_schema(
    given: CustomResourceValidation | None, path: str, status: bool, errors: FieldErrors
) -> None:
    if given is not None and given.openAPIV3Schema is not None:
        errors += validate_schema(given.openAPIV3Schema, path, status=status)


def _validate_deprecation(version: CustomResourceDefinitionVersion, path: str, errors: FieldErrors) -> None:
    warning = version.deprecationWarning
    if warning is None:
        return
    problems = []
    if not version.deprecated:
        problems.append("can only be set for deprecated versions")
    else:
        if len(warning.encode()) > 256:
            problems.append("must be <= 256 characters long")
        if not warning:
            problems.append("must not be an empty string")
        at = next((index for index, char in enumerate(warning) if not char.isprintable()), None)
        if at is not None:
            detail = f"non-printable character found at index {len(warning[:at].encode())}"
            problems.append(f"must only contain printable UTF-8 characters; {detail}")
    errors.invalid_each(f"{path}.deprecationWarning", warning, problems)


def validate_names(names: CustomResourceDefinitionNames, path: str, errors: FieldErrors) -> None:
    """Validates the names of a definition."""
    for name in ("plural", "singular"):
        value = getattr(names, name)
        if value and (problems := dns1035_label(value)):
            errors.invalid(f"{path}.{name}", value, ",".join(problems))
    for name in ("kind", "listKind"):
        value = getattr(names, name)
        if value and (problems := dns1035_label(value.lower())):
            detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            errors.invalid(f"{path}.{name}", value, detail)
    for index, value in enumerate(names.shortNames):
        if problems := dns1035_label(value):
            errors.invalid(f"{path}.shortNames[{index}]", value, ",".join(problems))
    if names.kind and names.kind == names.listKind:
        errors.invalid(f"{path}.listKind", names.listKind, "kind and listKind may not be the same")
    for index, value in enumerate(names.categories):
        if problems := dns1035_label(value):
            errors.invalid(f"{path}.categories[{index}]", value, ",".join(problems))


def _validate_subresources(given: CustomResourceSubresources | None, path: str, errors: FieldErrors) -> None:
    scale = given.scale if given is not None else None
    if scale is None:
        return
    _validate_replicas_path(scale.specReplicasPath, f"{path}.scale.specReplicasPath", ".spec", errors)
    _validate_replicas_path(scale.statusReplicasPath, f"{path}.scale.statusReplicasPath", ".status", errors)
    selector = scale.labelSelectorPath
    if selector:
        where = f"{path}.scale.labelSelectorPath"
        if problems := simple_path_error(selector):
            errors.invalid(where, selector, problems)
        elif not selector.startswith((".spec.", ".status.")):
            errors.invalid(where, selector, "should be a json path under either .spec or .status")


def _validate_replicas_path(value: str, path: str, under: str, errors: FieldErrors) -> None:
    if not value:
        errors.required(path)
    elif problems := simple_path_error(value):
        errors.invalid(path, value, problems)
    elif not value.startswith(f"{under}."):
        errors.invalid(path, value, f"should be a json path under {under}")


def _validate_columns(
    columns: tuple[CustomResourceColumnDefinition, ...], path: str, errors: FieldErrors
) -> None:
    one_of = f"must be one of {','.join(_COLUMN_TYPES)}"
    for index, column in enumerate(columns):
        where = f"{path}[{index}]"
        if not column.name:
            errors.required(f"{where}.name")
        if not column.type:
            errors.required(f"{where}.type", one_of)
        elif column.type not in _COLUMN_TYPES:
            errors.invalid(f"{where}.type", column.type, one_of)
        if column.format and column.format not in _COLUMN_FORMATS:
            errors.invalid(f"{where}.format", column.format, f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not column.jsonPath:
            errors.required(f"{where}.JSONPath")
        elif problems := simple_path_error(column.jsonPath):
            errors.invalid(f"{where}.JSONPath", column.jsonPath, problems)


def _validate_selectable_fields(
    version: CustomResourceDefinitionVersion, path: str, errors: FieldErrors
) -> None:
    schema = version.schema.openAPIV3Schema if version.schema is not None else None
    if not version.selectableFields:
        return
    if schema is None:
        errors.invalid(path, "", "may only be set when `version.schema.openAPIV3Schema` is not included")
        return
    seen: dict[str, SelectableField] = {}
    for index, each in enumerate(version.selectableFields):
        where = f"{path}[{index}].jsonPath"
        if not each.jsonPath:
            errors.required(where)
            continue
        try:
            field, given = field_at(schema, each.jsonPath, keys=False)
        except InvalidPath as error:
            errors.invalid(where, each.jsonPath, f"is an invalid path: {error}")
            continue
        if re.match(r"metadata\b", field):
            errors.invalid(where, each.jsonPath, "must not point to fields in metadata")
        if given is None or given.type not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings "
                "with formats are allowed."
            )
            errors.invalid(where, each.jsonPath, detail)
        if field in seen:
            errors.duplicate(where, each.jsonPath)
        seen[field] = each
    if len(seen) > _MAX_SELECTABLE_FIELDS:
        errors.too_many(path, len(seen), _MAX_SELECTABLE_FIELDS)
