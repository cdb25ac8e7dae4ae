"""Documents of built-in kinds in which every field of every message is set, with values drawn from a counter."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from itertools import count
from typing import Any

from steersman.api.generated import gated_resources, resources
from steersman.api.generated.table import BODIES
from steersman.server.codec.protobuf.messages import Field, fields_of_message, is_known_message

_SCHEMA = "apiextensions_v1.JSONSchemaProps"
_MAX_SCHEMAS = 2


def kinds() -> Iterator[tuple[str, str, str]]:
    """The ``apiVersion``, ``kind`` and message of every kind that protobuf has."""
    for row in (*resources(), *gated_resources()):
        if is_known_message(f"{row.module}.{row.kind}"):
            yield row.api_version, row.kind, f"{row.module}.{row.kind}"
    for (group, version, kind), module in BODIES.items():
        # The object of an event is not JSON in protobuf.
        if is_known_message(f"{module}.{kind}") and kind != "WatchEvent":
            yield f"{group}/{version}" if group else version, kind, f"{module}.{kind}"


def full_document(api_version: str, kind: str, message: str) -> dict[str, Any]:
    """A document with a value in every field."""
    return {"apiVersion": api_version, "kind": kind, **_Sample().message(message)}


class _Sample:
    def __init__(self) -> None:
        self._numbers = count(1)
        self._schemas = 0

    def message(self, message: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for _, field in sorted(fields_of_message(message).items()):
            if field.inline:
                made.update(self.message(field.type))
            elif field.map:
                # Not in the order of their keys.
                values = {f"k{n}": self.value(field) for n in (2, 10, 1)}
                made[field.name] = {key: value for key, value in values.items() if value is not None}
            elif field.repeated:
                made[field.name] = [v for v in (self.value(field), self.value(field)) if v is not None]
            else:
                value = self.value(field)
                if value is not None:
                    made[field.name] = value
        return made

    def value(self, field: Field) -> Any:
        number = next(self._numbers)
        match field.type:
            case "string":
                return f"ä{number}" if number % 7 else "x" * number
            case "bytes":
                return b64encode(b"\x00\xff" * (number % 100)).decode() or "AA=="
            case "bool":
                return number % 2 == 1
            case "int32":
                return number * (-1) ** number
            case "int64":
                return number * 10_000_000_000 * (-1) ** number
            case "double":
                return number / 8
            case "time":
                return f"20{number % 90 + 10}-01-02T03:04:05Z"
            case "microtime":
                return f"2026-01-02T03:04:05.{number:06}Z"
            case "quantity":
                return f"{number}m" if number % 10 else f"{number}Gi"
            case "intorstring":
                return number if number % 2 else f"{number % 100}%"
            case "json":
                return {"b": number, "a": [True, None, "é"]}
        return self.nested(field, number)

    def nested(self, field: Field, number: int) -> Any:
        kind = field.type.partition(".")[2]
        if kind in ("ExtraValue", "Verbs"):
            return ["one", "two"]
        if kind.startswith("JSONSchemaProps"):
            return self.schema(kind, number)
        return self.message(field.type)

    def schema(self, kind: str, number: int) -> Any:
        if kind == "JSONSchemaPropsOrBool" and number % 2:
            return number % 4 == 1
        if kind == "JSONSchemaPropsOrStringArray" and number % 2:
            return ["one", "two"]
        if self._schemas >= _MAX_SCHEMAS:
            return {"type": f"t{number}"} if kind == "JSONSchemaProps" else None
        self._schemas += 1
        made = self.message(_SCHEMA)
        return [made, {"type": "string"}] if kind == "JSONSchemaPropsOrArray" and number % 2 else made
