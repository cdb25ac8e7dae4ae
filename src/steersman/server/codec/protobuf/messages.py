"""A message of a known type to the JSON document that says the same.

Fields that nobody knows are passed over, as upstream does. A field that comes again replaces the former, or
is merged into it where it is a message.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any, NamedTuple

import msgspec

from steersman.server.codec.json_yaml import MAX_DEPTH, MalformedDocument, decode_json
from steersman.server.codec.protobuf.wire import (
    BYTES,
    FIXED64,
    VARINT,
    MalformedMessage,
    read_double,
    read_fields,
    read_string,
    read_varints,
    to_signed,
)


class Field(NamedTuple):
    """A field of a message."""

    name: str
    """As in JSON."""
    type: str
    """A scalar, one of the few types with a JSON form of their own, or another message."""
    repeated: bool = False
    map: bool = False
    inline: bool = False
    """Whether its fields are those of the outer message in JSON."""
    drops_zero: bool = False
    """Whether JSON leaves it out where it is zero; protobuf has it nevertheless."""


@cache
def _field_table() -> dict[str, dict[str, list[str]]]:
    raw = files("steersman.server.codec.protobuf").joinpath("fields.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, dict[str, list[str]]])


def is_known_message(message: str) -> bool:
    """Whether there is such a message, such as ``apps_v1.Deployment``."""
    return message in _field_table()


@cache
def fields_of_message(message: str) -> Mapping[int, Field]:
    """The fields of a message by their numbers."""
    return {int(number): _parse_field(*row) for number, row in _field_table()[message].items()}


def _parse_field(name: str, type_: str, flags: str = "") -> Field:
    return Field(name, type_, "r" in flags, "m" in flags, "i" in flags, "z" in flags)


def decode_message(name: str, data: memoryview, depth: int = 0) -> dict[str, Any]:
    """A message by its name, such as ``apps_v1.Deployment``. Raises `Malformed`."""
    made: dict[str, Any] = {}
    _decode_into(made, name, data, depth)
    return made


def _decode_into(made: dict[str, Any], name: str, data: memoryview, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise MalformedMessage("exceeded max depth")
    known = fields_of_message(name)
    for number, form, value, chunk in read_fields(data):
        field = known.get(number)
        if field is None:
            continue
        if field.map:
            _set_entry(made.setdefault(field.name, {}), field, form, chunk, depth)
        elif field.repeated:
            _append_item(made.setdefault(field.name, []), field, form, value, chunk, depth)
        elif field.inline:
            _check_wire_type(field, form, BYTES)
            _decode_into(made, field.type, chunk, depth + 1)
        else:
            _set_field(made, field, form, value, chunk, depth)


def _set_field(
    made: dict[str, Any], field: Field, form: int, value: int, chunk: memoryview, depth: int
) -> None:
    scalar = _SCALARS.get(field.type)
    if scalar is not None:
        wanted, read = scalar
        _check_wire_type(field, form, wanted)
        got = read(value, chunk)
        if field.drops_zero and not got:
            made.pop(field.name, None)
        else:
            made[field.name] = got
        return
    _check_wire_type(field, form, BYTES)
    own = _VALUE_MESSAGES.get(field.type)
    before = made.get(field.name)
    if own is None and isinstance(before, dict) and field.type not in _UNION_MESSAGES:
        _decode_into(before, field.type, chunk, depth + 1)
        return
    got = _decode_value(field, chunk, depth)
    if got is None:
        # An instant that was never set is an empty message.
        made.pop(field.name, None)
    else:
        made[field.name] = got


def _append_item(made: list[Any], field: Field, form: int, value: int, chunk: memoryview, depth: int) -> None:
    scalar = _SCALARS.get(field.type)
    if scalar is None:
        _check_wire_type(field, form, BYTES)
        made.append(_decode_value(field, chunk, depth))
        return
    wanted, read = scalar
    if form == BYTES and wanted == VARINT:
        made.extend([read(each, chunk) for each in read_varints(chunk)])
        return
    _check_wire_type(field, form, wanted)
    made.append(read(value, chunk))


def _set_entry(made: dict[str, Any], field: Field, form: int, data: memoryview, depth: int) -> None:
    """One pair of a map: a message of a key and a value, either absent where it is zero."""
    _check_wire_type(field, form, BYTES)
    key, value, chunk = "", 0, data[:0]
    scalar = _SCALARS.get(field.type)
    for number, found, varint, part in read_fields(data):
        if number == 1:
            _check_wire_type(field, found, BYTES)
            key = read_string(part)
        elif number == 2:
            _check_wire_type(field, found, BYTES if scalar is None else scalar[0])
            value, chunk = varint, part
    made[key] = scalar[1](value, chunk) if scalar is not None else _decode_value(field, chunk, depth)


def _check_wire_type(field: Field, form: int, wanted: int) -> None:
    if form != wanted:
        raise MalformedMessage(f"wrong wireType = {form} for field {field.name}")


def _decode_value(field: Field, data: memoryview, depth: int) -> Any:
    own = _VALUE_MESSAGES.get(field.type)
    if own is not None:
        return own(data)
    made = decode_message(field.type, data, depth + 1)
    either = _UNION_MESSAGES.get(field.type)
    return made if either is None else either(made)


# -- what is no object in JSON ----------------------------------------------------------------


def _decode_time(data: memoryview, digits: int) -> str | None:
    """An RFC 3339 time; None where there is none. Whole seconds or microseconds, the rest is cut off."""
    if not len(data):
        return None
    seconds = nanos = 0
    for number, form, value, _ in read_fields(data):
        if number in (1, 2) and form != VARINT:
            raise MalformedMessage(f"wrong wireType = {form} for field {('seconds', 'nanos')[number - 1]}")
        if number == 1:
            seconds = to_signed(value, 64)
        elif number == 2:
            nanos = to_signed(value, 32)
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        if digits:
            # Towards zero, as Go does; what is negative counts back from the second.
            at += timedelta(microseconds=int(nanos / 1000))
    except OverflowError:
        raise MalformedMessage("a time is outside of the years 1 to 9999") from None
    fraction = f".{at.microsecond:06}" if digits else ""
    return f"{at.year:04}-{at:%m-%dT%H:%M:%S}{fraction}Z"


def _decode_quantity(data: memoryview) -> str:
    said = ""
    for number, form, _, chunk in read_fields(data):
        if number == 1:
            if form != BYTES:
                raise MalformedMessage(f"wrong wireType = {form} for field String")
            said = read_string(chunk)
    return said or "0"


def _decode_int_or_string(data: memoryview) -> int | str:
    sort, number_said, text_said = 0, 0, ""
    for number, form, value, chunk in read_fields(data):
        if number in (1, 2, 3) and form != (BYTES if number == 3 else VARINT):
            raise MalformedMessage(f"wrong wireType = {form} for an IntOrString")
        if number == 1:
            sort = to_signed(value, 64)
        elif number == 2:
            number_said = to_signed(value, 32)
        elif number == 3:
            text_said = read_string(chunk)
    if sort not in (0, 1):
        raise MalformedMessage("impossible IntOrString.Type")
    return text_said if sort else number_said


def _decode_raw_json(data: memoryview) -> Any:
    raw = b""
    for number, form, _, chunk in read_fields(data):
        if number == 1:
            if form != BYTES:
                raise MalformedMessage(f"wrong wireType = {form} for field Raw")
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
"""By type: the wire type, and the value from a varint or from bytes."""

_VALUE_MESSAGES: Mapping[str, Callable[[memoryview], Any]] = {
    "time": lambda data: _decode_time(data, 0),
    "microtime": lambda data: _decode_time(data, 6),
    "quantity": _decode_quantity,
    "intorstring": _decode_int_or_string,
    "json": _decode_raw_json,
}
"""Messages that are single values in JSON."""


def _items(made: dict[str, Any]) -> Any:
    return made.get("items", [])


_UNION_MESSAGES: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "apiextensions_v1.JSONSchemaPropsOrArray": lambda made: made.get("jSONSchemas") or made.get("schema"),
    "apiextensions_v1.JSONSchemaPropsOrBool": lambda made: made.get("schema", made.get("allows", False)),
    "apiextensions_v1.JSONSchemaPropsOrStringArray": lambda made: made.get("property") or made.get("schema"),
    "authentication_v1.ExtraValue": _items,
    "authorization_v1.ExtraValue": _items,
    "certificates_v1.ExtraValue": _items,
}
"""Messages that are one of their fields in JSON."""
