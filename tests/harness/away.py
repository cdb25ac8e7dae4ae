"""An API server that can go away and come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from steersman.api.errors import Unreachable
from steersman.client.api import Api, WatchEvent
from steersman.client.middleware import ApiCall, Middleware

T = TypeVar("T")


class Away(Middleware):
    """A server that can go away: watches break, and nothing else is answered."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self._there = asyncio.Event()
        self._there.set()
        self._gone = asyncio.Event()
        self.tries = 0

    def leave(self) -> None:
        self._there.clear()
        self._gone.set()

    def come_back(self) -> None:
        self._there.set()
        self._gone.clear()

    def _ask(self) -> None:
        self.tries += 1
        if not self._there.is_set():
            raise Unreachable("https://10.0.0.1:6443: connection refused")

    async def _handle(self, request: ApiCall, send: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self._ask()
        return await send()

    async def _handle_watch(
        self, request: ApiCall, initial: bool, begin: Callable[[], AsyncIterator[WatchEvent[T]]]
    ) -> AsyncIterator[WatchEvent[T]]:
        self._ask()
        events: Any = begin()
        gone = asyncio.ensure_future(self._gone.wait())
        try:
            while True:
                event = asyncio.ensure_future(anext(events))
                await asyncio.wait((event, gone), return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    event.cancel()
                    await asyncio.wait((event,))
                    return
                yield event.result()
        except StopAsyncIteration:
            return
        finally:
            gone.cancel()
            await events.aclose()
