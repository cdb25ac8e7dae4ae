"""HTTP responses: status, headers and content are those that h11 reads, in one piece and in single bytes."""

from __future__ import annotations

from typing import NamedTuple

import h11
from hypothesis import strategies as st

from steersman.client.http1 import Body, Head, MalformedResponse, read_head
from tests.fuzz.target import Target

END = b"\r\n\r\n"
_LONGEST = 1024 * 1024


class Read(NamedTuple):
    """A response as far as it was received."""

    status: int
    headers: dict[str, str]
    content: bytes
    complete: bool


def ours(data: bytes, size: int) -> Read | None:
    """The response as this client reads it in pieces of a size; None if it is refused, or its head is not complete."""
    head, found, rest = data.partition(END)
    if not found:
        return None
    try:
        parsed: Head = read_head(head)
        body: Body = parsed.body()
        content = b""
        for at in range(0, len(rest), size):
            if body.done:
                break
            content += body.feed(rest[at : at + size])
    except MalformedResponse:
        return None
    if not body.done:
        body.end()
    return Read(parsed.status, dict(parsed.headers), content, body.done)


def oracle(data: bytes) -> Read | None:
    """The response as h11 reads it, at the end of the connection; None if it is refused."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    content = b""
    complete = ended = False
    try:
        head = connection.next_event()
        if not isinstance(head, h11.Response | h11.InformationalResponse):
            return None
        headers: dict[str, str] = {}
        for name, value in head.headers:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        try:
            while isinstance(head, h11.Response) and not complete:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    ended = True
                    connection.receive_data(b"")
                elif isinstance(event, h11.Data):
                    content += event.data
                else:
                    complete = True
        except h11.RemoteProtocolError:
            if not ended:
                return None
    except h11.RemoteProtocolError:
        return None
    return Read(head.status_code, headers, content, complete)


def check(data: bytes) -> None:
    read = ours(data, max(1, len(data)))
    assert read == ours(data, 1), "another response in single bytes"
    if read is None or read.status < 200 or not read.complete:
        return
    theirs = oracle(data)
    if theirs is None:
        assert has_framing_trailer(data), "accepted, but h11 refuses it"
        return
    assert read.status == theirs.status
    assert read.content == theirs.content
    assert theirs.complete
    # h11 gives one Content-Length for several that are equal, and Transfer-Encoding in lower case.
    for name, value in read.headers.items():
        assert value.lower() == theirs.headers[name].lower()


def has_framing_trailer(data: bytes) -> bool:
    """Report whether headers that tell the end of a body come after it. h11 checks them; here they are discarded."""
    body = data.partition(END)[2].lower()
    return b"content-length:" in body or b"transfer-encoding:" in body


FIELDS = st.lists(
    st.sampled_from(
        [
            b"Content-Length: 5",
            b"content-length: 0",
            b"Transfer-Encoding: chunked",
            b"Transfer-Encoding: gzip",
            b"Connection: close",
            b"Connection: keep-alive",
            b"Content-Type: application/json",
            b'Warning: 299 - "a"',
            b"A:b",
            b"A : b",
            b" folded",
        ]
    ),
    max_size=4,
).map(lambda fields: b"".join(b"\r\n" + field for field in fields))
CHUNKS = st.lists(st.binary(min_size=1, max_size=9), max_size=4).map(
    lambda chunks: b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in chunks) + b"0\r\n\r\n"
)

TARGET = Target(
    name="http_response",
    check=check,
    seeds=(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.0 500 Internal Server Error\r\n\r\nno",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
    ),
    strategy=st.tuples(
        st.sampled_from([b"HTTP/1.1 200 OK", b"HTTP/1.0 200 OK", b"HTTP/1.1 204 No Content", b"HTTP/1.1 409 Conflict"]),
        FIELDS, st.just(END), st.one_of(CHUNKS, st.binary(max_size=20)),
    ).map(b"".join),
    dictionary=(
        b"HTTP/1.1 ", b"HTTP/1.0 ", b"200", b"\r\n", b"\n", b"\r", END, b"Content-Length: ", b"Transfer-Encoding: ", b"chunked", b"gzip",
        b"Connection: ", b"close", b"keep-alive", b": ", b" :", b"0\r\n\r\n", b"5\r\n", b";a=b", b"\x00", b"\xff", b"+1", b"1, 1",
    ),
    max_bytes=2048,
)  # fmt: skip
