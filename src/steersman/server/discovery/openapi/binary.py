"""``/openapi/v2`` as protobuf, which is how kubectl asks for it when it checks a ``List`` by itself.

The messages are those of gnostic's OpenAPI v2, of which only what describes objects is written.

differs: it has no paths; who wants those can have them as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from struct import pack
from typing import Any

import msgspec

ACCEPTED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""How clients ask for it."""
RETURNED = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""What they are told that it is: there may be no ``@`` in there."""

Document = Mapping[str, Any]


def document(info: Mapping[str, str], definitions: Mapping[str, Document]) -> bytes:
    """All definitions as a message ``Document``."""
    told = _text(1, info["title"]) + _text(2, info["version"])
    return _text(1, "2.0") + _bytes(2, told) + _bytes(9, _named(definitions))


def _named(found: Mapping[str, Document]) -> bytes:
    """A map of names to schemas."""
    return b"".join(_bytes(1, _text(1, name) + _bytes(2, _schema(found[name]))) for name in sorted(found))


def _schema(schema: Document) -> bytes:
    made: list[bytes] = []
    for name, value in schema.items():
        write = _FIELDS.get(name)
        if write is not None:
            made.append(write(value))
        elif name.startswith("x-"):
            made.append(_bytes(31, _text(1, name) + _bytes(2, _any(value))))
    return b"".join(made)


# -- fields -----------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    made = bytearray()
    value &= 0xFFFF_FFFF_FFFF_FFFF
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode())


def _number(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + pack("<d", value)


def _count(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(int(value))


def _any(value: Any) -> bytes:
    """Any value, as text: JSON is YAML."""
    return _text(2, msgspec.json.encode(value).decode())


def _each(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_text(number, value) for value in values)


def _additional(value: Any) -> bytes:
    return _bytes(21, _count(2, value) if isinstance(value, bool) else _bytes(1, _schema(value)))


def _types(value: Any) -> bytes:
    return _bytes(22, _each(1, [value] if isinstance(value, str) else value))


def _items(value: Any) -> bytes:
    found = value if isinstance(value, list | tuple) else (value,)
    return _bytes(23, b"".join(_bytes(1, _schema(each)) for each in found))


def _as(write: Callable[[int, Any], bytes], number: int) -> Callable[[Any], bytes]:
    return lambda value: write(number, value)


_FIELDS: Mapping[str, Callable[[Any], bytes]] = {
    "$ref": _as(_text, 1),
    "format": _as(_text, 2),
    "title": _as(_text, 3),
    "description": _as(_text, 4),
    "default": lambda value: _bytes(5, _any(value)),
    "multipleOf": _as(_number, 6),
    "maximum": _as(_number, 7),
    "exclusiveMaximum": _as(_count, 8),
    "minimum": _as(_number, 9),
    "exclusiveMinimum": _as(_count, 10),
    "maxLength": _as(_count, 11),
    "minLength": _as(_count, 12),
    "pattern": _as(_text, 13),
    "maxItems": _as(_count, 14),
    "minItems": _as(_count, 15),
    "uniqueItems": _as(_count, 16),
    "maxProperties": _as(_count, 17),
    "minProperties": _as(_count, 18),
    "required": _as(_each, 19),
    "enum": lambda values: b"".join(_bytes(20, _any(value)) for value in values),
    "additionalProperties": _additional,
    "type": _types,
    "items": _items,
    "allOf": lambda found: b"".join(_bytes(24, _schema(each)) for each in found),
    "properties": lambda found: _bytes(25, _named(found)),
    "example": lambda value: _bytes(30, _any(value)),
}
"""What schemas are made of, by its name in JSON."""
