"""Request bodies, however the network cuts them into pieces."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.http.head import MalformedRequest
from steersman.http.request import RequestBody


async def parsed(data: bytes, limit: int = 10_000) -> bytes | None:
    """The chunked body that arrives as one packet."""
    body = RequestBody(0, chunked=True)
    body.receive(data)
    async with asyncio.timeout(10):
        return await body.read(limit)


def chunked(chunks: list[bytes], extension: bytes = b"", trailer: bytes = b"") -> bytes:
    sized = b"".join(b"%x%b\r\n%b\r\n" % (len(each), extension, each) for each in chunks if each)
    return sized + b"0\r\n" + trailer + b"\r\n"


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    at = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(at)]


@given(
    st.lists(st.binary(max_size=40), max_size=5),
    st.binary(max_size=20),
    st.lists(st.integers(0, 10_000), max_size=8),
    st.sampled_from((b"", b";a=b")),
    st.sampled_from((b"", b"X-Checksum: 1\r\n")),
)
async def test_a_chunked_body_is_the_same_however_it_arrives(
    chunks: list[bytes], after: bytes, cuts: list[int], extension: bytes, trailer: bytes
) -> None:
    body = RequestBody(0, chunked=True)
    arriving = pieces(chunked(chunks, extension, trailer) + after, cuts)
    body.receive(arriving[0])
    reading = asyncio.ensure_future(body.read(1000))
    for piece in arriving[1:]:
        await asyncio.sleep(0)
        body.receive(piece)
    assert await reading == b"".join(chunks)
    rest, at = body.rest
    assert rest[at:] == after


@given(
    st.binary(min_size=1, max_size=60), st.binary(max_size=20), st.lists(st.integers(0, 10_000), max_size=8)
)
async def test_a_body_ends_at_its_content_length(data: bytes, after: bytes, cuts: list[int]) -> None:
    body = RequestBody(len(data), chunked=False)
    arriving = pieces(data + after, cuts)
    body.receive(arriving[0])
    reading = asyncio.ensure_future(body.read(60))
    for piece in arriving[1:]:
        await asyncio.sleep(0)
        body.receive(piece)
    assert await reading == data
    rest, at = body.rest
    assert rest[at:] == after


@pytest.mark.parametrize(
    "data",
    [
        b"x\r\n",
        b"-1\r\n",
        b"\r\n",
        b"\n",
        b"1\r\nab\r\n",
        b"1\r\nab",
        b"+1\r\na",
        b" 1\r\na",
        b"1 ;a=b\r\na",
        b"f" * 17 + b"\r\n",
        b"1" * 5000,
        b"1;" + b"a" * 5000 + b"\r\na\r\n0\r\n\r\n",
        b"1;a\nb\r\na\r\n0\r\n\r\n",
        b"1;a\rb\r\na\r\n0\r\n\r\n",
        b"1\na\r\n0\r\n\r\n",
        b"0\r\nno field\r\n\r\n",
        b"0\r\nA: b\r\n folded\r\n\r\n",
        b"0\r\nA: b\nC: d\r\n\r\n",
        b"0\r\nContent-Length: 1\r\n\r\n",
        b"0\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"0\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
    ],
)
async def test_malformed_chunks_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedRequest):
        await parsed(data)


@given(
    st.lists(st.binary(min_size=1, max_size=20), max_size=3),
    st.sampled_from((b"", b";a=b", b" ")),
    st.sampled_from((b"", b"X-Checksum: 1\r\n")),
    st.lists(st.tuples(st.integers(0, 200), st.sampled_from(b"\r\n;:0aF \t\0x")), max_size=2),
)
async def test_a_chunked_body_is_read_as_h11_reads_it_or_refused(
    chunks: list[bytes], extension: bytes, trailer: bytes, changes: list[tuple[int, int]]
) -> None:
    h11: Any = pytest.importorskip("h11")
    data = bytearray(chunked(chunks, extension, trailer) + b"GET")
    for at, byte in changes:
        data[at % len(data)] = byte
    body = RequestBody(0, chunked=True)
    body.receive(bytes(data))
    reading = asyncio.ensure_future(body.read(10_000))
    await asyncio.sleep(0)
    if not reading.done() or reading.exception() is not None:
        reading.cancel()
        return
    rest, at = body.rest
    oracle = h11.Connection(h11.SERVER)
    oracle.receive_data(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + data)
    got = b""
    while not isinstance(event := oracle.next_event(), h11.EndOfMessage):
        assert event is not h11.NEED_DATA
        got += getattr(event, "data", b"")
    assert (reading.result(), rest[at:]) == (got, oracle.trailing_data[0])


class CountingBytes(bytes):
    """Bytes that count how many of them are copied."""

    copied = 0

    def _counted(self, made: bytes) -> CountingBytes:
        CountingBytes.copied += len(made)
        return CountingBytes(made)

    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        made = super().__getitem__(key)
        return self._counted(made) if isinstance(made, bytes) else made

    def __add__(self, other: Any) -> CountingBytes:
        return self._counted(bytes(self) + other)

    def __radd__(self, other: Any) -> CountingBytes:
        if isinstance(other, bytearray):
            return NotImplemented
        return self._counted(other + bytes(self))

    def partition(self, sep: Any) -> Any:
        return tuple(map(self._counted, super().partition(sep)))


async def test_parsing_chunks_copies_each_byte_only_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountingBytes, "copied", 0)
    data = CountingBytes(chunked([b"ab"] * 2000))
    assert await parsed(data, 20_000) == b"ab" * 2000
    assert CountingBytes.copied <= 3 * len(data)


async def test_the_framing_of_chunks_is_limited_as_their_data_is(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = 0
    parse_line: Any = RequestBody._parse_line

    def counted(*args: Any) -> Any:
        nonlocal lines
        lines += 1
        return parse_line(*args)

    monkeypatch.setattr(RequestBody, "_parse_line", counted)
    assert await parsed(chunked([b"a"] * 5000), 10_000) is None
    assert lines <= 10_000 / 3
    assert await parsed(chunked([b"a"] * 1000), 10_000) == b"a" * 1000
    assert await parsed(chunked([b"a" * 10_000]), 10_000) == b"a" * 10_000


async def test_a_body_is_not_parsed_before_it_is_read() -> None:
    body = RequestBody(0, chunked=True)
    body.receive(b"no chunk")
    assert (body.held, body.size) == (8, 0)


async def test_a_body_beyond_the_limit_is_given_up_as_soon_as_its_size_is_known() -> None:
    assert await RequestBody(11, chunked=False).read(10) is None
    body = RequestBody(0, chunked=True)
    reading = asyncio.create_task(body.read(10))
    await asyncio.sleep(0)
    body.receive(b"6\r\nabcdef\r\n")
    await asyncio.sleep(0)
    assert not reading.done()
    body.receive(b"6\r\n")
    assert await reading is None


async def test_reading_a_body_fails_when_the_connection_is_lost() -> None:
    body = RequestBody(5, chunked=False)
    reading = asyncio.create_task(body.read(10))
    await asyncio.sleep(0)
    body.receive(b"ab")
    body.connection_lost()
    with pytest.raises(ConnectionResetError):
        await reading


@pytest.mark.parametrize("chunked", [False, True])
async def test_what_has_arrived_of_a_body_is_dropped_when_the_connection_is_lost(chunked: bool) -> None:
    # The request outlives its connection for a while, in its handler and in the handler's exception.
    body = RequestBody(3_000_000, chunked=chunked)
    reading = asyncio.create_task(body.read(5_000_000))
    await asyncio.sleep(0)
    body.receive((b"1e8480\r\n" if chunked else b"") + b"x" * 1_000_000)
    assert body.parsed == 1_000_000
    body.connection_lost()
    body.receive(b"x" * 1_000_000)
    body.skip()
    assert (body.parsed, body.held) == (0, 0)
    with pytest.raises(ConnectionResetError):
        await reading


async def test_a_body_whose_client_goes_after_its_last_byte_is_not_read_as_an_empty_one() -> None:
    body = RequestBody(4, chunked=False)
    reading = asyncio.create_task(body.read(100))
    await asyncio.sleep(0)
    body.receive(b"data")
    body.connection_lost()
    with pytest.raises(ConnectionResetError):
        await reading


async def test_a_body_and_its_reader_share_one_copy() -> None:
    body = RequestBody(0, chunked=True)
    body.receive(b"4\r\ndata\r\n0\r\n\r\n")
    first = await body.read(100)
    assert first == b"data"
    assert await body.read(100) is first
