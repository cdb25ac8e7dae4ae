"""WatchRegistry: the watches of one HTTP server, and the one timer they share.

An idle watch costs nothing: one sweep sends bookmarks to all watches, and closes those whose client does not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from steersman.http.limits import MAX_WATCHES, client_time
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Subscription

SWEEP = 15.0
"""Seconds between two sweeps for clients that do not read."""
BOOKMARKS = 4
"""Bookmarks are sent with every fourth sweep."""
PATIENCE = 30.0
"""Seconds after which the connection of a client that does not read is dropped."""


class ActiveWatch:
    """One watch that is being served."""

    __slots__ = ("bookmarks", "resource", "since", "subscription", "transport")

    def __init__(
        self,
        resource: str,
        subscription: Subscription,
        transport: asyncio.Transport | None,
        *,
        bookmarks: bool,
    ) -> None:
        self.resource = resource
        self.subscription = subscription
        self.transport = transport
        self.bookmarks = bookmarks
        self.since: float | None = None
        """The `client_time` since which data has been waiting for the client; None if none has."""


class WatchRegistry:
    """The watches of one HTTP server."""

    def __init__(self, store: Store, most: int = MAX_WATCHES) -> None:
        self._store = store
        self._most = most
        self._watches: dict[ActiveWatch, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._sweeps = 0

    def __len__(self) -> int:
        return len(self._watches)

    @property
    def full(self) -> bool:
        """Whether there are as many watches as there may be."""
        return len(self._watches) >= self._most

    def resources(self) -> Iterator[str]:
        """The resource of each watch."""
        return (watch.resource for watch in self._watches)

    def add(self, watch: ActiveWatch) -> None:
        """Adds a watch."""
        self._watches[watch] = None
        if self._timer is None:
            self._again()

    def remove(self, watch: ActiveWatch) -> None:
        """Removes a watch that has ended."""
        self._watches.pop(watch, None)

    def close(self) -> None:
        """Ends all watches, once their pending events are sent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for watch in tuple(self._watches):
            watch.subscription.close()

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(SWEEP, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._sweeps += 1
        self.sweep(client_time(asyncio.get_running_loop()))
        if self._sweeps % BOOKMARKS == 0:
            self.bookmark()
        if self._watches:
            self._again()

    def sweep(self, now: float) -> None:
        """Drops the connections of clients that do not read."""
        for watch in tuple(self._watches):
            if watch.since is not None and now - watch.since > PATIENCE and watch.transport is not None:
                watch.transport.abort()

    def bookmark(self) -> None:
        """Sends a bookmark at the current revision to all watches that allow bookmarks."""
        revision = self._store.revision
        for watch in tuple(self._watches):
            if watch.bookmarks:
                watch.subscription.bookmark(revision)
