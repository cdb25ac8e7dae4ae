"""Validation of label selectors and node selectors."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import LabelSelector
from steersman.api.label_selectors import Selector, compile_selector
from steersman.api.label_syntax import key_errors, value_errors
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.metadata import validate_labels

_SET_OPERATORS = ("In", "NotIn")
_PRESENCE_OPERATORS = ("Exists", "DoesNotExist")
_BAD_OPERATOR = "not a valid selector operator"
_VALUES_NEEDED = "must be specified when `operator` is 'In' or 'NotIn'"
_VALUES_FORBIDDEN = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


def validate_label_selector(errors: FieldErrors, path: str, selector: LabelSelector | None) -> None:
    """Validates a label selector; None is valid."""
    if selector is None:
        return
    if selector.matchLabels:
        validate_labels(errors, f"{path}.matchLabels", selector.matchLabels)
    for i, expression in enumerate(selector.matchExpressions):
        at = f"{path}.matchExpressions[{i}]"
        _validate_operator_values(errors, at, expression.operator, expression.values)
        if expression.operator not in _SET_OPERATORS and expression.operator not in _PRESENCE_OPERATORS:
            errors.invalid(f"{at}.operator", expression.operator, _BAD_OPERATOR)
        errors.invalid_each(f"{at}.key", expression.key, key_errors(expression.key))
        for j, value in enumerate(expression.values):
            errors.invalid_each(f"{at}.values[{j}]", value, value_errors(value))


def _validate_operator_values(errors: FieldErrors, path: str, operator: str, values: tuple[str, ...]) -> None:
    if operator in _SET_OPERATORS and not values:
        errors.required(f"{path}.values", _VALUES_NEEDED)
    elif operator in _PRESENCE_OPERATORS and values:
        errors.forbidden(f"{path}.values", _VALUES_FORBIDDEN)


def compile_or_none(selector: LabelSelector | Mapping[str, str] | None) -> Selector | None:
    """The compiled selector; None where it is invalid."""
    try:
        return compile_selector(selector)
    except ValueError:
        return None


# -- nodes ------------------------------------------------------------------------------------


def validate_node_selector(errors: FieldErrors, path: str, selector: v1.NodeSelector) -> None:
    terms = selector.nodeSelectorTerms or ()
    if not terms:
        errors.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for i, term in enumerate(terms):
        validate_node_selector_term(errors, f"{path}.nodeSelectorTerms[{i}]", term)


def validate_node_selector_term(
    errors: FieldErrors, path: str, term: v1.NodeSelectorTerm, *, any_value: bool = False
) -> None:
    """Validates one term; ``any_value`` skips the rule for label values, as upstream does for preferences."""
    for i, requirement in enumerate(term.matchExpressions):
        _validate_node_requirement(errors, f"{path}.matchExpressions[{i}]", requirement, any_value)
    for i, requirement in enumerate(term.matchFields):
        _validate_node_field_requirement(errors, f"{path}.matchFields[{i}]", requirement)


def _validate_node_requirement(
    errors: FieldErrors, path: str, requirement: v1.NodeSelectorRequirement, any_value: bool
) -> None:
    operator, values = requirement.operator, requirement.values
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.required(
                f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"
            )
    elif operator in _SET_OPERATORS or operator in _PRESENCE_OPERATORS:
        _validate_operator_values(errors, path, operator, values)
    else:
        errors.invalid(f"{path}.operator", operator, _BAD_OPERATOR)
    errors.invalid_each(f"{path}.key", requirement.key, key_errors(requirement.key))
    if not any_value:
        for i, value in enumerate(values):
            errors.invalid_each(f"{path}.values[{i}]", value, value_errors(value))


def _validate_node_field_requirement(
    errors: FieldErrors, path: str, requirement: v1.NodeSelectorRequirement
) -> None:
    values = requirement.values
    if requirement.operator not in _SET_OPERATORS:
        errors.invalid(f"{path}.operator", requirement.operator, _BAD_OPERATOR)
    elif len(values) != 1:
        errors.required(
            f"{path}.values",
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )
    if requirement.key != "metadata.name":
        errors.invalid(f"{path}.key", requirement.key, "not a valid field selector key")
    else:
        for i, value in enumerate(values):
            errors.invalid_each(f"{path}.values[{i}]", value, names.dns1123_subdomain(value))
