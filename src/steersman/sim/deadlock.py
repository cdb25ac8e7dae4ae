"""Deadlock reports under virtual time: which tasks wait where, and for what."""

from __future__ import annotations

import asyncio
from types import CodeType, FrameType
from typing import Any

NAMED = 4
"""Maximum number of tasks named for one place."""


class Deadlock(RuntimeError):
    """No task is ready and no timer is set, but the program has not finished."""


class Livelock(RuntimeError):
    """Very many iterations of the event loop without time passing."""


def waiting_tasks(loop: asyncio.AbstractEventLoop) -> str:
    """A line for each place where unfinished tasks wait: their names, the place, and what they wait for.

    Places with few tasks come first: many tasks that wait for work are seldom the problem.
    """
    places: dict[str, list[str]] = {}
    for task in sorted(asyncio.all_tasks(loop), key=by_name):
        places.setdefault(_waits(task), []).append(task.get_name())
    lines = [
        f"  {_some(names)}: {place}" for place, names in sorted(places.items(), key=lambda each: len(each[1]))
    ]
    return "\n".join(lines) or "  (no task is left)"


def by_name(task: asyncio.Task[Any]) -> tuple[int, str]:
    """Sort key of tasks that does not depend on memory addresses; numbered names sort by number."""
    name = task.get_name()
    return len(name), name


def waiting(task: asyncio.Task[Any]) -> str:
    """The name of a task, where it waits and for what, innermost frame first."""
    return f"{task.get_name()}: {_waits(task)}"


def _waits(task: asyncio.Task[Any]) -> str:
    frames: list[FrameType] = []
    awaited: object = task.get_coro()
    while awaited is not None:
        frame = _attribute(awaited, "cr_frame", "gi_frame", "ag_frame")
        if frame is not None:
            frames.append(frame)
        last, awaited = awaited, _attribute(awaited, "cr_await", "gi_yieldfrom", "ag_await")
    if not frames:
        return "not started"
    where = " < ".join(_place(frame) for frame in reversed(frames[-3:]))
    return f"{where}, for {_what(task, frames, last)}"


def _what(task: asyncio.Task[Any], frames: list[FrameType], awaited: object) -> str:
    """The thing that a task waits for, in words."""
    waiter = getattr(task, "_fut_waiter", None)
    if isinstance(waiter, asyncio.Task):
        return f"task {waiter.get_name()}"
    children = getattr(waiter, "_children", None)
    if children:
        return f"tasks {_names(children)}"
    for frame in reversed(frames[-3:]):
        if frame.f_code.co_name == "sleep" and frame.f_globals.get("__name__") == "asyncio.tasks":
            return "time to pass" if waiter is not None else "the event loop"
        match frame.f_locals.get("self"):
            case asyncio.Lock():
                return "a Lock held by another task"
            case asyncio.Event():
                return "an Event that is not set"
            case asyncio.Queue():
                return "an item in a Queue"
            case asyncio.Semaphore() | asyncio.Condition() as thing:
                return f"a {type(thing).__name__}"
            case asyncio.TaskGroup() as group:
                return f"tasks {_names(group._tasks)}"
    return type(waiter if waiter is not None else awaited).__name__


def _names(tasks: Any) -> str:
    unfinished = [task for task in tasks if isinstance(task, asyncio.Task) and not task.done()]
    return _some([task.get_name() for task in sorted(unfinished, key=by_name)])


def _some(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _place(frame: FrameType) -> str:
    code: CodeType = frame.f_code
    return f"{code.co_qualname} ({_short(code.co_filename)}:{frame.f_lineno})"


def _attribute(thing: object, *names: str) -> Any:
    for name in names:
        value = getattr(thing, name, None)
        if value is not None:
            return value
    return None


def _short(path: str) -> str:
    return "/".join(path.rsplit("/", 2)[-2:])
