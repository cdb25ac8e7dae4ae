"""What was found wrong with an object, in the real server's words: a list that knows how to say each thing.

Checks are functions that take such a list, the path of what they look at, and the thing itself, and add
what is wrong with it. A check of something sound touches nothing, so a sound object costs no allocation
besides the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from steersman.api.go_quote import quote
from steersman.server.status_errors import IMMUTABLE, FieldProblem

NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"


class Verbatim(str):
    """A value that is shown as it stands: how the real server prints what has no form on the wire."""

    __slots__ = ()


OMITTED = Verbatim("")
"""For complaints that do not show the value."""


class Found(list[FieldProblem]):
    """Problems in the order they were found."""

    __slots__ = ()

    def invalid(self, path: str, value: object, why: str) -> None:
        self._say("FieldValueInvalid", path, "Invalid value", value, why)

    def each(self, path: str, value: object, whys: Iterable[str]) -> None:
        """The same value is wrong for several reasons; none is the usual number."""
        for why in whys:
            self.invalid(path, value, why)

    def required(self, path: str, why: str = "") -> None:
        self.append(
            FieldProblem("FieldValueRequired", path, f"Required value: {why}" if why else "Required value")
        )

    def forbidden(self, path: str, why: str) -> None:
        self.append(FieldProblem("FieldValueForbidden", path, f"Forbidden: {why}"))

    def duplicate(self, path: str, value: object, why: str = "") -> None:
        self._say("FieldValueDuplicate", path, "Duplicate value", value, why)

    def missing(self, path: str, value: object, why: str = "") -> None:
        """Something is referred to that is not there."""
        self._say("FieldValueNotFound", path, "Not found", value, why)

    def unsupported(self, path: str, value: object, supported: Sequence[str]) -> None:
        choices = ", ".join(quote(choice) for choice in supported)
        self._say("FieldValueNotSupported", path, "Unsupported value", value, f"supported values: {choices}")

    def too_long(self, path: str, most: int) -> None:
        what = f"Too long: may not be more than {most} bytes"
        self.append(FieldProblem("FieldValueTooLong", path, what))

    def too_many(self, path: str, count: int, most: int) -> None:
        items = "item" if most == 1 else "items"
        self._say("FieldValueTooMany", path, "Too many", count, f"must have at most {most} {items}")

    def negative(self, path: str, number: int | None) -> None:
        """A number that may not be below zero."""
        if number is not None and number < 0:
            self.invalid(path, number, NEGATIVE)

    def not_positive(self, path: str, number: int) -> None:
        if number <= 0:
            self.invalid(path, number, NOT_POSITIVE)

    def changed(self, path: str, new: object, old: object) -> None:
        """A field that stays as it was."""
        if new != old:
            self.invalid(path, new, IMMUTABLE)

    def choose(self, path: str, value: str, supported: Sequence[str]) -> None:
        """One of a few words, and not none."""
        if value not in supported:
            if value:
                self.unsupported(path, value, supported)
            else:
                self.required(path)

    def _say(self, reason: str, path: str, what: str, value: object, why: str) -> None:
        told = what if value is OMITTED else f"{what}: {shown(value)}"
        self.append(FieldProblem(reason, path, f"{told}: {why}" if why else told))


# -- values -----------------------------------------------------------------------------------


def shown(value: object) -> str:
    """A value as messages print it."""
    if isinstance(value, str):
        return value if isinstance(value, Verbatim) else quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return json(value)


_encoder = msgspec.json.Encoder(order="deterministic", enc_hook=dict)
_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def json(value: object) -> str:
    """JSON as Go writes it: maps sorted, and safe to paste into a page."""
    text = _encoder.encode(value).decode()
    if "<" in text or ">" in text or "&" in text:
        for char, escape in _HTML.items():
            text = text.replace(char, escape)
    return text


def fields(**values: Any) -> Verbatim:
    """A struct with its fields in this order: where the real server shows a type of its own.

    Where those are known by other names than on the wire, the names are the caller's.
    """
    return Verbatim("{" + ",".join(f'"{name}":{_part(value)}' for name, value in values.items()) + "}")


def listed(items: Iterable[object]) -> Verbatim:
    return Verbatim("[" + ",".join(map(_part, items)) + "]")


def _part(value: object) -> str:
    return str(value) if isinstance(value, Verbatim) else json(value)


def selector(value: Any) -> Verbatim:
    """A label selector, its labels before its expressions."""
    if value is None:
        return Verbatim("null")
    parts: dict[str, Any] = {}
    if value.matchLabels:
        parts["matchLabels"] = value.matchLabels
    if value.matchExpressions:
        parts["matchExpressions"] = listed(
            fields(key=e.key, operator=e.operator, **({"values": e.values} if e.values else {}))
            for e in value.matchExpressions
        )
    return fields(**parts)


def labels(value: Mapping[str, str]) -> object:
    """Labels, or the null the real server shows where there are none."""
    return value or Verbatim("null")


def strings(values: Sequence[str]) -> object:
    """A list, or the null the real server shows for an empty one."""
    return values or Verbatim("null")
