"""Responses are the same however the network cuts them; what is not one is refused."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.client.http1 import (
    Body,
    ChunkedBody,
    EndlessBody,
    Gunzip,
    MalformedResponse,
    SizedBody,
    read_head,
)

CHUNKED = b"5\r\nhello\r\n1;a=b\r\n,\r\nA\r\n worldwide\r\n0\r\nTrailer: x\r\n\r\n"


def fed(body: Body, data: bytes, size: int) -> bytes:
    return b"".join(body.feed(data[at : at + size]) for at in range(0, len(data), size))


# -- heads ------------------------------------------------------------------------------------


def test_a_head_has_its_status_and_headers_by_their_names_in_lower_case() -> None:
    head = read_head(b"HTTP/1.1 404 Not Found\r\nContent-Type:  text/plain \r\nWarning: a\r\nWARNING: b")
    assert (head.status, head.persistent) == (404, True)
    assert head.headers == {"content-type": "text/plain", "warning": "a, b"}


@pytest.mark.parametrize(
    ("head", "persistent"),
    [
        (b"HTTP/1.1 200 OK", True),
        (b"HTTP/1.1 200", True),
        (b"HTTP/1.1 200 OK\r\nConnection: close", False),
        (b"HTTP/1.1 200 OK\r\nConnection: Upgrade, Close", False),
        (b"HTTP/1.0 200 OK", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive", True),
    ],
)
def test_a_connection_is_kept_where_the_server_keeps_it(head: bytes, persistent: bool) -> None:
    assert read_head(head).persistent is persistent


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"HTTP/2 200 OK",
        b"HTTP/1.1 20 OK",
        b"HTTP/1.1 600 OK",
        b"SSH-2.0-OpenSSH_9",
        b"HTTP/1.1 200 OK\nA: b",
        b"HTTP/1.1 200 OK\r\nno colon",
        b"HTTP/1.1 200 OK\r\n folded: x",
        b"HTTP/1.1 200 OK\r\nA : b",
        b"HTTP/1.1 200 OK\r\n: b",
        b"HTTP/1.1 200 OK\r\nA: b\x00",
        b"HTTP/1.1 200 OK\r\nA: b\nB: c",
        b"HTTP/1.1 200 OK\r\n",
    ],
)
def test_what_is_no_head_is_refused(head: bytes) -> None:
    with pytest.raises(MalformedResponse):
        read_head(head)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (b"Content-Length: 0", SizedBody),
        (b"Content-Length: 7", SizedBody),
        (b"Transfer-Encoding: Chunked", ChunkedBody),
        # As in RFC 9112, the chunks decide.
        (b"Content-Length: 7\r\nTransfer-Encoding: chunked", ChunkedBody),
        (b"A: b", EndlessBody),
    ],
)
def test_the_headers_tell_where_a_body_ends(fields: bytes, kind: type) -> None:
    assert type(read_head(b"HTTP/1.1 200 OK\r\n" + fields).body()) is kind


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_some_responses_have_no_body_whatever_their_headers_say(status: bytes) -> None:
    assert read_head(b"HTTP/1.1 " + status + b"\r\nContent-Length: 7").body().done


@pytest.mark.parametrize(
    "field",
    [
        b"Content-Length: -1",
        b"Content-Length: +1",
        b"Content-Length: 1, 2",
        b"Content-Length: 1\r\nContent-Length: 2",
        b"Content-Length: \xb2",
        b"Content-Length: " + b"9" * 30,
        b"Content-Length:",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    ],
)
def test_an_end_that_two_readers_could_see_in_two_places_is_refused(field: bytes) -> None:
    with pytest.raises(MalformedResponse):
        read_head(b"HTTP/1.1 200 OK\r\n" + field).body()


def test_another_compression_than_was_asked_for_is_refused() -> None:
    assert read_head(b"HTTP/1.1 200 OK\r\nContent-Encoding: GZIP").compressed
    assert not read_head(b"HTTP/1.1 200 OK").compressed
    with pytest.raises(MalformedResponse):
        assert read_head(b"HTTP/1.1 200 OK\r\nContent-Encoding: br").compressed


# -- bodies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", range(1, len(CHUNKED) + 5))
def test_chunks_are_the_same_in_pieces_of_any_size(size: int) -> None:
    body = ChunkedBody()
    assert fed(body, CHUNKED, size) == b"hello, worldwide"
    assert body.done


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=5), st.integers(1, 60))
def test_any_content_comes_out_of_its_chunks(contents: list[bytes], size: int) -> None:
    data = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in contents) + b"0\r\n\r\n"
    body = ChunkedBody()
    assert fed(body, data, size) == b"".join(contents)
    assert body.done


def test_what_comes_after_the_end_of_a_body_is_left() -> None:
    for body, data in ((SizedBody(2), b"abHTTP"), (ChunkedBody(), b"2\r\nab\r\n0\r\n\r\nHTTP")):
        assert body.feed(data) == b"ab"
        assert (body.done, body.rest) == (True, b"HTTP")


@pytest.mark.parametrize(
    "data",
    [
        b"x\r\n",
        b"-1\r\n",
        b"0x1\r\n",
        b"\r\n",
        b"1" * 16 + b"\r\n",
        b"1\r\nab\r\n",
        b"1\r\nabc",
        b"1\r\na\nb",
        b"1 " * 5000,
        b"0\r\nno trailer\r\n\r\n",
    ],
)
def test_what_is_no_chunk_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedResponse):
        ChunkedBody().feed(data)


def test_only_a_body_without_a_length_ends_with_the_connection() -> None:
    sized, chunked, endless = SizedBody(3), ChunkedBody(), EndlessBody()
    for body in (sized, chunked, endless):
        body.feed(b"1\r")
        body.end()
    assert [body.done for body in (sized, chunked, endless)] == [False, False, True]


def test_compressed_content_comes_out_in_the_pieces_in_which_it_arrives() -> None:
    data, content = gzip.compress(b"pods " * 100), Gunzip()
    assert b"".join(content.feed(bytes([each])) for each in data) == b"pods " * 100
    assert content.done
    with pytest.raises(MalformedResponse):
        Gunzip().feed(b"plain text")
