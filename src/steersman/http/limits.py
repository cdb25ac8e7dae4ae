"""Limits of an HTTP server: how many connections it holds, how many bytes for them, and how long it waits for a client.

A server waits for its clients in few ways, and each has a time-out. Under load it waits less long: where a limit is
reached, the client that has kept the server waiting for the longest loses its connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

if TYPE_CHECKING:
    import asyncio


class Limits(msgspec.Struct, frozen=True):
    """The limits of one HTTP server."""

    connections: int = 2000
    """Open connections, those in a TLS handshake included."""
    handshakes: int = 500
    """Connections whose TLS handshake is not done. One takes milliseconds, and more memory than what follows it."""
    buffered: int = 16 * 1024 * 1024
    """Bytes of unfinished requests and unsent responses, of all connections together."""


MAX_WATCHES = 1500
"""How many watches an API server holds at once by default; others are refused with 429."""


class Wait(Enum):
    """The thing that a connection waits for."""

    HANDSHAKE = "the client's side of the TLS handshake"
    HEAD = "the rest of a request's head"
    BODY = "the rest of a request's body"
    NEXT = "the next request"
    READER = "a client that does not read its response"
    NOTHING = "nothing from the client"


TIMEOUTS: Mapping[Wait, float] = {
    Wait.HANDSHAKE: 32.0,
    Wait.HEAD: 32.0,
    Wait.BODY: 60.0,
    Wait.NEXT: 90.0,
    Wait.READER: 30.0,
}
"""Seconds that each wait may last. Upstream's servers have 32 for a handshake and a head, 60 for a whole request, and
90 between two requests; they have none for a client that does not read."""

SWEEP = 5.0
"""Seconds between two looks for connections that have waited for too long."""
EVICTED_AT_ONCE = 20
"""One in this many connections is evicted when there are too many: looking for them takes time."""


def client_time(loop: asyncio.AbstractEventLoop) -> float:
    """The time by which clients are waited for, in seconds: the loop's, or real time where the loop's time runs at another speed."""
    real: Callable[[], float] = getattr(loop, "real_time", loop.time)
    return real()


class Waiting(Protocol):
    """A connection, as far as the limits concern it."""

    @property
    def wait(self) -> Wait:
        """The thing that the connection waits for."""

    @property
    def since(self) -> float:
        """The time since which the client has not moved, in seconds of `client_time`."""

    @property
    def authenticated(self) -> bool:
        """Whether a request on it was authenticated."""


W = TypeVar("W", bound=Waiting)


def overdue(connections: Iterable[W], now: float) -> list[W]:
    """The connections that have waited for longer than they may."""
    return [
        each
        for each in connections
        if (wait := each.wait) is not Wait.NOTHING and now - each.since >= TIMEOUTS[wait]
    ]


def share(most: int) -> int:
    """How many to evict at once, where there are more than ``most``."""
    return 1 + most // EVICTED_AT_ONCE


def to_evict(connections: Iterable[W], count: int) -> list[W]:
    """The connections to close to make room: at most ``count`` that wait for their client.

    Clients that were never authenticated go first, then those that have kept the server waiting for the longest.
    """
    waiting = [each for each in connections if each.wait is not Wait.NOTHING]
    waiting.sort(key=lambda each: (each.authenticated, each.since))
    return waiting[:count]
