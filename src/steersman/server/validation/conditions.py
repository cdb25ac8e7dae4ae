"""Conditions of the newer sort, which are the same for every kind."""

from __future__ import annotations

import re

from steersman.api.generated.meta_v1 import Condition
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors

_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason = re.compile(_REASON).fullmatch
_REASON_WRONG = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  "
    "or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    f"'{_REASON}')"
)


def check(errors: FieldErrors, path: str, conditions: tuple[Condition, ...]) -> None:
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        at = f"{path}[{i}]"
        if condition.type in seen:
            errors.duplicate(f"{at}.type", condition.type)
        seen.add(condition.type)
        errors.invalid_each(f"{at}.type", condition.type, names.qualified(condition.type))
        if condition.status not in _STATUSES:
            errors.not_supported(f"{at}.status", condition.status, _STATUSES)
        if condition.observedGeneration < 0:
            least = "must be greater than or equal to zero"
            errors.invalid(f"{at}.observedGeneration", condition.observedGeneration, least)
        if condition.lastTransitionTime is None:
            errors.required(f"{at}.lastTransitionTime")
        if not condition.reason:
            errors.required(f"{at}.reason")
        else:
            if not _is_reason(condition.reason):
                errors.invalid(f"{at}.reason", condition.reason, _REASON_WRONG)
            if len(condition.reason) > 1024:
                errors.too_long(f"{at}.reason", 1024)
        if len(condition.message) > 32 * 1024:
            errors.too_long(f"{at}.message", 32 * 1024)
