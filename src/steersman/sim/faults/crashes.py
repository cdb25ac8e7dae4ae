"""A manager that dies around a write, an answer that is lost, a restart that sees the past."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

from steersman.api.errors import Expired, Unreachable
from steersman.client.api import EventType, WatchEvent
from steersman.sim.faults.fault import Armed, Call, Events, Fault
from steersman.sim.faults.injector import Stage

DOWN = 0.5
"""Seconds until a manager that crashed is started again."""


@dataclass(frozen=True, slots=True)
class CrashAfterWrite(Fault):
    """The manager dies when its nth write has been carried out, before it learns of it."""

    n: int
    down: float = DOWN
    word: ClassVar[str] = "crash_after_write"

    def arm(self, stage: Stage) -> Armed:
        return _CrashAfter(self, stage)


@dataclass(frozen=True, slots=True)
class CrashBeforeWrite(Fault):
    """The manager dies when it is about to send its nth write."""

    n: int
    down: float = DOWN
    word: ClassVar[str] = "crash_before_write"

    def arm(self, stage: Stage) -> Armed:
        return _CrashBefore(self, stage)


@dataclass(frozen=True, slots=True)
class AnswerLost(Fault):
    """The nth write, and the next ``times - 1``, are carried out, but their answers never arrive."""

    n: int
    times: int = 1
    word: ClassVar[str] = "answer_lost"

    def arm(self, stage: Stage) -> Armed:
        return _Lost(self, stage)


@dataclass(frozen=True, slots=True)
class StaleRestart(Fault):
    """A manager that was restarted first reads what was there some revisions ago; the rest follows late.

    No server may answer so to a list that asks for the newest; a broken one does. Since new pods have names
    nobody can foresee, nobody can help making them again; and whoever sees yesterday's template rolls it out.
    """

    revisions: int
    seconds: float = 2.0
    word: ClassVar[str] = "stale_restart"
    excuses: ClassVar[frozenset[str]] = frozenset({"state", "expect", "creates", "deletes", "writes"})

    def arm(self, stage: Stage) -> Armed:
        return _Stale(self, stage)


class _CrashAfter(Armed):
    def __init__(self, fault: CrashAfterWrite, stage: Stage) -> None:
        self._fault = fault
        self._stage = stage

    async def after(self, call: Call, answer: Any) -> Any:
        if call.write == self._fault.n:
            await self._stage.crash(f"crash after {describe(call)}", self._fault.down)
        return answer


class _CrashBefore(Armed):
    def __init__(self, fault: CrashBeforeWrite, stage: Stage) -> None:
        self._fault = fault
        self._stage = stage

    async def before(self, call: Call) -> None:
        if call.write == self._fault.n:
            await self._stage.crash(f"crash before {describe(call)}", self._fault.down)


class _Lost(Armed):
    def __init__(self, fault: AnswerLost, stage: Stage) -> None:
        self._fault = fault
        self._stage = stage

    async def after(self, call: Call, answer: Any) -> Any:
        if self._fault.n <= call.write < self._fault.n + self._fault.times:
            self._stage.strike(f"answer lost: {describe(call)}")
            raise Unreachable("the connection broke before the answer came", uncertain=True)
        return answer


class _Stale(Armed):
    """Answers the first list of each kind in each later life from the past."""

    def __init__(self, fault: StaleRestart, stage: Stage) -> None:
        self._fault = fault
        self._stage = stage
        self._served: dict[tuple[int, str], None] = {}

    def stream(self, call: Call, events: Events) -> Events:
        if not call.initial or not call.life or (call.life, call.resource) in self._served:
            return events
        self._served[call.life, call.resource] = None
        return self._past(call, events)

    async def _past(self, call: Call, events: Events) -> Events:
        store = self._stage.world.server.store
        table = store.table(call.resource)
        since = max(1, store.revision - self._fault.revisions)
        try:
            keys, objects = table.at(since)
        except Expired:
            async for event in events:
                yield event
            return
        self._stage.strike(f"{call.resource} read as of {since}")
        for key in keys:
            obj = objects[key]
            yield WatchEvent(EventType.ADDED, obj, obj.metadata.resourceVersion)
        yield WatchEvent(EventType.BOOKMARK, None, str(since), initial_end=True)
        await asyncio.sleep(self._fault.seconds)
        # A reflector that began in the past goes on there: the same objects again are no news to it.
        raise Unreachable("the stream broke", uncertain=True)


def describe(call: Call) -> str:
    """A request in words."""
    name = f"{call.namespace}/{call.name}".strip("/")
    number = f"write {call.write}: " if call.write else ""
    return f"{number}{call.verb} {call.resource} {name}".rstrip()
