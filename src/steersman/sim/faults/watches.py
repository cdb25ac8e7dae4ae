"""Watch faults: watches that freeze, close, repeat events or deliver them late.

The initial objects of a watch always arrive. ``nth`` counts the events after them, of one kind, across all its watches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from steersman.api.errors import ApiError, Expired, ServerError, Unreachable
from steersman.client.api import WatchEvent
from steersman.sim.faults.fault import ActiveFault, Call, Events, Fault
from steersman.sim.faults.injector import FaultInjector

END = "end"
CLOSE_ERRORS: Mapping[str, Callable[[], ApiError]] = {
    "reset": lambda: Unreachable("connection reset by peer", uncertain=True),
    "expired": lambda: Expired("too old resource version", reason="Expired"),
    "error": lambda: ServerError("internal error", reason="InternalError"),
}


class FrozenWatch(Fault, frozen=True):
    """From the nth event on, the watch of a kind delivers nothing for ``seconds``, then everything at once."""

    kind: str
    seconds: float
    nth: int = 1
    name: ClassVar[str] = "frozen_watch"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Frozen(self, injector)


class SlowWatch(Fault, frozen=True):
    """From the nth on, ``times`` events of a kind arrive ``seconds`` late each."""

    kind: str
    seconds: float
    nth: int = 1
    times: int = 20
    name: ClassVar[str] = "slow_watch"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Slow(self, injector)


class DuplicatedEvents(Fault, frozen=True):
    """From the nth on, ``times`` events of a kind are delivered twice."""

    kind: str
    nth: int = 1
    times: int = 1000
    name: ClassVar[str] = "duplicated_events"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Duplicated(self, injector)


class WatchCut(Fault, frozen=True):
    """Before the nth event, the watch of a kind closes by ``end``, ``reset``, ``expired`` (410) or ``error``."""

    kind: str
    nth: int = 1
    cause: str = END
    times: int = 1
    name: ClassVar[str] = "watch_cut"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cause != END and self.cause not in CLOSE_ERRORS:
            raise ValueError(f"cause must be one of {END}, {', '.join(CLOSE_ERRORS)}, not {self.cause}")

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Cut(self, injector)


class WatchFault(ActiveFault):
    """Changes the events of a kind: the initial objects pass, later events go through `changes`."""

    def __init__(self, kind: str, injector: FaultInjector) -> None:
        self.kind = kind
        self.injector = injector
        self.count = 0
        """Events so far."""

    def stream(self, call: Call, events: Events) -> Events:
        return self._read(call, events) if call.about(self.kind) else events

    async def _read(self, call: Call, events: Events) -> Events:
        try:
            if call.initial:
                async for event in events:
                    yield event
                    if event.initial_end:
                        break
            async for event in self.changes(events):
                yield event
        finally:
            await close(events)

    async def changes(self, events: Events) -> Events:
        async for event in events:
            if event.obj is None:
                yield event
                continue
            self.count += 1
            async for deliver in self.deliver(event):
                yield deliver

    async def deliver(self, event: WatchEvent[Any]) -> Events:
        """The events delivered in place of one event."""
        yield event


class _Frozen(WatchFault):
    def __init__(self, fault: FrozenWatch, injector: FaultInjector) -> None:
        super().__init__(fault.kind, injector)
        self._fault = fault
        self._until: float | None = None

    async def deliver(self, event: WatchEvent[Any]) -> Events:
        now = self.injector.world.monotonic()
        if self._until is None and self.count >= self._fault.nth:
            self._until = now + self._fault.seconds
            self.injector.record(self, f"watch of {self.kind} freezes")
        if self._until is not None and now < self._until:
            await asyncio.sleep(self._until - now)
        yield event


class _Slow(WatchFault):
    def __init__(self, fault: SlowWatch, injector: FaultInjector) -> None:
        super().__init__(fault.kind, injector)
        self._fault = fault

    async def deliver(self, event: WatchEvent[Any]) -> Events:
        if self._fault.nth <= self.count < self._fault.nth + self._fault.times:
            self.injector.record(self, f"event {self.count} of {self.kind} is late")
            await asyncio.sleep(self._fault.seconds)
        yield event


class _Duplicated(WatchFault):
    def __init__(self, fault: DuplicatedEvents, injector: FaultInjector) -> None:
        super().__init__(fault.kind, injector)
        self._fault = fault

    async def deliver(self, event: WatchEvent[Any]) -> Events:
        yield event
        if self._fault.nth <= self.count < self._fault.nth + self._fault.times:
            self.injector.record(self, f"event {self.count} of {self.kind} is delivered twice")
            yield event


class _Cut(WatchFault):
    def __init__(self, fault: WatchCut, injector: FaultInjector) -> None:
        super().__init__(fault.kind, injector)
        self._fault = fault

    async def changes(self, events: Events) -> Events:
        fault = self._fault
        async for event in events:
            self.count += event.obj is not None
            if event.obj is not None and fault.nth <= self.count < fault.nth + fault.times:
                self.injector.record(self, f"watch of {self.kind} closes: {fault.cause}")
                if fault.cause == END:
                    return
                raise CLOSE_ERRORS[fault.cause]()
            yield event


async def close(events: Events) -> None:
    """Close a stream that can be closed."""
    aclose: Callable[[], Awaitable[None]] | None = getattr(events, "aclose", None)
    if aclose is not None:
        # A reader that is being cancelled closes the stream itself.
        with suppress(RuntimeError):
            await aclose()
