"""Crash faults: a manager that dies around a write, a lost response, a restart with a stale list."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from steersman.api.errors import Expired, Unreachable
from steersman.client.api import EventType, WatchEvent
from steersman.sim.faults.fault import ActiveFault, Call, Events, Fault, describe
from steersman.sim.faults.injector import FaultInjector

DOWN = 0.5
"""Seconds until a crashed manager is started again."""


class CrashAfterWrite(Fault, frozen=True):
    """The manager dies after its nth write was applied, before it receives the response."""

    n: int
    down: float = DOWN
    name: ClassVar[str] = "crash_after_write"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _CrashAfter(self, injector)


class CrashBeforeWrite(Fault, frozen=True):
    """The manager dies before it sends its nth write."""

    n: int
    down: float = DOWN
    name: ClassVar[str] = "crash_before_write"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _CrashBefore(self, injector)


class ResponseLost(Fault, frozen=True):
    """The nth write, and the next ``times - 1``, are applied, but their responses are lost."""

    n: int
    times: int = 1
    name: ClassVar[str] = "response_lost"

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _ResponseLost(self, injector)


class StaleRestart(Fault, frozen=True):
    """A restarted manager first lists objects as of ``revisions`` ago; the current ones follow ``seconds`` later.

    No correct API server answers so to a list of the latest revision. A manager cannot help creating pods again, since
    their names are generated, and it rolls out the old template.
    """

    revisions: int
    seconds: float = 2.0
    name: ClassVar[str] = "stale_restart"
    allowed_violations: ClassVar[frozenset[str]] = frozenset(
        {"state", "expect", "creates", "deletes", "writes", "protection"}
    )

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _StaleList(self, injector)


class _CrashAfter(ActiveFault):
    def __init__(self, fault: CrashAfterWrite, injector: FaultInjector) -> None:
        self._fault = fault
        self._injector = injector

    async def after(self, call: Call, answer: Any) -> Any:
        if call.write == self._fault.n:
            await self._injector.crash(self, f"crash after {describe(call)}", self._fault.down)
        return answer


class _CrashBefore(ActiveFault):
    def __init__(self, fault: CrashBeforeWrite, injector: FaultInjector) -> None:
        self._fault = fault
        self._injector = injector

    async def before(self, call: Call) -> None:
        if call.write == self._fault.n:
            await self._injector.crash(self, f"crash before {describe(call)}", self._fault.down)


class _ResponseLost(ActiveFault):
    def __init__(self, fault: ResponseLost, injector: FaultInjector) -> None:
        self._fault = fault
        self._injector = injector

    async def after(self, call: Call, answer: Any) -> Any:
        if self._fault.n <= call.write < self._fault.n + self._fault.times:
            self._injector.record(self, f"response lost: {describe(call)}")
            raise Unreachable("connection closed before the response", uncertain=True)
        return answer


class _StaleList(ActiveFault):
    """Answers the first list of each kind after each restart from the past."""

    def __init__(self, fault: StaleRestart, injector: FaultInjector) -> None:
        self._fault = fault
        self._injector = injector
        self._served: dict[tuple[int, str], None] = {}

    def stream(self, call: Call, events: Events) -> Events:
        if not call.initial or not call.incarnation or (call.incarnation, call.resource) in self._served:
            return events
        self._served[call.incarnation, call.resource] = None
        return self._past(call, events)

    async def _past(self, call: Call, events: Events) -> Events:
        store = self._injector.world.server.store
        table = store.table(call.resource)
        since = max(1, store.revision - self._fault.revisions)
        try:
            keys, objects = table.at(since)
        except Expired:
            async for event in events:
                yield event
            return
        self._injector.record(self, f"{call.resource} listed as of revision {since}")
        for key in keys:
            obj = objects[key]
            yield WatchEvent(EventType.ADDED, obj, obj.metadata.resourceVersion)
        yield WatchEvent(EventType.BOOKMARK, None, str(since), initial_end=True)
        await asyncio.sleep(self._fault.seconds)
        # A reflector resumes from the past revision: it ignores objects it already has.
        raise Unreachable("watch closed", uncertain=True)
