"""`Faulted`: an `Api` in which the faults of a stage happen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from steersman.api.errors import Unreachable
from steersman.client.api import Api, WatchEvent
from steersman.client.middleware import ApiCall, Middleware
from steersman.sim.faults.fault import Call, Events
from steersman.sim.faults.injector import Stage, forever
from steersman.sim.faults.watches import close

if TYPE_CHECKING:
    from steersman.api.discovery import Discovered

T = TypeVar("T")


class Faulted(Middleware):
    """The ten verbs of one manager in one of its lives, through all faults, in the order they are listed."""

    def __init__(self, api: Api, stage: Stage) -> None:
        super().__init__(api)
        self._stage = stage
        self._life = stage.life

    @property
    def dead(self) -> bool:
        """Whether the manager this belongs to is gone."""
        return self._stage.life != self._life

    def _handle(self, request: ApiCall, send: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        return self._asked(request, send)

    async def _asked(self, request: ApiCall, send: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await self._through(self._call(request), send)

    async def _handle_watch(
        self, request: ApiCall, initial: bool, begin: Callable[[], AsyncIterator[WatchEvent[T]]]
    ) -> AsyncIterator[WatchEvent[T]]:
        call = self._call(request, initial)
        for armed in self._stage.armed:
            await armed.before(call)
        events: Events = begin()
        for armed in self._stage.armed:
            events = armed.stream(call, events)
        try:
            async for event in events:
                if self.dead:
                    await forever()
                yield event
        finally:
            await close(events)

    async def discover(self) -> Discovered:
        call = self._stage.call("discover", "", "", "", "")
        return await self._through(call, self._api.discover)

    async def document(self, path: str) -> dict[str, Any]:
        call = self._stage.call("document", "", "", "", path)
        return await self._through(call, lambda: self._api.document(path))

    def _call(self, request: ApiCall, initial: bool = False) -> Call:
        if self.dead:
            raise Unreachable("this manager is gone")
        kind = request.kind
        return self._stage.call(
            request.method, kind.resource, kind.plural, request.namespace, request.name, initial
        )

    async def _through(self, call: Call, send: Callable[[], Awaitable[T]]) -> T:
        stage = self._stage
        for armed in stage.armed:
            await armed.before(call)
        answer = await send()
        for armed in stage.armed:
            answer = await armed.after(call, answer)
        if self.dead:
            # The request was on its way when the manager died: it happened, and nobody hears of it.
            await forever()
        return answer
