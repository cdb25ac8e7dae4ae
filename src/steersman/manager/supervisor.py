"""Supervisor of the components of a control plane: the first that ends stops them all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

log = logging.getLogger(__name__)


class ComponentFailed(Exception):
    """A component of the control plane has ended."""


class Supervisor:
    """Runs the components of a control plane.

    A control plane without one of its components looks healthy but misbehaves, so the first failure stops all of it.
    """

    def __init__(self, on_failure: Callable[[], None] = lambda: None) -> None:
        """``on_failure`` is called right after the first failure, before the other components are stopped."""
        self._on_failure = on_failure
        self._tasks: list[asyncio.Task[None]] = []
        self._failed: asyncio.Future[ComponentFailed] = asyncio.get_running_loop().create_future()
        self._stopping = False

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Start a component that is not meant to end. Its name appears in errors, such as ``the scheduler``."""
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def fail(self, reason: str) -> None:
        """Record a failure; the first one counts."""
        if not self._failed.done():
            self._failed.set_result(ComponentFailed(reason))
            self._on_failure()

    async def failed(self) -> ComponentFailed:
        """Wait for the first failure, which may never come."""
        return await asyncio.shield(self._failed)

    async def wait_for(self, event: asyncio.Event) -> None:
        """Wait for an event. Raises `ComponentFailed` where a component fails first."""
        waiter = asyncio.create_task(event.wait())
        await asyncio.wait((waiter, self._failed), return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        if self._failed.done():
            raise self._failed.result()

    async def stop(self) -> None:
        """Cancel all components and wait for them to end."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._stopping:
            return
        error = None if task.cancelled() else task.exception()
        log.info("%s ended", task.get_name(), exc_info=error)
        reason = "; ".join(_leaves(error)) if error is not None else "it returned without an error"
        self.fail(f"{task.get_name()} ended, so the control plane stops: {reason}")


def _leaves(error: BaseException) -> Iterator[str]:
    """The errors of a group, without the groups themselves."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
