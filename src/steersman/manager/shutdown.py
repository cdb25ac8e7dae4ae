"""The end of a manager: told once, it stops in order; told twice, at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LEFT = 1.0
"""Seconds for what is still under way when everything else has ended."""


async def until_told(work: Coroutine[Any, Any, None], limit: float | None) -> None:
    """Do the work until it ends, or a signal says to stop.

    Then it has ``limit`` seconds. If it takes longer, or a second signal comes, the process ends here and now with
    code 1: what does not stop when it is told to must not keep the process alive.
    """
    task = asyncio.create_task(work, name="manager")
    loop = asyncio.get_running_loop()
    told = asyncio.Event()

    def tell() -> None:
        told.set()
        task.cancel()
        # uvloop complains of connections that are closed while they are read from.
        loop.set_exception_handler(lambda _, context: log.debug("while stopping: %s", context["message"]))
        for number in SIGNALS:
            loop.remove_signal_handler(number)
            # Not a handler of the loop's: that may be what hangs.
            signal.signal(number, lambda *_: _end_at_once("told to stop again"))

    for number in SIGNALS:
        loop.add_signal_handler(number, tell)
    waiting = asyncio.create_task(told.wait(), name="waiting for a signal")
    await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    await asyncio.wait((task,), timeout=limit)
    left = asyncio.all_tasks() - {asyncio.current_task(), task}
    if task.done() and left:
        for one in left:
            one.cancel()
        _, left = await asyncio.wait(left, timeout=LEFT)
    if left or not task.done():
        names = sorted(one.get_name() for one in (task, *left) if not one.done())
        _end_at_once(f"controller shutdown timeout reached: {', '.join(names)} did not end")
    try:
        task.result()
    except asyncio.CancelledError:
        log.info("told to stop: stopped")


def _end_at_once(why: str) -> NoReturn:
    log.error("%s", why)
    logging.shutdown()
    sys.stderr.flush()
    os._exit(1)
