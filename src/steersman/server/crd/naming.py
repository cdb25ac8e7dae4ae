"""Who may be called what: no two resources of a group share a name, no two kinds either. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from msgspec.structs import replace

from steersman.api.generated.apiextensions_v1 import (
    CustomResourceDefinition,
    CustomResourceDefinitionCondition,
)
from steersman.api.go_quote import quote
from steersman.server.crd.approvals import approval, is_protected
from steersman.server.crd.structural_schema import structural_problems, unreadable


def condition(
    type_: str, status: Literal["True", "False", "Unknown"], reason: str, message: str
) -> CustomResourceDefinitionCondition:
    """A condition, of no time yet."""
    return CustomResourceDefinitionCondition(type=type_, status=status, reason=reason, message=message)


def find(definition: CustomResourceDefinition, type_: str) -> CustomResourceDefinitionCondition | None:
    """A condition of a definition."""
    return next((each for each in definition.status.conditions or () if each.type == type_), None)


def is_true(definition: CustomResourceDefinition, type_: str) -> bool:
    """Whether a condition of a definition is true."""
    found = find(definition, type_)
    return found is not None and found.status == "True"


def with_condition(
    definition: CustomResourceDefinition, new: CustomResourceDefinitionCondition, now: datetime
) -> CustomResourceDefinition:
    """The definition with a condition, since now if it was another."""
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


def named(
    definition: CustomResourceDefinition, group: Iterable[CustomResourceDefinition], now: datetime
) -> CustomResourceDefinition:
    """The definition with as many of its names as are free, and what is said of the others.

    ``group`` are all definitions of its group. What a definition has it keeps.
    """
    asked, has = definition.spec.names, definition.status.acceptedNames
    if asked == has:
        return definition
    resources: dict[str, None] = {}
    kinds: dict[str, None] = {}
    for each in group:
        taken = each.status.acceptedNames
        resources.update(dict.fromkeys((taken.plural, taken.singular, *taken.shortNames)))
        kinds.update(dict.fromkeys((taken.kind, taken.listKind)))
    names, verdict = has, condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")

    def refused(reason: str, *wanted: str) -> CustomResourceDefinitionCondition:
        says = [f"{quote(name)} is already in use" for name in wanted]
        return condition(
            "NamesAccepted", "False", reason, says[0] if len(says) == 1 else f"[{', '.join(says)}]"
        )

    for field, used in (("plural", resources), ("singular", resources)):
        wanted = getattr(asked, field)
        if wanted != getattr(has, field) and wanted in used:
            verdict = refused(f"{field.capitalize()}Conflict", wanted)
        else:
            names = replace(names, **{field: wanted})
    clashes = [name for name in asked.shortNames if name not in has.shortNames and name in resources]
    if clashes:
        verdict = refused("ShortNamesConflict", *dict.fromkeys(clashes))
    else:
        names = replace(names, shortNames=asked.shortNames)
    for field, reason in (("kind", "KindConflict"), ("listKind", "ListKindConflict")):
        wanted = getattr(asked, field)
        if wanted != getattr(has, field) and wanted in kinds:
            verdict = refused(reason, wanted)
        else:
            names = replace(names, **{field: wanted})
    names = replace(names, categories=asked.categories)
    old = find(definition, "NamesAccepted")
    if names == has and old is not None and _equivalent(old, verdict):
        return definition
    definition = replace(definition, status=replace(definition.status, acceptedNames=names))
    established = find(definition, "Established") or condition(
        "Established", "False", "NotAccepted", "not all names are accepted"
    )
    if established.status != "True" and verdict.status == "True":
        established = condition("Established", "False", "Installing", "the initial names have been accepted")
    return with_condition(with_condition(definition, verdict, now), established, now)


def established(definition: CustomResourceDefinition, now: datetime) -> CustomResourceDefinition:
    """The definition, established if its names are accepted."""
    if not is_true(definition, "NamesAccepted") or is_true(definition, "Established"):
        return definition
    says = "the initial names have been accepted"
    return with_condition(definition, condition("Established", "True", "InitialNamesAccepted", says), now)


def _equivalent(a: CustomResourceDefinitionCondition, b: CustomResourceDefinitionCondition) -> bool:
    return (a.type, a.status, a.reason, a.message) == (b.type, b.status, b.reason, b.message)


# -- what else is said of a definition --------------------------------------------------------


def judged(definition: CustomResourceDefinition, now: datetime) -> CustomResourceDefinition:
    """The definition with what is to be said of its schemas, and of its group where that is protected."""
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
    wrong = []
    if definition.spec.preserveUnknownFields:
        wrong.append("spec.preserveUnknownFields: Invalid value: true: must be false")
    for index, version in enumerate(definition.spec.versions):
        schema = version.schema.openAPIV3Schema if version.schema is not None else None
        if schema is None:
            continue
        obscure = unreadable(schema)
        if obscure:
            says = f"failed to check validation schema for version {version.name}: {obscure}"
            return condition("NonStructuralSchema", "Unknown", "StructuralError", says)
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        wrong += [str(problem) for problem in structural_problems(schema, path)]
    if not wrong:
        return None
    says = wrong[0] if len(wrong) == 1 else f"[{', '.join(dict.fromkeys(wrong))}]"
    return condition("NonStructuralSchema", "True", "Violations", says)


def _approval(definition: CustomResourceDefinition) -> CustomResourceDefinitionCondition | None:
    if not is_protected(definition.spec.group):
        return None
    reason, says = approval(definition.metadata.annotations)
    status: Literal["True", "False"] = "True" if reason == "ApprovedAnnotation" else "False"
    return condition("KubernetesAPIApprovalPolicyConformant", status, reason, says)
