"""``/openapi/v2`` as protobuf has the same definitions as the JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack
from typing import Any

import msgspec

from steersman.server.codec.protobuf.wire import FieldBudget, read_fields
from steersman.server.discovery.documents import CustomResource
from steersman.server.discovery.openapi import OpenAPI, binary

TEXTS = {1: "$ref", 2: "format", 3: "title", 4: "description", 13: "pattern"}
NUMBERS = {6: "multipleOf", 7: "maximum", 9: "minimum"}
COUNTS = {11: "maxLength", 12: "minLength", 14: "maxItems", 15: "minItems", 17: "maxProperties"}
COUNTS |= {18: "minProperties"}
FLAGS = {8: "exclusiveMaximum", 10: "exclusiveMinimum", 16: "uniqueItems"}


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    for number, _, value, raw in read_fields(memoryview(data), FieldBudget()):
        yield number, bytes(raw) or value


def text(data: Any) -> str:
    return data.decode() if data else ""


def any_value(data: bytes) -> Any:
    return msgspec.json.decode(dict(fields(data))[2])


def named(data: bytes) -> dict[str, Any]:
    found = {}
    for _, entry in fields(data):
        pair = dict(fields(entry))
        found[text(pair[1])] = schema(pair[2] or b"")
    return found


def schema(data: bytes) -> dict[str, Any]:
    """A schema, read back."""
    made: dict[str, Any] = {}
    for number, value in fields(data):
        match number:
            case 5:
                made["default"] = any_value(value)
            case 19:
                made.setdefault("required", []).append(text(value))
            case 20:
                made.setdefault("enum", []).append(any_value(value))
            case 21:
                one = dict(fields(value))
                made["additionalProperties"] = bool(one[2]) if 2 in one else schema(one[1] or b"")
            case 22:
                made["type"] = text(dict(fields(value))[1])
            case 23:
                made["items"] = schema(dict(fields(value))[1] or b"")
            case 25:
                made["properties"] = named(value or b"")
            case 31:
                pair = dict(fields(value))
                made[text(pair[1])] = any_value(pair[2])
            case _ if number in TEXTS:
                made[TEXTS[number]] = text(value)
            case _ if number in NUMBERS:
                made[NUMBERS[number]] = unpack("<d", value)[0]
            case _ if number in COUNTS:
                made[COUNTS[number]] = value or 0
            case _ if number in FLAGS:
                made[FLAGS[number]] = bool(value)
            case _:
                raise AssertionError(f"what is field {number}?")
    return made


def definitions(body: bytes) -> dict[str, Any]:
    return named(dict(fields(body))[9])


def test_every_definition_reads_back_as_the_json_has_it() -> None:
    openapi = OpenAPI()
    expected = msgspec.json.decode(openapi.v2().body)["definitions"]
    assert definitions(openapi.v2_binary().body) == expected
    assert len(expected) > 500


def test_a_custom_resource_is_in_it_with_all_its_rules_and_changes_the_tag() -> None:
    spec = {
        "type": "object",
        "description": "What it is like.",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 2.5, "exclusiveMaximum": True},
            "name": {"type": "string", "pattern": "^a", "maxLength": 9, "default": "a", "enum": ["a", "ab"]},
            "tags": {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
            "free": {"type": "object", "additionalProperties": True},
            "list": {"type": "array", "items": {"type": "string"}, "uniqueItems": False, "minItems": 0},
            "any": {"x-kubernetes-preserve-unknown-fields": True},
        },
    }
    custom = CustomResource(
        group="demo.dev",
        version="v1",
        kind="Widget",
        plural="widgets",
        singular="widget",
        namespaced=True,
        schema={"type": "object", "properties": {"spec": spec}},
    )
    openapi = OpenAPI([custom])
    expected = msgspec.json.decode(openapi.v2().body)["definitions"]
    found = definitions(openapi.v2_binary().body)
    assert found["dev.demo.v1.Widget"] == expected["dev.demo.v1.Widget"]
    assert found == expected
    assert openapi.v2_binary().etag != OpenAPI().v2_binary().etag


def test_a_document_says_what_it_is() -> None:
    head = dict(fields(binary.encode_openapi_v2({"title": "T", "version": "1.36"}, {})))
    assert text(head[1]) == "2.0"
    assert [text(value) for _, value in fields(head[2])] == ["T", "1.36"]
