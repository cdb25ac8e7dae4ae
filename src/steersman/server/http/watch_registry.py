"""Everybody who watches over this edge, and the one timer they share.

A watch that nothing happens to costs nothing: bookmarks for all of them, and the end of those that do not
read what they are sent, are seen to now and then in one go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from steersman.server.storage.store import Store
from steersman.server.storage.watch import Subscription

SWEEP = 15.0
"""Seconds between two looks at who does not read."""
BOOKMARKS = 4
"""Every how many of them bookmarks are sent."""
PATIENCE = 30.0
"""Seconds a client may leave what it was sent unread before the connection is dropped."""


class Watch:
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
        """Since when the client has not read, if it has something to read."""


class Watches:
    """The watches of one edge."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watches: dict[Watch, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._sweeps = 0

    def __len__(self) -> int:
        return len(self._watches)

    def resources(self) -> Iterator[str]:
        """The resource of each watch."""
        return (watch.resource for watch in self._watches)

    def add(self, watch: Watch) -> None:
        """A watch begins."""
        self._watches[watch] = None
        if self._timer is None:
            self._again()

    def remove(self, watch: Watch) -> None:
        """A watch has ended."""
        self._watches.pop(watch, None)

    def close(self) -> None:
        """End all watches, once what they have is sent."""
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
        self.sweep(asyncio.get_running_loop().time())
        if self._sweeps % BOOKMARKS == 0:
            self.bookmark()
        if self._watches:
            self._again()

    def sweep(self, now: float) -> None:
        """Drop the connections of those that do not read."""
        for watch in tuple(self._watches):
            if watch.since is not None and now - watch.since > PATIENCE and watch.transport is not None:
                watch.transport.abort()

    def bookmark(self) -> None:
        """Tell everybody who wants to know how far things have moved on."""
        revision = self._store.revision
        for watch in tuple(self._watches):
            if watch.bookmarks:
                watch.subscription.bookmark(revision)
