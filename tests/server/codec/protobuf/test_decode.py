"""Decoding of protobuf bodies: recorded, generated and malformed ones."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.errors import BadRequest
from steersman.server.codec.protobuf import MAGIC, decode, wire


def _recorded() -> list[tuple[str, bytes, dict[str, Any]]]:
    text = (Path(__file__).parent / "recorded.txt").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [
        (command, bytes.fromhex(body), json.loads(document))
        for command, body, document in zip(lines[::3], lines[1::3], lines[2::3], strict=True)
    ]


RECORDED = _recorded()


# -- a small writer of messages ---------------------------------------------------------------


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def put(number: int, value: int | float | str | bytes) -> bytes:
    """One field: numbers as varints, floats in eight bytes, all else with its length."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + put(1, put(1, api_version) + put(2, kind)) + put(2, raw) + put(3, "") + put(4, "")


def read(api_version: str, kind: str, raw: bytes) -> dict[str, Any]:
    return decode(body(api_version, kind, raw))


# -- what can be read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "document"), [row[1:] for row in RECORDED], ids=[row[0] for row in RECORDED]
)
def test_what_kubectl_sends_is_the_document_it_shows(sent: bytes, document: dict[str, Any]) -> None:
    assert decode(sent) == document


META = put(1, put(1, "a"))


def _schema(raw: bytes) -> bytes:
    """A custom resource definition of one version that has such a schema."""
    version = put(1, "v1") + put(2, 1) + put(3, 0) + put(4, put(1, raw))
    return put(2, put(7, version))


@pytest.mark.parametrize(
    ("api_version", "kind", "raw", "expected"),
    [
        pytest.param("v1", "Pod", put(1, put(8, b"")), {"metadata": {}}, id="a time never set is no time"),
        pytest.param(
            "v1",
            "Pod",
            put(1, put(8, put(1, 1_700_000_000) + put(2, 999_999_999))),
            {"metadata": {"creationTimestamp": "2023-11-14T22:13:20Z"}},
            id="a time has whole seconds",
        ),
        pytest.param(
            "v1",
            "Pod",
            put(1, put(8, put(1, -1))),
            {"metadata": {"creationTimestamp": "1969-12-31T23:59:59Z"}},
            id="a time may be before 1970",
        ),
        pytest.param(
            "coordination.k8s.io/v1",
            "Lease",
            put(2, put(4, put(1, 1) + put(2, 5_999))),
            {"spec": {"renewTime": "1970-01-01T00:00:01.000005Z"}},
            id="a micro time has microseconds",
        ),
        pytest.param(
            "apps/v1",
            "Deployment",
            put(2, put(1, 0) + put(5, 0)),
            {"spec": {"replicas": 0}},
            id="a zero that was chosen stays and one that is written anyway goes",
        ),
        pytest.param(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            META + put(2, -7),
            {"metadata": {"name": "a"}, "value": -7},
            id="a number may be negative",
        ),
        pytest.param(
            "v1",
            "Pod",
            put(2, put(1, put(1, "v") + put(2, put(2, put(1, "Memory"))))),
            {"spec": {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}},
            id="the source of a volume is inline",
        ),
        pytest.param(
            "v1",
            "Pod",
            put(2, put(14, put(4, varint(1) + varint(300) + varint(-1)))),
            {"spec": {"securityContext": {"supplementalGroups": [1, 300, -1]}}},
            id="packed numbers",
        ),
        pytest.param(
            "v1",
            "Pod",
            put(2, put(14, put(4, 1) + put(4, 300))),
            {"spec": {"securityContext": {"supplementalGroups": [1, 300]}}},
            id="numbers one by one",
        ),
        pytest.param(
            "v1",
            "ConfigMap",
            put(2, put(1, "k")) + put(2, put(2, "v")) + put(3, put(1, "b") + put(2, b"\xff\x00")),
            {"data": {"k": "", "": "v"}, "binaryData": {"b": "/wA="}},
            id="keys and values of maps may be left out and bytes are base64",
        ),
        pytest.param(
            "apps/v1",
            "ControllerRevision",
            put(2, put(1, '{"a":[1,null]}')) + put(3, 2),
            {"data": {"a": [1, None]}, "revision": 2},
            id="what was JSON all along",
        ),
        pytest.param(
            "v1",
            "Pod",
            put(1, put(1, "a")) + put(99, "?") + b"\xa3\x06\x08\x01\xa4\x06" + put(1, put(3, "b")),
            {"metadata": {"name": "a", "namespace": "b"}},
            id="unknown fields and groups are passed over and a message that comes again is merged",
        ),
        pytest.param(
            "authorization.k8s.io/v1",
            "SubjectAccessReview",
            put(2, put(3, "u") + put(5, put(1, "k") + put(2, put(1, "x") + put(1, "y")))),
            {"spec": {"user": "u", "extra": {"k": ["x", "y"]}}},
            id="lists in maps",
        ),
        pytest.param(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            _schema(
                put(3, "r")
                + put(8, put(1, "5"))
                + put(9, 1.5)
                + put(24, put(1, put(5, "string")))
                + put(30, put(1, 1))
                + put(38, 1)
            ),
            {
                "spec": {
                    "versions": [
                        {
                            "name": "v1",
                            "served": True,
                            "storage": False,
                            "schema": {
                                "openAPIV3Schema": {
                                    "$ref": "r",
                                    "default": 5,
                                    "maximum": 1.5,
                                    "items": {"type": "string"},
                                    "additionalProperties": True,
                                    "x-kubernetes-preserve-unknown-fields": True,
                                }
                            },
                        }
                    ]
                }
            },
            id="schemas",
        ),
        pytest.param(
            "apps/v1",
            "DeleteOptions",
            put(1, 0) + put(2, put(1, "u")) + put(4, "Orphan") + put(5, "All"),
            {
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u"},
                "propagationPolicy": "Orphan",
                "dryRun": ["All"],
            },
            id="every group has options of deletion",
        ),
    ],
)
def test_a_message_becomes_the_document_that_says_the_same(
    api_version: str, kind: str, raw: bytes, expected: dict[str, Any]
) -> None:
    assert read(api_version, kind, raw) == {"apiVersion": api_version, "kind": kind, **expected}


def test_a_body_that_does_not_say_what_it_is_is_what_was_asked_for() -> None:
    assert decode(MAGIC + put(2, META), "v1", "Pod") == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
    }


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**63 - 1), st.text())
def test_scalars_come_out_as_they_went_in(small: int, large: int, text: str) -> None:
    raw = put(1, put(1, text) + put(10, large)) + put(2, small)
    got = read("scheduling.k8s.io/v1", "PriorityClass", raw)
    assert got["value"] == small
    assert got["metadata"]["deletionGracePeriodSeconds"] == large
    assert got["metadata"].get("name", "") == text


# -- what cannot ------------------------------------------------------------------------------


def _deep(levels: int) -> bytes:
    raw = b""
    for _ in range(levels):
        raw = put(28, raw)
    return raw


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", "empty data"),
        (b'{"kind":"Pod"}', "expected prefix [107 56 115 0]"),
        (MAGIC, "empty body"),
        (MAGIC + put(2, META), "Object 'Kind' is missing"),
        (MAGIC + put(1, put(2, "Pod")), "Object 'apiVersion' is missing"),
        (body("v1", "Nothing", b""), 'no kind "Nothing" is registered for version "v1"'),
        (body("a/b/c", "Pod", b""), 'no kind "Pod" is registered for version "a/b/c"'),
        (body("v1", "Pod", put(1, 1)), "proto: wrong wireType = 0 for field ObjectMeta"),
        (body("v1", "Pod", put(1, put(7, "x"))), "proto: wrong wireType = 2 for field Generation"),
        (body("v1", "Pod", put(1, put(1, b"\xff"))), "not valid UTF-8"),
        (body("v1", "Pod", b"\x0a" + varint(2**63)), "unexpected EOF"),
        (body("v1", "Pod", b"\x80" * 11), "proto: integer overflow"),
        (body("v1", "Pod", b"\x00"), "illegal tag 0"),
        (body("v1", "Pod", b"\x0f"), "proto: wrong wireType = 7 for field ObjectMeta"),
        (body("v1", "Pod", b"\x0c"), "end of a group that never began"),
        (body("v1", "Pod", b"\x0b" * 1000), "unexpected EOF"),
        (body("v1", "Pod", put(1, put(8, put(1, 2**62)))), "outside of the years 1 to 9999"),
        (body("apps/v1", "ControllerRevision", put(2, put(1, "{"))), "json parse error"),
        (body("apps/v1", "ControllerRevision", put(2, put(1, "[" * 500 + "]" * 500))), "exceeded max depth"),
        (
            body("apiextensions.k8s.io/v1", "CustomResourceDefinition", _schema(_deep(500))),
            "exceeded max depth",
        ),
        (
            body("apiextensions.k8s.io/v1", "CustomResourceDefinition", _schema(put(9, float("nan")))),
            "not finite",
        ),
    ],
)
def test_what_is_no_such_message_is_refused_with_a_reason(sent: bytes, why: str) -> None:
    with pytest.raises(BadRequest) as refused:
        decode(sent)
    assert why in refused.value.message
    assert refused.value.reason == "BadRequest"


def _only_refuses(sent: bytes) -> None:
    try:
        made = decode(sent)
    except BadRequest:
        return
    json.dumps(made, allow_nan=False)


@given(st.binary())
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    _only_refuses(MAGIC + raw)
    _only_refuses(body("v1", "Pod", raw))


@given(st.sampled_from(RECORDED), st.data())
def test_a_damaged_body_is_read_or_refused(row: tuple[str, bytes, Any], data: st.DataObject) -> None:
    sent = bytearray(row[1])
    for at in data.draw(st.lists(st.integers(0, len(sent) - 1), min_size=1, max_size=4)):
        sent[at] = data.draw(st.integers(0, 255))
    _only_refuses(bytes(sent[: data.draw(st.integers(0, len(sent)))]))


def test_the_table_is_not_read_before_it_is_needed() -> None:
    program = (
        "from steersman.server.codec.protobuf import messages, decode\n"
        "assert messages._field_table.cache_info().currsize == 0\n"
        "decode(b'k8s\\x00\\x12\\x00', 'v1', 'Pod')\n"
        "assert messages._field_table.cache_info().currsize == 1\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "raw",
    [
        put(127, 1) * 300,
        put(1, put(11, b"") * 300),
        (varint(1 << 3 | 3) + varint(1 << 3 | 4)) * 300,
        varint(1 << 3 | 3) + put(2, 1) * 300 + varint(1 << 3 | 4),
        put(1, put(8, put(9, 1) * 300)),
    ],
    ids=["unknown fields", "entries of a map", "groups", "fields of a group", "fields of a time"],
)
def test_a_body_has_a_limited_number_of_fields(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    read("v1", "Pod", raw)
    monkeypatch.setattr(wire, "MAX_FIELDS", 200)
    with pytest.raises(BadRequest, match="exceeded max fields of 200"):
        read("v1", "Pod", raw)
