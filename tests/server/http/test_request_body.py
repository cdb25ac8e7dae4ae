"""Request bodies in protobuf, and in JSON with invalid characters."""

from __future__ import annotations

import pytest

from steersman.api.errors import BadRequest, UnsupportedMediaType
from steersman.api.generated import load
from steersman.server.codec.negotiation import JSON, PROTOBUF
from steersman.server.http import query_options, request_body

DEPLOYMENT = bytes.fromhex("6b3873000a150a07617070732f7631120a4465706c6f796d656e7412070a050a03776562")
"""A Deployment called web, and nothing else."""

ORPHAN = bytes.fromhex("6b3873000a130a027631120d44656c6574654f7074696f6e73120a080022064f727068616e")
"""DeleteOptions: no grace, orphan what depends on it."""


def test_a_body_in_protobuf_becomes_the_struct_it_stands_for() -> None:
    type_ = load("apps", "v1", "Deployment").type
    made = request_body.decode(type_, "apps", "v1", "Deployment", DEPLOYMENT, f"{PROTOBUF}; charset=x")
    assert type(made) is type_
    assert made.metadata.name == "web"


def test_a_body_in_protobuf_must_be_what_the_path_says() -> None:
    with pytest.raises(BadRequest, match="cannot be handled as a Pod"):
        request_body.decode(load("", "v1", "Pod").type, "", "v1", "Pod", DEPLOYMENT, PROTOBUF)


def test_the_refusal_of_an_unknown_form_names_protobuf() -> None:
    with pytest.raises(UnsupportedMediaType) as refused:
        request_body.decode(load("", "v1", "Pod").type, "", "v1", "Pod", b"", "text/plain")
    assert refused.value.message.endswith(
        "accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def test_options_of_a_deletion_may_be_protobuf() -> None:
    made = query_options.delete_options({}, ORPHAN)
    assert (made.deletion.grace_period, made.deletion.propagation) == (0, "Orphan")


def test_options_of_a_deletion_that_are_cut_short_are_refused() -> None:
    with pytest.raises(BadRequest, match="unexpected EOF"):
        query_options.delete_options({}, ORPHAN[:-1])


@pytest.mark.parametrize(
    ("image", "decoded"), [(b"\\ud800", "\ufffd"), (b"\xff", "\ufffd"), (b'i"}]},"\x96":{"a":[{"b":"', "i")]
)
def test_invalid_characters_in_json_are_replaced(image: bytes, decoded: str) -> None:
    raw = b'{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"name":"c","image":"%b"}]}}' % image
    made = request_body.decode(load("", "v1", "Pod").type, "", "v1", "Pod", raw, JSON)
    assert made.spec.containers[0].image == decoded


def test_invalid_characters_beside_a_duplicate_field_of_a_patch_are_replaced() -> None:
    checks = request_body.FieldChecks("Warn", [])
    raw = b'{"data":{"a":"\xff","a":"b"}}'
    assert request_body.decode_patch(raw, checks, lambda body: ((), str)) == {"data": {"a": "b"}}
    assert checks.warnings == ['duplicate field "data.a"']
