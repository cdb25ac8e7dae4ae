"""What is wrong with a value, and how upstream tells of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from steersman.api.go_quote import quote
from steersman.server.crd.number_validation import number
from steersman.server.status_errors import FieldError
from steersman.server.validation.field_errors import FieldErrors, Verbatim, format_value, go_json


class Missing:
    """The type of `MISSING`."""

    __slots__ = ()


MISSING = Missing()
"""Stands for the value that a new one replaces where there was none."""

NOWHERE = "<nil>"
"""The field of a complaint about the whole."""


class Fault(NamedTuple):
    """One thing wrong with a value."""

    sort: Literal["required", "enum", "long", "many", "type", "invalid", "whole"]
    """``whole`` is told of the object as a whole, whichever value it is about."""
    path: str
    says: str
    value: Any = ""
    limit: Any = None


Check: TypeAlias = Callable[[Any, str, list[Fault], Any], int]
"""A value, its path, where to put what is wrong, and the value it replaces; how much was right."""


def mistyped(path: str, wanted: str, errors: str) -> Fault:
    """A value of another type, or a text of another format."""
    return Fault("type", path, f"{path} in body must be of type {wanted}: {quote(errors)}", errors)


def whole(path: str, says: str) -> Fault:
    """A value that fits none of several schemas, or too many of them."""
    return Fault("whole", path, f"{quote(path)} {says}")


def problems(faults: Sequence[Fault], under: str = "") -> list[FieldError]:
    """What is told of some faults; the same is told once."""
    errors = FieldErrors()
    first: dict[str, Fault] = {}
    for fault in faults:
        first.setdefault(fault.says, fault)
    for fault in first.values():
        name = fault.path.removeprefix(".")
        field = (f"{under}.{name}" if under and name else name or under) or NOWHERE
        match fault.sort:
            case "required":
                errors.required(field)
            case "enum":
                choices = [choice if isinstance(choice, str) else go_json(choice) for choice in fault.limit]
                errors.not_supported(field, _value(fault.value), choices)
            case "long":
                size = "byte" if fault.limit == 1 else "bytes"
                says = f"Too long: may not be more than {fault.limit} {size}"
                errors.append(FieldError("FieldValueTooLong", field, says))
            case "many":
                errors.too_many(field, fault.value, fault.limit)
            case "type":
                says = f"Invalid value: {format_value(fault.value)}: {fault.says}"
                errors.append(FieldError("FieldValueTypeInvalid", field, says))
            case "invalid":
                errors.invalid(field, _value(fault.value), fault.says)
            case "whole":
                errors.invalid(under or NOWHERE, "", fault.says)
    return errors


def _value(value: Any) -> Any:
    return Verbatim(number(value)) if type(value) is float else value
