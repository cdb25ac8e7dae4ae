"""Validation of the field and label selectors in access reviews.

RBAC ignores selectors, so a review with one is decided like a review without; but invalid and malformed ones are
reported as upstream does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from steersman.api.field_selectors import parse_fields
from steersman.api.generated.authorization_v1 import (
    FieldSelectorAttributes,
    LabelSelectorAttributes,
    ResourceAttributes,
)
from steersman.api.generated.meta_v1 import FieldSelectorRequirement, LabelSelector, LabelSelectorRequirement
from steersman.api.label_selectors import compile_selector, parse_selector
from steersman.api.label_syntax import key_errors, value_errors
from steersman.server.status_errors import FieldError, field_forbidden, field_invalid, field_required

Restriction: TypeAlias = FieldSelectorAttributes | LabelSelectorAttributes
Requirement: TypeAlias = FieldSelectorRequirement | LabelSelectorRequirement

_PATH = "spec.resourceAttributes"


def validate_restrictions(attributes: ResourceAttributes | None) -> list[FieldError]:
    """Validation errors of the selectors in resource attributes."""
    if attributes is None:
        return []
    found = _validate_selector(attributes.fieldSelector, f"{_PATH}.fieldSelector")
    return found + _validate_selector(attributes.labelSelector, f"{_PATH}.labelSelector")


def _validate_selector(selector: Restriction | None, path: str) -> list[FieldError]:
    if selector is None:
        return []
    found: list[FieldError] = []
    if selector.rawSelector and selector.requirements:
        why = "may not specified at the same time as requirements"
        found.append(field_invalid(f"{path}.rawSelector", selector.rawSelector, why))
    if not selector.rawSelector and not selector.requirements:
        why = f"when {path} is specified, requirements or rawSelector is required"
        found.append(field_required(f"{path}.requirements", why))
    requirements: tuple[Requirement, ...] = selector.requirements
    for i, requirement in enumerate(requirements):
        found += _validate_requirement(requirement, f"{path}.requirements[{i}]")
    return found


def _validate_requirement(requirement: Requirement, path: str) -> Iterable[FieldError]:
    labelled = isinstance(requirement, LabelSelectorRequirement)
    if not labelled and not requirement.key:
        yield field_required(f"{path}.key", "must be specified")
    # Unknown operators are accepted, for compatibility with later versions.
    if requirement.operator in ("In", "NotIn") and not requirement.values:
        yield field_required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    if requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
        yield field_forbidden(
            f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        )
    if labelled:
        for why in key_errors(requirement.key):
            yield field_invalid(f"{path}.key", requirement.key, why)
        for i, value in enumerate(requirement.values):
            for why in value_errors(value):
                yield field_invalid(f"{path}.values[{i}]", value, why)


def evaluation_errors(attributes: ResourceAttributes | None) -> Iterable[str]:
    """Evaluation errors for selectors that were ignored, wholly or in part, because they are malformed."""
    if attributes is None:
        return
    for name, selector in (
        ("fieldSelector", attributes.fieldSelector),
        ("labelSelector", attributes.labelSelector),
    ):
        if selector is None:
            continue
        if selector.requirements:
            readable = [_is_valid_requirement(requirement) for requirement in selector.requirements]
        else:
            readable = [_is_valid_raw_selector(selector)]
        if not all(readable):
            how = "partially ignored" if any(readable) else "ignored"
            yield f"{_PATH}.{name} {how} due to parse error"


def _is_valid_requirement(requirement: Requirement) -> bool:
    if isinstance(requirement, FieldSelectorRequirement):
        return requirement.operator in ("In", "NotIn") and len(requirement.values) == 1
    try:
        compile_selector(LabelSelector(matchExpressions=(requirement,)))
    except ValueError:
        return False
    return True


def _is_valid_raw_selector(selector: Restriction) -> bool:
    try:
        if isinstance(selector, FieldSelectorAttributes):
            parse_fields(selector.rawSelector)
        else:
            parse_selector(selector.rawSelector)
    except ValueError:
        return False
    return True
