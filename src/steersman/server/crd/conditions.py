"""The conditions of definitions: NamesAccepted, Established, NonStructuralSchema and API approval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

from msgspec.structs import replace

from steersman.api.generated.apiextensions_v1 import (
    CustomResourceDefinition,
    CustomResourceDefinitionCondition,
)
from steersman.api.go_quote import quote
from steersman.server.crd.structural_schema import structural_errors, unsupported_schema_error
from steersman.server.validation.field_errors import FieldErrors


def condition(
    type_: str, status: Literal["True", "False", "Unknown"], reason: str, message: str
) -> CustomResourceDefinitionCondition:
    """A condition without a lastTransitionTime."""
    return CustomResourceDefinitionCondition(type=type_, status=status, reason=reason, message=message)


def find(definition: CustomResourceDefinition, type_: str) -> CustomResourceDefinitionCondition | None:
    """A condition of a definition by type, or None."""
    return next((each for each in definition.status.conditions or () if each.type == type_), None)


def is_true(definition: CustomResourceDefinition, type_: str) -> bool:
    """Whether a condition of a definition is true."""
    found = find(definition, type_)
    return found is not None and found.status == "True"


def with_condition(
    definition: CustomResourceDefinition, new: CustomResourceDefinitionCondition, now: datetime
) -> CustomResourceDefinition:
    """The definition with a condition; lastTransitionTime is now if its status changed."""
    conditions = definition.status.conditions or ()
    old = find(definition, new.type)
    since = old.lastTransitionTime if old is not None and old.status == new.status else None
    new = replace(new, lastTransitionTime=since or now)
    made = (*conditions, new) if old is None else tuple(new if each is old else each for each in conditions)
    return replace(definition, status=replace(definition.status, conditions=made))


def without_condition(definition: CustomResourceDefinition, type_: str) -> CustomResourceDefinition:
    """The definition without a condition."""
    kept = tuple(each for each in definition.status.conditions or () if each.type != type_)
    return replace(definition, status=replace(definition.status, conditions=kept))


# -- names ------------------------------------------------------------------------------------


def accept_names(
    definition: CustomResourceDefinition, group: Iterable[CustomResourceDefinition], now: datetime
) -> CustomResourceDefinition:
    """The definition with its free names accepted, and the NamesAccepted condition.

    ``group`` are all definitions of its group, whose accepted names are taken. Accepted names stay accepted.
    """
    requested, accepted = definition.spec.names, definition.status.acceptedNames
    if requested == accepted:
        return definition
    resources: dict[str, None] = {}
    kinds: dict[str, None] = {}
    for each in group:
        taken = each.status.acceptedNames
        resources.update(dict.fromkeys((taken.plural, taken.singular, *taken.shortNames)))
        kinds.update(dict.fromkeys((taken.kind, taken.listKind)))
    names, names_accepted = accepted, condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")

    def conflict(reason: str, *wanted: str) -> CustomResourceDefinitionCondition:
        detail = [f"{quote(name)} is already in use" for name in wanted]
        return condition(
            "NamesAccepted", "False", reason, detail[0] if len(detail) == 1 else f"[{', '.join(detail)}]"
        )

    for field, used in (("plural", resources), ("singular", resources)):
        wanted = getattr(requested, field)
        if wanted != getattr(accepted, field) and wanted in used:
            names_accepted = conflict(f"{field.capitalize()}Conflict", wanted)
        else:
            names = replace(names, **{field: wanted})
    clashes = [name for name in requested.shortNames if name not in accepted.shortNames and name in resources]
    if clashes:
        names_accepted = conflict("ShortNamesConflict", *dict.fromkeys(clashes))
    else:
        names = replace(names, shortNames=requested.shortNames)
    for field, reason in (("kind", "KindConflict"), ("listKind", "ListKindConflict")):
        wanted = getattr(requested, field)
        if wanted != getattr(accepted, field) and wanted in kinds:
            names_accepted = conflict(reason, wanted)
        else:
            names = replace(names, **{field: wanted})
    names = replace(names, categories=requested.categories)
    old = find(definition, "NamesAccepted")
    if names == accepted and old is not None and _equivalent(old, names_accepted):
        return definition
    definition = replace(definition, status=replace(definition.status, acceptedNames=names))
    establish = find(definition, "Established") or condition(
        "Established", "False", "NotAccepted", "not all names are accepted"
    )
    if establish.status != "True" and names_accepted.status == "True":
        establish = condition("Established", "False", "Installing", "the initial names have been accepted")
    return with_condition(with_condition(definition, names_accepted, now), establish, now)


def establish(definition: CustomResourceDefinition, now: datetime) -> CustomResourceDefinition:
    """The definition with the condition Established if its names are accepted."""
    if not is_true(definition, "NamesAccepted") or is_true(definition, "Established"):
        return definition
    detail = "the initial names have been accepted"
    return with_condition(definition, condition("Established", "True", "InitialNamesAccepted", detail), now)


def _equivalent(a: CustomResourceDefinitionCondition, b: CustomResourceDefinitionCondition) -> bool:
    return (a.type, a.status, a.reason, a.message) == (b.type, b.status, b.reason, b.message)


# -- schemas and groups -----------------------------------------------------------------------


def check_conditions(definition: CustomResourceDefinition, now: datetime) -> CustomResourceDefinition:
    """The definition with the conditions NonStructuralSchema and KubernetesAPIApprovalPolicyConformant."""
    for type_, new in (
        ("NonStructuralSchema", _nonstructural(definition)),
        ("KubernetesAPIApprovalPolicyConformant", _approval(definition)),
    ):
        old = find(definition, type_)
        if new is None:
            if old is not None:
                definition = without_condition(definition, type_)
        elif old is None or not _equivalent(old, new):
            definition = with_condition(definition, new, now)
    return definition


def _nonstructural(definition: CustomResourceDefinition) -> CustomResourceDefinitionCondition | None:
    problems = []
    if definition.spec.preserveUnknownFields:
        problems.append("spec.preserveUnknownFields: Invalid value: true: must be false")
    for index, version in enumerate(definition.spec.versions):
        schema = version.schema.openAPIV3Schema if version.schema is not None else None
        if schema is None:
            continue
        obscure = unsupported_schema_error(schema)
        if obscure:
            detail = f"failed to check validation schema for version {version.name}: {obscure}"
            return condition("NonStructuralSchema", "Unknown", "StructuralError", detail)
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        problems += [str(problem) for problem in structural_errors(schema, path)]
    if not problems:
        return None
    detail = problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]"
    return condition("NonStructuralSchema", "True", "Violations", detail)


def _approval(definition: CustomResourceDefinition) -> CustomResourceDefinitionCondition | None:
    if not is_protected(definition.spec.group):
        return None
    reason, detail = approval(definition.metadata.annotations)
    status: Literal["True", "False"] = "True" if reason == "ApprovedAnnotation" else "False"
    return condition("KubernetesAPIApprovalPolicyConformant", status, reason, detail)


# -- API approval -----------------------------------------------------------------------------

APPROVED = "api-approved.kubernetes.io"
"""The approval annotation of definitions in protected groups."""

_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"


def is_protected(group: str) -> bool:
    """Whether a group is protected: below ``k8s.io`` or ``kubernetes.io``."""
    return any(group == own or group.endswith(f".{own}") for own in ("k8s.io", "kubernetes.io"))


def approval(annotations: Mapping[str, str]) -> tuple[str, str]:
    """The reason and message of the approval condition of a definition in a protected group."""
    annotation = annotations.get(APPROVED, "")
    if not annotation:
        return "MissingAnnotation", f'protected groups must have approval annotation "{APPROVED}", {_SEE}'
    if annotation.startswith("unapproved"):
        return "UnapprovedAnnotation", f'not approved: "{annotation}"'
    try:
        url = urlsplit(annotation)
        is_url = bool(url.scheme and url.netloc)
    except ValueError:
        is_url = False
    if is_url:
        return "ApprovedAnnotation", f"approved in {annotation}"
    return (
        "InvalidAnnotation",
        f'protected groups must have approval annotation "{APPROVED}" with either a URL or a reason starting '
        f'with "unapproved", {_SEE}',
    )


def validate_approval(
    definition: CustomResourceDefinition, old: CustomResourceDefinition | None, errors: FieldErrors
) -> None:
    """Validates the approval annotation of a definition in a protected group, unless its state is unchanged."""
    if not is_protected(definition.spec.group):
        return
    annotations = definition.metadata.annotations
    state, detail = approval(annotations)
    if old is not None and approval(old.metadata.annotations)[0] == state:
        return
    path = f"metadata.annotations[{APPROVED}]"
    if state == "MissingAnnotation":
        errors.required(path, detail)
    elif state == "InvalidAnnotation":
        errors.invalid(path, annotations.get(APPROVED, ""), detail)
