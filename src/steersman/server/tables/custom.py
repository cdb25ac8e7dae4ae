"""Printers of custom resources, from the additionalPrinterColumns of their definitions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from steersman.api.generated.apiextensions_v1 import CustomResourceColumnDefinition
from steersman.server.tables.cells import age
from steersman.server.tables.jsonpath import Path, compile_path
from steersman.server.tables.printer import NAME, Cell, Column, Printer

_AGE_COLUMN = CustomResourceColumnDefinition(name="Age", type="date", jsonPath=".metadata.creationTimestamp")


def custom_printer(definitions: Sequence[CustomResourceColumnDefinition]) -> Printer:
    """The printer for these ``additionalPrinterColumns``; without any, it shows the age.

    A column with an invalid path is left out, and so are those after it.
    """
    columns: list[Column] = [NAME]
    paths: list[tuple[str, Path]] = []
    for definition in definitions or (_AGE_COLUMN,):
        try:
            paths.append((definition.type, compile_path(definition.jsonPath)))
        except ValueError:
            break
        description = (
            definition.description
            or f"Custom resource definition column (in JSONPath format): {definition.jsonPath}"
        )
        # differs: the default column has no description here.
        columns.append(
            Column(
                definition.name,
                definition.type,
                definition.format,
                "" if definition is _AGE_COLUMN else description,
                definition.priority,
            )
        )

    def cells(obj: Any, now: datetime) -> list[Cell]:
        document = obj if isinstance(obj, Mapping) else msgspec.to_builtins(obj)
        name = document.get("metadata", {}).get("name", "")
        return [name, *(_custom_cell(type_, path, document, now) for type_, path in paths)]

    return Printer(tuple(columns), cells)


def _custom_cell(type_: str, path: Path, document: Mapping[str, Any], now: datetime) -> Cell:
    try:
        values = path.find(document)
    except ValueError:
        return None
    if not values:
        return None
    # Of several values the first is shown.
    value = values[0]
    match type_, value:
        case "string", _:
            return format_value(value)
        case "boolean", bool():
            return value
        case (("integer" | "number" | "date"), bool()):
            return None
        case "integer", int() | float():
            return int(value) if math.isfinite(value) else None
        case "number", int() | float():
            return value
        case "date", str():
            return _format_age(value, now)
    return None


def format_value(value: Any) -> str:
    """A value as kubectl prints it: strings as they are, objects and lists as JSON."""
    match value:
        case str():
            return value
        case None:
            return "<no value>"
        case bool():
            return "true" if value else "false"
        case float():
            return _format_float(value)
        case int():
            return str(value) if -(2**63) <= value < 2**63 else _format_float(float(value))
    encoded = json.dumps(
        _with_whole_numbers(value), separators=(",", ":"), sort_keys=True, ensure_ascii=False
    )
    for char in "<>&\u2028\u2029":
        encoded = encoded.replace(char, f"\\u{ord(char):04x}")
    return encoded


def _format_float(value: float) -> str:
    """A float as Go prints it: with an exponent from a million on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    exact = Decimal(repr(value))
    if exact and not -4 <= exact.adjusted() < 6:
        mantissa = format(exact.scaleb(-exact.adjusted()).normalize(), "f")
        return f"{mantissa}e{exact.adjusted():+03d}"
    return format(exact.normalize(), "f")


def _with_whole_numbers(value: Any) -> Any:
    """The same value with integral floats as integers, since JSON does not distinguish them."""
    if isinstance(value, Mapping):
        return {key: _with_whole_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def _format_age(value: str, now: datetime) -> str:
    if value in ("", "null"):
        return "<unknown>"
    try:
        timestamp = msgspec.convert(value, datetime, strict=True)
    except msgspec.ValidationError:
        return "<invalid>"
    return "<invalid>" if timestamp.tzinfo is None else age(timestamp.astimezone(UTC), now)
