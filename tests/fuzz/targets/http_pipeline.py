"""Requests one after the other on a connection: they begin and end where h11 sees them begin and end.

A request that only one of two parsers sees is how requests are smuggled past a proxy.
"""

from __future__ import annotations

from typing import NamedTuple

import h11
from hypothesis import strategies as st

from steersman.http.request import HttpRequest
from steersman.http.response import HttpResponse
from tests.fuzz.event_loop import run
from tests.fuzz.http_oracle import (
    OracleRequest,
    Refused,
    has_target_beyond_ascii,
    read_request,
    without_empty_lines,
)
from tests.fuzz.server_connection import exchange
from tests.fuzz.target import Target
from tests.fuzz.targets.http_body import bodies, cuts

LIMIT = 1 << 20
UNREAD = "/unread"
"""Requests for this path are answered without reading their bodies."""


class Handled(NamedTuple):
    """A request that reached the handler."""

    method: str
    path: str
    fields: int
    body: bytes | None
    """None for one that was not read."""


class Exchange(NamedTuple):
    """A whole connection."""

    handled: tuple[Handled, ...]
    written: bytes
    closed: bool


async def exchanged(packets: tuple[bytes, ...] | list[bytes]) -> Exchange:
    handled: list[Handled] = []

    async def handle(request: HttpRequest) -> HttpResponse:
        body = None if request.raw_path.startswith(UNREAD) else await request.read(LIMIT)
        handled.append(Handled(request.method, request.raw_path, len(request.headers.items()), body))
        return HttpResponse(200, (), b"ok")

    transport = await exchange(handle, packets)
    return Exchange(tuple(handled), transport.written, transport.closed)


async def check_connection(data: bytes) -> None:
    first: Exchange | None = None
    for packets in cuts(data, bytewise=100):
        found = await exchanged(list(packets))
        if first is None:
            first = found
        # An unread body may or may not be complete when its request is answered, which decides about the connection.
        elif UNREAD.encode() not in data:
            assert found.handled == first.handled, "packets make a difference to the requests"
            assert found.written == first.written, "packets make a difference to the responses"
        compare(found, data)


def compare(ours: Exchange, data: bytes) -> None:
    responses, last = read_responses(ours)
    rest = data
    for number, handled in enumerate(ours.handled):
        rest = without_empty_lines(rest)
        try:
            oracle = read_request(rest)
        except Refused:
            # A malformed body that was not read ends the connection.
            assert has_target_beyond_ascii(rest) or (handled.body is None and last), (
                f"h11 refuses request {number}"
            )
            return
        assert oracle is not None, f"h11 does not see request {number}"
        assert_same(handled, oracle)
        if oracle.body is None:
            assert handled.body is None
            assert number == len(ours.handled) - 1, "a request was read from another one's body"
            return
        if oracle.closes or not (oracle.http11 or oracle.keeps):
            assert number == len(ours.handled) - 1, "a request was handled after the last one"
            assert last
            return
        rest = oracle.rest
    if responses > len(ours.handled) or last:
        return  # what follows was refused, or is not read
    rest = without_empty_lines(rest)
    if not rest:
        return
    try:
        oracle = read_request(rest)
    except Refused:
        return  # refused by h11 before its head is complete
    if oracle is not None and oracle.body is not None:
        # h11 takes a bare LF for a line end. Here the head never ends, or is refused when it does.
        assert has_bare_lf(rest), "h11 sees one more request"


def has_bare_lf(data: bytes) -> bool:
    return b"\n" in data.replace(b"\r\n", b"")


def assert_same(handled: Handled, oracle: OracleRequest) -> None:
    assert handled.method.encode() == oracle.method
    if oracle.target.startswith(b"/"):
        assert handled.path == oracle.target.decode("utf-8", "replace")
    if handled.body is not None:
        assert handled.body == oracle.body


def read_responses(ours: Exchange) -> tuple[int, bool]:
    """The number of responses as a client reads them, and whether the last one ends the connection."""
    count = 0
    last = False
    data = ours.written
    while data:
        head = count < len(ours.handled) and ours.handled[count].method == "HEAD"
        reader = h11.Connection(h11.CLIENT)
        reader.send(h11.Request(method="HEAD" if head else "GET", target="/", headers=[("Host", "a")]))
        reader.send(h11.EndOfMessage())
        reader.receive_data(data)
        assert not last, "a response after the last one"
        while not isinstance(event := reader.next_event(), h11.EndOfMessage):
            assert event is not h11.NEED_DATA, "a response is not complete"
            if isinstance(event, h11.Response):
                last = (b"connection", b"close") in event.headers
            if isinstance(event, h11.InformationalResponse):
                assert event.status_code == 100
                if data == b"HTTP/1.1 100 Continue\r\n\r\n":
                    return count, False  # the body has not come yet
        count += 1
        data = reader.trailing_data[0]
    assert len(ours.handled) <= count <= len(ours.handled) + 1
    return count, last


def check(data: bytes) -> None:
    run(check_connection(data))


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    path = draw(st.sampled_from([b"/", b"/a?b", b"/unread", b"http://a/b"]))
    version = draw(st.sampled_from([b"1.1", b"1.1", b"1.1", b"1.0"]))
    method = draw(st.sampled_from([b"GET", b"POST", b"HEAD"]))
    body = draw(st.one_of(bodies(), st.binary(max_size=20), st.just(b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n")))
    framing = draw(
        st.sampled_from(
            [
                b"", b"Content-Length: %d\r\n" % len(body), b"Content-Length: 0%d\r\n" % len(body), b"Content-Length: 0\r\n",
                b"Content-Length: %d\r\nContent-Length: %d\r\n" % (len(body), len(body)), b"Transfer-Encoding: chunked\r\n",
                b"Transfer-Encoding: Chunked\r\n", b"Transfer-Encoding:\tchunked \r\n", b"Transfer-Encoding: chunked, identity\r\n",
                b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
                b"Content-Length: 1\r\nContent-Length: 2\r\n", b"X: a\r\n Content-Length: 3\r\n", b"X: a\nContent-Length: 3\r\n",
            ]
        )
    )  # fmt: skip
    more = draw(
        st.sampled_from(
            [b"", b"", b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Expect: 100-continue\r\n"]
        )
    )
    after = body if framing else b""
    return b"%b %b HTTP/%b\r\nHost: a\r\n%b%b\r\n%b" % (method, path, version, framing, more, after)


TARGET = Target(
    name="http_pipeline",
    check=check,
    seeds=(
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\nHEAD /b HTTP/1.1\r\nHost: a\r\n\r\nGET /c HTTP/1.0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET /unread HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\nPOST /unread HTTP/1.1\r\nHost: a\r\n"
        b"Content-Length: 2\r\n\r\nabPUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
    ),
    strategy=st.lists(requests(), min_size=1, max_size=4).map(b"".join),
    dictionary=(
        b"GET ", b"POST ", b"HEAD ", b"/", b"/unread", b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", b"Host: a\r\n", b"\r\n", b"\n", b"\r", b"\r\n\r\n",
        b"Content-Length: ", b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n", b"5\r\nhello\r\n", b"Connection: close\r\n", b";", b" ", b"\t",
        b"Connection: keep-alive\r\n", b"Expect: 100-continue\r\n", b"\x00", b"\xff", b",",
    ),
    seconds_per_byte=400e-6,  # every byte is a packet of its own
)  # fmt: skip
