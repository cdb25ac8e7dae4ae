"""What is refused of a CustomResourceDefinition, and what it means when it does not say.

What all versions have in common is complained of once, where earlier versions of the API had it:
``spec.validation`` rather than ``spec.versions[0].schema``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from steersman.api.generated.apiextensions_v1 import (
    CustomResourceColumnDefinition,
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
    CustomResourceValidation,
    SelectableField,
)
from steersman.api.labels import subdomain_errors
from steersman.server import metadata
from steersman.server.crd import webhooks
from steersman.server.crd.paths import BadPath, field_at, simple_path_error
from steersman.server.crd.schemas import schema_problems
from steersman.server.crd.structure import every_schema
from steersman.server.names import service_errors
from steersman.server.problems import IMMUTABLE, FieldProblem
from steersman.server.validation.found import Found, Verbatim

APPROVED = "api-approved.kubernetes.io"
"""The annotation by which definitions in Kubernetes' own groups say who approved of them."""

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE = 8
_UNPRINTED = Verbatim("[…]")
# differs: upstream prints all versions, in the form they have in memory.


# -- defaults ---------------------------------------------------------------------------------


def defaulted(definition: CustomResourceDefinition) -> CustomResourceDefinition:
    """What is not said of a definition: its further names and how it is converted."""
    spec = definition.spec
    names = spec.names
    if not names.singular:
        names = replace(names, singular=names.kind.lower())
    if not names.listKind and names.kind:
        names = replace(names, listKind=f"{names.kind}List")
    conversion = spec.conversion or CustomResourceConversion(strategy="None")
    webhook = conversion.webhook
    client = webhook.clientConfig if webhook is not None else None
    if (
        webhook is not None
        and client is not None
        and client.service is not None
        and client.service.port is None
    ):
        client = replace(client, service=replace(client.service, port=443))
        conversion = replace(conversion, webhook=replace(webhook, clientConfig=client))
    if names is spec.names and conversion is spec.conversion:
        return definition
    return replace(definition, spec=replace(spec, names=names, conversion=conversion))


def with_stored_version(definition: CustomResourceDefinition) -> CustomResourceDefinition:
    """The definition with the version it stores objects in among those it ever stored any in."""
    stored = definition.status.storedVersions or ()
    current = next((version.name for version in definition.spec.versions if version.storage), None)
    if current is None or current in stored:
        return definition
    return replace(definition, status=replace(definition.status, storedVersions=(*stored, current)))


# -- what is refused --------------------------------------------------------------------------


def definition_problems(
    definition: CustomResourceDefinition, old: CustomResourceDefinition | None = None
) -> list[FieldProblem]:
    """All that is wrong with a new definition, or with one that replaces another."""
    found = Found()
    spec = definition.spec
    if old is None:
        expected = f"{spec.names.plural}.{spec.group}"

        def rule(name: str) -> tuple[str, ...]:
            wrong = subdomain_errors(name)
            return wrong if name == expected else (*wrong, 'must be spec.names.plural+"."+spec.group')

        found += metadata.check(definition.metadata, namespaced=False, rule=rule)
    else:
        found += metadata.check_update(definition.metadata, old.metadata)
    _spec(spec, found)
    if old is not None:
        _unchanged(definition, old, found)
    _names(definition.status.acceptedNames, "status.acceptedNames", found)
    _stored(definition.status.storedVersions or (), spec.versions, found)
    _approval(definition, old, found)
    if spec.preserveUnknownFields and not (old is not None and old.spec.preserveUnknownFields):
        found.invalid(
            "spec.preserveUnknownFields",
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead",
        )
    return found


def _same(values: Sequence[Any]) -> bool:
    return all(value == values[0] for value in values)


def _spec(spec: CustomResourceDefinitionSpec, found: Found) -> None:
    _group(spec.group, found)
    found.choose("spec.scope", spec.scope, ("Cluster", "Namespaced"))
    for index, version in enumerate(spec.versions):
        if version.schema is None or version.schema.openAPIV3Schema is None:
            found.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    if spec.preserveUnknownFields and any(
        schema.default is not None
        for version in spec.versions
        if version.schema is not None and version.schema.openAPIV3Schema is not None
        for schema in every_schema(version.schema.openAPIV3Schema)
    ):
        found.invalid(
            "spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema"
        )
    _versions(spec.versions, found)
    names = spec.names
    for name in ("plural", "singular", "kind", "listKind"):
        if not getattr(names, name):
            found.required(f"spec.names.{name}")
    _names(names, "spec.names", found)
    if spec.versions:
        _shared(spec.versions, found)
    conversion = spec.conversion
    if conversion is not None:
        if conversion.strategy != "None" and spec.preserveUnknownFields:
            says = "must be None if spec.preserveUnknownFields is true"
            found.invalid("spec.conversion.strategy", conversion.strategy, says)
        webhooks.check(conversion, "spec.conversion", found)


def _group(group: str, found: Found) -> None:
    if not group:
        found.required("spec.group")
    elif wrong := subdomain_errors(group):
        found.invalid("spec.group", group, ",".join(wrong))
    elif "." not in group:
        found.invalid("spec.group", group, "should be a domain with at least one dot")


def _versions(versions: tuple[CustomResourceDefinitionVersion, ...], found: Found) -> None:
    apart = {
        name: not _same([getattr(version, name) for version in versions])
        for name in ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
    }
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if wrong := service_errors(version.name):
            found.invalid(f"{path}.name", version.name, ",".join(wrong))
        _deprecation(version, path, found)
        if apart["schema"]:
            _schema(version.schema, f"{path}.schema", _has_status(version.subresources), found)
        if apart["subresources"]:
            _subresources(version.subresources, f"{path}.subresources", found)
        if apart["additionalPrinterColumns"]:
            _columns(version.additionalPrinterColumns, f"{path}.additionalPrinterColumns", found)
        if apart["selectableFields"]:
            _selectable(version, f"{path}.selectableFields", found)
    if not _same([1]) or len({version.name: 0 for version in versions}) != len(versions):
        found.invalid("spec.versions", _UNPRINTED, "must contain unique version names")
    if sum(version.storage for version in versions) != 1:
        says = "must have exactly one version marked as storage version"
        found.invalid("spec.versions", _UNPRINTED if versions else Verbatim("null"), says)


def _shared(versions: tuple[CustomResourceDefinitionVersion, ...], found: Found) -> None:
    """What all versions say alike."""
    first = versions[0]
    if _same([version.schema for version in versions]):
        status = any(_has_status(version.subresources) for version in versions)
        _schema(first.schema, "spec.validation", status, found)
    if _same([version.subresources for version in versions]):
        _subresources(first.subresources, "spec.subresources", found)
    if _same([version.additionalPrinterColumns for version in versions]):
        _columns(first.additionalPrinterColumns, "spec.additionalPrinterColumns", found)
    if _same([version.selectableFields for version in versions]):
        _selectable(first, "spec.selectableFields", found)


def _has_status(subresources: CustomResourceSubresources | None) -> bool:
    return subresources is not None and subresources.status is not None


def _schema(said: CustomResourceValidation | None, path: str, status: bool, found: Found) -> None:
    if said is not None and said.openAPIV3Schema is not None:
        found += schema_problems(said.openAPIV3Schema, path, status=status)


def _deprecation(version: CustomResourceDefinitionVersion, path: str, found: Found) -> None:
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
    found.each(f"{path}.deprecationWarning", warning, wrong)


def _names(names: CustomResourceDefinitionNames, path: str, found: Found) -> None:
    for name in ("plural", "singular"):
        value = getattr(names, name)
        if value and (wrong := service_errors(value)):
            found.invalid(f"{path}.{name}", value, ",".join(wrong))
    for name in ("kind", "listKind"):
        value = getattr(names, name)
        if value and (wrong := service_errors(value.lower())):
            says = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
            found.invalid(f"{path}.{name}", value, says)
    for index, value in enumerate(names.shortNames):
        if wrong := service_errors(value):
            found.invalid(f"{path}.shortNames[{index}]", value, ",".join(wrong))
    if names.kind and names.kind == names.listKind:
        found.invalid(f"{path}.listKind", names.listKind, "kind and listKind may not be the same")
    for index, value in enumerate(names.categories):
        if wrong := service_errors(value):
            found.invalid(f"{path}.categories[{index}]", value, ",".join(wrong))


def _subresources(said: CustomResourceSubresources | None, path: str, found: Found) -> None:
    scale = said.scale if said is not None else None
    if scale is None:
        return
    _replicas(scale.specReplicasPath, f"{path}.scale.specReplicasPath", ".spec", found)
    _replicas(scale.statusReplicasPath, f"{path}.scale.statusReplicasPath", ".status", found)
    selector = scale.labelSelectorPath
    if selector:
        where = f"{path}.scale.labelSelectorPath"
        if wrong := simple_path_error(selector):
            found.invalid(where, selector, wrong)
        elif not selector.startswith((".spec.", ".status.")):
            found.invalid(where, selector, "should be a json path under either .spec or .status")


def _replicas(value: str, path: str, under: str, found: Found) -> None:
    if not value:
        found.required(path)
    elif wrong := simple_path_error(value):
        found.invalid(path, value, wrong)
    elif not value.startswith(f"{under}."):
        found.invalid(path, value, f"should be a json path under {under}")


def _columns(columns: tuple[CustomResourceColumnDefinition, ...], path: str, found: Found) -> None:
    one_of = f"must be one of {','.join(_COLUMN_TYPES)}"
    for index, column in enumerate(columns):
        where = f"{path}[{index}]"
        if not column.name:
            found.required(f"{where}.name")
        if not column.type:
            found.required(f"{where}.type", one_of)
        elif column.type not in _COLUMN_TYPES:
            found.invalid(f"{where}.type", column.type, one_of)
        if column.format and column.format not in _COLUMN_FORMATS:
            found.invalid(f"{where}.format", column.format, f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not column.jsonPath:
            found.required(f"{where}.JSONPath")
        elif wrong := simple_path_error(column.jsonPath):
            found.invalid(f"{where}.JSONPath", column.jsonPath, wrong)


def _selectable(version: CustomResourceDefinitionVersion, path: str, found: Found) -> None:
    schema = version.schema.openAPIV3Schema if version.schema is not None else None
    if not version.selectableFields:
        return
    if schema is None:
        found.invalid(path, "", "may only be set when `version.schema.openAPIV3Schema` is not included")
        return
    seen: dict[str, SelectableField] = {}
    for index, each in enumerate(version.selectableFields):
        where = f"{path}[{index}].jsonPath"
        if not each.jsonPath:
            found.required(where)
            continue
        try:
            field, said = field_at(schema, each.jsonPath, keys=False)
        except BadPath as error:
            found.invalid(where, each.jsonPath, f"is an invalid path: {error}")
            continue
        if re.match(r"metadata\b", field):
            found.invalid(where, each.jsonPath, "must not point to fields in metadata")
        if said is None or said.type not in ("string", "boolean", "integer"):
            says = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings "
                "with formats are allowed."
            )
            found.invalid(where, each.jsonPath, says)
        if field in seen:
            found.duplicate(where, each.jsonPath)
        seen[field] = each
    if len(seen) > _MOST_SELECTABLE:
        found.too_many(path, len(seen), _MOST_SELECTABLE)


# -- over time --------------------------------------------------------------------------------


def is_true(definition: CustomResourceDefinition, type_: str) -> bool:
    """Whether a condition of a definition is true."""
    conditions = definition.status.conditions or ()
    return any(each.type == type_ and each.status == "True" for each in conditions)


def _unchanged(definition: CustomResourceDefinition, old: CustomResourceDefinition, found: Found) -> None:
    new, was = definition.spec, old.spec
    if is_true(old, "Established"):
        found.changed("spec.scope", new.scope, was.scope)
        found.changed("spec.names.kind", new.names.kind, was.names.kind)
    found.changed("spec.group", new.group, was.group)
    found.changed("spec.names.plural", new.names.plural, was.names.plural)


def _stored(
    stored: tuple[str, ...], versions: tuple[CustomResourceDefinitionVersion, ...], found: Found
) -> None:
    path = "status.storedVersions"
    if not stored:
        found.invalid(path, Verbatim("null"), "must have at least one stored version")
        return
    for version in versions:
        if version.storage and version.name not in stored:
            found.invalid(path, stored, f"must have the storage version {version.name}")
    known = [version.name for version in versions]
    for index, name in enumerate(stored):
        if name not in known:
            found.invalid(
                f"{path}[{index}]",
                name,
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{name} and removes {name} from status.storedVersions",
            )


def status_problems(
    definition: CustomResourceDefinition, old: CustomResourceDefinition
) -> list[FieldProblem]:
    """What is wrong with a new status."""
    found = Found(metadata.check_update(definition.metadata, old.metadata))
    _names(definition.status.acceptedNames, "status.acceptedNames", found)
    return found


# -- approval ---------------------------------------------------------------------------------

_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"


def is_protected(group: str) -> bool:
    """Whether a group is one of Kubernetes' own."""
    return any(group == own or group.endswith(f".{own}") for own in ("k8s.io", "kubernetes.io"))


def approval(annotations: Mapping[str, str]) -> tuple[str, str]:
    """How a definition in a protected group is approved of (the reason of its condition), and the words for it."""
    said = annotations.get(APPROVED, "")
    if not said:
        return "MissingAnnotation", f'protected groups must have approval annotation "{APPROVED}", {_SEE}'
    if said.startswith("unapproved"):
        return "UnapprovedAnnotation", f'not approved: "{said}"'
    try:
        url = urlsplit(said)
        sound = bool(url.scheme and url.netloc)
    except ValueError:
        sound = False
    if sound:
        return "ApprovedAnnotation", f"approved in {said}"
    return (
        "InvalidAnnotation",
        f'protected groups must have approval annotation "{APPROVED}" with either a URL or a reason starting '
        f'with "unapproved", {_SEE}',
    )


def _approval(
    definition: CustomResourceDefinition, old: CustomResourceDefinition | None, found: Found
) -> None:
    if not is_protected(definition.spec.group):
        return
    annotations = definition.metadata.annotations
    state, says = approval(annotations)
    if old is not None and approval(old.metadata.annotations)[0] == state:
        return
    path = f"metadata.annotations[{APPROVED}]"
    if state == "MissingAnnotation":
        found.required(path, says)
    elif state == "InvalidAnnotation":
        found.invalid(path, annotations.get(APPROVED, ""), says)


__all__ = [
    "APPROVED",
    "IMMUTABLE",
    "approval",
    "defaulted",
    "definition_problems",
    "is_protected",
    "is_true",
    "status_problems",
    "with_stored_version",
]
