"""Watches that stand still, break, repeat themselves or come late.

What is there when a watch begins always arrives: ``nth`` counts the changes after that, of one kind,
through all watches of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from steersman.api.errors import ApiError, Expired, ServerError, Unreachable
from steersman.client.api import WatchEvent
from steersman.sim.faults.fault import Armed, Call, Events, Fault
from steersman.sim.faults.injector import Stage

END = "end"
HOWS: Mapping[str, Callable[[], ApiError]] = {
    "reset": lambda: Unreachable("connection reset by peer", uncertain=True),
    "expired": lambda: Expired("too old resource version", reason="Expired"),
    "error": lambda: ServerError("an error of the server's own", reason="InternalError"),
}


@dataclass(frozen=True, slots=True)
class FrozenWatch(Fault):
    """From the nth change on, the watch of a kind shows nothing for so many seconds, then all at once."""

    kind: str
    seconds: float
    nth: int = 1
    word: ClassVar[str] = "frozen_watch"

    def arm(self, stage: Stage) -> Armed:
        return _Frozen(self, stage)


@dataclass(frozen=True, slots=True)
class SlowWatch(Fault):
    """From the nth change on, ``times`` changes of a kind arrive each so many seconds late."""

    kind: str
    seconds: float
    nth: int = 1
    times: int = 20
    word: ClassVar[str] = "slow_watch"

    def arm(self, stage: Stage) -> Armed:
        return _Slow(self, stage)


@dataclass(frozen=True, slots=True)
class DuplicatedEvents(Fault):
    """From the nth on, ``times`` changes of a kind are told twice."""

    kind: str
    nth: int = 1
    times: int = 1000
    word: ClassVar[str] = "duplicated_events"

    def arm(self, stage: Stage) -> Armed:
        return _Duplicated(self, stage)


@dataclass(frozen=True, slots=True)
class WatchCut(Fault):
    """Before the nth change, the watch of a kind ends: ``end``, ``reset``, ``expired`` (410) or ``error``."""

    kind: str
    nth: int = 1
    how: str = END
    times: int = 1
    word: ClassVar[str] = "watch_cut"

    def __post_init__(self) -> None:
        if self.how != END and self.how not in HOWS:
            raise ValueError(f"a watch is cut by {END}, {', '.join(HOWS)}; not by {self.how}")

    def arm(self, stage: Stage) -> Armed:
        return _Cut(self, stage)


class Live(Armed):
    """Reads the watches of a kind: what is there as it is, then changes as `changes` makes them."""

    def __init__(self, kind: str, stage: Stage) -> None:
        self.kind = kind
        self.stage = stage
        self.count = 0
        """Changes seen so far."""

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
            async for told in self.told(event):
                yield told

    async def told(self, event: WatchEvent[Any]) -> Events:
        """What becomes of one change: here, nothing."""
        yield event


class _Frozen(Live):
    def __init__(self, fault: FrozenWatch, stage: Stage) -> None:
        super().__init__(fault.kind, stage)
        self._fault = fault
        self._until: float | None = None

    async def told(self, event: WatchEvent[Any]) -> Events:
        now = self.stage.world.monotonic()
        if self._until is None and self.count >= self._fault.nth:
            self._until = now + self._fault.seconds
            self.stage.strike(f"the watch of {self.kind} stands still")
        if self._until is not None and now < self._until:
            await asyncio.sleep(self._until - now)
        yield event


class _Slow(Live):
    def __init__(self, fault: SlowWatch, stage: Stage) -> None:
        super().__init__(fault.kind, stage)
        self._fault = fault

    async def told(self, event: WatchEvent[Any]) -> Events:
        if self._fault.nth <= self.count < self._fault.nth + self._fault.times:
            self.stage.strike(f"change {self.count} of {self.kind} comes late")
            await asyncio.sleep(self._fault.seconds)
        yield event


class _Duplicated(Live):
    def __init__(self, fault: DuplicatedEvents, stage: Stage) -> None:
        super().__init__(fault.kind, stage)
        self._fault = fault

    async def told(self, event: WatchEvent[Any]) -> Events:
        yield event
        if self._fault.nth <= self.count < self._fault.nth + self._fault.times:
            self.stage.strike(f"change {self.count} of {self.kind} comes twice")
            yield event


class _Cut(Live):
    def __init__(self, fault: WatchCut, stage: Stage) -> None:
        super().__init__(fault.kind, stage)
        self._fault = fault

    async def changes(self, events: Events) -> Events:
        fault = self._fault
        async for event in events:
            self.count += event.obj is not None
            if event.obj is not None and fault.nth <= self.count < fault.nth + fault.times:
                self.stage.strike(f"the watch of {self.kind} breaks: {fault.how}")
                if fault.how == END:
                    return
                raise HOWS[fault.how]()
            yield event


async def close(events: Events) -> None:
    """End a stream where it can be ended."""
    aclose: Callable[[], Awaitable[None]] | None = getattr(events, "aclose", None)
    if aclose is not None:
        # Where somebody who is being ended still reads it, it ends with them.
        with suppress(RuntimeError):
            await aclose()
