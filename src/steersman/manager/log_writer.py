"""Log lines to a file descriptor, without ever blocking the caller.

A pipe whose reader has stopped (a container runtime that hangs, ``| less``) blocks a write for as long as that lasts. In
ordinary operation a line is written at once, by its caller: nothing is lost when the process is killed. While the
descriptor takes no more, lines are kept in a backlog of bounded size, which a thread writes. Lines beyond that are
dropped, and a line says how many as soon as there is room for it.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO, TypeAlias

Notice: TypeAlias = Callable[[int], bytes]
"""Makes the line that says how many lines were dropped."""

CAPACITY = 4 << 20
"""Bytes of lines that may wait to be written."""
FLUSH_TIMEOUT = 2.0
"""Seconds that a flush waits for a descriptor that takes nothing."""
CHUNK = select.PIPE_BUF if sys.platform != "win32" else 0
"""Bytes that a pipe takes without blocking once poll(2) has called it writable."""


class LogWriter:
    """Writes lines to one file descriptor, from any thread."""

    def __init__(self, descriptor: int, capacity: int = CAPACITY) -> None:
        self._descriptor = descriptor
        self._capacity = capacity
        # Reentrant: the handler of a signal may log while its own thread is in here.
        self._changed = threading.Condition(threading.RLock())
        self._backlog: deque[bytes] = deque()
        self._size = 0
        """Bytes in the backlog."""
        self._written = 0
        """Lines taken off the backlog so far."""
        self._gave_up_at = -1
        """The count of `_written` at which a flush timed out."""
        self._dropped = 0
        self._notice: Notice = lambda count: b""
        self._draining = False

    def write(self, line: bytes, notice: Notice) -> None:
        """Write a line, or keep it until the descriptor takes it, or drop it. Never blocks."""
        with self._changed:
            if not self._backlog:
                line = self._write_at_once(line)
                if not line:
                    return
            elif self._size + len(line) > self._capacity:
                self._dropped += line.count(b"\n")
                self._notice = notice
                return
            self._add_notice()
            self._add(line)
            if not self._draining:
                self._draining = True
                threading.Thread(target=self._drain, name="log writer", daemon=True).start()

    def flush(self, timeout: float = FLUSH_TIMEOUT) -> None:
        """Wait until all lines are written: for some seconds, and not again where nothing was written since."""
        with self._changed:
            if self._written == self._gave_up_at:
                return
            if not self._changed.wait_for(lambda: not self._backlog, timeout):
                self._gave_up_at = self._written

    def _write_at_once(self, line: bytes) -> bytes:
        """Write what the descriptor takes now; returns the rest."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        while line and poll.poll(0):
            try:
                line = line[os.write(self._descriptor, line[:CHUNK]) :]
            except OSError:
                # The reader is gone or the disk is full: there is no place left to say so.
                return b""
        return line

    def _add(self, line: bytes) -> None:
        self._backlog.append(line)
        self._size += len(line)

    def _add_notice(self) -> None:
        if self._dropped:
            self._add(self._notice(self._dropped))
            self._dropped = 0

    def _drain(self) -> None:
        """Write the backlog, in the thread; ends when it is empty."""
        while True:
            with self._changed:
                if not self._backlog:
                    self._add_notice()
                if not self._backlog:
                    self._draining = False
                    self._changed.notify_all()
                    return
                # It stays the first until it is written, so that no other line overtakes it.
                line = self._backlog[0]
            self._write_blocking(line)
            with self._changed:
                self._size -= len(self._backlog.popleft())
                self._written += 1

    def _write_blocking(self, line: bytes) -> None:
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError:
            # As in `_write_at_once`.
            return


class LogHandler(logging.Handler):
    """Writes records through a `LogWriter`."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._writer.write(self._line(record), self._notice)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        self._writer.flush()

    def _line(self, record: logging.LogRecord) -> bytes:
        return f"{self.format(record)}\n".encode(errors="backslashreplace")

    def _notice(self, dropped: int) -> bytes:
        message = "%d log lines were dropped: the output was blocked"
        return self._line(
            logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, (dropped,), None)
        )


class BufferedHandler(LogHandler):
    """Buffers lines until the buffer is full or some seconds have passed."""

    def __init__(self, writer: LogWriter, size: int, flush: float) -> None:
        super().__init__(writer)
        self._limit = size
        self._buffer = bytearray()
        self._flusher = threading.Thread(
            target=self._flush_periodically, args=(flush,), daemon=True, name="log flush"
        )
        self._flusher.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self._line(record)
            if len(self._buffer) + len(line) > self._limit:
                self._push()
            self._buffer += line
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        self._push()
        super().flush()

    def _push(self) -> None:
        # The lock of the handler is reentrant: `emit` has it already.
        self.acquire()
        try:
            if self._buffer:
                self._writer.write(bytes(self._buffer), self._notice)
                self._buffer.clear()
        finally:
            self.release()

    def _flush_periodically(self, pause: float) -> None:
        never = threading.Event()
        while not never.wait(pause):
            self._push()


_writers: dict[int, LogWriter] = {}
"""The writers by descriptor: the backlog stays the same when the verbosity is changed, which replaces the handlers."""


def writer_of(stream: TextIO) -> LogWriter | None:
    """Return the writer for a stream; None for one that is in memory only, or on a system without poll(2)."""
    if sys.platform == "win32":
        return None
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return None
    return _writers.setdefault(descriptor, LogWriter(descriptor))
