"""Request heads: what is accepted is read as h11 reads it."""

from __future__ import annotations

from urllib.parse import urlsplit

from hypothesis import strategies as st

from steersman.http.head import MalformedRequest, RequestHead, parse_header_block, parse_request_line
from tests.fuzz.http_oracle import Refused, has_target_beyond_ascii, read_request, without_empty_lines
from tests.fuzz.target import Target

END = b"\r\n\r\n"


def parsed(head: bytes) -> RequestHead | None:
    """The head as the connection parses it; None if it is refused."""
    line, _, block = head.partition(b"\r\n")
    try:
        return parse_request_line(line, parse_header_block(block))
    except MalformedRequest as error:
        assert error.code in (400, 431, 501, 505)
        return None


def check(data: bytes) -> None:
    head, _, _ = without_empty_lines(data).partition(END)
    ours = parsed(head)
    if ours is None:
        return
    try:
        oracle = read_request(head + END)
    except Refused:
        assert has_target_beyond_ascii(head), "accepted, but h11 refuses it"
        return
    assert oracle is not None, "h11 waits for more"
    assert ours.method.encode() == oracle.method
    assert ours.http11 == oracle.http11
    assert_same_target(ours.target, oracle.target.decode())
    assert_same_fields(ours, oracle.headers)
    block = ours.block
    lengths = oracle.field(b"content-length")
    assert block.content_length == (int(lengths[0]) if lengths else 0)
    assert block.chunked == bool(oracle.field(b"transfer-encoding"))
    assert ours.expect_continue == oracle.expects_continue
    # h11 does not know that HTTP/1.0 connections may be kept.
    assert ours.keep_alive == (not oracle.closes and (oracle.http11 or oracle.keeps))


def assert_same_target(ours: str, sent: str) -> None:
    """An absolute URL is reduced to its path and query; any other target stays as it is."""
    assert ours.startswith("/")
    if sent.startswith("/"):
        assert ours == sent
    elif "://" in sent and "#" not in sent:
        try:
            url = urlsplit(sent)
        except ValueError:
            return  # brackets that are no IPv6 address
        if url.netloc:
            query = f"?{url.query}" if "?" in sent else ""
            assert ours == (url.path or "/") + query


def assert_same_fields(ours: RequestHead, theirs: tuple[tuple[bytes, bytes], ...]) -> None:
    fields = [(name, value) for name, value in ours.block.headers.items()]
    seen = False
    normal = []
    for name, value in fields:
        # h11 gives one Content-Length for several that are equal, and Transfer-Encoding in lower case.
        if name.lower() == "content-length":
            if seen:
                continue
            seen = True
        normal.append((name, value.lower() if name.lower() == "transfer-encoding" else value))
    assert normal == [(name.decode(), value.decode("utf-8", "replace")) for name, value in theirs]


TOKENS = (
    b"GET", b"POST", b"HEAD", b"OPTIONS", b" / ", b" * ", b"http://", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0",
    b"\r\n", b"\n", b"\r", b"\r\n ", b"\r\n\t", b": ", b" :", b"Host: a", b"Content-Length: ", b"0", b"+1", b"1, 1",
    b"Transfer-Encoding: ", b"chunked", b"identity", b"Connection: ", b"close", b"keep-alive", b", ",
    b"Expect: 100-continue", b"Upgrade: websocket", b"\x00", b"\x0b", b"\x85", b"\xc2\xa0", b"\xff", b"%2f", b"?", b"#",
)  # fmt: skip
NAMES = st.sampled_from(
    [
        b"Host",
        b"host",
        b"Content-Length",
        b"content-length",
        b"Transfer-Encoding",
        b"Connection",
        b"Expect",
        b"X-A",
    ]
)
VALUES = st.sampled_from(
    [
        b"a", b"a:80", b"[::1]:80", b"", b"0", b"5", b"05", b"5, 5", b"-5", b"5 ", b"chunked", b"Chunked", b"chunked, chunked",
        b"gzip, chunked", b"close", b"Close", b"keep-alive", b"keep-alive, close", b"close-not", b"upgrade", b"100-continue",
        b"100-Continue", b"100-continue, 100-continue", b"\xff\xfe", b"\x0b", b"a\tb", b"a\r\n b",
    ]
)  # fmt: skip
TARGETS = st.sampled_from(
    [
        b"/", b"/a?b=c", b"*", b"a", b"a:80", b"http://a", b"http://a/b", b"http://a?b", b"HTTP://u@a:1/b?c#d", b"//a/b", b"/\xff",
        b"/%00", b"?a", b"http:///a", b"://", b"/a://b", b"a?b=http://c/d",
    ]
)  # fmt: skip


@st.composite
def heads(draw: st.DrawFn) -> bytes:
    method = draw(st.sampled_from([b"GET", b"POST", b"HEAD", b"get", b"G-T"]))
    version = draw(st.sampled_from([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"http/1.1"]))
    fields = draw(st.lists(st.tuples(NAMES, VALUES), max_size=5))
    host = [(b"Host", b"a")] if draw(st.booleans()) else []
    colon = draw(st.sampled_from([b": ", b":", b":\t", b" : "]))
    end = draw(st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r"]))
    lines = [
        b" ".join((method, draw(TARGETS), version)),
        *(name + colon + value for name, value in [*host, *fields]),
    ]
    return end.join(lines) + end + end


TARGET = Target(
    name="http_head",
    check=check,
    seeds=(
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /api/v1/pods?dryRun=All HTTP/1.1\r\nHost: a:6443\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\n",
        b"PUT /a HTTP/1.1\r\nhost: [::1]\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive, close\r\n\r\n",
        b"GET http://a:80/b?c=d HTTP/1.0\r\nConnection: keep-alive\r\nAccept: */*\r\n\r\n",
    ),
    strategy=heads(),
    dictionary=TOKENS,
)
