"""Documents as Go's converter of unstructured objects reads them, by which strategic merge patches and applies become typed objects.

It is laxer than Go's JSON decoder in numbers (``2.0`` is an integer, and one that is too large for its field wraps around), and has other
words for a value of a wrong type. Used only where a patch has a value that the two read differently.
differs: named string and number types (``v1.RestartPolicy``) are reported as ``string`` and ``int32``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from types import NoneType
from typing import Any, get_args

from steersman.api import go_base64
from steersman.api.generated.merge import Field, fields_of
from steersman.api.kinds import Struct
from steersman.server.codec.go_decode_errors import go_scalar_name, go_value_error, is_bytes, json_type


class ConversionError(ValueError):
    """A value that cannot be converted to the type of its field, in Go's words."""


def is_ambiguous(value: Any) -> bool:
    """Whether a part of a patch has numbers or booleans that Go may convert in another way than Python."""
    if isinstance(value, Mapping):
        return any(map(is_ambiguous, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(is_ambiguous, value))
    return isinstance(value, (bool, float)) or (isinstance(value, int) and not -(2**31) <= value < 2**31)


def malformed(why: str) -> str:
    """The error of a value that its type cannot decode: base64 is decoded by way of JSON."""
    return f"error decoding from json: {why}" if "base64" in why else why


def converted(type_: type[Struct], document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the values that Go's converter makes of them. Raises `ConversionError`."""
    fields = fields_of(type_)
    return {
        name: value if (field := fields.get(name)) is None else _field(type_, field, value, (name,))
        for name, value in document.items()
    }


def _field(owner: type[Struct], field: Field, value: Any, path: tuple[str, ...]) -> Any:
    if value is None:
        return None
    struct = field.struct
    if field.shape == "object" and struct is not None:
        if not isinstance(value, Mapping):
            raise ConversionError(f"cannot restore struct from: {_go_kind(value)}")
        return converted(struct, value)
    if field.shape == "value":
        return _scalar(owner, field.type, value, path)
    if field.shape == "list":
        if not isinstance(value, list):
            raise ConversionError(f"cannot restore slice from {_go_kind(value)}")
        return list(_items(owner, struct, get_args(field.type)[0], value, path))
    if not isinstance(value, Mapping):
        raise ConversionError(f"cannot restore map from {_go_kind(value)}")
    made = _items(owner, struct, get_args(field.type)[1], value.values(), path)
    return dict(zip(value, made, strict=True))


def _items(
    owner: type[Struct], struct: type[Struct] | None, inner: Any, values: Any, path: tuple[str, ...]
) -> Iterator[Any]:
    for item in values:
        if item is None:
            yield None
        elif struct is None:
            yield _scalar(owner, inner, item, path)
        elif isinstance(item, Mapping):
            yield converted(struct, item)
        else:
            raise ConversionError(f"cannot restore struct from: {_go_kind(item)}")


def _scalar(owner: type[Struct], type_: Any, value: Any, path: tuple[str, ...]) -> Any:
    types: frozenset[Any] = frozenset(arm for arm in get_args(type_) if arm is not NoneType)
    types = types or frozenset({type_})
    if types == {str} and is_bytes(owner, path):
        return _bytes(value)
    if types == {str}:
        return _plain(value, str, go_scalar_name(owner, type_, path))
    if types == {bool}:
        return _plain(value, bool, "bool")
    if types == {int}:
        return _integer(value, go_scalar_name(owner, type_, path))
    if datetime in types or {int, str} <= types:
        return _own_decoding(owner, type_, value, path)
    return value


def _plain(value: Any, wanted: type, go_type: str) -> Any:
    if isinstance(value, wanted):
        return value
    if wanted is str and isinstance(value, int) and not isinstance(value, bool):
        # Go could convert an integer to a text, of one character.
        raise ConversionError(f"cannot convert int64 to {go_type}")
    raise ConversionError(f"unrecognized type: {go_type}")


def _integer(value: Any, go_type: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConversionError(f"unrecognized type: {go_type}")
    if isinstance(value, float) and not value.is_integer():
        raise ConversionError(f"cannot convert float64 to {go_type}")
    half = 2**63 if go_type == "int64" else 2**31
    return (int(value) + half) % (2 * half) - half


def _bytes(value: Any) -> str:
    if not isinstance(value, str):
        raise ConversionError(f"cannot restore slice from {_go_kind(value)}")
    try:
        return go_base64.canonical(value)
    except go_base64.CorruptBase64 as error:
        raise ConversionError(malformed(str(error))) from None


def _own_decoding(owner: type[Struct], type_: Any, value: Any, path: tuple[str, ...]) -> Any:
    """A value of a type that decodes its own JSON: a quantity, a time, an IntOrString. Go writes 2.0 as 2 first."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if why := go_value_error(owner, type_, value, path):
        raise ConversionError(why)
    return value


def _go_kind(value: Any) -> str:
    """The kind of a value of a decoded document, as Go's reflection names it."""
    if isinstance(value, (bool, str)):
        return json_type(value)
    if isinstance(value, (int, float)):
        return "float64" if isinstance(value, float) else "int64"
    return "map" if isinstance(value, Mapping) else "slice"
