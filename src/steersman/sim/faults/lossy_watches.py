"""Watch faults that lose information: events that are coalesced, dropped or cannot be decoded."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from steersman.client.api import EventType, UndecodableObject, WatchEvent
from steersman.sim.faults.fault import ActiveFault, Events, Fault
from steersman.sim.faults.injector import FaultInjector
from steersman.sim.faults.watches import CLOSE_ERRORS, WatchFault, close


class CoalescedEvents(Fault, frozen=True):
    """From the nth event on, the events of ``seconds`` arrive as one per object: the last."""

    kind: str
    seconds: float
    nth: int = 1
    name: ClassVar[str] = "coalesced_events"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Coalesced(self, injector)


class DroppedEvents(Fault, frozen=True):
    """``times`` events of a kind, from the nth on, are dropped; after ``seconds`` the watch expires.

    No correct API server drops an event and delivers later ones: the manager cannot know the current objects.
    """

    kind: str
    nth: int = 1
    times: int = 1
    seconds: float = 5.0
    name: ClassVar[str] = "dropped_events"
    allowed_violations: ClassVar[frozenset[str]] = frozenset({"creates", "deletes", "writes"})

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Hidden(self, injector)


class UndecodableEvents(Fault, frozen=True):
    """``times`` events of a kind, from the nth on, cannot be decoded; each can be after ``seconds``."""

    kind: str
    nth: int = 1
    times: int = 1
    seconds: float = 5.0
    name: ClassVar[str] = "undecodable_events"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Unreadable(self, injector)


class _Coalesced(WatchFault):
    def __init__(self, fault: CoalescedEvents, injector: FaultInjector) -> None:
        super().__init__(fault.kind, injector)
        self._fault = fault
        self._done = False

    async def changes(self, events: Events) -> Events:
        async with _ReadAhead(events, self.injector) as pump:
            while (event := await pump.next()) is not None:
                self.count += event.obj is not None
                if event.obj is None or self._done or self.count < self._fault.nth:
                    yield event
                    continue
                self._done = True
                await asyncio.sleep(self._fault.seconds)
                held = [event, *pump.held()]
                left = coalesce(held)
                self.injector.record(self, f"{len(held)} events of {self.kind} coalesced to {len(left)}")
                for last in left:
                    yield last


class _Hidden(WatchFault):
    def __init__(self, fault: DroppedEvents, injector: FaultInjector) -> None:
        super().__init__(fault.kind, injector)
        self._fault = fault

    async def changes(self, events: Events) -> Events:
        fault, world = self._fault, self.injector.world
        until: float | None = None
        async with _ReadAhead(events, self.injector) as pump:
            while True:
                try:
                    event = await pump.next(None if until is None else until - world.monotonic())
                except TimeoutError:
                    event = None
                if event is None:
                    if until is not None:
                        raise CLOSE_ERRORS["expired"]()
                    return
                self.count += event.obj is not None
                if event.obj is not None and fault.nth <= self.count < fault.nth + fault.times:
                    self.injector.record(self, f"event {self.count} of {self.kind} dropped")
                    until = until or world.monotonic() + fault.seconds
                elif until is None or event.obj is not None:
                    # A bookmark after a dropped event would move the reflector past it for good.
                    yield event


class _Unreadable(WatchFault):
    """Delivers each undecodable event again, decodable, when its time has come."""

    def __init__(self, fault: UndecodableEvents, injector: FaultInjector) -> None:
        super().__init__(fault.kind, injector)
        self._fault = fault

    async def changes(self, events: Events) -> Events:
        fault, world = self._fault, self.injector.world
        owed: list[tuple[float, WatchEvent[Any]]] = []
        async with _ReadAhead(events, self.injector) as pump:
            while True:
                try:
                    event = await pump.next(owed[0][0] - world.monotonic() if owed else None)
                except TimeoutError:
                    yield owed.pop(0)[1]
                    continue
                if event is None:
                    # The next watch begins after these events, and would never deliver them.
                    for _, pending in owed:
                        yield pending
                    return
                if event.obj is None:
                    yield event
                    continue
                self.count += 1
                # A newer event of the same object supersedes the pending one.
                owed = [(at, pending) for at, pending in owed if _name(pending) != _name(event)]
                broken = fault.nth <= self.count < fault.nth + fault.times
                if broken and event.type is not EventType.DELETED:
                    self.injector.record(self, f"event {self.count} of {self.kind} cannot be decoded")
                    owed.append((world.monotonic() + fault.seconds, event))
                    broken_object = UndecodableObject(event.obj.metadata, "expected an object, got nonsense")
                    yield WatchEvent(event.type, broken_object, event.resource_version)
                else:
                    yield event


def coalesce(events: list[WatchEvent[Any]]) -> list[WatchEvent[Any]]:
    """The last event of each object, as if nothing had happened in between."""
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
    delivered = []
    for name, event in last.items():
        began = first[name]
        if event.type is not EventType.DELETED:
            # An object that existed before and exists now was modified, even if it was recreated.
            type_ = EventType.ADDED if began is EventType.ADDED else EventType.MODIFIED
            delivered.append(WatchEvent(type_, event.obj, event.resource_version))
        elif began is not EventType.ADDED:
            delivered.append(event)
    return delivered + end


def _name(event: WatchEvent[Any]) -> tuple[str, str]:
    meta = event.obj["metadata"] if isinstance(event.obj, dict) else getattr(event.obj, "metadata", None)
    if isinstance(meta, dict):
        return str(meta.get("namespace", "")), str(meta["name"])
    assert meta is not None
    return meta.namespace, meta.name


class _ReadAhead:
    """Reads a stream ahead, so that a reader can wait for its next event with a timeout."""

    def __init__(self, events: Events, injector: FaultInjector) -> None:
        self._events = events
        self._queue: asyncio.Queue[WatchEvent[Any] | Exception | None] = asyncio.Queue()
        self._task = injector.world.loop.create_task(self._run(), name="pump")

    async def _run(self) -> None:
        try:
            async for event in self._events:
                self._queue.put_nowait(event)
        except Exception as error:
            self._queue.put_nowait(error)
        else:
            self._queue.put_nowait(None)

    async def next(self, wait: float | None = None) -> WatchEvent[Any] | None:
        """The next event; None at the end. Raises as the stream does, or `TimeoutError`."""
        async with asyncio.timeout(None if wait is None else max(0.0, wait)):
            found = await self._queue.get()
        if isinstance(found, Exception):
            raise found
        return found

    def held(self) -> list[WatchEvent[Any]]:
        """The events read ahead."""
        found: list[WatchEvent[Any]] = []
        while not self._queue.empty():
            one = self._queue.get_nowait()
            if not isinstance(one, WatchEvent):
                self._queue.put_nowait(one)
                break
            found.append(one)
        return found

    async def __aenter__(self) -> _ReadAhead:
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await close(self._events)
