"""FieldErrors collects the field errors of one object, worded as upstream's ``field`` package words them.

A validation function takes the list, the path of a field and the field's value, and appends an error for
each thing wrong. A valid object costs no allocation besides the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from steersman.api.generated.meta_v1 import LabelSelector
from steersman.api.go_quote import quote
from steersman.api.scheme import same_encoding
from steersman.server.status_errors import IMMUTABLE, FieldError

MUST_BE_NONNEGATIVE = "must be greater than or equal to 0"
MUST_BE_POSITIVE = "must be greater than zero"


class Verbatim(str):
    """A value that is already formatted: its text goes into the message unquoted."""

    __slots__ = ()


OMITTED = Verbatim("")
"""Upstream's ``field.OmitValueType``: the message shows no value."""

NULL = Verbatim("null")

MAX_ERRORS = 1000
"""Field errors that are kept of one object.

differs: upstream keeps them all. A body of 3 MB can have more than a hundred thousand, a response of tens of megabytes.
"""


class FieldErrors(list[FieldError]):
    """Upstream's ``field.ErrorList``: field errors in the order they were added, the first `MAX_ERRORS` of them."""

    __slots__ = ()

    def append(self, error: FieldError) -> None:
        if len(self) < MAX_ERRORS:
            super().append(error)

    def invalid(self, path: str, value: object, detail: str) -> None:
        self._add("FieldValueInvalid", path, "Invalid value", value, detail)

    def invalid_each(self, path: str, value: object, details: Iterable[str]) -> None:
        """Adds one error for each detail."""
        for detail in details:
            self.invalid(path, value, detail)

    def required(self, path: str, detail: str = "") -> None:
        message = f"Required value: {detail}" if detail else "Required value"
        self.append(FieldError("FieldValueRequired", path, message))

    def forbidden(self, path: str, detail: str = "") -> None:
        message = f"Forbidden: {detail}" if detail else "Forbidden"
        self.append(FieldError("FieldValueForbidden", path, message))

    def duplicate(self, path: str, value: object, detail: str = "") -> None:
        self._add("FieldValueDuplicate", path, "Duplicate value", value, detail)

    def not_found(self, path: str, value: object, detail: str = "") -> None:
        self._add("FieldValueNotFound", path, "Not found", value, detail)

    def not_supported(self, path: str, value: object, supported: Sequence[str]) -> None:
        choices = ", ".join(quote(choice) for choice in supported)
        self._add("FieldValueNotSupported", path, "Unsupported value", value, f"supported values: {choices}")

    def too_long(self, path: str, max_length: int) -> None:
        """Adds an error for a value of more than ``max_length`` bytes."""
        message = f"Too long: may not be more than {max_length} bytes"
        self.append(FieldError("FieldValueTooLong", path, message))

    def too_many(self, path: str, actual: int, maximum: int) -> None:
        """Adds an error for a list of ``actual`` items where ``maximum`` are allowed."""
        items = "item" if maximum == 1 else "items"
        self._add("FieldValueTooMany", path, "Too many", actual, f"must have at most {maximum} {items}")

    def nonnegative(self, path: str, number: int | None) -> None:
        """Adds an error for a number below zero; None is valid."""
        if number is not None and number < 0:
            self.invalid(path, number, MUST_BE_NONNEGATIVE)

    def positive(self, path: str, number: int) -> None:
        """Adds an error for a number that is not above zero."""
        if number <= 0:
            self.invalid(path, number, MUST_BE_POSITIVE)

    def immutable(self, path: str, new: object, old: object) -> None:
        """Adds an error for a value that changed."""
        if not same_encoding(new, old):
            self.invalid(path, new, IMMUTABLE)

    def enum(self, path: str, value: str, supported: Sequence[str]) -> None:
        """Adds an error for a value that is empty or not among the supported ones."""
        if value not in supported:
            if value:
                self.not_supported(path, value, supported)
            else:
                self.required(path)

    def _add(self, reason: str, path: str, error_type: str, value: object, detail: str) -> None:
        if len(self) >= MAX_ERRORS:
            return
        message = error_type if value is OMITTED else f"{error_type}: {format_value(value)}"
        self.append(FieldError(reason, path, f"{message}: {detail}" if detail else message))


# -- formatted values -------------------------------------------------------------------------


def format_value(value: object) -> str:
    """The form in which a message shows a value."""
    if isinstance(value, str):
        return value if isinstance(value, Verbatim) else quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return go_json(value)


_encoder = msgspec.json.Encoder(order="deterministic", enc_hook=dict)
_HTML_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def go_json(value: object) -> str:
    """JSON as Go's encoder writes it: map keys sorted, HTML characters escaped."""
    text = _encoder.encode(value).decode()
    if "<" in text or ">" in text or "&" in text:
        for char, escape in _HTML_ESCAPES.items():
            text = text.replace(char, escape)
    return text


def go_struct(**fields: object) -> Verbatim:
    """A Go struct as JSON, its fields in the given order and under the given names.

    Upstream's messages show internal types, whose field names may differ from those on the wire.
    """
    return Verbatim("{" + ",".join(f'"{name}":{_element(value)}' for name, value in fields.items()) + "}")


def go_slice(items: Iterable[object]) -> Verbatim:
    """A Go slice as JSON; formatted items keep their form."""
    return Verbatim("[" + ",".join(map(_element, items)) + "]")


def _element(value: object) -> str:
    return str(value) if isinstance(value, Verbatim) else go_json(value)


def format_selector(selector: LabelSelector | None) -> Verbatim:
    """A label selector, matchLabels before matchExpressions."""
    if selector is None:
        return NULL
    fields: dict[str, object] = {}
    if selector.matchLabels:
        fields["matchLabels"] = selector.matchLabels
    if selector.matchExpressions:
        fields["matchExpressions"] = go_slice(
            go_struct(key=e.key, operator=e.operator, **({"values": e.values} if e.values else {}))
            for e in selector.matchExpressions
        )
    return go_struct(**fields)


def format_labels(labels: Mapping[str, str]) -> object:
    """Labels; ``null`` when empty, as Go writes a nil map."""
    return labels or NULL


def format_strings(values: Sequence[str]) -> object:
    """A list of strings; ``null`` when empty, as Go writes a nil slice."""
    return values or NULL


# -- diffs ------------------------------------------------------------------------------------


def format_diff(old: msgspec.Struct, new: msgspec.Struct) -> str:
    """The fields that differ between two structs, as lines of a diff.

    differs: upstream prints a diff of its internal types, in a form that is random on purpose.
    """
    from steersman.server.codec.convert import to_builtins

    lines: list[str] = []
    _append_diff(lines, "", to_builtins(old), to_builtins(new))
    return "".join(f"{line}\n" for line in lines)


_ABSENT = object()


def _append_diff(lines: list[str], path: str, old: object, new: object) -> None:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({**old, **new}):
            at = f"{path}.{key}" if path else key
            _append_diff(lines, at, old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (before, after) in enumerate(zip(old, new, strict=True)):
            _append_diff(lines, f"{path}[{i}]", before, after)
    else:
        for sign, value in (("-", old), ("+", new)):
            if value is not _ABSENT:
                lines.append(f"{sign} {path}: {msgspec.json.encode(value).decode()}")
