"""WebSocket frames of a client: the same messages however the network cuts them, no exception but `WebSocketError`, bounded memory."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from steersman.http.websocket import MAX_MESSAGE, FrameParser, Message, WebSocketError, masked
from tests.fuzz.target import Target
from tests.fuzz.targets.http_body import cuts


def client_frame(opcode: int, data: bytes, *, final: bool = True, mask: bytes = b"\x01\x02\x03\x04") -> bytes:
    """A frame as clients send it."""
    size, first = len(data), (0x80 if final else 0) | opcode
    if size < 126:
        head = struct.pack("!BB", first, 0x80 | size)
    elif size < 0x10000:
        head = struct.pack("!BBH", first, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", first, 0x80 | 127, size)
    return head + mask + masked(data, mask)


def check(data: bytes) -> None:
    found = []
    for packets in cuts(data):
        parser, error = FrameParser(), 0
        messages: list[Message] = []
        try:
            for packet in packets:
                messages += parser.receive(packet)
        except WebSocketError as refused:
            error = refused.code
            assert error in (1002, 1009)
        assert all(len(message.data) <= MAX_MESSAGE for message in messages)
        assert all(len(message.data) <= 125 for message in messages if message.is_control)
        found.append((messages, error))
    assert all(each == found[0] for each in found)


FRAMES = st.builds(
    client_frame,
    st.sampled_from((0, 1, 2, 2, 8, 9, 10, 3)),
    st.binary(max_size=300),
    final=st.booleans(),
    mask=st.binary(min_size=4, max_size=4),
)
TARGET = Target(
    "websocket_frames",
    check,
    seeds=(
        client_frame(2, b"\x00hello"),
        client_frame(1, b"a", final=False) + client_frame(9, b"ping") + client_frame(0, b"b"),
        client_frame(2, b"x" * 200) + client_frame(8, struct.pack("!H", 1000) + b"bye"),
    ),
    strategy=st.lists(FRAMES, max_size=6).map(b"".join),
    dictionary=(b"\x82\xfe", b"\x82\xff", b"\x89\x80", b"\x88\x82", b"\x00\x80", b"\x01\x80"),
)
