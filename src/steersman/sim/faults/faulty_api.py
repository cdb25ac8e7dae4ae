"""`FaultyApi`: an `Api` in which the faults of an injector happen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from steersman.api.errors import ApiError, Unreachable
from steersman.client.api import Api, WatchEvent
from steersman.client.middleware import ApiCall, Middleware
from steersman.sim.faults.fault import Call, Events
from steersman.sim.faults.injector import FaultInjector, forever
from steersman.sim.faults.watches import close

if TYPE_CHECKING:
    from steersman.api.discovery import DiscoveryResult

T = TypeVar("T")


class FaultyApi(Middleware):
    """The `Api` of one manager until its next restart. Faults apply in the order they are listed."""

    def __init__(self, api: Api, injector: FaultInjector, number: int) -> None:
        super().__init__(api)
        self._injector = injector
        self._number = number
        self._incarnation = injector.incarnation

    @property
    def dead(self) -> bool:
        """Whether the manager it belongs to has died."""
        return self._injector.incarnation != self._incarnation

    def _handle(self, request: ApiCall, send: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        return self._send(request, send)

    async def _send(self, request: ApiCall, send: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await self._through(self._call(request), send)

    async def _handle_watch(
        self, request: ApiCall, initial: bool, begin: Callable[[], AsyncIterator[WatchEvent[T]]]
    ) -> AsyncIterator[WatchEvent[T]]:
        call = self._call(request, initial)
        for active in self._injector.active:
            await active.before(call)
        events: Events = begin()
        for active in self._injector.active:
            events = active.stream(call, events)
        try:
            async for event in events:
                if self.dead:
                    await forever()
                yield event
        finally:
            await close(events)

    async def discover(self) -> DiscoveryResult:
        call = self._injector.call(self._number, "discover", "")
        return await self._through(call, self._api.discover)

    async def document(self, path: str) -> dict[str, Any]:
        call = self._injector.call(self._number, "document", "", name=path)
        return await self._through(call, lambda: self._api.document(path))

    def _call(self, request: ApiCall, initial: bool = False) -> Call:
        if self.dead:
            raise Unreachable("the manager has died")
        kind = request.kind
        return self._injector.call(
            self._number, request.method, kind.resource, kind.plural, request.namespace, request.name, initial
        )

    async def _through(self, call: Call, send: Callable[[], Awaitable[T]]) -> T:
        with self._injector.in_flight(call):
            return await self._carried_out(call, send)

    async def _carried_out(self, call: Call, send: Callable[[], Awaitable[T]]) -> T:
        injector = self._injector
        for active in injector.active:
            await active.before(call)
        if self.dead:
            # The manager died before the request reached the server.
            await forever()
        try:
            answer = await send()
        except ApiError:
            for active in injector.active:
                await active.refused(call)
            raise
        for active in injector.active:
            answer = await active.after(call, answer)
        if self.dead:
            # The manager died while the request was in flight: the request was carried out, its response is lost.
            await forever()
        return answer
