"""Request heads: which are parsed, and which are refused because two parsers could read them differently."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from steersman.http.head import Headers, MalformedRequest, http_date, parse_header_block, parse_request_line

HOST = b"Host: x"


def test_header_names_are_case_insensitive_and_values_keep_their_order() -> None:
    headers = parse_header_block(b"Host: x\r\nX-A: 1\r\nx-a:  2 \t\r\nX-Empty:").headers
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
        b"Host: x\r\nContent-Length: " + b"1" * 20,
        b"Host: x\r\nContent-Length: " + b"0" * 5000,
        b"Host: x\r\nHost: y",
        b"Host: x\r\nHost: x",
        b"Host: x/y",
        b"Host: x y",
        b"Host: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        b"Host: x\r\nTransfer-Encoding: gzip, chunked",
        b"Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    ],
)
def test_an_ambiguous_header_block_is_refused(block: bytes) -> None:
    with pytest.raises(MalformedRequest):
        parse_header_block(block)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"GET / HTTP/1.1", 0),
        (b"GET  / HTTP/1.1", 400),
        (b"GET /a b HTTP/1.1", 400),
        (b"get / HTTP/1.1", 400),
        (b"GET /", 400),
        (b"GET healthz HTTP/1.1", 400),
        (b"GET ?a=b HTTP/1.1", 400),
        (b"GET a?b=http://c/d HTTP/1.1", 400),
        (b"GET /a%zz HTTP/1.1", 400),
        (b"GET http://x/a%1 HTTP/1.1", 400),
        (b"GET /\x01 HTTP/1.1", 400),
        (b"GET / HTTP/2.0", 505),
        (b"GET / http/1.1", 505),
        (b"", 400),
    ],
)
def test_the_request_line_has_method_target_and_version(line: bytes, code: int) -> None:
    if not code:
        assert parse_request_line(line, parse_header_block(HOST)).target == "/"
        return
    with pytest.raises(MalformedRequest) as refused:
        parse_request_line(line, parse_header_block(HOST))
    assert refused.value.code == code


def test_the_host_header_is_required_for_http_1_1_only() -> None:
    with pytest.raises(MalformedRequest):
        parse_request_line(b"GET / HTTP/1.1", parse_header_block(b""))
    assert not parse_request_line(b"GET / HTTP/1.0", parse_header_block(b"")).http11


@pytest.mark.parametrize(
    ("version", "connection", "keep_alive"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"close", False),
        (b"1.1", b"Keep-Alive", True),
        (b"1.1", b"keep-alive\r\nConnection: Close", False),
        (b"1.1", b"Upgrade , close", False),
        (b"1.1", b"x-closed", True),
        (b"1.0", b"not-keep-alive", False),
        (b"1.0", b"", False),
        (b"1.0", b"keep-alive", True),
    ],
)
def test_keep_alive_follows_the_connection_header_or_else_the_version(
    version: bytes, connection: bytes, keep_alive: bool
) -> None:
    block = HOST + (b"\r\nConnection: " + connection if connection else b"")
    assert parse_request_line(b"GET / HTTP/" + version, parse_header_block(block)).keep_alive is keep_alive


@pytest.mark.parametrize(
    ("sent", "target"),
    [
        (b"http://x:1/api?a=b", "/api?a=b"),
        (b"http://x", "/"),
        (b"http://x?a=b/c", "/?a=b/c"),
        (b"http:/api", "/api"),
        (b"http:api", "/http:api"),
        (b"*", "/*"),
    ],
)
def test_a_target_in_absolute_form_is_reduced_to_its_path_and_query(sent: bytes, target: str) -> None:
    assert parse_request_line(b"GET " + sent + b" HTTP/1.1", parse_header_block(HOST)).target == target


def test_a_chunked_body_of_http_1_0_is_refused() -> None:
    block = parse_header_block(HOST + b"\r\nTransfer-Encoding: chunked")
    assert parse_request_line(b"POST / HTTP/1.1", block).block.chunked
    with pytest.raises(MalformedRequest):
        parse_request_line(b"POST / HTTP/1.0", block)


@pytest.mark.parametrize(
    ("version", "expect", "awaited"),
    [
        (b"1.1", b"100-Continue", True),
        (b"1.1", b"other, 100-continue", True),
        (b"1.1", b"100-continued", False),
        (b"1.0", b"100-continue", False),
    ],
)
def test_only_a_client_of_http_1_1_waits_for_100_continue(
    version: bytes, expect: bytes, awaited: bool
) -> None:
    block = parse_header_block(HOST + b"\r\nExpect: " + expect)
    assert parse_request_line(b"POST / HTTP/" + version, block).expect_continue is awaited


def test_invalid_utf_8_becomes_replacement_characters() -> None:
    block = parse_header_block(HOST + b"\r\nImpersonate-User: a\xffb\xc3\xa9")
    assert block.headers.get("impersonate-user") == "a\ufffdb\xe9"
    assert parse_request_line(b"GET /a\xff HTTP/1.1", block).target == "/a\ufffd"


def test_an_empty_header_block_has_no_headers() -> None:
    assert list(Headers()) == []
    assert parse_header_block(b"").headers.items() == ()


def test_an_http_date_is_english_and_gmt() -> None:
    at = datetime(2026, 3, 1, 0, 30, 5, tzinfo=timezone(timedelta(hours=1)))
    assert http_date(at) == "Sat, 28 Feb 2026 23:30:05 GMT"
    assert http_date(datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)) == "Sun, 06 Nov 1994 08:49:37 GMT"
