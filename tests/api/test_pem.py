"""PEM as Go reads it.

``pem_readings.jsonl`` has odd inputs with what ``encoding/pem`` of Go 1.26 reads in each, ``certificate_requests.jsonl``
requests with keys and signatures of many kinds, and what kube-apiserver 1.36 says to each.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.pem import InvalidCertificateRequest, blocks, decode, parse_csr, signature_error

READINGS = [
    json.loads(line) for line in Path(__file__).with_name("pem_readings.jsonl").read_text().splitlines()
]

PIECES = (
    "-----BEGIN A-----",
    "-----END A-----",
    "-----BEGIN ",
    "-----END ",
    "\n",
    "\r\n",
    "k: v",
    ":",
    "QUJD",
    "=",
    "-----",
)


def block(content: bytes, type_: str = "A") -> bytes:
    body = base64.encodebytes(content).decode()
    return f"-----BEGIN {type_}-----\n{body}-----END {type_}-----\n".encode()


@pytest.mark.parametrize("row", READINGS)
def test_every_input_is_read_as_go_reads_it(row: dict[str, Any]) -> None:
    data, position, found = base64.b64decode(row["data"]), 0, []
    while (got := decode(data, position)) is not None:
        one, position = got
        content = base64.b64encode(one.content).decode()
        rest = len(data) - position
        found.append({"type": one.type, "headers": dict(one.headers), "content": content, "rest": rest})
    assert found == row["blocks"], data


def test_the_readings_hold_blocks_and_refusals() -> None:
    assert sum(bool(row["blocks"]) for row in READINGS) > 100 < sum(not row["blocks"] for row in READINGS)


def test_a_block_begins_at_the_start_of_a_line() -> None:
    data = b"x" + block(b"evil") + block(b"good")
    assert [one.content for one in blocks(data)] == [b"good"]


def test_a_block_that_cannot_be_read_is_skipped() -> None:
    data = b"-----BEGIN A-----\n!\n-----END A-----\n" + block(b"good")
    assert [one.content for one in blocks(data)] == [b"good"]


@given(
    st.binary(max_size=200), st.binary(max_size=200), st.sampled_from(["A", "CERTIFICATE", "EC PRIVATE KEY"])
)
def test_blocks_that_follow_each_other_are_all_read(one: bytes, other: bytes, type_: str) -> None:
    found = list(blocks(block(one, type_) + b"between\n" + block(other, type_)))
    assert [(each.type, each.content) for each in found] == [(type_, one), (type_, other)]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(lambda pieces: "".join(pieces).encode()))
def test_any_bytes_are_read_to_an_end(data: bytes) -> None:
    for one in blocks(data):
        assert len(one.content) <= len(data)


@pytest.mark.parametrize(
    "hostile",
    [
        b"-----BEGIN A-----\n" + b"::\n" * 100_000 + b"!\n",
        b"-----BEGIN A-----\n" * 20_000,
        b"\n-----END A-----" * 20_000,
        (b"-----BEGIN A-----\n!\n-----END A-----\n") * 10_000,
        b"-----BEGIN A-----\n" + b"k: v\n" * 50_000 + b"-----END A-----\n" * 10_000,
    ],
    ids=["headers without end", "only BEGIN", "only END", "unreadable blocks", "headers, then only END"],
)
def test_hostile_input_takes_linear_time(hostile: bytes) -> None:
    # Every attempt ends behind the END line it looked at, so the bytes looked at are bounded by a multiple of the size.
    assert list(blocks(hostile)) == []


REQUESTS = [
    json.loads(line)
    for line in Path(__file__).with_name("certificate_requests.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("row", REQUESTS, ids=[row["name"] for row in REQUESTS])
def test_requests_are_refused_as_kube_apiserver_refuses_them(row: dict[str, str]) -> None:
    try:
        error = signature_error(parse_csr(row["request"]))
    except InvalidCertificateRequest as invalid:
        error = str(invalid)
    if row["name"].endswith("with SHA-1"):
        # differs: upstream accepts them.
        assert error.startswith("x509: cannot verify signature: insecure algorithm")
    else:
        assert error == row["error"]
