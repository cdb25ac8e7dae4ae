"""What is refused of what a definition asks for.

What all versions have in common is complained of once, where earlier versions of the API had it:
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
from steersman.server.crd.paths import BadPath, field_at, simple_path_error
from steersman.server.crd.schema_validation import schema_problems
from steersman.server.crd.structural_schema import every_schema
from steersman.server.validation.field_errors import FieldErrors, Verbatim, go_struct
from steersman.server.validation.names import dns1035_label

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE = 8
_PER_VERSION = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def _same(values: Sequence[Any]) -> bool:
    return all(value == values[0] for value in values)


def check(spec: CustomResourceDefinitionSpec, errors: FieldErrors) -> None:
    """Complain of all that is wrong with a spec."""
    _group(spec.group, errors)
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
    _versions(spec.versions, errors)
    names = spec.names
    for name in ("plural", "singular", "kind", "listKind"):
        if not getattr(names, name):
            errors.required(f"spec.names.{name}")
    check_names(names, "spec.names", errors)
    if spec.versions:
        _shared(spec.versions, errors)
    conversion = spec.conversion
    if conversion is not None:
        if conversion.strategy != "None" and spec.preserveUnknownFields:
            says = "must be None if spec.preserveUnknownFields is true"
            errors.invalid("spec.conversion.strategy", conversion.strategy, says)
        webhooks.check(conversion, "spec.conversion", errors)


def _group(group: str, errors: FieldErrors) -> None:
    if not group:
        errors.required("spec.group")
    elif wrong := subdomain_errors(group):
        errors.invalid("spec.group", group, ",".join(wrong))
    elif "." not in group:
        errors.invalid("spec.group", group, "should be a domain with at least one dot")


def _versions(versions: tuple[CustomResourceDefinitionVersion, ...], errors: FieldErrors) -> None:
    apart = {name: not _same([getattr(version, name) for version in versions]) for name in _PER_VERSION}
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if wrong := dns1035_label(version.name):
            errors.invalid(f"{path}.name", version.name, ",".join(wrong))
        _deprecation(version, path, errors)
        if apart["schema"]:
            _schema(version.schema, f"{path}.schema", _has_status(version.subresources), errors)
        if apart["subresources"]:
            _subresources(version.subresources, f"{path}.subresources", errors)
        if apart["additionalPrinterColumns"]:
            _columns(version.additionalPrinterColumns, f"{path}.additionalPrinterColumns", errors)
        if apart["selectableFields"]:
            _selectable(version, f"{path}.selectableFields", errors)
    if len({version.name: 0 for version in versions}) != len(versions):
        errors.invalid("spec.versions", _shown(versions, apart), "must contain unique version names")
    if sum(version.storage for version in versions) != 1:
        says = "must have exactly one version marked as storage version"
        errors.invalid("spec.versions", _shown(versions, apart), says)
    if versions and (wrong := dns1035_label(versions[0].name)):
        errors.invalid("spec.version", versions[0].name, ",".join(wrong))


def _shown(versions: tuple[CustomResourceDefinitionVersion, ...], apart: Mapping[str, bool]) -> Verbatim:
    """Versions as upstream prints them: in the form they have in its memory.

    differs: what they do not have in common is printed in the form it has on the wire.
    """
    printed = [
        go_struct(
            Name=version.name,
            Served=version.served,
            Storage=version.storage,
            Deprecated=version.deprecated,
            DeprecationWarning=version.deprecationWarning,
            **{
                name[0].upper() + name[1:]: (getattr(version, name) or None) if apart[name] else None
                for name in _PER_VERSION
            },
        )
        for version in versions
    ]
    return Verbatim(f"[{','.join(printed)}]")


def _shared(versions: tuple[CustomResourceDefinitionVersion, ...], errors: FieldErrors) -> None:
    """What all versions say alike."""
    first = versions[0]
    if _same([version.schema for version in versions]):
        status = any(_has_status(version.subresources) for version in versions)
        _schema(first.schema, "spec.validation", status, errors)
    if _same([version.subresources for version in versions]):
        _subresources(first.subresources, "spec.subresources", errors)
    if _same([version.additionalPrinterColumns for version in versions]):
        _columns(first.additionalPrinterColumns, "spec.additionalPrinterColumns", errors)
    if _same([version.selectableFields for version in versions]):
        _selectable(first, "spec.selectableFields", errors)


def _has_status(subresources: CustomResourceSubresources | None) -> bool:
    return subresources is not None and subresources.status is not None


def _schema(said: CustomResourceValidation | None, path: str, status: bool, errors: FieldErrors) -> None:
    if said is not None and said.openAPIV3Schema is not None:
        errors += schema_problems(said.openAPIV3Schema, path, status=status)


def _deprecation(version: CustomResourceDefinitionVersion, path: str, errors: FieldErrors) -> None:
    warning = version.deprecationWarning
    if warning is None:
        return
    wrong = []
    if not version.deprecated:
        wrong.append("can only be set for deprecated versions")
    else:
        if len(warning.encode()) > 256:
            wrong.append("must be <= 256 characters long")
        if not warning:
            wrong.append("must not be an empty string")
        at = next((index for index, char in enumerate(warning) if not char.isprintable()), None)
        if at is not None:
            says = f"non-printable character found at index {len(warning[:at].encode())}"
            wrong.append(f"must only contain printable UTF-8 characters; {says}")
    errors.invalid_each(f"{path}.deprecationWarning", warning, wrong)


def check_names(names: CustomResourceDefinitionNames, path: str, errors: FieldErrors) -> None:
    """Complain of names that are none."""
    for name in ("plural", "singular"):
        value = getattr(names, name)
        if value and (wrong := dns1035_label(value)):
            errors.invalid(f"{path}.{name}", value, ",".join(wrong))
    for name in ("kind", "listKind"):
        value = getattr(names, name)
        if value and (wrong := dns1035_label(value.lower())):
            says = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
            errors.invalid(f"{path}.{name}", value, says)
    for index, value in enumerate(names.shortNames):
        if wrong := dns1035_label(value):
            errors.invalid(f"{path}.shortNames[{index}]", value, ",".join(wrong))
    if names.kind and names.kind == names.listKind:
        errors.invalid(f"{path}.listKind", names.listKind, "kind and listKind may not be the same")
    for index, value in enumerate(names.categories):
        if wrong := dns1035_label(value):
            errors.invalid(f"{path}.categories[{index}]", value, ",".join(wrong))


def _subresources(said: CustomResourceSubresources | None, path: str, errors: FieldErrors) -> None:
    scale = said.scale if said is not None else None
    if scale is None:
        return
    _replicas(scale.specReplicasPath, f"{path}.scale.specReplicasPath", ".spec", errors)
    _replicas(scale.statusReplicasPath, f"{path}.scale.statusReplicasPath", ".status", errors)
    selector = scale.labelSelectorPath
    if selector:
        where = f"{path}.scale.labelSelectorPath"
        if wrong := simple_path_error(selector):
            errors.invalid(where, selector, wrong)
        elif not selector.startswith((".spec.", ".status.")):
            errors.invalid(where, selector, "should be a json path under either .spec or .status")


def _replicas(value: str, path: str, under: str, errors: FieldErrors) -> None:
    if not value:
        errors.required(path)
    elif wrong := simple_path_error(value):
        errors.invalid(path, value, wrong)
    elif not value.startswith(f"{under}."):
        errors.invalid(path, value, f"should be a json path under {under}")


def _columns(columns: tuple[CustomResourceColumnDefinition, ...], path: str, errors: FieldErrors) -> None:
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
        elif wrong := simple_path_error(column.jsonPath):
            errors.invalid(f"{where}.JSONPath", column.jsonPath, wrong)


def _selectable(version: CustomResourceDefinitionVersion, path: str, errors: FieldErrors) -> None:
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
            field, said = field_at(schema, each.jsonPath, keys=False)
        except BadPath as error:
            errors.invalid(where, each.jsonPath, f"is an invalid path: {error}")
            continue
        if re.match(r"metadata\b", field):
            errors.invalid(where, each.jsonPath, "must not point to fields in metadata")
        if said is None or said.type not in ("string", "boolean", "integer"):
            says = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings "
                "with formats are allowed."
            )
            errors.invalid(where, each.jsonPath, says)
        if field in seen:
            errors.duplicate(where, each.jsonPath)
        seen[field] = each
    if len(seen) > _MOST_SELECTABLE:
        errors.too_many(path, len(seen), _MOST_SELECTABLE)
