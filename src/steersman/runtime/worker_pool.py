"""A pool of worker tasks that grows with the work: most loops rest most of the time, and an idle task is not free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

LENT = 2
"""Workers that take the place of one that waits for a slow answer."""


class WorkerPool:
    """Up to ``limit`` worker tasks in a task group. A started worker stays, unless it was started on a loan."""

    def __init__(
        self, group: asyncio.TaskGroup, work: Callable[[], Coroutine[Any, Any, None]], limit: int, name: str
    ) -> None:
        """``work`` is the loop of each worker; it ends when cancelled."""
        self._group = group
        self._work = work
        self._limit = limit
        self._name = name
        self._started = 0
        # A worker runs in the context of the pool, not of the caller that happens to start it.
        self._context = copy_context()

    @contextmanager
    def lend(self, backlog: int) -> Iterator[None]:
        """Allow one more worker while the caller waits for a slow answer; ``backlog`` keys wait for one."""
        self._grow(1, backlog)
        try:
            yield
        finally:
            self._limit -= 1

    @contextmanager
    def lend_after(self, seconds: float, backlog: Callable[[], int]) -> Iterator[None]:
        """Allow `LENT` more workers once the caller has worked for some seconds, until it is done.

        Where those run into slow answers, too, they lend in turn: the number of workers doubles with each period, so that
        any number of answers that are due do not hold up other keys for long.
        """
        lent = 0

        def lend() -> None:
            nonlocal lent
            lent = LENT
            self._grow(lent, backlog())

        timer = asyncio.get_running_loop().call_later(seconds, lend, context=self._context)
        try:
            yield
        finally:
            timer.cancel()
            self._limit -= lent

    def _grow(self, places: int, backlog: int) -> None:
        self._limit += places
        self.call(min(backlog, places))

    def retire(self) -> bool:
        """Whether the calling worker must end, because a loan is over and there is one worker too many."""
        if self._started <= self._limit:
            return False
        self._started -= 1
        return True

    def call(self, count: int = 1) -> None:
        """Start up to ``count`` more workers, within the limit."""
        for number in range(self._started, min(self._started + count, self._limit)):
            self._started += 1
            name = f"{self._name}#{number}"
            work = self._work()
            try:
                self._group.create_task(work, name=name, context=self._context.copy())
            except RuntimeError:
                # The group is about to end and takes no new tasks.
                work.close()
                return
