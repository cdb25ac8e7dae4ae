"""Leader election on a thread with an event loop of its own, while the controllers run on the main loop.

Whatever holds the main loop (a round over a huge namespace, the garbage collector of Python, a profile) does not delay
the renewal of a lease. The thread shares nothing with the main loop that either could hold up: it has its own client,
connections and credentials. An election knows nothing of threads; `ElectionThread` runs it there, and the
controllers on the loop that calls `ElectionThread.run`. Under virtual time an election runs on the one loop there is.

Two things keep that safe:

* the fence of the election is read by the main loop before every write, and closes by the clock. A main loop that does
  not even answer when the lease is lost cannot stop in order, so the thread ends the process;
* a lease that is renewed for a main loop that never runs again would keep other replicas from leading, so the thread
  also ends the process when the main loop has not run for `MISSES` times `PERIOD`.

A call that holds Python's global interpreter lock, such as decoding one document, holds up the thread, too.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Protocol, TypeVarTuple, Unpack

from steersman.api.verbosity import structured
from steersman.intent.controller import Controller
from steersman.manager.election import Fence, Lead
from steersman.manager.process import exit_at_once
from steersman.runtime.leader_election import LostLease

Ts = TypeVarTuple("Ts")

log = logging.getLogger(__name__)

PERIOD = 5.0
"""Seconds between two checks of the main loop, and for it to answer one."""
MISSES = 12
"""Periods in a row without an answer after which the process ends: one minute.

differs: upstream leaves that to a liveness probe, which not every installation has.
"""
ANSWER_TIMEOUT = 5.0
"""Seconds for the main loop to take notice that it must stop: the time between the fence's end and the lease's."""


class Election(Protocol):
    """A leader election that runs controllers while it leads."""

    async def run(self, lead: Lead) -> None:
        """Lead until the lease is lost. Raises `LostLease`."""
        ...


class ElectionThread:
    """An `Election` that runs another one on a thread."""

    def __init__(
        self,
        election: Election,
        client: AbstractAsyncContextManager[object],
        *,
        exit: Callable[[str], object] = exit_at_once,
        period: float = PERIOD,
        answer_timeout: float = ANSWER_TIMEOUT,
    ) -> None:
        """``client`` sends the requests of the election: opened and closed on the thread. ``exit`` ends the
        process and logs why.
        """
        self._election = election
        self._client = client
        self._exit = exit
        self._period = period
        self._answer_timeout = answer_timeout
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    async def run(self, lead: Lead) -> None:
        """Run the election, and ``lead`` on the calling loop. Raises what they raise, and `LostLease`."""
        loop = asyncio.get_running_loop()
        main = _MainLoop(loop, self._exit, self._answer_timeout)
        ended: asyncio.Future[None] = loop.create_future()
        received = threading.Event()
        # Not uvloop: two kinds of event loops handle SIGCHLD differently, and exec plugins are child processes.
        runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        # Created here, so that it can be told to stop from the first moment.
        own = runner.get_loop()

        def thread() -> None:
            error: BaseException | None = None
            try:
                with runner:
                    runner.run(self._elect(main, lead))
            except BaseException as raised:
                error = raised
            post(loop, _settle, ended, error)
            if isinstance(error, LostLease) and not received.wait(self._answer_timeout):
                self._exit(f"{error}; the event loop does not respond")

        threading.Thread(target=thread, name="leader election", daemon=True).start()
        try:
            while not ended.done():
                try:
                    await asyncio.wait((ended,))
                except asyncio.CancelledError:
                    post(own, self._stop)
        finally:
            received.set()
        ended.result()

    # -- on the thread ------------------------------------------------------------------------

    async def _elect(self, main: _MainLoop, lead: Lead) -> None:
        self._task = asyncio.current_task()
        if self._stopping:
            raise asyncio.CancelledError

        async def lead_on_main(
            controllers: tuple[Controller[Any], ...], fence: Fence, started: Callable[[], None]
        ) -> None:
            here = asyncio.get_running_loop()
            await main.run(lambda: lead(controllers, fence, partial(post, here, started)))

        async with self._client:
            watchdog = asyncio.create_task(self._watch(main), name="event loop watchdog")
            try:
                await self._election.run(lead_on_main)
            finally:
                watchdog.cancel()

    def _stop(self) -> None:
        self._stopping = True
        if self._task is not None:
            self._task.cancel()

    async def _watch(self, main: _MainLoop) -> None:
        """End the process when the main loop has not run for a minute."""
        while True:
            answered = main.ping()
            # Several short waits: a process that was stopped and goes on misses one of them at most.
            for missed in range(1, MISSES + 1):
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._period):
                        await answered.wait()
                    break
                if missed == 1:
                    main.warn(self._period)
            else:
                self._exit(f"leaderelection lost: the event loop has not run for {MISSES * self._period:g} s")
            await asyncio.sleep(self._period)


class _MainLoop:
    """The event loop of the thread that creates this, for use by another thread with a loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, exit: Callable[[str], object], answer_timeout: float
    ) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._context = copy_context()
        self._exit = exit
        self._answer_timeout = answer_timeout

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine on the main loop until it has ended there. Cancellation is passed on to it."""
        here = asyncio.get_running_loop()
        ended: asyncio.Future[None] = here.create_future()
        tasks: list[asyncio.Task[None]] = []

        def start() -> None:
            task = self._loop.create_task(work(), name="leading", context=self._context.copy())
            task.add_done_callback(lambda task: post(here, _settle, ended, _error_of(task)))
            tasks.append(task)

        def cancel(timer: asyncio.TimerHandle) -> None:
            post(here, timer.cancel)
            tasks[0].cancel()

        post(self._loop, start)
        while not ended.done():
            try:
                await asyncio.wait((ended,))
            except asyncio.CancelledError:
                reason = "leaderelection lost: the event loop does not respond"
                post(self._loop, cancel, here.call_later(self._answer_timeout, self._exit, reason))
        ended.result()

    def ping(self) -> asyncio.Event:
        """Return an event that is set once the main loop has run."""
        answered = asyncio.Event()
        post(self._loop, post, asyncio.get_running_loop(), answered.set)
        return answered

    def warn(self, seconds: float) -> None:
        """Log where the main loop is."""
        frame = sys._current_frames().get(self._thread)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
        log.warning(
            "the event loop has not run for %g s",
            seconds,
            extra=structured("The event loop has not run", seconds=seconds, stack=stack),
        )


def post(loop: asyncio.AbstractEventLoop, callback: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
    """Call back on the loop of another thread. One that is closed needs no call any more."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *args)


def _error_of(task: asyncio.Task[None]) -> BaseException | None:
    return asyncio.CancelledError() if task.cancelled() else task.exception()


def _settle(ended: asyncio.Future[None], error: BaseException | None) -> None:
    if ended.done():
        return
    if isinstance(error, asyncio.CancelledError):
        ended.cancel()
    elif error is not None:
        ended.set_exception(error)
    else:
        ended.set_result(None)
