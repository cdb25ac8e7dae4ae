"""The process of a verb: its event loop, its signals and its exit."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM)
TASK_TIMEOUT = 1.0
"""Seconds for the remaining tasks to end once the main task has ended."""
EXIT_TIMEOUT = 5.0
"""Seconds to write the last log lines when the process exits at once."""


def raise_file_limit() -> int:
    """Raise the limit of open files as far as the process may, as Go programs do; returns the limit."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return soft
    return hard


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on uvloop where it is installed, otherwise on asyncio's own event loop."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


async def run_until_signal(work: Coroutine[Any, Any, None], timeout: float | None) -> None:
    """Run ``work`` until it ends, or until SIGINT or SIGTERM cancels it.

    After the signal it has ``timeout`` seconds to end; None is no limit. After that, or after a second signal, the
    process exits at once with code 1: a task that does not stop must not keep the process alive.
    """
    task = asyncio.create_task(work, name="manager")
    loop = asyncio.get_running_loop()
    signalled = asyncio.Event()

    def stop() -> None:
        signalled.set()
        task.cancel()
        # uvloop reports connections that are closed during a read.
        loop.set_exception_handler(lambda _, context: log.debug("while stopping: %s", context["message"]))
        for number in SIGNALS:
            loop.remove_signal_handler(number)
            # Not a handler of the event loop: the loop itself may hang.
            signal.signal(number, lambda *_: exit_at_once("second signal: exiting at once"))

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    waiting = asyncio.create_task(signalled.wait(), name="waiting for a signal")
    await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    await asyncio.wait((task,), timeout=timeout)
    left = asyncio.all_tasks() - {asyncio.current_task(), task}
    if task.done() and left:
        for one in left:
            one.cancel()
        _, left = await asyncio.wait(left, timeout=TASK_TIMEOUT)
    if left or not task.done():
        names = sorted(one.get_name() for one in (task, *left) if not one.done())
        exit_at_once(f"controller shutdown timeout reached: {', '.join(names)} did not end")
    try:
        task.result()
    except asyncio.CancelledError:
        log.info("stopped by a signal")


def exit_at_once(reason: str) -> NoReturn:
    """End the process with code 1, from any thread, whatever the others do."""
    # Another thread may hold the lock of a log handler for good.
    timer = threading.Timer(EXIT_TIMEOUT, os._exit, (1,))
    timer.daemon = True
    timer.start()
    log.error("%s", reason)
    logging.shutdown()
    os._exit(1)
