"""Decoding of protobuf messages into JSON documents, by the field numbers in ``fields.json``.

``tools/generate_protobuf.py`` writes that file. Unknown fields are skipped, as upstream does. A repeated
occurrence of a singular field replaces the former value, or is merged into it where it is a message.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from steersman.api.go_yaml import MalformedDocument
from steersman.api.nesting import MAX_DEPTH
from steersman.server.codec.json_yaml import decode_json
from steersman.server.codec.protobuf.wire import (
    BYTES,
    FIXED64,
    VARINT,
    FieldBudget,
    MalformedMessage,
    read_double,
    read_fields,
    read_string,
    read_varints,
    to_signed,
)


class Field(msgspec.Struct, frozen=True):
    """A field of a message."""

    name: str
    """The name in JSON."""
    type: str
    """A scalar type, a type with its own JSON form, or the name of a message."""
    repeated: bool = False
    map: bool = False
    inline: bool = False
    """Whether JSON has its fields in the outer message."""
    drops_zero: bool = False
    """Whether JSON omits it where it is zero, which protobuf does not."""
    pointer: bool = False
    """Whether it is a pointer in Go: the others are encoded also where they are zero."""


@cache
def _field_table() -> dict[str, dict[str, list[str]]]:
    raw = (Path(__file__).parent / "fields.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, dict[str, list[str]]])


def is_known_message(message: str) -> bool:
    """Whether a message exists, such as ``apps_v1.Deployment``."""
    return message in _field_table()


@cache
def fields_of_message(message: str) -> Mapping[int, Field]:
    """The fields of a message by number."""
    return {int(number): _parse_field(*row) for number, row in _field_table()[message].items()}


def _parse_field(name: str, type_: str, flags: str = "") -> Field:
    return Field(name, type_, "r" in flags, "m" in flags, "i" in flags, "z" in flags, "p" in flags)


def decode_message(name: str, data: memoryview, budget: FieldBudget, depth: int = 0) -> dict[str, Any]:
    """Decodes a message by its name, such as ``apps_v1.Deployment``. Raises `MalformedMessage`."""
    document: dict[str, Any] = {}
    _decode_into(document, name, data, depth, budget)
    return document


def _decode_into(
    document: dict[str, Any], name: str, data: memoryview, depth: int, budget: FieldBudget
) -> None:
    if depth > MAX_DEPTH:
        raise MalformedMessage("exceeded max depth")
    fields = fields_of_message(name)
    for number, wire_type, value, chunk in read_fields(data, budget):
        field = fields.get(number)
        if field is None:
            continue
        if field.map:
            _set_entry(document.setdefault(field.name, {}), field, wire_type, chunk, depth, budget)
        elif field.repeated:
            _append_item(document.setdefault(field.name, []), field, wire_type, value, chunk, depth, budget)
        elif field.inline:
            _check_wire_type(field, wire_type, BYTES)
            _decode_into(document, field.type, chunk, depth + 1, budget)
        else:
            _set_field(document, field, wire_type, value, chunk, depth, budget)


def _set_field(
    document: dict[str, Any],
    field: Field,
    wire_type: int,
    value: int,
    chunk: memoryview,
    depth: int,
    budget: FieldBudget,
) -> None:
    scalar = _SCALARS.get(field.type)
    if scalar is not None:
        expected, read = scalar
        _check_wire_type(field, wire_type, expected)
        decoded = read(value, chunk)
        if field.drops_zero and not decoded:
            document.pop(field.name, None)
        else:
            document[field.name] = decoded
        return
    _check_wire_type(field, wire_type, BYTES)
    decode = _VALUE_MESSAGES.get(field.type)
    before = document.get(field.name)
    if decode is None and isinstance(before, dict) and field.type not in _UNION_MESSAGES:
        _decode_into(before, field.type, chunk, depth + 1, budget)
        return
    decoded = _decode_value(field, chunk, depth, budget)
    if decoded is None:
        # A zero time is an empty message.
        document.pop(field.name, None)
    else:
        document[field.name] = decoded


def _append_item(
    document: list[Any],
    field: Field,
    wire_type: int,
    value: int,
    chunk: memoryview,
    depth: int,
    budget: FieldBudget,
) -> None:
    scalar = _SCALARS.get(field.type)
    if scalar is None:
        _check_wire_type(field, wire_type, BYTES)
        document.append(_decode_value(field, chunk, depth, budget))
        return
    expected, read = scalar
    if wire_type == BYTES and expected == VARINT:
        document.extend([read(number, chunk) for number in read_varints(chunk, budget)])
        return
    _check_wire_type(field, wire_type, expected)
    document.append(read(value, chunk))


def _set_entry(
    document: dict[str, Any], field: Field, wire_type: int, data: memoryview, depth: int, budget: FieldBudget
) -> None:
    """Decodes an entry of a map: a message with a key and a value, either of which is absent where it is zero."""
    _check_wire_type(field, wire_type, BYTES)
    key, value, chunk = "", 0, data[:0]
    scalar = _SCALARS.get(field.type)
    for number, entry_wire_type, varint, part in read_fields(data, budget):
        if number == 1:
            _check_wire_type(field, entry_wire_type, BYTES)
            key = read_string(part)
        elif number == 2:
            _check_wire_type(field, entry_wire_type, BYTES if scalar is None else scalar[0])
            value, chunk = varint, part
    document[key] = (
        scalar[1](value, chunk) if scalar is not None else _decode_value(field, chunk, depth, budget)
    )


def _check_wire_type(field: Field, wire_type: int, expected: int) -> None:
    if wire_type != expected:
        raise MalformedMessage(f"proto: wrong wireType = {wire_type} for field {_go_name(field.name)}")


def _go_name(name: str) -> str:
    """A field by its name in Go."""
    return _GO_NAMES.get(name) or f"{name[:1].upper()}{name[1:]}"


_GO_NAMES = {"metadata": "ObjectMeta", "uid": "UID", "apiVersion": "APIVersion", "url": "URL"}


def _decode_value(field: Field, data: memoryview, depth: int, budget: FieldBudget) -> Any:
    decode = _VALUE_MESSAGES.get(field.type)
    if decode is not None:
        return decode(data, budget)
    document = decode_message(field.type, data, budget, depth + 1)
    choose = _UNION_MESSAGES.get(field.type)
    return document if choose is None else choose(document)


# -- messages that are no objects in JSON -----------------------------------------------------


def _decode_time(data: memoryview, budget: FieldBudget, digits: int) -> str | None:
    """An RFC 3339 time in seconds or microseconds, truncated; None for the zero time."""
    if not len(data):
        return None
    seconds = nanos = 0
    for number, wire_type, value, _ in read_fields(data, budget):
        if number in (1, 2) and wire_type != VARINT:
            raise MalformedMessage(
                f"wrong wireType = {wire_type} for field {('seconds', 'nanos')[number - 1]}"
            )
        if number == 1:
            seconds = to_signed(value, 64)
        elif number == 2:
            nanos = to_signed(value, 32)
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        if digits:
            # Rounded towards zero, as Go does; negative values count back from the second.
            time += timedelta(microseconds=int(nanos / 1000))
    except OverflowError:
        raise MalformedMessage("a time is outside of the years 1 to 9999") from None
    fraction = f".{time.microsecond:06}" if digits else ""
    return f"{time.year:04}-{time:%m-%dT%H:%M:%S}{fraction}Z"


def _decode_quantity(data: memoryview, budget: FieldBudget) -> str:
    quantity = ""
    for number, wire_type, _, chunk in read_fields(data, budget):
        if number == 1:
            if wire_type != BYTES:
                raise MalformedMessage(f"proto: wrong wireType = {wire_type} for field String")
            quantity = read_string(chunk)
    return quantity or "0"


def _decode_int_or_string(data: memoryview, budget: FieldBudget) -> int | str:
    int_or_string_type, int_value, string_value = 0, 0, ""
    for number, wire_type, value, chunk in read_fields(data, budget):
        if number in (1, 2, 3) and wire_type != (BYTES if number == 3 else VARINT):
            raise MalformedMessage(f"proto: wrong wireType = {wire_type} for an IntOrString")
        if number == 1:
            int_or_string_type = to_signed(value, 64)
        elif number == 2:
            int_value = to_signed(value, 32)
        elif number == 3:
            string_value = read_string(chunk)
    if int_or_string_type not in (0, 1):
        raise MalformedMessage("impossible IntOrString.Type")
    return string_value if int_or_string_type else int_value


def _decode_raw_json(data: memoryview, budget: FieldBudget) -> Any:
    raw = b""
    for number, wire_type, _, chunk in read_fields(data, budget):
        if number == 1:
            if wire_type != BYTES:
                raise MalformedMessage(f"proto: wrong wireType = {wire_type} for field Raw")
            raw = bytes(chunk)
    if not raw:
        return None
    try:
        return decode_json(raw)
    except MalformedDocument as error:
        raise MalformedMessage(f"json parse error: {error}") from None


def _decode_double(value: int, data: memoryview) -> float:
    number = read_double(data)
    if not isfinite(number):
        raise MalformedMessage("a number is not finite")
    return number


_SCALARS: Mapping[str, tuple[int, Callable[[int, memoryview], Any]]] = {
    "string": (BYTES, lambda value, data: read_string(data)),
    "bytes": (BYTES, lambda value, data: b64encode(data).decode()),
    "bool": (VARINT, lambda value, data: value != 0),
    "int32": (VARINT, lambda value, data: to_signed(value, 32)),
    "int64": (VARINT, lambda value, data: to_signed(value, 64)),
    "double": (FIXED64, _decode_double),
}
"""Scalar types: the wire type, and the function that decodes a varint or bytes."""

_VALUE_MESSAGES: Mapping[str, Callable[[memoryview, FieldBudget], Any]] = {
    "time": lambda data, budget: _decode_time(data, budget, 0),
    "microtime": lambda data, budget: _decode_time(data, budget, 6),
    "quantity": _decode_quantity,
    "intorstring": _decode_int_or_string,
    "json": _decode_raw_json,
}
"""Messages that are scalars in JSON, and their decoders."""


def _items(document: dict[str, Any]) -> Any:
    return document.get("items", [])


_UNION_MESSAGES: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "apiextensions_v1.JSONSchemaPropsOrArray": lambda document: (
        document.get("jSONSchemas") or document.get("schema")
    ),
    "apiextensions_v1.JSONSchemaPropsOrBool": lambda document: document.get(
        "schema", document.get("allows", False)
    ),
    "apiextensions_v1.JSONSchemaPropsOrStringArray": lambda document: (
        document.get("property") or document.get("schema")
    ),
    "authentication_v1.ExtraValue": _items,
    "authorization_v1.ExtraValue": _items,
    "certificates_v1.ExtraValue": _items,
    "meta_v1.Verbs": _items,
}
"""Messages that are one of their fields in JSON, and the functions that choose it."""
