"""Watches that keep things back: changes that are told as one, not at all, or as something unreadable."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

from steersman.client.api import EventType, UndecodableObject, WatchEvent
from steersman.sim.faults.fault import Armed, Events, Fault
from steersman.sim.faults.injector import Stage
from steersman.sim.faults.watches import HOWS, Live, close


@dataclass(frozen=True, slots=True)
class CoalescedEvents(Fault):
    """From the nth on, the changes of so many seconds arrive as one for each object: the last."""

    kind: str
    seconds: float
    nth: int = 1
    word: ClassVar[str] = "coalesced_events"

    def arm(self, stage: Stage) -> Armed:
        return _Coalesced(self, stage)


@dataclass(frozen=True, slots=True)
class HiddenEvents(Fault):
    """``times`` changes of a kind, from the nth on, are never told; after some seconds the watch expires.

    No server may leave something out and tell what came after; who is told so cannot know what is there.
    """

    kind: str
    nth: int = 1
    times: int = 1
    seconds: float = 5.0
    word: ClassVar[str] = "hidden_events"
    excuses: ClassVar[frozenset[str]] = frozenset({"creates", "deletes", "writes"})

    def arm(self, stage: Stage) -> Armed:
        return _Hidden(self, stage)


@dataclass(frozen=True, slots=True)
class UnreadableEvents(Fault):
    """``times`` changes of a kind, from the nth on, cannot be read as what they are; each can be later."""

    kind: str
    nth: int = 1
    times: int = 1
    seconds: float = 5.0
    word: ClassVar[str] = "unreadable_events"

    def arm(self, stage: Stage) -> Armed:
        return _Unreadable(self, stage)


class _Coalesced(Live):
    def __init__(self, fault: CoalescedEvents, stage: Stage) -> None:
        super().__init__(fault.kind, stage)
        self._fault = fault
        self._done = False

    async def changes(self, events: Events) -> Events:
        async with _Pump(events, self.stage) as pump:
            while (event := await pump.next()) is not None:
                self.count += event.obj is not None
                if event.obj is None or self._done or self.count < self._fault.nth:
                    yield event
                    continue
                self._done = True
                await asyncio.sleep(self._fault.seconds)
                held = [event, *pump.held()]
                left = coalesce(held)
                self.stage.strike(f"{len(held)} changes of {self.kind} come as {len(left)}")
                for last in left:
                    yield last


class _Hidden(Live):
    def __init__(self, fault: HiddenEvents, stage: Stage) -> None:
        super().__init__(fault.kind, stage)
        self._fault = fault

    async def changes(self, events: Events) -> Events:
        fault, world = self._fault, self.stage.world
        until: float | None = None
        async with _Pump(events, self.stage) as pump:
            while True:
                try:
                    event = await pump.next(None if until is None else until - world.monotonic())
                except TimeoutError:
                    event = None
                if event is None:
                    if until is not None:
                        raise HOWS["expired"]()
                    return
                self.count += event.obj is not None
                if event.obj is not None and fault.nth <= self.count < fault.nth + fault.times:
                    self.stage.strike(f"change {self.count} of {self.kind} is not told")
                    until = until or world.monotonic() + fault.seconds
                elif until is None or event.obj is not None:
                    # A bookmark behind what was hidden would be one lie too many.
                    yield event


class _Unreadable(Live):
    """What could not be read is told again, readable, when its time has come."""

    def __init__(self, fault: UnreadableEvents, stage: Stage) -> None:
        super().__init__(fault.kind, stage)
        self._fault = fault

    async def changes(self, events: Events) -> Events:
        fault, world = self._fault, self.stage.world
        owed: list[tuple[float, WatchEvent[Any]]] = []
        async with _Pump(events, self.stage) as pump:
            while True:
                try:
                    event = await pump.next(owed[0][0] - world.monotonic() if owed else None)
                except TimeoutError:
                    yield owed.pop(0)[1]
                    continue
                if event is None:
                    return
                if event.obj is None:
                    yield event
                    continue
                self.count += 1
                # Newer news of the same object makes the old one needless.
                owed = [(at, told) for at, told in owed if _name(told) != _name(event)]
                broken = fault.nth <= self.count < fault.nth + fault.times
                if broken and event.type is not EventType.DELETED:
                    self.stage.strike(f"change {self.count} of {self.kind} cannot be read")
                    owed.append((world.monotonic() + fault.seconds, event))
                    nonsense = UndecodableObject(event.obj.metadata, "expected an object, got nonsense")
                    yield WatchEvent(event.type, nonsense, event.resource_version)
                else:
                    yield event


def coalesce(events: list[WatchEvent[Any]]) -> list[WatchEvent[Any]]:
    """The last change of each object, as if nothing had happened in between."""
    first: dict[tuple[str, str], EventType] = {}
    last: dict[tuple[str, str], WatchEvent[Any]] = {}
    end: list[WatchEvent[Any]] = []
    for event in events:
        if event.obj is None:
            end = [event]
            continue
        name = _name(event)
        first.setdefault(name, event.type)
        last.pop(name, None)
        last[name] = event
    told = []
    for name, event in last.items():
        began = first[name]
        if event.type is not EventType.DELETED:
            # What was there before and is there now has changed, even if it is another object.
            type_ = EventType.ADDED if began is EventType.ADDED else EventType.MODIFIED
            told.append(WatchEvent(type_, event.obj, event.resource_version))
        elif began is not EventType.ADDED:
            told.append(event)
    return told + end


def _name(event: WatchEvent[Any]) -> tuple[str, str]:
    meta = event.obj["metadata"] if isinstance(event.obj, dict) else getattr(event.obj, "metadata", None)
    if isinstance(meta, dict):
        return str(meta.get("namespace", "")), str(meta["name"])
    assert meta is not None
    return meta.namespace, meta.name


class _Pump:
    """Reads a stream ahead, so that one can wait for it no longer than one likes."""

    def __init__(self, events: Events, stage: Stage) -> None:
        self._events = events
        self._queue: asyncio.Queue[WatchEvent[Any] | Exception | None] = asyncio.Queue()
        self._task = stage.world.loop.create_task(self._run(), name="pump")

    async def _run(self) -> None:
        try:
            async for event in self._events:
                self._queue.put_nowait(event)
        except Exception as error:
            self._queue.put_nowait(error)
        else:
            self._queue.put_nowait(None)

    async def next(self, wait: float | None = None) -> WatchEvent[Any] | None:
        """The next event, None at the end. Raises as the stream does, or `TimeoutError`."""
        async with asyncio.timeout(None if wait is None else max(0.0, wait)):
            found = await self._queue.get()
        if isinstance(found, Exception):
            raise found
        return found

    def held(self) -> list[WatchEvent[Any]]:
        """The events that have been read ahead."""
        found: list[WatchEvent[Any]] = []
        while not self._queue.empty():
            one = self._queue.get_nowait()
            if not isinstance(one, WatchEvent):
                self._queue.put_nowait(one)
                break
            found.append(one)
        return found

    async def __aenter__(self) -> _Pump:
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await close(self._events)
