"""Request bodies, however the network cuts them into pieces."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.http.head import MalformedRequest
from steersman.http.request import RequestBody


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
    body, rest = RequestBody(0, chunked=True), b""
    for piece in pieces(chunked(chunks, extension, trailer) + after, cuts):
        rest += piece if body.complete else body.feed(piece)
    assert body.complete
    assert rest == after
    assert await body.read(1000) == b"".join(chunks)


@given(
    st.binary(min_size=1, max_size=60), st.binary(max_size=20), st.lists(st.integers(0, 10_000), max_size=8)
)
async def test_a_body_ends_at_its_content_length(data: bytes, after: bytes, cuts: list[int]) -> None:
    body, rest = RequestBody(len(data), chunked=False), b""
    for piece in pieces(data + after, cuts):
        rest += piece if body.complete else body.feed(piece)
    assert rest == after
    assert await body.read(60) == data


@pytest.mark.parametrize(
    "data", [b"x\r\n", b"-1\r\n", b"\r\n", b"1\r\nab\r\n", b"f" * 16 + b"\r\n", b"1" * 2000, b"+1\r\na"]
)
def test_malformed_chunks_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedRequest):
        RequestBody(0, chunked=True).feed(data)


async def test_a_body_beyond_the_limit_is_given_up_as_soon_as_its_size_is_known() -> None:
    assert await RequestBody(11, chunked=False).read(10) is None
    body = RequestBody(0, chunked=True)
    reading = asyncio.create_task(body.read(10))
    await asyncio.sleep(0)
    body.feed(b"6\r\nabcdef\r\n")
    await asyncio.sleep(0)
    assert not reading.done()
    body.feed(b"6\r\nabcdef\r\n")
    assert await reading is None


async def test_reading_a_body_fails_when_the_connection_is_lost() -> None:
    body = RequestBody(5, chunked=False)
    reading = asyncio.create_task(body.read(10))
    await asyncio.sleep(0)
    body.feed(b"ab")
    body.connection_lost()
    with pytest.raises(ConnectionResetError):
        await reading
