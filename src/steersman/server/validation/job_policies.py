"""Validation of a Job's podFailurePolicy and successPolicy, and parsing of completion indexes."""

from __future__ import annotations

from collections.abc import Sequence

from steersman.api.generated import batch_v1
from steersman.api.go_quote import quote
from steersman.server.validation import names
from steersman.server.validation.field_errors import OMITTED, FieldErrors, go_slice, go_struct

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_MAX_RULES = 20
_MAX_INDEXES_BYTES = 64 * 1024


def _valid_values(words: Sequence[str]) -> str:
    quoted = " ".join(map(quote, words))
    return f"valid values: [{quoted}]"


def validate_pod_failure_policy(
    errors: FieldErrors, path: str, spec: batch_v1.JobSpec, policy: batch_v1.PodFailurePolicy
) -> None:
    rules = policy.rules or ()
    if len(rules) > _MAX_RULES:
        errors.too_many(f"{path}.rules", len(rules), _MAX_RULES)
    template = spec.template.spec
    container_names = [container.name for container in (*template.containers, *template.initContainers)]
    for i, rule in enumerate(rules):
        _validate_failure_rule(errors, f"{path}.rules[{i}]", spec, rule, container_names)


def _validate_failure_rule(
    errors: FieldErrors,
    path: str,
    spec: batch_v1.JobSpec,
    rule: batch_v1.PodFailurePolicyRule,
    container_names: Sequence[str],
) -> None:
    if not rule.action:
        errors.required(f"{path}.action", _valid_values(_ACTIONS))
    elif rule.action == "FailIndex":
        if spec.backoffLimitPerIndex is None:
            errors.invalid(f"{path}.action", rule.action, "requires the backoffLimitPerIndex to be set")
    elif rule.action not in _ACTIONS:
        errors.not_supported(f"{path}.action", rule.action, _ACTIONS)
    codes, conditions = rule.onExitCodes, rule.onPodConditions or ()
    if codes is not None:
        _validate_exit_codes(errors, f"{path}.onExitCodes", codes, container_names)
    if conditions:
        _validate_condition_patterns(errors, f"{path}.onPodConditions", conditions)
    if codes is not None and conditions:
        both = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.invalid(path, OMITTED, both)
    if codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.invalid(path, OMITTED, detail)


def _validate_condition_patterns(
    errors: FieldErrors, path: str, patterns: Sequence[batch_v1.PodFailurePolicyOnPodConditionsPattern]
) -> None:
    if len(patterns) > _MAX_RULES:
        errors.too_many(path, len(patterns), _MAX_RULES)
    for i, pattern in enumerate(patterns):
        errors.invalid_each(f"{path}[{i}].type", pattern.type, names.qualified_name(pattern.type))
        if not pattern.status:
            errors.required(f"{path}[{i}].status", _valid_values(_STATUSES))
        elif pattern.status not in _STATUSES:
            errors.not_supported(f"{path}[{i}].status", pattern.status, _STATUSES)


def _validate_exit_codes(
    errors: FieldErrors,
    path: str,
    codes: batch_v1.PodFailurePolicyOnExitCodesRequirement,
    container_names: Sequence[str],
) -> None:
    if not codes.operator:
        errors.required(f"{path}.operator", _valid_values(_OPERATORS))
    elif codes.operator not in _OPERATORS:
        errors.not_supported(f"{path}.operator", codes.operator, _OPERATORS)
    if codes.containerName is not None and codes.containerName not in container_names:
        unknown = "must be one of the container or initContainer names in the pod template"
        errors.invalid(f"{path}.containerName", codes.containerName, unknown)
    values = codes.values or ()
    at = f"{path}.values"
    if not values:
        errors.invalid(at, values, "at least one value is required")
    elif len(values) > 255:
        errors.too_many(at, len(values), 255)
    for i, value in enumerate(values):
        if codes.operator == "In" and value == 0:
            errors.invalid(f"{at}[{i}]", value, "must not be 0 for the In operator")
        if value in values[:i]:
            errors.duplicate(f"{at}[{i}]", value)
    if list(values) != sorted(values):
        errors.invalid(at, values, "must be ordered")


def validate_success_policy(
    errors: FieldErrors, path: str, spec: batch_v1.JobSpec, policy: batch_v1.SuccessPolicy
) -> None:
    rules = policy.rules or ()
    if spec.completionMode != "Indexed":
        shown = go_slice(
            go_struct(SucceededIndexes=rule.succeededIndexes, SucceededCount=rule.succeededCount)
            for rule in rules
        )
        errors.invalid(path, go_struct(Rules=shown), "requires indexed completion mode")
        return
    if not rules:
        some = "at least one rules must be specified when the successPolicy is specified"
        errors.required(f"{path}.rules", some)
    if len(rules) > _MAX_RULES:
        errors.too_many(f"{path}.rules", len(rules), _MAX_RULES)
    for i, rule in enumerate(rules):
        _validate_success_rule(errors, f"{path}.rules[{i}]", rule, spec.completions or 0)


def _validate_success_rule(
    errors: FieldErrors, path: str, rule: batch_v1.SuccessPolicyRule, completions: int
) -> None:
    indexes, count = rule.succeededIndexes, rule.succeededCount
    if count is None and indexes is None:
        some = "at least one of succeededCount or succeededIndexes must be specified"
        errors.required(path, some)
    total = 0
    if indexes is not None:
        if len(indexes) > _MAX_INDEXES_BYTES:
            errors.too_long(f"{path}.succeededIndexes", _MAX_INDEXES_BYTES)
        try:
            total = count_indexes(indexes, completions)
        except ValueError as error:
            detail = f"error parsing succeededIndexes: {error}"
            errors.invalid(f"{path}.succeededIndexes", indexes, detail)
    if count is None:
        return
    at = f"{path}.succeededCount"
    errors.nonnegative(at, count)
    if count > completions:
        most = f"must be less than or equal to {completions} (the number of specified completions)"
        errors.invalid(at, count, most)
    if indexes is not None and count > total:
        errors.invalid(
            at,
            count,
            f"must be less than or equal to {total} (the number of indexes in the specified "
            "succeededIndexes field)",
        )


# -- indexes ----------------------------------------------------------------------------------


def count_indexes(text: str, completions: int) -> int:
    """The number of indexes in a text such as ``1,3-5``. Raises `ValueError` where it is malformed."""
    if not text:
        return 0
    last: int | None = None
    total = 0
    for interval in text.split(","):
        start, end = parse_interval(interval, completions)
        if last is not None and last >= start:
            raise ValueError(f"non-increasing order, previous: {last}, current: {start}")
        total += end - start + 1
        last = end
    return total


def parse_interval(text: str, completions: int) -> tuple[int, int]:
    """The first and the last index of an interval such as ``3-5``. Raises `ValueError` where it is malformed."""
    parts = text.split("-")
    if len(parts) > 2:
        raise ValueError(
            f'the fragment "{text}" violates the requirement that an index interval can have at most two '
            "parts separated by '-'"
        )
    numbers = [_parse_index(part, completions) for part in parts]
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise ValueError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]


def _parse_index(text: str, completions: int) -> int:
    digits = text.removeprefix("+")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if int(digits) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return int(digits)
