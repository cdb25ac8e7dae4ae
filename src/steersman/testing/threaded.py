"""A world in real time, in a thread of its own: for clients in other processes, threads and loops.

Time can still be made to pass: `LiveWorld.advance` goes from timer to timer, as a virtual world does, so a
deadline of a month need not be waited for. Those outside live in their own time and do not notice.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from steersman.server.server import Server
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Commit
from steersman.sim.loop import in_background
from steersman.sim.scaled_clock import ScaledLoop
from steersman.sim.world import QUIET

T = TypeVar("T")

TURNS = 50
"""Turns of the loop that what a timer sets off is given before time goes on."""
GLANCE = 0.02
"""Seconds of the wall between two looks at whether something has settled."""


class _Loop(ScaledLoop):
    """A loop whose time can be moved on."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped

    def next_timer(self) -> float | None:
        """When the next timer goes off."""
        timers = (timer for timer in self._scheduled if not timer.cancelled())  # type: ignore[attr-defined]
        return min((timer.when() for timer in timers), default=None)

    def is_idle(self) -> bool:
        """Whether nothing is ready, but for who asks."""
        return not self._ready  # type: ignore[attr-defined]


class LiveWorld:
    """The `Clock` of a server and of everything beside it. Begins with a store's objects."""

    def __init__(self, seed: int, store: Store, start: datetime, speed: float) -> None:
        """``speed`` is how many times as fast as the wall's its time passes."""
        self.seed = seed
        self.speed = speed
        self.random = random.Random(f"{seed}/live")
        self.loop = _Loop(speed)
        self.server = Server(self, store=store, names=random.Random(f"{seed}/live names"))
        self._start = start
        self._begin = self.loop.time()
        self._writes = 0
        self.server.store.commit_hooks.append(self._note)
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self.loop.run_forever, name="steersman", daemon=True)
        self._thread.start()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.loop.time() - self._begin)

    def monotonic(self) -> float:
        """The loop's own time, so that deadlines reckoned by it agree with the loop's timers."""
        return self.loop.time()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run something to its end, from another thread. Raises what a spawned task failed with."""
        result = self._call(coroutine)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return result

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("this waits, and may not be called in the cluster's own thread")
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Start something in the world. If it fails, the next run does."""

        async def start() -> asyncio.Task[T]:
            task = self.loop.create_task(coroutine, name=name)
            self._tasks[task] = None
            task.add_done_callback(self._ended)
            return task

        return self._call(start())

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None and self._failure is None:
            self._failure = error

    # -- letting time pass --------------------------------------------------------------------

    async def advance(self, seconds: float) -> None:
        """Let time pass at once, and everything happen that is due by then."""
        end = self.loop.time() + seconds
        while True:
            await self._quiet()
            due = self.loop.next_timer()
            now = self.loop.time()
            if due is None or due > end:
                self.loop.skipped += max(0.0, end - now)
                await self._quiet()
                return
            self.loop.skipped += max(0.0, due - now)

    async def _quiet(self) -> None:
        """Let others have their turns until none wants any, or many are over."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
            if self.loop.is_idle():
                return

    def _note(self, commit: Commit) -> None:
        """Count what unsettles: not the heartbeats of nodes, nor other upkeep."""
        if commit.resource not in QUIET and not in_background():
            self._writes += 1

    async def settle(self, horizon: float, *, limit: float) -> float:
        """Wait until nothing was written for ``horizon`` seconds of the world; answers how many passed."""
        begin = changed = self.loop.time()
        writes = self._writes
        while self.loop.time() < changed + horizon:
            await asyncio.sleep(GLANCE * self.speed)
            if self._writes != writes:
                changed, writes = self.loop.time(), self._writes
            if self.loop.time() > begin + limit:
                raise AssertionError(f"still writing after {limit:g}s")
        return self.loop.time() - begin

    # -- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """End everything."""
        if self.loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._leave(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _leave(self) -> None:
        ours = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks(self.loop) if task is not ours]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_asyncgens()
