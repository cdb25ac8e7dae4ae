"""Splits the byte stream of a watch into lines and decodes them as events.

The lines are the same however the network cuts the stream into chunks, and each byte is scanned once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

from steersman.api.errors import ServerError

E = TypeVar("E")

JSON_SPACE = b" \t\r\n"
MAX_LINE = 64 * 1024 * 1024
"""Bytes of one line: forty times the largest object that etcd can store."""


class LineSplitter:
    """Splits chunks of a stream into lines."""

    __slots__ = ("_parts", "_size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that a chunk completes."""
        lines = chunk.split(b"\n")
        tail = lines.pop()
        if lines and self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
        if lines:
            self._parts.clear()
            self._size = 0
        if tail:
            self._parts.append(tail)
            self._size += len(tail)
            if self._size > MAX_LINE:
                raise ServerError(f"the watch sent a line of more than {MAX_LINE} bytes", reason="TooLarge")
        return lines

    def remainder(self) -> bytes:
        """Return the bytes after the last line break: usually half an event."""
        return b"".join(self._parts)


async def watch_events(
    read: Callable[[], Awaitable[bytes]], decode: Callable[[bytes], E]
) -> AsyncGenerator[E, None]:
    """Decode line after line until ``read`` returns no more bytes."""
    lines = LineSplitter()
    while chunk := await read():
        for line in lines.feed(chunk):
            if line:
                yield decode(line)
    rest = lines.remainder().strip(JSON_SPACE)
    if rest.endswith(b"}"):
        try:
            last = decode(rest)
        except ServerError as error:
            # The stream was cut within an object, which the next watch sends again.
            if error.reason != "ClientWatchDecoding":
                raise
        else:
            yield last
