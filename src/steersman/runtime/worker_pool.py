"""Workers as they are needed: most loops rest most of the time, and a task that waits is not free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any


class WorkerPool:
    """Up to so many workers in a task group. Whoever was hired stays."""

    def __init__(
        self, group: asyncio.TaskGroup, work: Callable[[], Coroutine[Any, Any, None]], most: int, name: str
    ) -> None:
        """``work`` is what each of them does; it ends when cancelled."""
        self._group = group
        self._work = work
        self._most = most
        self._name = name
        self._hired = 0
        # Whoever makes the work that a worker is hired for, the worker is not theirs.
        self._context = copy_context()

    def call(self, count: int = 1) -> None:
        """There is work for so many more: hire them, where there may be more."""
        for number in range(self._hired, min(self._hired + count, self._most)):
            self._hired += 1
            name = f"{self._name}#{number}"
            work = self._work()
            try:
                self._group.create_task(work, name=name, context=self._context.copy())
            except RuntimeError:
                # The group is about to end, and nobody is hired any more.
                work.close()
                return
