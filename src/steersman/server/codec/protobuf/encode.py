"""Encoding of objects as protobuf, byte for byte as Kubernetes' generated marshalers write them.

Fields are written in the order of their numbers, a singular field that is no pointer in Go also where it is zero, and
the entries of a map by key. The encoder of a message is a Python function that is compiled on first use from the field
numbers in ``fields.json``: a loop over fields takes three times as long. The message of an object is cached by the
object's identity, as its JSON is (`steersman.server.codec.encoding`); responses, lists and watches are made of it.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from struct import pack
from typing import Any, TypeAlias

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated.meta_v1 import ListMeta, ObjectMeta
from steersman.api.scheme import encode_hook
from steersman.server.codec.protobuf.messages import Field, fields_of_message, is_known_message
from steersman.server.codec.protobuf.wire import BYTES, FIXED64, VARINT

Encoder: TypeAlias = Callable[[Any], bytes]

MAGIC = b"k8s\x00"
"""The prefix of every Kubernetes protobuf body."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)
_UINT64 = (1 << 64) - 1


class _Varints(dict[int, bytes]):
    """Integers as varints. Small ones, which lengths mostly are, are kept."""

    def __missing__(self, value: int) -> bytes:
        left, made = value & _UINT64, bytearray()
        while left > 0x7F:
            made.append(left & 0x7F | 0x80)
            left >>= 7
        made.append(left)
        encoded = bytes(made)
        if 0 <= value < 1024:
            self[value] = encoded
        return encoded


VARINTS = _Varints()


def tag(number: int, wire_type: int = BYTES) -> bytes:
    """The tag of a field."""
    return VARINTS[number << 3 | wire_type]


def delimited(number: int, value: bytes) -> bytes:
    """A length-delimited field."""
    return tag(number) + VARINTS[len(value)] + value


# -- responses --------------------------------------------------------------------------------


class MessageCache:
    """The messages of objects, by their identity."""

    def __init__(self, max_entries: int = 2048, max_bytes: int = 16 * 1024 * 1024) -> None:
        self._known: BoundedCache[int, tuple[Any, bytes]] = BoundedCache(max_entries, max_bytes)

    def get(self, obj: Any) -> bytes:
        """The message of an object, which is a full struct."""
        known = self._known.get(id(obj))
        # The entry holds the object, so no other object can have its address.
        if known is not None:
            return known[1]
        made = encode_message(obj)
        self._known.put(id(obj), (obj, made), len(made))
        return made


def encode_message(obj: Any) -> bytes:
    """The message of a full struct, without ``apiVersion`` and ``kind``."""
    type_: type = type(obj)
    return encoder_of(message_name(type_))(obj)


def encode_metadata(metadata: ObjectMeta) -> bytes:
    """The message of a PartialObjectMetadata."""
    return delimited(1, encoder_of("meta_v1.ObjectMeta")(metadata))


def encode_list(metadata: ListMeta, items: Iterable[bytes]) -> bytes:
    """The message of a list of encoded items; all lists have the same fields."""
    parts = [delimited(1, encoder_of("meta_v1.ListMeta")(metadata))]
    for item in items:
        parts += (b"\x12", VARINTS[len(item)], item)
    return b"".join(parts)


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """A body: a message in a ``runtime.Unknown``, which has the ``apiVersion`` and the ``kind``."""
    return b"".join((_head(api_version, kind), VARINTS[len(message)], message, b'\x1a\x00"\x00'))


@cache
def _head(api_version: str, kind: str) -> bytes:
    type_meta = delimited(1, api_version.encode()) + delimited(2, kind.encode())
    return MAGIC + delimited(1, type_meta) + tag(2)


def watch_frame(type_: str, body: bytes) -> bytes:
    """An event of a watch: a WatchEvent with an enveloped object, after its length in four bytes."""
    event = delimited(1, type_.encode()) + delimited(2, delimited(1, body))
    return len(event).to_bytes(4, "big") + event


@cache
def message_name(type_: type) -> str:
    """The name of a full struct's message. Raises `LookupError` for a type that has none."""
    name = f"{type_.__module__.rpartition('.')[2]}.{type_.__name__}"
    if not is_known_message(name):
        raise LookupError(f"{name} is no protobuf message")
    return name


# -- encoders ---------------------------------------------------------------------------------

_names: dict[str, Any] = {}
"""The globals of all compiled functions: encoders by identifier, and the functions they use."""


def encoder_of(message: str) -> Encoder:
    """The encoder of a message, compiled on its first call."""
    found: Encoder | None = _names.get(_identifier(message))
    return _add_encoder(message, ()) if found is None else found


def _identifier(message: str) -> str:
    return message.replace(".", "__")


def _add_encoder(message: str, outer: tuple[tuple[str, str], ...]) -> Encoder:
    """Adds an encoder that compiles itself when it is called, so that no more is compiled than is used.

    ``outer`` has the attributes of the struct that an inlined message without a struct is part of.
    """
    identifier = _identifier(message)

    def first(value: Any) -> bytes:
        compiled = _names[identifier] = _UNIONS.get(message) or _compile(message, dict(outer))
        made: bytes = compiled(value)
        return made

    _names[identifier] = first
    return first


def _compile(message: str, outer: dict[str, str]) -> Encoder:
    attributes = _attributes(message) or outer
    lines = ["parts = []", "add = parts.append"]
    for number, field in sorted(fields_of_message(message).items()):
        attribute = "" if field.inline else attributes.get(field.name, "")
        if field.inline or attribute:
            lines += _field_lines(number, field, attribute, attributes)
        elif not (field.repeated or field.map or field.pointer):
            # A field that JSON does not have is zero.
            lines.append(f"add({_zero(number, field)!r})")
    lines.append("return join(parts)")
    source = "\n    ".join(("def compiled(obj):", *lines))
    local: dict[str, Any] = {}
    exec(source, _names, local)
    compiled: Encoder = local["compiled"]
    return compiled


@cache
def _attributes(message: str) -> dict[str, str]:
    """The attributes of a message's struct by their name in JSON; empty for a message without a struct."""
    struct = _struct_of(message)
    if struct is None:
        return {}
    return {field.encode_name: field.name for field in msgspec.structs.fields(struct)}


def _struct_of(message: str) -> type[msgspec.Struct] | None:
    module, _, name = message.partition(".")
    try:
        struct = getattr(import_module(f"steersman.api.generated.{module}"), name, None)
    except ImportError:
        return None
    return struct if isinstance(struct, type) and issubclass(struct, msgspec.Struct) else None


def _wire_type(field: Field) -> int:
    return {"bool": VARINT, "int32": VARINT, "int64": VARINT, "double": FIXED64}.get(field.type, BYTES)


def _field_lines(number: int, field: Field, attribute: str, attributes: dict[str, str]) -> Iterator[str]:
    """The source that encodes one field."""
    if field.inline:
        _ensure_encoder(field.type, attributes)
        yield f"b = {_identifier(field.type)}(obj)"
        yield f"add({tag(number)!r} + varints[len(b)] + b)"
        return
    if field.type not in _EXPRESSIONS:
        _ensure_encoder(field.type, {})
    key = tag(number, _wire_type(field))
    yield f"v = obj.{attribute}"
    if field.map:
        yield "for k in sorted(v) if v else ():"
        yield "    e = k.encode()"
        yield "    e = b'\\n' + varints[len(e)] + e + " + _value_source(
            field, tag(2, _wire_type(field)), "v[k]"
        )
        yield f"    add({key!r} + varints[len(e)] + e)"
    elif field.repeated:
        yield "for i in v or ():"
        yield f"    add({_value_source(field, key, 'i')})"
    elif field.pointer or field.type == "bytes":
        absent = "not v" if field.type == "bytes" else "v is None"
        yield f"if not ({absent}):"
        yield f"    add({_value_source(field, key, 'v')})"
    else:
        zero = _zero(number, field)
        yield f"add({zero!r} if {_is_zero(field)} else {_value_source(field, key, 'v')})"


def _ensure_encoder(message: str, outer: dict[str, str]) -> None:
    if _identifier(message) not in _names:
        _add_encoder(message, tuple(outer.items()))


def _value_source(field: Field, key: bytes, value: str) -> str:
    """The source of a value with its tag."""
    if field.type in ("bool", "int32", "int64", "double"):
        return f"{key!r} + {_EXPRESSIONS[field.type].format(value)}"
    expression = _EXPRESSIONS.get(field.type, _identifier(field.type) + "({})").format(value)
    return f"{key!r} + varints[len(b := {expression})] + b"


def _is_zero(field: Field) -> str:
    """The source of the test whether a value is absent or zero, and so is encoded as a constant."""
    return "not v" if field.type in ("string", "bool", "int32", "int64", "double") else "v is None"


def _zero(number: int, field: Field) -> bytes:
    """A field that is absent, as Go writes its zero value."""
    key = tag(number, _wire_type(field))
    if field.type == "double":
        return key + bytes(8)
    if field.type == "intorstring":
        return key + b"\x06\x08\x00\x10\x00\x1a\x00"
    if field.type == "quantity":
        return key + b"\x03\n\x010"
    struct = None if field.type in _EXPRESSIONS else _struct_of(field.type)
    return key + b"\x00" if struct is None else delimited(number, encoder_of(field.type)(struct()))


# -- values -----------------------------------------------------------------------------------


def _time(value: datetime) -> bytes:
    return b"" if value == _ZERO_TIME else b"\x08" + VARINTS[_seconds(value)] + b"\x10\x00"


def _micro_time(value: datetime) -> bytes:
    if value == _ZERO_TIME:
        return b""
    return b"\x08" + VARINTS[_seconds(value)] + b"\x10" + VARINTS[value.microsecond * 1000]


def _seconds(value: datetime) -> int:
    since = value - _EPOCH
    return since.days * 86_400 + since.seconds


def _quantity(value: object) -> bytes:
    return delimited(1, str(value).encode())


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + delimited(3, value.encode())
    return b"\x08\x00\x10" + VARINTS[value] + b"\x1a\x00"


_json = msgspec.json.Encoder(enc_hook=encode_hook).encode


def _raw_json(value: object) -> bytes:
    return delimited(1, _json(value))


_EXPRESSIONS = {
    "string": "{}.encode()",
    "bytes": "b64decode({})",
    "bool": "(b'\\x01' if {} else b'\\x00')",
    "int32": "varints[{}]",
    "int64": "varints[{}]",
    "double": "pack('<d', {})",
    "time": "time({})",
    "microtime": "micro_time({})",
    "quantity": "quantity({})",
    "intorstring": "int_or_string({})",
    "json": "raw_json({})",
}
"""The source that encodes a value, for each type that is no message with fields."""

_HELPERS: dict[str, Any] = {
    "varints": VARINTS,
    "join": b"".join,
    "b64decode": b64decode,
    "pack": pack,
    "time": _time,
    "micro_time": _micro_time,
    "quantity": _quantity,
    "int_or_string": _int_or_string,
    "raw_json": _raw_json,
}


# -- messages that are one of their fields in JSON --------------------------------------------

_SCHEMA = "apiextensions_v1.JSONSchemaProps"


def _schema(value: Any) -> bytes:
    return encoder_of(_SCHEMA)(value)


def _schema_or_array(value: Any) -> bytes:
    if isinstance(value, tuple):
        return b"".join(delimited(2, _schema(item)) for item in value)
    return delimited(1, _schema(value))


def _schema_or_bool(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\x08\x01" if value else b"\x08\x00"
    return b"\x08\x01" + delimited(2, _schema(value))


def _schema_or_strings(value: Any) -> bytes:
    if isinstance(value, tuple):
        return _strings(value, 2)
    return delimited(1, _schema(value))


def _strings(values: Iterable[str], number: int = 1) -> bytes:
    return b"".join(delimited(number, value.encode()) for value in values)


_UNIONS: dict[str, Encoder] = {
    "apiextensions_v1.JSONSchemaPropsOrArray": _schema_or_array,
    "apiextensions_v1.JSONSchemaPropsOrBool": _schema_or_bool,
    "apiextensions_v1.JSONSchemaPropsOrStringArray": _schema_or_strings,
    "authentication_v1.ExtraValue": _strings,
    "authorization_v1.ExtraValue": _strings,
    "certificates_v1.ExtraValue": _strings,
    "meta_v1.Verbs": _strings,
}

_names.update(_HELPERS)
