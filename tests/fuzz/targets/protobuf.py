"""Protobuf bodies: any bytes give an object or an API error, and a document that is written is read back."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from steersman.api.errors import ApiError
from steersman.api.generated import load
from steersman.api.nesting import MAX_DEPTH, depth_of
from steersman.server.codec.negotiation import PROTOBUF
from steersman.server.codec.protobuf import MAGIC, decode
from steersman.server.codec.protobuf.messages import Field, fields_of_message
from steersman.server.http.request_body import decode as decode_body
from tests.fuzz.target import Target

_KINDS = (
    ("", "v1", "Pod"),
    ("apps", "v1", "Deployment"),
    ("", "v1", "Event"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("", "v1", "Secret"),
)


def check(data: bytes) -> None:
    """The first byte selects a kind; the rest is a body, or the message of one."""
    group, version, kind = _KINDS[data[0] % len(_KINDS)] if data else _KINDS[0]
    body = data[1:] if data[1:].startswith(MAGIC) else _body(group, version, kind, data[1:])
    type_ = load(group, version, kind).type
    try:
        decode_body(type_, group, version, kind, body, PROTOBUF)
        document = decode(body, f"{group}/{version}" if group else version, kind)
    except ApiError:
        return
    assert depth_of(document) <= 2 * MAX_DEPTH
    if (document["apiVersion"], document["kind"]) == (f"{group}/{version}" if group else version, kind):
        _round_trip(document, group, version, kind)


def _round_trip(document: dict[str, Any], group: str, version: str, kind: str) -> None:
    message = f"{load(group, version, kind).type.__module__.rpartition('.')[2]}.{kind}"
    fields = {name: value for name, value in document.items() if name not in ("apiVersion", "kind")}
    try:
        raw = _message(message, fields)
    except _NotWritable:
        return
    assert decode(_body(group, version, kind, raw)) == document


# -- a writer, from the same numbers of fields ------------------------------------------------


class _NotWritable(Exception):
    """A value of a type that has no message of its own: times, unions, and JSON."""


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _chunk(number: int, raw: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _body(group: str, version: str, kind: str, raw: bytes) -> bytes:
    api_version = f"{group}/{version}" if group else version
    return MAGIC + _chunk(1, _chunk(1, api_version.encode()) + _chunk(2, kind.encode())) + _chunk(2, raw)


def _message(name: str, document: Mapping[str, Any]) -> bytes:
    written, rest = b"", dict(document)
    for number, field in fields_of_message(name).items():
        if field.inline:
            inner = {one.name for one in fields_of_message(field.type).values()}
            written += _chunk(
                number, _message(field.type, {key: rest.pop(key) for key in list(rest) if key in inner})
            )
        elif field.name in rest:
            written += _field(number, field, rest.pop(field.name))
    if rest:
        raise _NotWritable
    return written


def _field(number: int, field: Field, value: Any) -> bytes:
    if field.map:
        one = Field(field.name, field.type)
        return b"".join(
            _chunk(number, _chunk(1, key.encode()) + _field(2, one, each)) for key, each in value.items()
        )
    if field.repeated:
        one = Field(field.name, field.type)
        return b"".join(_field(number, one, each) for each in value)
    match field.type:
        case "string":
            return _chunk(number, value.encode())
        case "bytes":
            return _chunk(number, base64.b64decode(value))
        case "bool" | "int32" | "int64":
            return _varint(number << 3) + _varint(int(value))
        case "double":
            return _varint(number << 3 | 1) + struct.pack("<d", value)
        case "quantity":
            return _chunk(number, _chunk(1, value.encode()))
        case "intorstring" if isinstance(value, str):
            return _chunk(number, _varint(1 << 3) + b"\x01" + _chunk(3, value.encode()))
        case "intorstring":
            return _chunk(number, _varint(2 << 3) + _varint(value))
        case "time" | "microtime" | "json":
            raise _NotWritable
    if not isinstance(value, dict):
        raise _NotWritable
    return _chunk(number, _message(field.type, value))


# -- inputs -----------------------------------------------------------------------------------

_SCALARS: Mapping[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(("a", "b/c", "é")),
    "bytes": st.binary(max_size=4).map(lambda raw: base64.b64encode(raw).decode()),
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "quantity": st.sampled_from(("1", "100m", "5Gi")),
    "intorstring": st.integers(-5, 5) | st.sampled_from(("5%", "http")),
}


@st.composite
def _documents(draw: st.DrawFn, message: str, depth: int = 0) -> dict[str, Any]:
    fields = [field for field in fields_of_message(message).values() if not field.inline]
    made: dict[str, Any] = {}
    for field in draw(st.lists(st.sampled_from(fields), max_size=4, unique_by=lambda one: one.name)):
        inner = _SCALARS.get(field.type)
        if inner is None:
            if (
                depth > 3
                or "." not in field.type
                or field.type.endswith(("ExtraValue", "OrArray", "OrBool", "OrStringArray"))
            ):
                continue
            inner = _documents(field.type, depth + 1)
        if field.map:
            made[field.name] = draw(st.dictionaries(st.sampled_from("xyz"), inner, min_size=1, max_size=2))
        elif field.repeated:
            made[field.name] = draw(st.lists(inner, min_size=1, max_size=2))
        else:
            made[field.name] = draw(inner)
    return made


@st.composite
def _bodies(draw: st.DrawFn) -> bytes:
    index = draw(st.integers(0, len(_KINDS) - 1))
    group, version, kind = _KINDS[index]
    message = f"{load(group, version, kind).type.__module__.rpartition('.')[2]}.{kind}"
    try:
        return bytes((index,)) + _message(message, draw(_documents(message)))
    except _NotWritable:
        return bytes((index,))


_POD = _message(
    "core_v1.Pod", {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"containers": [{"name": "c"}]}}
)

TARGET = Target(
    name="protobuf",
    check=check,
    seeds=(
        b"\x00" + _POD,
        b"\x00" + _body("", "v1", "Pod", _POD),
        b"\x02" + _message("core_v1.Event", {"count": 5, "message": "m", "involvedObject": {"name": "n"}}),
        b"\x05" + _message("core_v1.Secret", {"data": {"a": "eA=="}, "type": "Opaque"}),
        b"\x03" + _chunk(2, _chunk(1, b"g")),
    ),
    strategy=_bodies(),
    dictionary=(
        MAGIC,
        b"\x0a\x00",
        b"\x12\x02\x0a\x00",
        b"\x0b\x0c",
        b"\xff" * 9 + b"\x01",
        b"\x08\x01",
        b"\x0d\x00\x00\x00\x00",
        b"\x3b\x3c",
    ),
)
