from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.errors import ServerError
from steersman.client import watch
from steersman.client.watch import LineSplitter, watch_events


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=20), st.data())
def test_however_a_stream_is_cut_the_lines_are_the_same(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    cutter = LineSplitter()
    assert [line for piece in pieces for line in cutter.feed(piece)] == lines
    assert cutter.remainder() == b""


def test_what_follows_the_last_line_is_kept_for_the_next_piece() -> None:
    cutter = LineSplitter()
    assert cutter.feed(b"one\ntw") == [b"one"]
    assert cutter.remainder() == b"tw"
    assert cutter.feed(b"o\n") == [b"two"]


def test_a_line_without_end_is_an_error_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MAX_LINE", 100)
    cutter = LineSplitter()
    cutter.feed(b"x" * 60)
    with pytest.raises(ServerError, match="more than 100 bytes"):
        cutter.feed(b"x" * 60)


class Pieces:
    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    async def read(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


def decode(line: bytes) -> bytes:
    if not line.endswith(b"}}"):
        raise ServerError("cut off", reason="ClientWatchDecoding")
    return line


@pytest.mark.parametrize(
    ("pieces", "seen"),
    [
        ((b'{"a":{}}\n{"b":{}}\n',), [b'{"a":{}}', b'{"b":{}}']),
        ((b'{"a":{}}\n\n\n',), [b'{"a":{}}']),
        ((b'{"a":{}}\n{"b":', b"{}}"), [b'{"a":{}}', b'{"b":{}}']),
        ((b'{"a":{}}\n{"b":{}',), [b'{"a":{}}']),
        ((b'{"a":{}}\n{"b":',), [b'{"a":{}}']),
        ((), []),
    ],
)
async def test_a_last_line_counts_if_it_is_whole_and_is_dropped_if_not(
    pieces: tuple[bytes, ...], seen: list[bytes]
) -> None:
    assert [line async for line in watch_events(Pieces(*pieces).read, decode)] == seen


async def test_an_error_in_the_last_line_is_raised() -> None:
    def refuse(line: bytes) -> bytes:
        raise ServerError("too old", reason="Expired")

    with pytest.raises(ServerError, match="too old"):
        async for _ in watch_events(Pieces(b'{"type":"ERROR"}').read, refuse):
            pass
