"""An event loop under virtual time: when nothing is ready it jumps to the next timer.

Callbacks run in the order they became ready, timers of one instant in the order they were set, so a program runs the same
way every time. A seeded shuffle runs ready tasks in another order, to find code that depends on it. There is no I/O, no
thread and no waiting in real time.

A program in which every task waits raises `Deadlock`, with where each task waits; one that loops without time passing raises
`Livelock`.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any, NoReturn, TypeVarTuple, Unpack
from weakref import WeakSet

from steersman.runtime.heartbeat import Heartbeat
from steersman.sim.deadlock import Deadlock, Livelock, waiting_tasks
from steersman.sim.heartbeat_loop import Due, HeartbeatSchedule

__all__ = ["Deadlock", "Livelock", "VirtualLoop", "background", "in_background"]

Ts = TypeVarTuple("Ts")

_background: ContextVar[bool] = ContextVar("background", default=False)


@contextmanager
def background() -> Iterator[None]:
    """Timers set in here, and by tasks started in here, are background work: heartbeats, renewals, timeouts.

    They run like all others, but a world counts as settled while they are pending.
    """
    token = _background.set(True)
    try:
        yield
    finally:
        _background.reset(token)


def in_background() -> bool:
    """Whether the running code was started in the background."""
    return _background.get()


class VirtualLoop(asyncio.BaseEventLoop):
    """An asyncio event loop under virtual time."""

    _ready: deque[asyncio.Handle]
    _closed: bool
    _debug: bool
    _stopping: bool

    def __init__(
        self, *, start: float = 0.0, shuffle: random.Random | None = None, patience: int = 2_000_000
    ) -> None:
        """``shuffle`` runs ready tasks in a random order; more than ``patience`` iterations at one instant raise
        `Livelock`."""
        super().__init__()
        self._now = start
        self._shuffle = shuffle
        self._patience = patience
        self._turns = 0
        self._set = 0
        self._nameless = 0
        self._tasks: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._timers: list[_Timer] = []
        self._upkeep: list[_Timer] = []
        self._cancelled = 0
        self._idlers: list[asyncio.Future[None]] = []
        self.limit = math.inf
        """The time at which the program counts as deadlocked although there are timers."""
        self.beats = HeartbeatSchedule()
        self._beating = False
        """Whether beats are running, which come before everything else of their instant."""
        self._goal = math.inf
        """The time of the timer that the running beats precede."""
        self._beaters: dict[asyncio.Task[Any] | None, None] = {}
        self._held: deque[asyncio.Handle] = deque()
        """Callbacks that wait until the beats have run."""
        self._failure: BaseException | None = None
        self._halted = False

    # -- time ---------------------------------------------------------------------------------

    def time(self) -> float:
        """Seconds since the loop began; time passes only when nothing is ready."""
        return self._now

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Like asyncio's, but timers of one instant run in the order they were set."""
        self._check_closed()
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        handle._scheduled = True  # type: ignore[attr-defined]  # makes cancel() tell us
        upkeep = _background.get() if context is None else context.get(_background, False)
        self._set += 1
        heapq.heappush(self._upkeep if upkeep else self._timers, (when, self._set, handle))
        return handle

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Like asyncio's, without its calls of further methods: this is what a world does most often."""
        if self._debug or self._closed:
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def create_task(self, coro: Any, *, name: object = None, **options: Any) -> asyncio.Task[Any]:
        """Like asyncio's, but a task without a name is named after its coroutine and numbered per loop."""
        if name is None:
            self._nameless += 1
            name = f"{getattr(coro, '__name__', 'task')}-{self._nameless}"
        task = super().create_task(coro, name=name, **options)
        self._tasks.add(task)
        return task

    def tasks(self) -> set[asyncio.Task[Any]]:
        """The unfinished tasks of this loop. `asyncio.all_tasks` looks at those of all loops there ever were."""
        return {task for task in self._tasks if not task.done()}

    def due(self) -> float | None:
        """When the next timer expires that is not in the background."""
        due = self._head(self._timers)
        silent = self.beats.silent(due) if self.beats else math.inf
        return None if (first := min(due, silent)) == math.inf else first

    async def idle(self) -> None:
        """Wait until nothing is ready at this instant."""
        waiter: asyncio.Future[None] = self.create_future()
        self._idlers.append(waiter)
        await waiter

    async def until(self, when: float) -> None:
        """Wait for an instant, and until nothing is ready at it."""
        if when > self._now:
            self.limit = max(self.limit, when)
            waiter: asyncio.Future[None] = self.create_future()
            handle = self.call_at(when, _release, waiter)
            try:
                await waiter
            finally:
                handle.cancel()
        await self.idle()

    async def until_beat(self, rhythm: Heartbeat) -> None:
        """Wait for a beat: the next, or a later one where no observer can tell the difference."""
        await self.beats.wait(rhythm, self.create_future())

    def call_unless_renewed_at(
        self, when: float, heartbeat: str, callback: Callable[[Unpack[Ts]], object], *args: *Ts
    ) -> asyncio.TimerHandle:
        """Like `call_at`, but the timer does not expire while a heartbeat renews it in time."""
        self._check_closed()
        handle = asyncio.TimerHandle(when, callback, args, self, None)
        self.beats.listen(handle, heartbeat)
        return handle

    def fail(self, error: BaseException) -> None:
        """Raise an error from the running loop; the first error counts."""
        if self._failure is None:
            self._failure = error

    def halt(self) -> None:
        """Stop right after the current callback, so that the caller sees the world as it is now.

        Other ready callbacks stay ready until the next run; `stop` would run them first.
        """
        self._halted = True
        self.stop()

    def check(self) -> None:
        """Raise the error of `fail` that no run has raised yet."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # -- one iteration ------------------------------------------------------------------------

    def _run_once(self) -> None:
        """Run ready callbacks; where there are none, let time pass."""
        self._halted = False
        if self._failure is not None:
            self.check()
        ready = self._ready
        if self._beaters:
            self._hold()
        elif self._beating and not ready:
            self._beating = False
        now, timers, upkeep = self._now, self._timers, self._upkeep
        if not self._beating and ((timers and timers[0][0] <= now) or (upkeep and upkeep[0][0] <= now)):
            self._collect()
            # A beat may have brought the time to this instant, and not a jump.
            ready.extend(self.beats.due(now))
        if not ready and not self._stopping:
            if self._idlers:
                idlers, self._idlers = self._idlers, []
                for waiter in idlers:
                    _release(waiter)
            else:
                self._jump()
        self._turns += 1
        if self._turns > self._patience:
            self._turns = 0
            raise Livelock(
                f"{self._patience} iterations without time passing at {self._now}\n{waiting_tasks(self)}"
            )
        # Callbacks made ready by these run in the next iteration, as in asyncio.
        if self._shuffle is not None and len(ready) > 1:
            dealt = _deal(list(ready), self._shuffle)
            ready.clear()
            ready.extend(dealt)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()
            if self._halted:
                break

    def _collect(self) -> None:
        """Make ready the timers due at this instant."""
        now = self._now
        due: list[_Timer] = []
        for heap in (self._upkeep, self._timers):
            while heap and heap[0][0] <= now:
                due.append(heapq.heappop(heap))
        if len(due) > 1:
            due.sort()
        for _, _, handle in due:
            handle._scheduled = False  # type: ignore[attr-defined]
            if handle.cancelled():
                self._cancelled -= 1
            else:
                self._ready.append(handle)

    def _jump(self) -> None:
        """Let time pass until the next timer, or until a beat before it."""
        target = min(self._head(self._timers), self._head(self._upkeep))
        beats = self.beats
        if beats:
            target = min(target, beats.silent(target))
            due = beats.next(target)
            if due is not None:
                self._goal = target
                self._let_beat(due)
                return
        if target == math.inf:
            left = "only heartbeats are left" if beats.beating else "no timer is set"
            raise Deadlock(f"nothing is ready and {left} at {self._now}\n{waiting_tasks(self)}")
        self._pass(target)
        self._collect()
        self._ready.extend(beats.due(target))

    def _let_beat(self, due: Due) -> None:
        self._pass(due.instant)
        self._beating = True
        if due.unobserved:
            self._beaters = self.beats.tasks(due.rhythms)
        self.beats.release(due.rhythms, due.instant)

    def _hold(self) -> None:
        """Hold back all other callbacks until all unobserved beats of this jump have run.

        Otherwise a reader could see the write of one beat, but the old state of another.
        """
        ready, held, beaters = self._ready, self._held, self._beaters
        for _ in range(len(ready)):
            handle = ready.popleft()
            (ready if _task(handle) in beaters else held).append(handle)
        if not ready:
            due = self.beats.next(self._goal)
            if due is not None and due.unobserved:
                self._let_beat(due)
            else:
                beaters.clear()
                self._beating = bool(held)
                ready.extend(held)
                held.clear()

    def _pass(self, instant: float) -> None:
        if instant > self.limit:
            raise Deadlock(
                f"at {instant:.0f} s timers still run, but the program does not end\n{waiting_tasks(self)}"
            )
        self._now = max(self._now, instant)
        self._turns = 0

    def _head(self, heap: list[_Timer]) -> float:
        """When the first active timer of a heap expires; cancelled ones before it are removed."""
        while heap and heap[0][2].cancelled():
            heapq.heappop(heap)
            self._cancelled -= 1
        return heap[0][0] if heap else math.inf

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by a handle: remove cancelled timers once they are the majority."""
        self._cancelled += 1
        if self._cancelled > 100 and self._cancelled * 2 > len(self._timers) + len(self._upkeep):
            self._timers = [timer for timer in self._timers if not timer[2].cancelled()]
            self._upkeep = [timer for timer in self._upkeep if not timer[2].cancelled()]
            heapq.heapify(self._timers)
            heapq.heapify(self._upkeep)
            self._cancelled = 0

    # -- not available under virtual time -----------------------------------------------------

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """There is one thread, so this is `call_soon`."""
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> NoReturn:  # type: ignore[override]
        raise RuntimeError("no threads under virtual time: they would not be deterministic")

    def _check_closed(self) -> None:
        if self.is_closed():
            raise RuntimeError("Event loop is closed")


_Timer = tuple[float, int, asyncio.TimerHandle]


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _deal(batch: list[asyncio.Handle], chance: random.Random) -> list[asyncio.Handle]:
    """Shuffle the steps of tasks; plain callbacks keep their places.

    A task has at most one step in a batch, and tasks may not rely on each other's order; plain callbacks may, since asyncio
    guarantees their order.
    """
    places = [i for i, handle in enumerate(batch) if _is_step(handle)]
    dealt = places[:]
    chance.shuffle(dealt)
    result = batch[:]
    for place, source in zip(places, dealt, strict=True):
        result[place] = batch[source]
    return result


def _is_step(handle: asyncio.Handle) -> bool:
    return _task(handle) is not None


def _task(handle: asyncio.Handle) -> asyncio.Task[Any] | None:
    """The task whose step this is."""
    task = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    return task if isinstance(task, asyncio.Task) else None
