"""The body of a request as it arrives, of a given length or in chunks."""

from __future__ import annotations

import asyncio

from steersman.http.head import Malformed

_LONGEST_LINE = 1024
"""Bytes of a line that says how long a chunk is."""


class Body:
    """Bytes that belong to one request. What is beyond a limit is thrown away, and so is what nobody wants."""

    __slots__ = ("_chunk", "_held", "_left", "_parts", "_trailer", "_waiter", "complete", "size")

    def __init__(self, length: int, *, chunked: bool) -> None:
        self.size = 0
        """How much has come so far, or will: the length where it is known."""
        self.complete = not length and not chunked
        self._left = length
        """What is still to come, where that is known."""
        self._chunk: int | None = 0 if chunked else None
        """What is still to come of this chunk, -1 where its line end is; None where there are no chunks."""
        self._held = b""
        """The beginning of a line."""
        self._trailer = False
        self._parts: list[bytes] | None = []
        self._waiter: asyncio.Future[None] | None = None
        if not chunked:
            self.size = length

    @property
    def known(self) -> bool:
        """Whether its length was said beforehand."""
        return self._chunk is None

    def feed(self, data: bytes) -> bytes:
        """Take what has arrived; answers with what is not part of the body. Raises `Malformed`."""
        if self._chunk is not None:
            return self._unchunk(data)
        taken, rest = data, b""
        if len(data) > self._left:
            taken, rest = data[: self._left], data[self._left :]
        self._left -= len(taken)
        self._take(taken)
        if not self._left:
            self._end()
        return rest

    async def read(self, limit: int) -> bytes | None:
        """All of it; None as soon as it is beyond the limit. Raises `ConnectionResetError`."""
        while not self.complete and self.size <= limit:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self.size > limit or self._parts is None:
            return None
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for it."""
        return self._waiter is not None and not self._waiter.done()

    def drop(self) -> None:
        """Nobody wants what is still to come."""
        self._parts = None

    def lose(self) -> None:
        """Nothing more will come."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(ConnectionResetError("the client is gone"))

    def _take(self, data: bytes) -> None:
        if self._parts is not None:
            self._parts.append(data)

    def _end(self) -> None:
        self.complete = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _unchunk(self, data: bytes) -> bytes:
        assert self._chunk is not None
        data, self._held = self._held + data, b""
        while data and not self.complete:
            if self._chunk > 0:
                taken, data = data[: self._chunk], data[self._chunk :]
                self._chunk -= len(taken)
                self.size += len(taken)
                self._take(taken)
                if not self._chunk:
                    # The line end behind it is a line of its own, and empty.
                    self._chunk = -1
                continue
            line, end, rest = data.partition(b"\r\n")
            if not end:
                if len(line) > _LONGEST_LINE:
                    raise Malformed(400, "Bad Request")
                self._held = data
                break
            data = rest
            self._line(line)
        self._wake()
        return data if self.complete else b""

    def _line(self, line: bytes) -> None:
        if self._chunk == -1:
            if line:
                raise Malformed(400, "Bad Request")
            self._chunk = 0
        elif self._trailer:
            # Nobody reads what may follow the last chunk.
            if not line:
                self._end()
        else:
            digits = line.partition(b";")[0].strip(b" \t")
            if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
                raise Malformed(400, "Bad Request")
            self._chunk = int(digits, 16)
            self._trailer = not self._chunk
