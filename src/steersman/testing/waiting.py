"""Waiting for something to become true, and saying why it did not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.scheme import Key
from steersman.sim.loop import VirtualLoop
from steersman.testing import wait_report
from steersman.testing.history import Chronicle


class Unmet(AssertionError):
    """What was waited for did not come about."""


class Asked(msgspec.Struct, frozen=True):
    """What a predicate answered."""

    said: Any
    writes: int
    """How many there had been when it was asked."""
    error: Exception | None = None

    @property
    def met(self) -> bool:
        return self.error is None and bool(self.said)

    async def awaited(self) -> Asked:
        """The same where the answer is there; else once it is."""
        if not isinstance(self.said, Awaitable):
            return self
        try:
            return replace(self, said=await self.said)
        except Exception as error:
            return replace(self, said=None, error=error)


class Wait:
    """One wait in one cluster."""

    def __init__(
        self,
        predicate: Callable[[], object],
        loop: asyncio.AbstractEventLoop,
        chronicle: Chronicle,
        patience: float,
        reads: dict[tuple[str, Key], Any],
    ) -> None:
        """``reads`` is where the cluster notes what was read: it is emptied before the predicate is asked."""
        self._predicate = predicate
        self._loop = loop
        self._chronicle = chronicle
        self._patience = patience
        self._deadline = loop.time() + patience
        self._reads = reads
        self._calm = False
        """Whether all has happened that happens at this instant."""

    @property
    def over(self) -> bool:
        return self._loop.time() >= self._deadline

    def has_news(self, asked: Asked) -> bool:
        """Whether something was written since."""
        return self._chronicle.writes != asked.writes

    def ask(self) -> Asked:
        """Whether it is so now. What the predicate raises is an answer, too."""
        self._reads.clear()
        writes = self._chronicle.writes
        try:
            return Asked(self._predicate(), writes)
        except Exception as error:
            return Asked(None, writes, error)

    def in_vain(self, asked: Asked) -> Unmet:
        """What to raise."""
        seen: Mapping[tuple[str, Key], Any] = self._reads
        words = wait_report.in_vain(
            self._predicate, asked.said, asked.error, self._patience, seen, self._chronicle
        )
        error = Unmet(words)
        error.__cause__ = asked.error
        return error

    def step(self, loop: VirtualLoop) -> None:
        """Let a virtual world go on: to the very next write, to the end of this instant, or to the next timer.

        After a write the world stands still: nobody else has seen it yet.
        """
        before = self._chronicle.writes
        self._chronicle.changed.append(loop.halt)
        # What is ready comes first; time passes only once nothing is.
        waits = loop.call_at(self._until(loop.due()), loop.halt) if self._calm else _calm(loop)
        try:
            loop.run_forever()
        finally:
            waits.cancel()
            self._chronicle.changed.remove(loop.halt)
        loop.check()
        self._calm = not self._calm and self._chronicle.writes == before

    async def pulse(self, asked: Asked, due: float | None) -> None:
        """Let time pass until something is written since the predicate was asked, or until ``due``."""
        chronicle, loop = self._chronicle, self._loop
        if self.has_news(asked):
            return  # somebody was faster than this coroutine
        waiter: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not waiter.done():
                waiter.set_result(None)

        chronicle.changed.append(wake)
        timer = loop.call_at(self._until(due), wake)
        try:
            await waiter
        finally:
            timer.cancel()
            chronicle.changed.remove(wake)

    def _until(self, due: float | None) -> float:
        return self._deadline if due is None else min(due, self._deadline)


def _calm(loop: VirtualLoop) -> asyncio.Task[None]:
    """Halts the loop when nothing is ready any more."""
    task = loop.create_task(loop.idle(), name="waiting")
    task.add_done_callback(lambda done: None if done.cancelled() else loop.halt())
    return task
