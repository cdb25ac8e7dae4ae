"""When a Job has failed and when it has succeeded: the rules it may bring along."""

from __future__ import annotations

from collections.abc import Sequence

from steersman.api.generated import batch_v1
from steersman.api.go_quote import quote
from steersman.server.validation import names as text
from steersman.server.validation.field_errors import OMITTED, FieldErrors, go_slice, go_struct

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_RULES = 20
_INDEXES = 64 * 1024


def _choices(words: Sequence[str]) -> str:
    quoted = " ".join(map(quote, words))
    return f"valid values: [{quoted}]"


def failure(
    errors: FieldErrors, path: str, spec: batch_v1.JobSpec, policy: batch_v1.PodFailurePolicy
) -> None:
    rules = policy.rules or ()
    if len(rules) > _RULES:
        errors.too_many(f"{path}.rules", len(rules), _RULES)
    template = spec.template.spec
    names = [container.name for container in (*template.containers, *template.initContainers)]
    for i, rule in enumerate(rules):
        _failure_rule(errors, f"{path}.rules[{i}]", spec, rule, names)


def _failure_rule(
    errors: FieldErrors,
    path: str,
    spec: batch_v1.JobSpec,
    rule: batch_v1.PodFailurePolicyRule,
    names: Sequence[str],
) -> None:
    if not rule.action:
        errors.required(f"{path}.action", _choices(_ACTIONS))
    elif rule.action == "FailIndex":
        if spec.backoffLimitPerIndex is None:
            errors.invalid(f"{path}.action", rule.action, "requires the backoffLimitPerIndex to be set")
    elif rule.action not in _ACTIONS:
        errors.not_supported(f"{path}.action", rule.action, _ACTIONS)
    codes, conditions = rule.onExitCodes, rule.onPodConditions or ()
    if codes is not None:
        _codes(errors, f"{path}.onExitCodes", codes, names)
    if conditions:
        _conditions(errors, f"{path}.onPodConditions", conditions)
    if codes is not None and conditions:
        both = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.invalid(path, OMITTED, both)
    if codes is None and not conditions:
        one = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.invalid(path, OMITTED, one)


def _conditions(
    errors: FieldErrors, path: str, patterns: Sequence[batch_v1.PodFailurePolicyOnPodConditionsPattern]
) -> None:
    if len(patterns) > _RULES:
        errors.too_many(path, len(patterns), _RULES)
    for i, pattern in enumerate(patterns):
        errors.invalid_each(f"{path}[{i}].type", pattern.type, text.qualified(pattern.type))
        if not pattern.status:
            errors.required(f"{path}[{i}].status", _choices(_STATUSES))
        elif pattern.status not in _STATUSES:
            errors.not_supported(f"{path}[{i}].status", pattern.status, _STATUSES)


def _codes(
    errors: FieldErrors,
    path: str,
    codes: batch_v1.PodFailurePolicyOnExitCodesRequirement,
    names: Sequence[str],
) -> None:
    if not codes.operator:
        errors.required(f"{path}.operator", _choices(_OPERATORS))
    elif codes.operator not in _OPERATORS:
        errors.not_supported(f"{path}.operator", codes.operator, _OPERATORS)
    if codes.containerName is not None and codes.containerName not in names:
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


def success(errors: FieldErrors, path: str, spec: batch_v1.JobSpec, policy: batch_v1.SuccessPolicy) -> None:
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
    if len(rules) > _RULES:
        errors.too_many(f"{path}.rules", len(rules), _RULES)
    for i, rule in enumerate(rules):
        _success_rule(errors, f"{path}.rules[{i}]", rule, spec.completions or 0)


def _success_rule(errors: FieldErrors, path: str, rule: batch_v1.SuccessPolicyRule, completions: int) -> None:
    indexes, count = rule.succeededIndexes, rule.succeededCount
    if count is None and indexes is None:
        some = "at least one of succeededCount or succeededIndexes must be specified"
        errors.required(path, some)
    total = 0
    if indexes is not None:
        if len(indexes) > _INDEXES:
            errors.too_long(f"{path}.succeededIndexes", _INDEXES)
        try:
            total = count_indexes(indexes, completions)
        except ValueError as error:
            why = f"error parsing succeededIndexes: {error}"
            errors.invalid(f"{path}.succeededIndexes", indexes, why)
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


def count_indexes(text_: str, completions: int) -> int:
    """How many indexes a text such as ``1,3-5`` names. Raises `ValueError` where it makes no sense."""
    if not text_:
        return 0
    last: int | None = None
    total = 0
    for interval in text_.split(","):
        start, end = interval_of(interval, completions)
        if last is not None and last >= start:
            raise ValueError(f"non-increasing order, previous: {last}, current: {start}")
        total += end - start + 1
        last = end
    return total


def interval_of(text_: str, completions: int) -> tuple[int, int]:
    """The first and the last index of an interval."""
    parts = text_.split("-")
    if len(parts) > 2:
        raise ValueError(
            f'the fragment "{text_}" violates the requirement that an index interval can have at most two '
            "parts separated by '-'"
        )
    numbers = [_index(part, completions) for part in parts]
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise ValueError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]


def _index(text_: str, completions: int) -> int:
    digits = text_.removeprefix("+")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise ValueError(f'cannot convert string to integer for index: "{text_}"')
    if int(digits) >= completions:
        raise ValueError(f'too large index: "{text_}"')
    return int(digits)
