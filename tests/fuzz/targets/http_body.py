"""Request bodies: however they arrive they are read the same, and as h11 reads them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from steersman.http.head import MalformedRequest
from steersman.http.request import RequestBody
from tests.fuzz.event_loop import run
from tests.fuzz.http_oracle import Refused, read_request
from tests.fuzz.target import Target

CHUNKED_HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
LIMIT = 1 << 20
SMALL_LIMIT = 24


class Outcome(NamedTuple):
    """How a body ended: ``data``, ``limit``, ``refused``, or ``waits`` for more bytes."""

    what: str
    data: bytes | None = None
    rest: bytes | None = None


def cuts(data: bytes, bytewise: int = 512) -> Iterator[Sequence[bytes]]:
    """The bytes as one packet, as packets of one byte if there are not more than ``bytewise``, and cut at random."""
    yield (data,)
    if len(data) <= bytewise:
        yield [data[at : at + 1] for at in range(len(data))] or (b"",)
    random = Random(zlib.crc32(data))
    for _ in range(2):
        at = sorted(random.randint(0, len(data)) for _ in range(random.randint(1, 6)))
        yield [data[a:b] for a, b in zip([0, *at], [*at, len(data)], strict=True)]


def received(body: RequestBody, packets: Sequence[bytes], limit: int) -> Outcome:
    """Read a body whose first packet is there when reading begins.

    The reader is resumed by hand: a round of the event loop for each packet would take most of the time.
    """
    body.receive(packets[0])
    reading = body.read(limit)
    data: bytes | None
    later = iter(packets[1:])
    try:
        reading.send(None)
        for packet in later:
            body.receive(packet)
        if body.awaited:
            reading.close()
            return Outcome("waits")
        reading.send(None)
        raise AssertionError("the reader waits twice")
    except StopIteration as done:
        data = done.value
    except MalformedRequest as error:
        assert error.code == 400
        return Outcome("refused")
    if data is None:
        return Outcome("limit")
    for packet in later:
        body.receive(packet)
    assert body.complete
    assert body.size == len(data)
    rest, at = body.rest
    return Outcome("data", data, rest[at:])


def same_however_cut(data: bytes, length: int | None, limit: int) -> Outcome:
    found = {
        received(RequestBody(length or 0, chunked=length is None), packets, limit) for packets in cuts(data)
    }
    assert len(found) == 1, f"packets make a difference: {found}"
    return found.pop()


async def check_body(data: bytes) -> None:
    chunked = same_however_cut(data, None, LIMIT)
    small = same_however_cut(data, None, SMALL_LIMIT)
    assert small.what in (chunked.what, "limit")
    if small.what == "data":
        assert small == chunked
        assert len(small.data or b"") <= SMALL_LIMIT
    try:
        oracle = read_request(CHUNKED_HEAD + data)
        assert oracle is not None
    except Refused:
        # h11 finds some mistakes sooner, such as a field without a colon in a trailer that is not complete, or later.
        assert chunked.what != "data", "accepted, but h11 refuses it"
    else:
        if chunked.what == "data":
            assert (chunked.data, chunked.rest) == (oracle.body, oracle.rest)
        elif chunked.what == "waits":
            assert oracle.body is None, "h11 sees the end"
    length = zlib.crc32(data) % (len(data) + 2)
    counted = same_however_cut(data, length, LIMIT) if length else Outcome("data", b"", data)
    assert counted == (
        Outcome("data", data[:length], data[length:]) if length <= len(data) else Outcome("waits")
    )


def check(data: bytes) -> None:
    run(check_body(data))


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    parts = []
    for chunk in [*draw(st.lists(st.binary(min_size=1, max_size=20), max_size=4)), b""]:
        size = draw(
            st.sampled_from(
                [b"%x", b"%X", b"0%x", b"%x;a=b", b'%x;a="b;\\"c"', b"%x ", b"%x\t", b" %x", b"+%x", b"0x%x"]
            )
        )
        parts += [size % len(chunk), b"\r\n", chunk, b"\r\n" if chunk else b""]
    fields = draw(
        st.lists(
            st.sampled_from([b"A: b", b"A:", b"A", b" a: b", b"Content-Length: 1", b"A: b\n"]), max_size=2
        )
    )
    parts += [*(field + b"\r\n" for field in fields), b"\r\n", draw(st.binary(max_size=4))]
    at = draw(st.integers(0, len(parts) - 1))
    parts[at] = draw(st.sampled_from([parts[at], parts[at], b"", b"\n", b"\r", b"\r\n\r\n", b"0\r\n"]))
    return b"".join(parts)


TARGET = Target(
    name="http_body",
    check=check,
    seeds=(
        b"0\r\n\r\n",
        b"5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\n",
        b"A;name=value\r\n0123456789\r\n1 \r\na\r\n000\r\nX-Checksum: 1\r\nB: \xff\r\n\r\n",
    ),
    strategy=bodies(),
    dictionary=(
        b"\r\n", b"\n", b"\r", b"0\r\n", b"\r\n0\r\n\r\n", b";", b"; a=b", b";a=\"\r\n\"", b"ffffffffffffffff", b"0x", b"+", b"-",
        b"1\r\na\r\n", b"A: b\r\n", b" ", b"\t", b"\x00", b"\x85", b"\xff", b"0" * 15, b"GET / HTTP/1.1\r\n\r\n",
    ),
    max_bytes=8192,
    seconds_per_byte=200e-6,  # every byte is a packet of its own, many times over
)  # fmt: skip
