"""A world in real time, in its own thread: for clients in other processes, threads and event loops.

`RealTimeWorld.advance` still skips time, from timer to timer, so that a test need not wait for a deadline of a month. Clients in
other processes keep their own time.
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
"""Maximum iterations of the event loop after a timer before time is skipped again."""
POLL_INTERVAL = 0.02
"""Seconds of real time between two checks whether the world has settled."""


class _Loop(ScaledLoop):
    """An event loop that can skip time."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped

    def next_timer(self) -> float | None:
        """When the next timer expires."""
        timers = (timer for timer in self._scheduled if not timer.cancelled())  # type: ignore[attr-defined]
        return min((timer.when() for timer in timers), default=None)

    def is_idle(self) -> bool:
        """Whether nothing but the caller is ready."""
        return not self._ready  # type: ignore[attr-defined]


class RealTimeWorld:
    """A server in real time, and the `Clock` of its processes. Starts with the objects of a store."""

    def __init__(self, seed: int, store: Store, start: datetime, speed: float) -> None:
        """``speed`` is the speed of its clock as a multiple of real time."""
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
        """The event loop's time, so that deadlines agree with its timers."""
        return self.loop.time()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, from another thread. Raises the error of a failed spawned task."""
        result = self._call(coroutine)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return result

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("this call blocks, and may not be made in the cluster's own thread")
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Start a coroutine. If it fails, the next run fails."""

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

    # -- time ---------------------------------------------------------------------------------

    async def advance(self, seconds: float) -> None:
        """Skip time; everything due by then happens."""
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
        """Let ready callbacks run until none is left, for at most `TURNS` iterations."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
            if self.loop.is_idle():
                return

    def _note(self, commit: Commit) -> None:
        """Count a write, unless it is a heartbeat or other background work."""
        if commit.resource not in QUIET and not in_background():
            self._writes += 1

    async def settle(self, horizon: float, *, limit: float) -> float:
        """Wait until nothing is written for ``horizon`` seconds of cluster time; returns the seconds that passed."""
        begin = changed = self.loop.time()
        writes = self._writes
        while self.loop.time() < changed + horizon:
            await asyncio.sleep(POLL_INTERVAL * self.speed)
            if self._writes != writes:
                changed, writes = self.loop.time(), self._writes
            if self.loop.time() > begin + limit:
                raise AssertionError(f"still writing after {limit:g}s")
        return self.loop.time() - begin

    # -- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop everything."""
        if self.loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._cancel_all(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _cancel_all(self) -> None:
        ours = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks(self.loop) if task is not ours]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_asyncgens()
