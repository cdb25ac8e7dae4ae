"""Profiling: samples the stack of the event loop's thread from another thread.

The result is for https://www.speedscope.app (files opened there stay in the browser), or collapsed
stacks for flame graph tools.
"""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from html import escape
from types import FrameType
from typing import TypeAlias

import msgspec

from steersman.manager.serving.responses import JSON, NOSNIFF, TEXT, Response, error_response, text_response

INTERVAL = 0.01
"""Seconds between two samples."""
DEFAULT_SECONDS, MAX_SECONDS = 30, 600
"""Duration of a profile by default, and at most."""
MAX_DEPTH = 200

_EXECUTOR = ThreadPoolExecutor(max_workers=1, thread_name_prefix="profiler")
"""A thread of its own: a profile takes minutes, and must not keep others from the event loop's executor."""
_PROFILING = threading.Lock()
"""Held during a profile. As with Go, a process takes one at a time."""

Frame: TypeAlias = tuple[str, str, int]
"""The name of a function, its file, and its first line."""
Stack: TypeAlias = tuple[Frame, ...]
"""The outermost frame first."""

PROFILES = {
    "goroutine": "Stacks of all tasks and threads",
    "profile": "CPU profile. ?seconds=30 sets the duration; "
    "open it with https://www.speedscope.app, or add &format=collapsed for flame graph tools",
}


def index() -> Response:
    """``/debug/pprof/``."""
    rows = "".join(
        f"<li><a href='{name}'>{name}</a>: {escape(what)}</li>\n" for name, what in PROFILES.items()
    )
    page = (
        "<html>\n<head>\n<title>/debug/pprof/</title>\n</head>\n<body>\n/debug/pprof/\n<br>\n"
        f"<p>Types of profiles available:</p>\n<ul>\n{rows}</ul>\n</body>\n</html>\n"
    )
    return Response(page.encode(), 200, "text/html; charset=utf-8", (NOSNIFF,))


async def serve(name: str, query: Mapping[str, Sequence[str]]) -> Response:
    """``/debug/pprof/NAME``."""
    match name:
        case "":
            return index()
        case "goroutine":
            return text_response(stacks())
        case "profile":
            return await profile(query)
    return _failure(404, "Unknown profile")


def _failure(code: int, why: str) -> Response:
    """An error as Go's net/http/pprof writes it."""
    return error_response(code, why)._replace(headers=(NOSNIFF, ("X-Go-Pprof", "1")))


async def profile(query: Mapping[str, Sequence[str]]) -> Response:
    """Samples for some seconds. Fails while another profile is being taken."""
    requested = query.get("seconds", [str(DEFAULT_SECONDS)])[0]
    if not requested.isdecimal() or not 0 < int(requested) <= MAX_SECONDS:
        return _failure(400, f"seconds must be a whole number from 1 to {MAX_SECONDS}")
    if not _PROFILING.acquire(blocking=False):
        return _failure(500, "Could not enable CPU profiling: cpu profiling already in use")
    stop = threading.Event()
    try:
        samples = await asyncio.get_running_loop().run_in_executor(
            _EXECUTOR, sample, threading.get_ident(), int(requested), stop
        )
    finally:
        # The client may have disconnected.
        stop.set()
        _PROFILING.release()
    if query.get("format", [""])[0] == "collapsed":
        return Response(collapsed(samples).encode(), 200, TEXT, (NOSNIFF,))
    attached = ("Content-Disposition", 'attachment; filename="profile.speedscope.json"')
    return Response(speedscope(samples), 200, JSON, (attached, NOSNIFF))


def sample(thread: int, seconds: float, stop: threading.Event) -> dict[Stack, int]:
    """How often each stack of a thread was sampled."""
    found: dict[Stack, int] = {}
    for _ in range(max(1, int(seconds / INTERVAL))):
        if stop.wait(INTERVAL):
            break
        frame = sys._current_frames().get(thread)
        if frame is not None:
            stack = tuple(reversed(list(_frames(frame))))
            found[stack] = found.get(stack, 0) + 1
    return found


def _frames(frame: FrameType | None) -> Iterator[Frame]:
    for _ in range(MAX_DEPTH):
        if frame is None:
            return
        code = frame.f_code
        yield code.co_qualname, code.co_filename, code.co_firstlineno
        frame = frame.f_back


def collapsed(found: Mapping[Stack, int]) -> str:
    """Collapsed stacks: a line for each stack, with its functions and its count."""
    lines = (f"{';'.join(name for name, _, _ in stack)} {count}" for stack, count in found.items())
    return "".join(f"{line}\n" for line in lines)


def speedscope(found: Mapping[Stack, int]) -> bytes:
    """The file format of speedscope."""
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
                    "endValue": sum(found.values()) * INTERVAL,
                    "samples": samples,
                    "weights": [count * INTERVAL for count in found.values()],
                }
            ],
        }
    )


def stacks() -> str:
    """The stacks of all tasks and threads."""
    output = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        task.print_stack(limit=12, file=output)
        output.write("\n")
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        output.write(f"Thread {names.get(ident, ident)}:\n")
        for name, file, line in _frames(frame):
            output.write(f"  {file}:{line} {name}\n")
        output.write("\n")
    return output.getvalue()
