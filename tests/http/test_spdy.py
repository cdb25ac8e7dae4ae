"""SPDY framing: what kubectl sends is read, and what it could not have sent is refused."""

from __future__ import annotations

import struct
import zlib

import pytest

from steersman.http.spdy import (
    DICTIONARY,
    MAX_FRAME,
    MAX_HEADERS,
    Data,
    FrameReader,
    FrameWriter,
    NewStream,
    Ping,
    Reset,
    SpdyError,
)
from tests.fuzz.targets.spdy_frames import FORWARD, control, data, new_streams


def read(sent: bytes) -> list[object]:
    return list(FrameReader().receive(sent))


def test_the_dictionary_is_that_of_the_specification() -> None:
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


def test_the_frames_of_a_forwarded_connection_are_read() -> None:
    sent = new_streams(*FORWARD) + data(3, b"hello") + data(3, b"", 1) + control(6, struct.pack("!I", 7))
    sent += control(4, bytes(4)) + control(9, bytes(8)) + control(3, struct.pack("!II", 3, 5))
    assert read(sent) == [
        NewStream(1, FORWARD[0], False),
        NewStream(3, FORWARD[1], False),
        Data(3, b"hello", False),
        Data(3, b"", True),
        Ping(7),
        Reset(3),
    ]


def test_what_the_server_writes_can_be_read() -> None:
    frames, inflate = FrameWriter(), zlib.decompressobj(zdict=DICTIONARY)
    for stream in (1, 3):
        reply = frames.reply(stream)
        assert reply[:4] == b"\x80\x03\x00\x02"
        assert struct.unpack("!I", reply[8:12]) == (stream,)
        assert inflate.decompress(reply[12:]) == bytes(4), "no headers"
    assert read(frames.data(5, b"x", fin=True) + frames.ping(9) + frames.reset(5, 3)) == [
        Data(5, b"x", True),
        Ping(9),
        Reset(5),
    ]


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack("!II", 1, MAX_FRAME + 1),
        data(0, b"x"),
        b"\x80\x02\x00\x01\x00\x00\x00\x00",  # another version
        control(1, bytes(12)),  # stream 0
        control(1, struct.pack("!IIH", 1, 0, 0) + b"no zlib"),
        control(6, b"x"),
        new_streams({"bomb": "x" * MAX_HEADERS}),
        control(1, struct.pack("!IIH", 1, 0, 0) + zlib.compress(bytes(4))),  # without the dictionary
    ],
)
def test_what_is_no_spdy_or_too_much_is_refused(sent: bytes) -> None:
    with pytest.raises(SpdyError):
        read(sent)
