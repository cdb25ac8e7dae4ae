"""SPDY frames of a client: the same frames however they are cut, no exception but `SpdyError`, bounded headers."""

from __future__ import annotations

import struct
import zlib

from hypothesis import strategies as st

from steersman.http.spdy import DICTIONARY, MAX_HEADERS, Frame, FrameReader, NewStream, SpdyError
from tests.fuzz.target import Target
from tests.fuzz.targets.http_body import cuts


def control(kind: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack("!HHI", 0x8003, kind, flags << 24 | len(body)) + body


def data(stream: int, content: bytes, flags: int = 0) -> bytes:
    return struct.pack("!II", stream, flags << 24 | len(content)) + content


def new_streams(*headers: dict[str, str]) -> bytes:
    """Streams 1, 3, 5 … with these headers, which are compressed as one."""
    deflate, found = zlib.compressobj(zdict=DICTIONARY), b""
    for number, each in enumerate(headers):
        words = [word.encode() for pair in each.items() for word in pair]
        block = struct.pack("!I", len(each)) + b"".join(struct.pack("!I", len(word)) + word for word in words)
        packed = deflate.compress(block) + deflate.flush(zlib.Z_SYNC_FLUSH)
        found += control(1, struct.pack("!IIH", 2 * number + 1, 0, 0) + packed)
    return found


def check(sent: bytes) -> None:
    found = []
    for packets in cuts(sent):
        reader, refused = FrameReader(), False
        frames: list[Frame] = []
        try:
            for packet in packets:
                frames += reader.receive(packet)
        except SpdyError:
            refused = True
        for frame in frames:
            if isinstance(frame, NewStream):
                assert sum(map(len, (*frame.headers, *frame.headers.values()))) <= MAX_HEADERS
        found.append((frames, refused))
    assert all(each == found[0] for each in found)


FORWARD = (
    {"streamtype": "error", "port": "80", "requestid": "0"},
    {"streamtype": "data", "port": "80", "requestid": "0"},
)
TARGET = Target(
    "spdy_frames",
    check,
    seeds=(
        new_streams(*FORWARD) + data(3, b"GET / HTTP/1.0\r\n\r\n") + data(3, b"", 1),
        control(6, struct.pack("!I", 1)) + control(3, struct.pack("!II", 1, 5)) + control(7, bytes(8)),
    ),
    strategy=st.lists(
        st.one_of(
            st.builds(control, st.integers(0, 10), st.binary(max_size=60), st.integers(0, 3)),
            st.builds(data, st.integers(0, 9), st.binary(max_size=60), st.integers(0, 3)),
            st.builds(new_streams, st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=4)),
        ),
        max_size=6,
    ).map(b"".join),
    dictionary=(b"\x80\x03\x00\x01", b"\x80\x03\x00\x08", b"\x80\x03\x00\x06"),
)
