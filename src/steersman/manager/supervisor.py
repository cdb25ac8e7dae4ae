"""Tasks that belong together: when one of them ends, all of them have to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from typing import Any

log = logging.getLogger(__name__)


class Lost(Exception):
    """A part without which the whole cannot go on has failed."""


class Crew:
    """What runs for as long as a control plane is up.

    A plane without one of its parts looks well and does wrong, so the first loss is the end of it.
    """

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._lost: asyncio.Future[Lost] = asyncio.get_running_loop().create_future()
        self._leaving = False

    def take(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Start work that is not meant to end. Its name is put into words: ``the scheduler``."""
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def lose(self, why: str) -> None:
        """Something the crew depends on is gone."""
        if not self._lost.done():
            self._lost.set_result(Lost(why))

    async def lost(self) -> Lost:
        """Wait for the first loss, which may never come."""
        return await asyncio.shield(self._lost)

    async def until(self, event: asyncio.Event) -> None:
        """Wait for something to happen. Raises `Lost` where somebody is lost first."""
        waiter = asyncio.create_task(event.wait())
        await asyncio.wait((waiter, self._lost), return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        if self._lost.done():
            raise self._lost.result()

    async def leave(self) -> None:
        """End everything."""
        self._leaving = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._leaving:
            return
        error = None if task.cancelled() else task.exception()
        log.info("%s ended", task.get_name(), exc_info=error)
        told = "; ".join(_leaves(error)) if error is not None else "nobody said why"
        self.lose(f"{task.get_name()} ended, so the control plane stops: {told}")


def _leaves(error: BaseException) -> Iterator[str]:
    """What went wrong, without the groups it comes in."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
