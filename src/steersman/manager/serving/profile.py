"""Profiles: where the process is, looked at again and again from another thread.

The result is for https://www.speedscope.app (a file that is opened there does not leave the browser), or as collapsed
stacks for flame graph tools.
"""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from types import FrameType
from typing import TypeAlias

import msgspec

from steersman.manager.serving.responses import JSON, NOSNIFF, TEXT, Answer, problem, text

EVERY = 0.01
"""Seconds between two looks."""
SECONDS, MOST = 30, 600
"""How long a profile takes where that is not said, and at most."""
DEEPEST = 200

Frame: TypeAlias = tuple[str, str, int]
"""A function's name, its file, and the line it begins at."""
Stack: TypeAlias = tuple[Frame, ...]
"""The outermost frame first."""

PROFILES = {
    "goroutine": "What every task waits for, and what every thread does",
    "profile": "Where the time goes. ?seconds=30 says for how long to look; "
    "open it with https://www.speedscope.app, or add &format=collapsed for flame graph tools",
}


def index() -> Answer:
    """``/debug/pprof/``."""
    rows = "".join(
        f"<li><a href='{name}'>{name}</a>: {escape(what)}</li>\n" for name, what in PROFILES.items()
    )
    page = (
        "<html>\n<head>\n<title>/debug/pprof/</title>\n</head>\n<body>\n/debug/pprof/\n<br>\n"
        f"<p>Types of profiles available:</p>\n<ul>\n{rows}</ul>\n</body>\n</html>\n"
    )
    return Answer(page.encode(), 200, "text/html; charset=utf-8", (NOSNIFF,))


async def serve(name: str, query: Mapping[str, Sequence[str]]) -> Answer:
    """``/debug/pprof/NAME``."""
    match name:
        case "":
            return index()
        case "goroutine":
            return text(stacks())
        case "profile":
            return await profile(query)
    return problem(404, "Unknown profile")


async def profile(query: Mapping[str, Sequence[str]]) -> Answer:
    """Look for some seconds, and say where the time went."""
    asked = query.get("seconds", [str(SECONDS)])[0]
    if not asked.isdecimal() or not 0 < int(asked) <= MOST:
        return problem(400, f"seconds must be a whole number from 1 to {MOST}")
    stop = threading.Event()
    try:
        found = await asyncio.to_thread(sample, threading.get_ident(), int(asked), stop)
    finally:
        # Whoever asked may be gone.
        stop.set()
    if query.get("format", [""])[0] == "collapsed":
        return Answer(collapsed(found).encode(), 200, TEXT, (NOSNIFF,))
    attached = ("Content-Disposition", 'attachment; filename="profile.speedscope.json"')
    return Answer(speedscope(found), 200, JSON, (attached, NOSNIFF))


def sample(thread: int, seconds: float, stop: threading.Event) -> dict[Stack, int]:
    """How often a thread was found where."""
    found: dict[Stack, int] = {}
    for _ in range(max(1, int(seconds / EVERY))):
        if stop.wait(EVERY):
            break
        frame = sys._current_frames().get(thread)
        if frame is not None:
            stack = tuple(reversed(list(_frames(frame))))
            found[stack] = found.get(stack, 0) + 1
    return found


def _frames(frame: FrameType | None) -> Iterator[Frame]:
    for _ in range(DEEPEST):
        if frame is None:
            return
        code = frame.f_code
        yield code.co_qualname, code.co_filename, code.co_firstlineno
        frame = frame.f_back


def collapsed(found: Mapping[Stack, int]) -> str:
    """A line for each stack: its functions, and how often it was seen."""
    lines = (f"{';'.join(name for name, _, _ in stack)} {count}" for stack, count in found.items())
    return "".join(f"{line}\n" for line in lines)


def speedscope(found: Mapping[Stack, int]) -> bytes:
    """In the file format of speedscope."""
    places: dict[Frame, int] = {}
    samples = [[places.setdefault(frame, len(places)) for frame in stack] for stack in found]
    return msgspec.json.encode(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": "steersman",
            "shared": {"frames": [{"name": name, "file": file, "line": line} for name, file, line in places]},
            "profiles": [
                {
                    "type": "sampled",
                    "name": "steersman run",
                    "unit": "seconds",
                    "startValue": 0,
                    "endValue": sum(found.values()) * EVERY,
                    "samples": samples,
                    "weights": [count * EVERY for count in found.values()],
                }
            ],
        }
    )


def stacks() -> str:
    """What every task and every thread is at."""
    told = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        task.print_stack(limit=12, file=told)
        told.write("\n")
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        told.write(f"Thread {names.get(ident, ident)}:\n")
        for name, file, line in _frames(frame):
            told.write(f"  {file}:{line} {name}\n")
        told.write("\n")
    return told.getvalue()
