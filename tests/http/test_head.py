"""Heads of requests: what is understood, and what is refused because two could understand it differently."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from steersman.http.head import Headers, Malformed, dated, parse, read

HOST = b"Host: x"


def test_names_are_the_same_in_any_case_and_values_keep_their_order() -> None:
    headers = read(b"Host: x\r\nX-A: 1\r\nx-a:  2 \t\r\nX-Empty:").headers
    assert headers.get("x-A") == "1"
    assert headers.getall("X-a") == ["1", "2"]
    assert headers.get("x-empty", "given") == ""
    assert headers.get("x-none", "given") == "given"
    assert "HOST" in headers
    assert list(headers) == ["host", "x-a", "x-empty"]
    assert headers.items()[2] == ("x-a", "2")


@pytest.mark.parametrize(
    "block",
    [
        b"Host : x",
        b" Host: x",
        b"Host: x\r\n folded",
        b"Host x",
        b": x",
        b"Ho\x00st: x",
        b"Host: x\x00y",
        b"Host: x\ny: z",
        b"Host: x\r\nContent-Length: 1\r\nContent-Length: 2",
        b"Host: x\r\nContent-Length: -1",
        b"Host: x\r\nContent-Length: +1",
        b"Host: x\r\nContent-Length: 0x1",
        b"Host: x\r\nContent-Length: 1, 1",
        b"Host: x\r\nContent-Length: ",
        b"Host: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        b"Host: x\r\nTransfer-Encoding: gzip, chunked",
        b"Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    ],
)
def test_a_block_that_can_be_read_in_two_ways_is_refused(block: bytes) -> None:
    with pytest.raises(Malformed):
        read(block)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"GET / HTTP/1.1", 0),
        (b"GET  / HTTP/1.1", 400),
        (b"GET /a b HTTP/1.1", 400),
        (b"get / HTTP/1.1", 400),
        (b"GET /", 400),
        (b"GET /\x01 HTTP/1.1", 400),
        (b"GET / HTTP/2.0", 505),
        (b"GET / http/1.1", 505),
        (b"", 400),
    ],
)
def test_the_first_line_has_three_words(line: bytes, code: int) -> None:
    if not code:
        assert parse(line, read(HOST)).target == "/"
        return
    with pytest.raises(Malformed) as refused:
        parse(line, read(HOST))
    assert refused.value.code == code


def test_a_modern_client_says_whom_it_means_and_an_old_one_need_not() -> None:
    with pytest.raises(Malformed):
        parse(b"GET / HTTP/1.1", read(b""))
    assert not parse(b"GET / HTTP/1.0", read(b"")).modern


@pytest.mark.parametrize(
    ("version", "said", "keeps"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"close", False),
        (b"1.1", b"Keep-Alive", True),
        (b"1.0", b"", False),
        (b"1.0", b"keep-alive", True),
    ],
)
def test_a_connection_is_kept_as_its_version_has_it_or_as_is_said(
    version: bytes, said: bytes, keeps: bool
) -> None:
    block = HOST + (b"\r\nConnection: " + said if said else b"")
    assert parse(b"GET / HTTP/" + version, read(block)).keeps is keeps


def test_a_target_that_names_the_host_is_its_path() -> None:
    assert parse(b"GET http://x:1/api?a=b HTTP/1.1", read(HOST)).target == "/api?a=b"


def test_no_headers_are_none() -> None:
    assert list(Headers()) == []
    assert read(b"").headers.items() == ()


def test_a_date_is_english_and_in_greenwich() -> None:
    at = datetime(2026, 3, 1, 0, 30, 5, tzinfo=timezone(timedelta(hours=1)))
    assert dated(at) == "Sat, 28 Feb 2026 23:30:05 GMT"
    assert dated(datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)) == "Sun, 06 Nov 1994 08:49:37 GMT"
