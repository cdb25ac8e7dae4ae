"""WatchStream: the watch of an in-process client, which starts on first read and ends at its timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from types import coroutine
from typing import Any

from steersman.client.api import WatchEvent
from steersman.server.calls import CallNeeded
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Subscription


@coroutine
def turn() -> Generator[None, None, None]:
    """Yields to the event loop once, so that other ready tasks run first."""
    yield


class WatchStream:
    """An async iterator over a subscription that is made on first read."""

    __slots__ = (
        "_begin",
        "_find_transform",
        "_store",
        "_subscription",
        "_timeout",
        "_timer",
        "_transform",
        "_waiting",
    )

    def __init__(
        self,
        store: Store,
        begin: Callable[[], Subscription],
        *,
        transform: Callable[[], Callable[[Any], Any] | None] | None = None,
        timeout: float | None = None,
        waiting: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None,
    ) -> None:
        """``begin`` makes the subscription. ``transform`` is called after it and returns the function that converts
        objects for this client, or None to leave them as they are. ``timeout`` is in seconds. ``waiting`` runs a transform that
        may have to wait for a webhook."""
        self._store = store
        self._begin: Callable[[], Subscription] | None = begin
        self._find_transform = transform
        self._transform: Callable[[Any], Any] | None = None
        self._timeout = timeout
        self._waiting = waiting
        self._subscription: Subscription | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __aiter__(self) -> WatchStream:
        return self

    def __anext__(self) -> Awaitable[WatchEvent[Any]]:
        if self._subscription is None or self._transform is not None:
            return self._next()
        return self._subscription.__anext__()

    async def _next(self) -> WatchEvent[Any]:
        if self._begin is not None:
            begin, self._begin = self._begin, None
            await turn()
            self._subscription = begin()
            if self._find_transform is not None:
                self._transform = self._find_transform()
            if self._timeout is not None:
                # The timer holds the subscription, not the stream: dropping the stream ends the watch.
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self._timeout, _expire, self._store, self._subscription)
        if self._subscription is None:
            raise StopAsyncIteration
        event = await self._subscription.__anext__()
        if event.obj is None or self._transform is None:
            return event
        try:
            made = self._transform(event.obj)
        except CallNeeded:
            if self._waiting is None:
                raise
            made = await self._waiting(partial(self._transform, event.obj))
        return WatchEvent(event.type, made, event.resource_version)

    async def aclose(self) -> None:
        """Ends the watch."""
        self._close()

    def _close(self) -> None:
        self._begin = None
        if self._timer is not None:
            self._timer.cancel()
        if self._subscription is not None:
            self._subscription.close()

    def __del__(self) -> None:
        self._close()


def _expire(store: Store, subscription: Subscription) -> None:
    """Ends a watch at its timeout, with a bookmark of the current revision."""
    subscription.bookmark(store.revision)
    subscription.close()
