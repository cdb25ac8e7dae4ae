"""HeavyRequests: the turns of requests that take long, so that others are answered between them.

A list, the beginning of a watch or a large body may take many milliseconds of the event loop. One of them is carried out
in each iteration of the loop, in the order of their arrival, however many there are. Health checks, leases and other small
requests go without a turn.
"""

from __future__ import annotations

import asyncio
from collections import deque

from steersman.server import status_errors

MAX_WAITING = 100
"""How many heavy requests may wait for their turn; others are refused with 429."""
TOO_MANY = "Too many requests, please try again later."
LARGE_BODY = 64 * 1024
"""Bytes of a request body from which the request is heavy."""


class HeavyRequests:
    """The heavy requests of one HTTP server that wait for their turn."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False
        """A heavy request was carried out in this iteration of the event loop."""

    def __len__(self) -> int:
        return len(self._waiting)

    async def turn(self) -> None:
        """Returns when a heavy request may be carried out. Raises `TooManyRequests` if too many wait."""
        loop = asyncio.get_running_loop()
        if not self._taken:
            self._taken = True
            loop.call_soon(self._next)
            return
        if len(self._waiting) >= MAX_WAITING:
            raise status_errors.too_many_requests(TOO_MANY, retry_after=1.0)
        mine = loop.create_future()
        self._waiting.append(mine)
        await mine

    def _next(self) -> None:
        while self._waiting:
            following = self._waiting.popleft()
            if not following.done():
                following.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._taken = False
