"""Custom resources: their definitions say what to show, as paths into the document."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from steersman.api.generated.apiextensions_v1 import CustomResourceColumnDefinition
from steersman.server.tables.age import since
from steersman.server.tables.jsonpath import Path, compile_path
from steersman.server.tables.printer import NAME, Cell, Column, Printer

_AGE = CustomResourceColumnDefinition(name="Age", type="date", jsonPath=".metadata.creationTimestamp")


def custom_printer(definitions: Sequence[CustomResourceColumnDefinition]) -> Printer:
    """How a custom resource with these ``additionalPrinterColumns`` is shown: by its age, where there are none.

    A column whose path makes no sense ends the table before it.
    """
    columns: list[Column] = [NAME]
    paths: list[tuple[str, Path]] = []
    for each in definitions or (_AGE,):
        try:
            paths.append((each.type, compile_path(each.jsonPath)))
        except ValueError:
            break
        said = each.description or f"Custom resource definition column (in JSONPath format): {each.jsonPath}"
        # differs: the column that stands in for none has no description here.
        columns.append(Column(each.name, each.type, each.format, "" if each is _AGE else said, each.priority))

    def cells(obj: Any, now: datetime) -> list[Cell]:
        document = obj if isinstance(obj, Mapping) else msgspec.to_builtins(obj)
        name = document.get("metadata", {}).get("name", "")
        return [name, *(_cell(type_, path, document, now) for type_, path in paths)]

    return Printer(tuple(columns), cells)


def _cell(type_: str, path: Path, document: Mapping[str, Any], now: datetime) -> Cell:
    try:
        found = path.find(document)
    except ValueError:
        return None
    if not found:
        return None
    # Paths that lead to several values show the first.
    value = found[0]
    match type_, value:
        case "string", _:
            return text(value)
        case "boolean", bool():
            return value
        case (("integer" | "number" | "date"), bool()):
            return None
        case "integer", int() | float():
            return int(value) if math.isfinite(value) else None
        case "number", int() | float():
            return value
        case "date", str():
            return _age(value, now)
    return None


def text(value: Any) -> str:
    """A value the way kubectl prints it: text as it is, and what has parts as JSON."""
    match value:
        case str():
            return value
        case None:
            return "<no value>"
        case bool():
            return "true" if value else "false"
        case float():
            return _float(value)
        case int():
            return str(value) if -(2**63) <= value < 2**63 else _float(float(value))
    written = json.dumps(_plain(value), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return written


def _float(value: float) -> str:
    """A fraction the way Go prints it: with an exponent from a million on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    exact = Decimal(repr(value))
    if exact and not -4 <= exact.adjusted() < 6:
        mantissa = format(exact.scaleb(-exact.adjusted()).normalize(), "f")
        return f"{mantissa}e{exact.adjusted():+03d}"
    return format(exact.normalize(), "f")


def _plain(value: Any) -> Any:
    """The same with whole numbers written as such: JSON does not tell them apart."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def _age(value: str, now: datetime) -> str:
    if value in ("", "null"):
        return "<unknown>"
    try:
        then = msgspec.convert(value, datetime, strict=True)
    except msgspec.ValidationError:
        return "<invalid>"
    return "<invalid>" if then.tzinfo is None else since(then.astimezone(UTC), now)
