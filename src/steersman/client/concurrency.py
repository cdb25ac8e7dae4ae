"""How many requests are under way at once: first come, first served, growing gently.

A socket is opened for every request that finds none idle, so a hundred requests at once out of the
blue would mean a hundred TLS handshakes at once, to a server that may just be coming back. Here the
first few go, and each that comes back while others wait lets two go in its place. A burst of a
hundred then makes do with half the sockets; a load that lasts still reaches them all.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """At most ``most`` at once, starting from ``first`` whenever all was quiet."""

    def __init__(self, first: int = 8, most: int = 100) -> None:
        self._first = first
        self._most = most
        self._allowed = first
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self._busy < self._allowed and not self._waiting:
            self._busy += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The turn was given just as the task was cancelled: it is the next one's.
                self._busy -= 1
                self._admit()
            raise

    async def __aexit__(self, *exc: object) -> None:
        self._busy -= 1
        if self._waiting:
            self._allowed = min(self._allowed + 1, self._most)
            self._admit()
        elif not self._busy:
            self._allowed = self._first

    def _admit(self) -> None:
        while self._waiting and self._busy < self._allowed:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._busy += 1
