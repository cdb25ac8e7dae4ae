"""Reads answers in protobuf, also those that are never the body of a request: lists, metadata alone, events of a watch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steersman.server.codec.protobuf import MAGIC, message_of_kind
from steersman.server.codec.protobuf.messages import decode_message
from steersman.server.codec.protobuf.wire import FieldBudget, read_fields


def read_body(raw: bytes) -> dict[str, Any]:
    """The document of a body."""
    assert raw.startswith(MAGIC), raw[:20]
    type_meta, message, encoding, content_type = _chunks(memoryview(raw)[len(MAGIC) :], 1, 2, 3, 4)
    assert bytes(encoding) == bytes(content_type) == b""
    api_version, kind = (str(chunk, "utf-8") for chunk in _chunks(type_meta, 1, 2))
    return {"apiVersion": api_version, "kind": kind, **_message(api_version, kind, message)}


def read_frames(raw: bytes) -> Iterator[dict[str, Any]]:
    """The events of a watch, but for a last one that is cut off."""
    while len(raw) >= 4 and (end := 4 + int.from_bytes(raw[:4], "big")) <= len(raw):
        type_, extension = _chunks(memoryview(raw)[4:end], 1, 2)
        (body,) = _chunks(extension, 1)
        yield {"type": str(type_, "utf-8"), "object": read_body(bytes(body))}
        raw = raw[end:]


def _message(api_version: str, kind: str, message: memoryview) -> dict[str, Any]:
    if kind.endswith("List") and kind not in ("APIGroupList", "APIResourceList"):
        fields = list(read_fields(message, FieldBudget()))
        assert fields[0][0] == 1
        assert all(number == 2 for number, *_ in fields[1:])
        items = [_message(api_version, kind[:-4], chunk) for _, _, _, chunk in fields[1:]]
        return {"metadata": decode_message("meta_v1.ListMeta", fields[0][3], FieldBudget()), "items": items}
    if kind == "PartialObjectMetadata":
        (metadata,) = _chunks(message, 1)
        return {"metadata": decode_message("meta_v1.ObjectMeta", metadata, FieldBudget())}
    return decode_message(message_of_kind(api_version or "v1", kind), message, FieldBudget())


def _chunks(data: memoryview, *numbers: int) -> list[memoryview]:
    """The bytes of a message's fields, which are those and no others."""
    fields = list(read_fields(data, FieldBudget()))
    assert tuple(number for number, *_ in fields) == numbers, fields
    return [chunk for *_, chunk in fields]
