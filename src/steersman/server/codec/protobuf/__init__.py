"""Decoding of protobuf bodies, as typed clients send them for built-in kinds, into JSON documents.

``fields.json``, the numbers of all fields, is read with the first such body. `messages` decodes messages, `wire` the
wire format; `encode` encodes responses.
"""

from __future__ import annotations

from typing import Any

from steersman.api.generated import load
from steersman.server import status_errors
from steersman.server.codec import field_validation
from steersman.server.codec.protobuf.messages import decode_message, is_known_message
from steersman.server.codec.protobuf.wire import (
    BYTES,
    FieldBudget,
    MalformedMessage,
    read_fields,
    read_string,
)

__all__ = ["MAGIC", "decode"]

MAGIC = b"k8s\x00"
"""The prefix of every Kubernetes protobuf body."""


def decode(body: bytes, api_version: str = "", kind: str = "") -> dict[str, Any]:
    """Decodes a body into a JSON document with its ``apiVersion`` and ``kind``.

    The arguments are the defaults for a body without type metadata. Raises `BadRequest` for a malformed body.
    """
    try:
        given_version, given_kind, raw, budget = _decode_envelope(body, api_version, kind)
    except MalformedMessage as error:
        if not kind:
            raise status_errors.bad_request(str(error)) from None
        raise field_validation.unrecognized_body(kind, body, str(error)) from None
    try:
        document = decode_message(message_of_kind(given_version, given_kind), raw, budget)
    except MalformedMessage as error:
        if not kind:
            raise status_errors.bad_request(str(error)) from None
        version = given_version.rpartition("/")[2]
        raise field_validation.undecodable_body(given_kind, version, str(error), wanted=kind) from None
    return {"apiVersion": given_version, "kind": given_kind, **document}


def _decode_envelope(body: bytes, api_version: str, kind: str) -> tuple[str, str, memoryview, FieldBudget]:
    """The apiVersion, the kind and the message of a body, and what is left of the number of its fields."""
    if not body.startswith(MAGIC):
        prefix = " ".join(map(str, MAGIC))
        raise MalformedMessage(
            f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]"
            if body
            else "empty data"
        )
    if len(body) == len(MAGIC):
        raise MalformedMessage("empty body")
    view = memoryview(body)[len(MAGIC) :]
    raw, budget = view[:0], FieldBudget()
    for number, wire_type, _, chunk in read_fields(view, budget):
        if number not in (1, 2):
            # contentEncoding and contentType: clients leave them empty, and upstream ignores them.
            continue
        if wire_type != BYTES:
            raise MalformedMessage(
                f"proto: wrong wireType = {wire_type} for field {('TypeMeta', 'Raw')[number - 1]}"
            )
        if number == 2:
            raw = chunk
        else:
            api_version, kind = _decode_type_meta(chunk, api_version, kind, budget)
    if not (api_version and kind):
        raise MalformedMessage(f"Object '{'apiVersion' if kind else 'Kind'}' is missing")
    return api_version, kind, raw, budget


def _decode_type_meta(data: memoryview, api_version: str, kind: str, budget: FieldBudget) -> tuple[str, str]:
    for number, wire_type, _, chunk in read_fields(data, budget):
        if number in (1, 2) and wire_type != BYTES:
            raise MalformedMessage(
                f"proto: wrong wireType = {wire_type} for field {('APIVersion', 'Kind')[number - 1]}"
            )
        if number == 1:
            api_version = read_string(chunk) or api_version
        elif number == 2:
            kind = read_string(chunk) or kind
    return api_version, kind


def message_of_kind(api_version: str, kind: str) -> str:
    """The name of a kind's message, such as ``apps_v1.Deployment``."""
    if kind == "DeleteOptions":
        # Every group registers DeleteOptions as a kind of its own.
        return "meta_v1.DeleteOptions"
    group, _, version = api_version.rpartition("/")
    try:
        module = load(group, version, kind).type.__module__.rpartition(".")[2]
    except LookupError:
        module = ""
    name = f"{module}.{kind}"
    if not is_known_message(name):
        raise MalformedMessage(
            f'no kind "{kind}" is registered for version "{api_version}" in scheme '
            '"pkg/api/legacyscheme/scheme.go:30"'
        )
    return name
