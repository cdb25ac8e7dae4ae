"""Waiting for a condition in a cluster, and the report where it is not met."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.scheme import Key
from steersman.runtime.trace import span
from steersman.server.codec.convert import to_builtins
from steersman.sim.loop import VirtualLoop
from steersman.testing.history import History
from steersman.testing.narration import verdict_of_round

MAX_OBJECTS, MAX_VERDICTS, MAX_CHANGES = 6, 12, 12
"""Maximum number of lines in each section of a report."""
LONGEST = 300
"""Maximum characters of a line."""


class WaitTimeout(AssertionError):
    """A condition that was not met in time. The message is a report."""


class Evaluation(msgspec.Struct, frozen=True):
    """The result of a predicate."""

    value: Any
    writes: int
    """Number of writes when it was evaluated."""
    error: Exception | None = None

    @property
    def met(self) -> bool:
        return self.error is None and bool(self.value)

    async def awaited(self) -> Evaluation:
        """The result of an async predicate, awaited."""
        if not isinstance(self.value, Awaitable):
            return self
        try:
            return replace(self, value=await self.value)
        except Exception as error:
            return replace(self, value=None, error=error)


class Wait:
    """A wait for a condition in a cluster."""

    def __init__(
        self,
        predicate: Callable[[], object],
        loop: asyncio.AbstractEventLoop,
        history: History,
        timeout: float,
        reads: dict[tuple[str, Key], Any],
    ) -> None:
        """``reads`` collects the objects that the predicate reads; it is cleared before each evaluation."""
        self._predicate = predicate
        self._loop = loop
        self._history = history
        self._timeout = timeout
        self._deadline = loop.time() + timeout
        self._reads = reads
        self._calm = False
        """Whether nothing is ready at this instant."""

    @property
    def over(self) -> bool:
        return self._loop.time() >= self._deadline

    def has_new_writes(self, evaluation: Evaluation) -> bool:
        """Whether there were writes since the evaluation."""
        return self._history.writes != evaluation.writes

    def evaluate(self) -> Evaluation:
        """Evaluate the predicate. An exception is a result, too."""
        self._reads.clear()
        writes = self._history.writes
        try:
            return Evaluation(self._predicate(), writes)
        except Exception as error:
            return Evaluation(None, writes, error)

    def timeout_error(self, evaluation: Evaluation) -> WaitTimeout:
        """The error of a condition that was not met."""
        seen: Mapping[tuple[str, Key], Any] = self._reads
        message = timeout_report(
            self._predicate, evaluation.value, evaluation.error, self._timeout, seen, self._history
        )
        error = WaitTimeout(message)
        error.__cause__ = evaluation.error
        return error

    def step(self, loop: VirtualLoop) -> None:
        """Run a virtual world until the next write, the end of this instant, or the next timer.

        After a write the world stops at once, before any watcher has seen the write.
        """
        before = self._history.writes
        self._history.changed.append(loop.halt)
        # Ready callbacks run first; time passes only when there are none.
        waits = loop.call_at(self._until(loop.due()), loop.halt) if self._calm else _calm(loop)
        try:
            loop.run_forever()
        finally:
            waits.cancel()
            self._history.changed.remove(loop.halt)
        loop.check()
        self._calm = not self._calm and self._history.writes == before

    async def wait_for_write(self, evaluation: Evaluation, due: float | None) -> None:
        """Let time pass until the next write, or until ``due``."""
        history, loop = self._history, self._loop
        if self.has_new_writes(evaluation):
            return  # there was a write before this coroutine ran
        waiter: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not waiter.done():
                waiter.set_result(None)

        history.changed.append(wake)
        timer = loop.call_at(self._until(due), wake)
        try:
            await waiter
        finally:
            timer.cancel()
            history.changed.remove(wake)

    def _until(self, due: float | None) -> float:
        return self._deadline if due is None else min(due, self._deadline)


def _calm(loop: VirtualLoop) -> asyncio.Task[None]:
    """Halts the loop when nothing is ready."""
    task = loop.create_task(loop.idle(), name="waiting")
    task.add_done_callback(lambda done: None if done.cancelled() else loop.halt())
    return task


# -- the report -------------------------------------------------------------------------------


def timeout_report(
    predicate: Callable[[], object],
    value: object,
    error: Exception | None,
    timeout: float,
    reads: Mapping[tuple[str, Key], Any],
    history: History,
) -> str:
    """The report of a condition that was not met: its last result, the objects it read, verdicts and changes."""
    result = (
        f"error: {type(error).__name__}: {error}" if error is not None else f"result: {_short(repr(value))}"
    )
    lines = [f"condition not met within {span(timeout)}: {source(predicate)}", f"  last {result}"]
    seen = (f"{where.partition('.')[0]} {key}: {describe(obj)}" for (where, key), obj in reads.items())
    lines += _section("objects read", seen, MAX_OBJECTS)
    lines += _section("verdicts", (verdict_of_round(each) for each in history.last_rounds()), MAX_VERDICTS)
    lines += _section("last changes", (str(each) for each in history.entries(last=MAX_CHANGES)), MAX_CHANGES)
    return "\n".join(lines)


def _section(title: str, lines: Iterable[str], most: int) -> list[str]:
    shown = list(lines)
    if not shown:
        return []
    more = [f"    … and {len(shown) - most} more"] if len(shown) > most else []
    return [f"  {title}:", *(f"    {_short(line)}" for line in shown[:most]), *more]


def source(predicate: Callable[..., object]) -> str:
    """The source line of a predicate, or its name."""
    try:
        text = inspect.getsource(predicate)
    except (OSError, TypeError):
        return getattr(predicate, "__qualname__", repr(predicate))
    return _short(" ".join(text.split()))


def describe(obj: Any) -> str:
    """The status of an object in one line."""
    status = obj.get("status") if isinstance(obj, Mapping) else to_builtins(getattr(obj, "status", None))
    if not isinstance(status, Mapping):
        return "exists"
    parts = [f"{name} {value}" for name, value in status.items() if isinstance(value, int | str)]
    for each in status.get("conditions") or ():
        why = ": ".join(text for text in (each.get("reason"), each.get("message")) if text)
        parts.append(f"{each.get('type')}={each.get('status')}" + (f" ({why})" if why else ""))
    for each in status.get("containerStatuses") or ():
        waiting = (each.get("state") or {}).get("waiting")
        if waiting:
            parts.append(f"container {each.get('name')} waiting: {waiting.get('reason')}")
    return ", ".join(parts) or "no status"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
