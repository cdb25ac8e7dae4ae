"""A client's side of a watch: begins when first read, ends when its time is up, leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from types import coroutine
from typing import Any

from steersman.client.api import WatchEvent
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Subscription


@coroutine
def turn() -> Generator[None, None, None]:
    """Let everybody else go first: one turn of the event loop."""
    yield


class Stream:
    """An async iterator over a subscription that does not exist yet."""

    __slots__ = ("_begin", "_find_shape", "_shape", "_store", "_subscription", "_timeout", "_timer")

    def __init__(
        self,
        store: Store,
        begin: Callable[[], Subscription],
        *,
        shape: Callable[[], Callable[[Any], Any] | None] | None = None,
        timeout: float | None = None,
    ) -> None:
        """``shape`` is asked at the beginning what to make of objects for this client; None gives them as
        they are."""
        self._store = store
        self._begin: Callable[[], Subscription] | None = begin
        self._find_shape = shape
        self._shape: Callable[[Any], Any] | None = None
        self._timeout = timeout
        self._subscription: Subscription | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __aiter__(self) -> Stream:
        return self

    def __anext__(self) -> Awaitable[WatchEvent[Any]]:
        if self._subscription is None or self._shape is not None:
            return self._next()
        return self._subscription.__anext__()

    async def _next(self) -> WatchEvent[Any]:
        if self._begin is not None:
            begin, self._begin = self._begin, None
            await turn()
            self._subscription = begin()
            if self._find_shape is not None:
                self._shape = self._find_shape()
            if self._timeout is not None:
                # The timer holds the subscription, not this: who forgets a watch has ended it.
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self._timeout, _expire, self._store, self._subscription)
        if self._subscription is None:
            raise StopAsyncIteration
        event = await self._subscription.__anext__()
        if event.obj is None or self._shape is None:
            return event
        return WatchEvent(event.type, self._shape(event.obj), event.resource_version)

    async def aclose(self) -> None:
        """End the watch."""
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
    """Time is up: say how far things have got, and end."""
    subscription.bookmark(store.revision)
    subscription.close()
