"""A log line never blocks: not when the reader of a pipe has stopped, and not when it is gone."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from steersman.manager.log_writer import CHUNK, LogWriter


def notice(count: int) -> bytes:
    return f"{count} dropped\n".encode()


@dataclass
class Pipe:
    """A pipe that takes a few kilobytes."""

    reader: int
    writer: int
    filler: int = 0
    """Bytes that are in it before the first line."""

    def fill(self) -> None:
        os.set_blocking(self.writer, False)
        try:
            while True:
                self.filler += os.write(self.writer, b"." * 512)
        except BlockingIOError:
            os.set_blocking(self.writer, True)

    def read(self, size: int) -> bytes:
        """So many bytes that come after the filler."""
        found = b""
        while len(found) < self.filler + size:
            found += os.read(self.reader, self.filler + size - len(found))
        taken, self.filler = self.filler, 0
        return found[taken:]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reader, writer = os.pipe()
    yield Pipe(reader, writer)
    os.close(writer)
    os.close(reader)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "log writer"]


def test_in_ordinary_operation_a_line_is_written_by_its_caller(pipe: Pipe) -> None:
    writer = LogWriter(pipe.writer)
    for line in (b"one\n", b"two\n"):
        writer.write(line, notice)
    assert threads() == []
    assert pipe.read(8) == b"one\ntwo\n"


def test_lines_wait_for_a_reader_that_has_stopped_and_keep_their_order(pipe: Pipe) -> None:
    pipe.fill()
    writer = LogWriter(pipe.writer)
    lines = [b"%d %s\n" % (number, b"x" * number) for number in range(500)]
    for line in lines:
        writer.write(line, notice)
    assert pipe.read(len(b"".join(lines))) == b"".join(lines)
    writer.flush(60)
    writer.write(b"at once again\n", notice)
    assert pipe.read(14) == b"at once again\n"


def test_a_line_longer_than_a_pipe_is_not_torn(pipe: Pipe) -> None:
    writer = LogWriter(pipe.writer)
    long = b"x" * (64 * CHUNK) + b"\n"
    for line in (long, b"short\n", long):
        writer.write(line, notice)
    assert pipe.read(2 * len(long) + 6) == long + b"short\n" + long


def test_lines_beyond_the_capacity_are_dropped_and_counted(pipe: Pipe) -> None:
    pipe.fill()
    writer = LogWriter(pipe.writer, capacity=100)
    kept, dropped = [b"%09d\n" % number for number in range(10)], [b"lost\n"] * 7
    for line in kept + dropped:
        writer.write(line, notice)
    wanted = b"".join(kept) + b"7 dropped\n"
    assert pipe.read(len(wanted)) == wanted
    writer.flush(60)
    writer.write(b"after\n", notice)
    assert pipe.read(6) == b"after\n"


def test_a_flush_gives_up_on_a_reader_that_has_stopped_and_does_not_wait_twice(pipe: Pipe) -> None:
    pipe.fill()
    writer = LogWriter(pipe.writer)
    writer.write(b"waits\n", notice)
    writer.flush(0.01)
    # Would take a day.
    writer.flush(86400)
    assert pipe.read(6) == b"waits\n"
    writer.flush(60)


def test_a_reader_that_is_gone_is_no_error() -> None:
    reader, end = os.pipe()
    os.close(reader)
    LogWriter(end).write(b"unread\n", notice)
    assert threads() == []
    os.close(end)
