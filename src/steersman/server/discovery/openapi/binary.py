"""Encoding of ``/openapi/v2`` as protobuf, which kubectl requests for client-side validation of a ``List``.

The messages are gnostic's OpenAPI v2; only the parts that describe objects are encoded.

differs: the document has no paths; the JSON one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from struct import pack
from typing import Any

import msgspec

ACCEPT_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""The media type in Accept headers."""
CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The media type in Content-Type headers, where ``@`` is not allowed."""

Document = Mapping[str, Any]


def encode_openapi_v2(info: Mapping[str, str], definitions: Mapping[str, Document]) -> bytes:
    """Encodes all definitions as a ``Document`` message."""
    info_message = _string_field(1, info["title"]) + _string_field(2, info["version"])
    return (
        _string_field(1, "2.0") + _bytes_field(2, info_message) + _bytes_field(9, _named_schemas(definitions))
    )


def _named_schemas(schemas: Mapping[str, Document]) -> bytes:
    """Encodes a map of names to schemas."""
    return b"".join(
        _bytes_field(1, _string_field(1, name) + _bytes_field(2, _schema(schemas[name])))
        for name in sorted(schemas)
    )


def _schema(schema: Document) -> bytes:
    encoded: list[bytes] = []
    for name, value in schema.items():
        encode = _FIELDS.get(name)
        if encode is not None:
            encoded.append(encode(value))
        elif name.startswith("x-"):
            encoded.append(_bytes_field(31, _string_field(1, name) + _bytes_field(2, _any_message(value))))
    return b"".join(encoded)


# -- fields -----------------------------------------------------------------------------------


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    value &= 0xFFFF_FFFF_FFFF_FFFF
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _bytes_field(number: int, data: bytes) -> bytes:
    return _encode_varint(number << 3 | 2) + _encode_varint(len(data)) + data


def _string_field(number: int, text: str) -> bytes:
    return _bytes_field(number, text.encode())


def _double_field(number: int, value: float) -> bytes:
    return _encode_varint(number << 3 | 1) + pack("<d", value)


def _varint_field(number: int, value: int) -> bytes:
    return _encode_varint(number << 3) + _encode_varint(int(value))


def _any_message(value: Any) -> bytes:
    """Encodes an ``Any`` message, whose YAML text is JSON."""
    return _string_field(2, msgspec.json.encode(value).decode())


def _string_fields(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_string_field(number, value) for value in values)


def _additional_properties(value: Any) -> bytes:
    return _bytes_field(
        21, _varint_field(2, value) if isinstance(value, bool) else _bytes_field(1, _schema(value))
    )


def _types(value: Any) -> bytes:
    return _bytes_field(22, _string_fields(1, [value] if isinstance(value, str) else value))


def _items(value: Any) -> bytes:
    schemas = value if isinstance(value, list | tuple) else (value,)
    return _bytes_field(23, b"".join(_bytes_field(1, _schema(schema)) for schema in schemas))


def _field(encode: Callable[[int, Any], bytes], number: int) -> Callable[[Any], bytes]:
    return lambda value: encode(number, value)


_FIELDS: Mapping[str, Callable[[Any], bytes]] = {
    "$ref": _field(_string_field, 1),
    "format": _field(_string_field, 2),
    "title": _field(_string_field, 3),
    "description": _field(_string_field, 4),
    "default": lambda value: _bytes_field(5, _any_message(value)),
    "multipleOf": _field(_double_field, 6),
    "maximum": _field(_double_field, 7),
    "exclusiveMaximum": _field(_varint_field, 8),
    "minimum": _field(_double_field, 9),
    "exclusiveMinimum": _field(_varint_field, 10),
    "maxLength": _field(_varint_field, 11),
    "minLength": _field(_varint_field, 12),
    "pattern": _field(_string_field, 13),
    "maxItems": _field(_varint_field, 14),
    "minItems": _field(_varint_field, 15),
    "uniqueItems": _field(_varint_field, 16),
    "maxProperties": _field(_varint_field, 17),
    "minProperties": _field(_varint_field, 18),
    "required": _field(_string_fields, 19),
    "enum": lambda values: b"".join(_bytes_field(20, _any_message(value)) for value in values),
    "additionalProperties": _additional_properties,
    "type": _types,
    "items": _items,
    "allOf": lambda schemas: b"".join(_bytes_field(24, _schema(schema)) for schema in schemas),
    "properties": lambda schemas: _bytes_field(25, _named_schemas(schemas)),
    "example": lambda value: _bytes_field(30, _any_message(value)),
}
"""The encoders of a schema's fields, by their names in JSON."""
