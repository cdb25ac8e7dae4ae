"""A message of a known type to the JSON document that says the same.

Fields that nobody knows are passed over, as upstream does. A field that comes again replaces the former, or
is merged into it where it is a message.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

from steersman.server.codec.json_yaml import DEEPEST, Unreadable, json_document
from steersman.server.codec.protobuf.fields import Field, fields
from steersman.server.codec.protobuf.wire import (
    BYTES,
    FIXED64,
    VARINT,
    Malformed,
    double,
    parts,
    signed,
    text,
    varints,
)


def message(name: str, data: memoryview, depth: int = 0) -> dict[str, Any]:
    """A message by its name, such as ``apps_v1.Deployment``. Raises `Malformed`."""
    made: dict[str, Any] = {}
    _into(made, name, data, depth)
    return made


def _into(made: dict[str, Any], name: str, data: memoryview, depth: int) -> None:
    if depth > DEEPEST:
        raise Malformed("exceeded max depth")
    known = fields(name)
    for number, form, value, chunk in parts(data):
        field = known.get(number)
        if field is None:
            continue
        if field.map:
            _entry(made.setdefault(field.name, {}), field, form, chunk, depth)
        elif field.repeated:
            _append(made.setdefault(field.name, []), field, form, value, chunk, depth)
        elif field.inline:
            _expect(field, form, BYTES)
            _into(made, field.type, chunk, depth + 1)
        else:
            _set(made, field, form, value, chunk, depth)


def _set(made: dict[str, Any], field: Field, form: int, value: int, chunk: memoryview, depth: int) -> None:
    scalar = _SCALARS.get(field.type)
    if scalar is not None:
        wanted, read = scalar
        _expect(field, form, wanted)
        got = read(value, chunk)
        if field.drops_zero and not got:
            made.pop(field.name, None)
        else:
            made[field.name] = got
        return
    _expect(field, form, BYTES)
    own = _FORMS.get(field.type)
    before = made.get(field.name)
    if own is None and isinstance(before, dict) and field.type not in _EITHER:
        _into(before, field.type, chunk, depth + 1)
        return
    got = _one(field, chunk, depth)
    if got is None:
        # An instant that was never set is an empty message.
        made.pop(field.name, None)
    else:
        made[field.name] = got


def _append(made: list[Any], field: Field, form: int, value: int, chunk: memoryview, depth: int) -> None:
    scalar = _SCALARS.get(field.type)
    if scalar is None:
        _expect(field, form, BYTES)
        made.append(_one(field, chunk, depth))
        return
    wanted, read = scalar
    if form == BYTES and wanted == VARINT:
        made.extend([read(each, chunk) for each in varints(chunk)])
        return
    _expect(field, form, wanted)
    made.append(read(value, chunk))


def _entry(made: dict[str, Any], field: Field, form: int, data: memoryview, depth: int) -> None:
    """One pair of a map: a message of a key and a value, either absent where it is zero."""
    _expect(field, form, BYTES)
    key, value, chunk = "", 0, data[:0]
    scalar = _SCALARS.get(field.type)
    for number, found, varint, part in parts(data):
        if number == 1:
            _expect(field, found, BYTES)
            key = text(part)
        elif number == 2:
            _expect(field, found, BYTES if scalar is None else scalar[0])
            value, chunk = varint, part
    made[key] = scalar[1](value, chunk) if scalar is not None else _one(field, chunk, depth)


def _expect(field: Field, form: int, wanted: int) -> None:
    if form != wanted:
        raise Malformed(f"wrong wireType = {form} for field {field.name}")


def _one(field: Field, data: memoryview, depth: int) -> Any:
    own = _FORMS.get(field.type)
    if own is not None:
        return own(data)
    made = message(field.type, data, depth + 1)
    either = _EITHER.get(field.type)
    return made if either is None else either(made)


# -- what is no object in JSON ----------------------------------------------------------------


def _instant(data: memoryview, digits: int) -> str | None:
    """An RFC 3339 time; None where there is none. Whole seconds or microseconds, the rest is cut off."""
    if not len(data):
        return None
    seconds = nanos = 0
    for number, form, value, _ in parts(data):
        if number in (1, 2) and form != VARINT:
            raise Malformed(f"wrong wireType = {form} for field {('seconds', 'nanos')[number - 1]}")
        if number == 1:
            seconds = signed(value, 64)
        elif number == 2:
            nanos = signed(value, 32)
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        if digits:
            # Towards zero, as Go does; what is negative counts back from the second.
            at += timedelta(microseconds=int(nanos / 1000))
    except OverflowError:
        raise Malformed("a time is outside of the years 1 to 9999") from None
    fraction = f".{at.microsecond:06}" if digits else ""
    return f"{at.year:04}-{at:%m-%dT%H:%M:%S}{fraction}Z"


def _quantity(data: memoryview) -> str:
    said = ""
    for number, form, _, chunk in parts(data):
        if number == 1:
            if form != BYTES:
                raise Malformed(f"wrong wireType = {form} for field String")
            said = text(chunk)
    return said or "0"


def _int_or_string(data: memoryview) -> int | str:
    sort, number_said, text_said = 0, 0, ""
    for number, form, value, chunk in parts(data):
        if number in (1, 2, 3) and form != (BYTES if number == 3 else VARINT):
            raise Malformed(f"wrong wireType = {form} for an IntOrString")
        if number == 1:
            sort = signed(value, 64)
        elif number == 2:
            number_said = signed(value, 32)
        elif number == 3:
            text_said = text(chunk)
    if sort not in (0, 1):
        raise Malformed("impossible IntOrString.Type")
    return text_said if sort else number_said


def _json(data: memoryview) -> Any:
    raw = b""
    for number, form, _, chunk in parts(data):
        if number == 1:
            if form != BYTES:
                raise Malformed(f"wrong wireType = {form} for field Raw")
            raw = bytes(chunk)
    if not raw:
        return None
    try:
        return json_document(raw)
    except Unreadable as error:
        raise Malformed(f"json parse error: {error}") from None


def _float(value: int, data: memoryview) -> float:
    number = double(data)
    if not isfinite(number):
        raise Malformed("a number is not finite")
    return number


_SCALARS: Mapping[str, tuple[int, Callable[[int, memoryview], Any]]] = {
    "string": (BYTES, lambda value, data: text(data)),
    "bytes": (BYTES, lambda value, data: b64encode(data).decode()),
    "bool": (VARINT, lambda value, data: value != 0),
    "int32": (VARINT, lambda value, data: signed(value, 32)),
    "int64": (VARINT, lambda value, data: signed(value, 64)),
    "double": (FIXED64, _float),
}
"""By type: the wire type, and the value from a varint or from bytes."""

_FORMS: Mapping[str, Callable[[memoryview], Any]] = {
    "time": lambda data: _instant(data, 0),
    "microtime": lambda data: _instant(data, 6),
    "quantity": _quantity,
    "intorstring": _int_or_string,
    "json": _json,
}
"""Messages that are single values in JSON."""


def _items(made: dict[str, Any]) -> Any:
    return made.get("items", [])


_EITHER: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "apiextensions_v1.JSONSchemaPropsOrArray": lambda made: made.get("jSONSchemas") or made.get("schema"),
    "apiextensions_v1.JSONSchemaPropsOrBool": lambda made: made.get("schema", made.get("allows", False)),
    "apiextensions_v1.JSONSchemaPropsOrStringArray": lambda made: made.get("property") or made.get("schema"),
    "authentication_v1.ExtraValue": _items,
    "authorization_v1.ExtraValue": _items,
    "certificates_v1.ExtraValue": _items,
}
"""Messages that are one of their fields in JSON."""
