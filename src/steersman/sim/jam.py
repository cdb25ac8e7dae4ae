"""Who waits for what: told when a program under virtual time cannot go on, or goes in circles."""

from __future__ import annotations

import asyncio
from types import CodeType
from typing import Any


class Jam(RuntimeError):
    """Nothing is ready, no timer is set, and still the program has not finished."""


class Spin(RuntimeError):
    """The program goes in circles: very many turns, and no time has passed."""


def who(loop: asyncio.AbstractEventLoop) -> str:
    """One line per unfinished task: its name, where it waits, for what."""
    tasks = sorted(asyncio.all_tasks(loop), key=by_name)
    return "\n".join(f"  {waiting(task)}" for task in tasks) or "  (no task is left)"


def by_name(task: asyncio.Task[Any]) -> tuple[int, str]:
    """An order of tasks that does not depend on where they are in memory; numbered ones by their number."""
    name = task.get_name()
    return len(name), name


def waiting(task: asyncio.Task[Any]) -> str:
    """Where a task waits and for what, innermost frame first."""
    frames: list[str] = []
    awaited: object = task.get_coro()
    while True:
        frame = _attribute(awaited, "cr_frame", "gi_frame", "ag_frame")
        inner = _attribute(awaited, "cr_await", "gi_yieldfrom", "ag_await")
        if frame is not None:
            code: CodeType = frame.f_code
            frames.append(f"{code.co_qualname} ({_short(code.co_filename)}:{frame.f_lineno})")
        if inner is None:
            break
        awaited = inner
    if not frames:
        return f"{task.get_name()}: not started"
    where = " < ".join(reversed(frames[-3:]))
    waiter = getattr(task, "_fut_waiter", None)
    what = (
        f"task {waiter.get_name()}" if isinstance(waiter, asyncio.Task) else type(waiter or awaited).__name__
    )
    return f"{task.get_name()}: {where}, for {what}"


def _attribute(thing: object, *names: str) -> Any:
    for name in names:
        value = getattr(thing, name, None)
        if value is not None:
            return value
    return None


def _short(path: str) -> str:
    return "/".join(path.rsplit("/", 2)[-2:])
