"""SchemaViolation: a value that violates its schema, and its field error with upstream's text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from steersman.api.go_quote import quote
from steersman.server.crd.number_validation import number
from steersman.server.status_errors import FieldError
from steersman.server.validation.field_errors import FieldErrors, Verbatim, format_value, go_json


class Missing:
    """The type of `MISSING`."""

    __slots__ = ()


MISSING = Missing()
"""The old value of a value that replaces none."""

NO_FIELD = "<nil>"
"""The field of an error about the object as a whole."""


class SchemaViolation(msgspec.Struct, frozen=True):
    """One violation of a schema by a value."""

    kind: Literal["required", "enum", "long", "many", "type", "invalid", "whole"]
    """``whole`` is reported for the object as a whole, whichever value it is about."""
    path: str
    message: str
    value: Any = ""
    limit: Any = None


Check: TypeAlias = Callable[[Any, str, list[SchemaViolation], Any], int]
"""Checks a value, given its path, the list for violations, and its old value; returns how many checks passed."""


def type_violation(path: str, wanted: str, errors: str) -> SchemaViolation:
    """The violation of a type or format."""
    return SchemaViolation("type", path, f"{path} in body must be of type {wanted}: {quote(errors)}", errors)


def object_violation(path: str, message: str) -> SchemaViolation:
    """The violation of a combinator, such as anyOf."""
    return SchemaViolation("whole", path, f"{quote(path)} {message}")


def field_errors(violations: Sequence[SchemaViolation], under: str = "") -> list[FieldError]:
    """The field errors of violations, without duplicates."""
    errors = FieldErrors()
    first: dict[str, SchemaViolation] = {}
    for violation in violations:
        first.setdefault(violation.message, violation)
    for violation in first.values():
        name = violation.path.removeprefix(".")
        field = (f"{under}.{name}" if under and name else name or under) or NO_FIELD
        match violation.kind:
            case "required":
                errors.required(field)
            case "enum":
                choices = [
                    choice if isinstance(choice, str) else go_json(choice) for choice in violation.limit
                ]
                errors.not_supported(field, _value(violation.value), choices)
            case "long":
                size = "byte" if violation.limit == 1 else "bytes"
                message = f"Too long: may not be more than {violation.limit} {size}"
                errors.append(FieldError("FieldValueTooLong", field, message))
            case "many":
                errors.too_many(field, violation.value, violation.limit)
            case "type":
                message = f"Invalid value: {format_value(violation.value)}: {violation.message}"
                errors.append(FieldError("FieldValueTypeInvalid", field, message))
            case "invalid":
                errors.invalid(field, _value(violation.value), violation.message)
            case "whole":
                errors.invalid(under or NO_FIELD, "", violation.message)
    return errors


def _value(value: Any) -> Any:
    return Verbatim(number(value)) if type(value) is float else value
