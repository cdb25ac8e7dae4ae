"""A watch's stream: pieces of bytes in, lines out, events on.

Whatever pieces the network cuts the stream into, the lines are the same. A line is looked at once,
however many pieces it came in.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

from steersman.api.errors import ServerError

E = TypeVar("E")

LONGEST = 64 * 1024 * 1024
"""The longest line to take: forty times the largest object etcd can store."""


class Lines:
    """Cuts a stream into lines."""

    __slots__ = ("_parts", "_size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines this piece completes."""
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
            if self._size > LONGEST:
                raise ServerError(f"the watch sent a line of more than {LONGEST} bytes", reason="TooLarge")
        return lines

    def rest(self) -> bytes:
        """What came after the last line: half an event, as a rule."""
        return b"".join(self._parts)


async def events(
    read: Callable[[], Awaitable[bytes]], decode: Callable[[bytes], E]
) -> AsyncGenerator[E, None]:
    """Decode line after line, until ``read`` answers nothing."""
    lines = Lines()
    while chunk := await read():
        for line in lines.feed(chunk):
            if line:
                yield decode(line)
    rest = lines.rest().strip()
    if rest.endswith(b"}"):
        try:
            last = decode(rest)
        except ServerError as error:
            # The stream was cut within an object: the next watch will send it whole.
            if error.reason != "ClientWatchDecoding":
                raise
        else:
            yield last
