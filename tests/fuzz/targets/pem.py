"""PEM: blocks in order and in linear time, each of which is read again when it is written."""

from __future__ import annotations

import base64

from hypothesis import strategies as st

from steersman.api.pem import Block, blocks, decode, parse_certificates, parse_csr, parse_private_key
from tests.fuzz.target import Target


def check(data: bytes) -> None:
    position, found = 0, []
    while (got := decode(data, position)) is not None:
        block, behind = got
        assert position < behind <= len(data)
        found.append(block)
        # What lies before a block belongs to no other, and the block is the same without it.
        assert b"-----END " in data[position:behind]
        position = behind
    assert found == list(blocks(data))
    for block in found:
        _round_trip(block)
    if len(found) > 1:
        assert list(blocks(b"\n" + data))[-1] == found[-1]
    _contents(data)


def _round_trip(block: Block) -> None:
    type_ = block.type.encode("utf-8", "surrogateescape")
    if type_.strip(b" \t") != type_ or b"-----" in type_ or type_.endswith(b"-") or b"\r" in type_:
        return
    text = base64.encodebytes(block.content)
    written = b"-----BEGIN %s-----\n%s-----END %s-----\n" % (type_, text, type_)
    again = decode(written)
    assert again is not None
    assert again[0].type == block.type
    assert again[0].content == block.content
    assert again[1] == len(written)


def _contents(data: bytes) -> None:
    for parse in (parse_certificates, parse_private_key):
        try:
            parse(data)
        except ValueError:
            continue
    try:
        parse_csr(base64.b64encode(data).decode())
    except ValueError:
        pass


_pieces = st.sampled_from(
    (
        b"-----BEGIN A-----", b"-----END A-----", b"-----BEGIN B-----", b"-----END B-----", b"-----BEGIN ", b"-----END ", b"-----",
        b"\n", b"\r\n", b"\n", b"\n", b"k: v", b":", b"QUJD", b"QUI=", b"QR==", b"=", b" ", b"\t", b"\xa0", b"-----BEGIN CERTIFICATE-----",
        b"-----END CERTIFICATE-----",
    )
)  # fmt: skip

TARGET = Target(
    name="pem",
    check=check,
    seeds=(
        b"x\n-----BEGIN A-----\nk: v\n\nQUJD\n-----END A-----\ny\n-----BEGIN B-----\r\nQR==\r\n-----END B-----",
        b"-----BEGIN A-----\n-----BEGIN A-----\n-----END A-----\n",
        b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
        b"-----BEGIN RSA PRIVATE KEY-----\nMAA=\n-----END RSA PRIVATE KEY-----\n",
        b"-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n",
    ),
    strategy=st.lists(_pieces, max_size=30).map(b"".join),
    dictionary=(
        b"-----BEGIN ",
        b"-----END ",
        b"-----\n",
        b"-----",
        b"A-----\n",
        b"\r\n",
        b": ",
        b"\n\n",
        b"=",
        b"\xc2\xa0",
    ),
    max_bytes=16_384,
)
