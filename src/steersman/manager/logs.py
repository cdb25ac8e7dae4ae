"""Logging as Kubernetes components do it: klog's text lines, or one JSON object a line.

A record may carry values (`steersman.api.verbosity.told_as`): they are written as ``key="value"`` behind the message, or
as members of the object. Nothing is ever logged of bodies, tokens and keys, so there is nothing to be masked here.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from io import BufferedWriter, FileIO
from typing import Any, Literal, TextIO

from steersman.api.go_quote import printable, quote
from steersman.api.verbosity import V, verbosity

_LETTERS = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_FOREIGN = ("aiohttp", "asyncio")
"""Libraries whose own chatter is of no use to whoever runs this."""


@dataclass(frozen=True, slots=True)
class Logging:
    """What the flags say about logs."""

    format: Literal["text", "json"] = "text"
    verbosity: int = 0
    modules: tuple[tuple[str, int], ...] = ()
    """``--vmodule``: verbosities by the name of a file, without ``.py``. The first pattern that fits counts."""
    split: bool = False
    """Information goes to standard output, all else to standard error."""
    buffer: int = 0
    """Bytes of information to hold back, where it has a stream of its own."""
    flush: float = 5.0
    """Seconds after which it is written at the latest."""


# -- one record, one line ---------------------------------------------------------------------


def _values(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """What a record says beyond its message, as klog orders it: what went wrong first."""
    said: Mapping[str, Any] = getattr(record, "values", {})
    error = record.exc_info[1] if record.exc_info else said.get("err")
    if error is not None:
        yield "err", f"{type(error).__name__}: {error}" if record.exc_info else error
    yield from ((key, value) for key, value in said.items() if key != "err")
    if record.exc_info and error is not None:
        yield "stack", "".join(traceback.format_exception(error))
    if (repeated := getattr(record, "repeated", 0)) > 0:
        yield "repeated", repeated


def _message(record: logging.LogRecord) -> str:
    brief: str | None = getattr(record, "brief", None)
    return record.getMessage() if brief is None else brief


def _pair(key: str, value: Any) -> str:
    if isinstance(value, bool | int | float | list | tuple | dict) or value is None:
        return f" {key}={json.dumps(value, ensure_ascii=False, default=str, separators=(',', ':'))}"
    text = str(value)
    if "\n" not in text:
        return f" {key}={quote(text)}"
    lines = "".join(f"\t{printable(line)}\n" for line in text.removesuffix("\n").split("\n"))
    return f" {key}=<\n{lines} >"


class Klog(logging.Formatter):
    """``I1115 20:16:18.123456    4242 host.py:42] "message" key="value"``"""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created)
        letter = _LETTERS.get(record.levelno, "I")
        head = f"{letter}{when:%m%d %H:%M:%S.%f} {os.getpid():>7} {record.filename}:{record.lineno}] "
        pairs = "".join(_pair(key, value) for key, value in _values(record))
        message = _message(record)
        # A message of its own is written as it is; but no part of it may pass for another line.
        return f"{head}{quote(message)}{pairs}" if pairs or not message.isprintable() else head + message


class Json(logging.Formatter):
    """``{"ts":1580306777047.28,"caller":"runtime/controller_runner.py:42","msg":"message","v":0,"key":"value"}``"""

    def format(self, record: logging.LogRecord) -> str:
        folder = os.path.basename(os.path.dirname(record.pathname))
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 6),
            "caller": f"{folder}/{record.filename}:{record.lineno}",
            "msg": _message(record),
        }
        if record.levelno < logging.ERROR:
            line["v"] = verbosity(record.levelno)
        line.update(_values(record))
        return json.dumps(line, ensure_ascii=False, default=str, separators=(",", ":"))


# -- which records ----------------------------------------------------------------------------


class ByModule(logging.Filter):
    """``--vmodule``: how much is logged depends on the file that says it."""

    def __init__(self, default: int, modules: tuple[tuple[str, int], ...]) -> None:
        super().__init__()
        self._default = default
        self._modules = modules
        self._known: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        module = record.module
        wanted = self._known.get(module)
        if wanted is None:
            fitting = (level for pattern, level in self._modules if fnmatchcase(module, pattern))
            wanted = self._known[module] = next(fitting, self._default)
        return verbosity(record.levelno) <= wanted


class Damper(logging.Filter):
    """Says the same warning less and less often while it comes again and again.

    What fails is tried again at once, then ever later; for as long as an API server is away, dozens of caches do so.
    A repeated line is left out until as much time has passed as doubles with each line that was written, from a
    second to five minutes; the next one tells how many were left out. After a silence it is new again.
    """

    FIRST, LONGEST = 1.0, 300.0
    MOST = 1000
    """Lines that are remembered."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[tuple[str, int, str], _Line] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        error = record.exc_info[1] if record.exc_info else getattr(record, "values", {})
        key = (record.pathname, record.lineno, f"{record.getMessage()} {error}")
        line = self._lines.get(key)
        if line is None or record.created - line.last > 2 * line.pause:
            self._lines.pop(key, None)
            while len(self._lines) >= self.MOST:
                del self._lines[next(iter(self._lines))]
            self._lines[key] = _Line(record.created, record.created, self.FIRST)
            return True
        line.last = record.created
        if record.created - line.written < line.pause:
            line.left_out += 1
            return False
        record.repeated = line.left_out
        line.written, line.left_out, line.pause = record.created, 0, min(2 * line.pause, self.LONGEST)
        return True


@dataclass(slots=True)
class _Line:
    written: float
    last: float
    pause: float
    left_out: int = 0


# -- where they go ----------------------------------------------------------------------------


class Held(logging.StreamHandler[Any]):
    """Holds lines back until there are many of them, or some time has passed."""

    def __init__(self, stream: FileIO, size: int, flush: float) -> None:
        super().__init__(stream)
        self._buffer = BufferedWriter(stream, min(size, 2 << 30))
        self._clerk = threading.Thread(target=self._flush_often, args=(flush,), daemon=True, name="log flush")
        self._clerk.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._buffer.write(f"{self.format(record)}\n".encode())
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        self.acquire()
        try:
            self._buffer.flush()
        finally:
            self.release()

    def _flush_often(self, pause: float) -> None:
        never = threading.Event()
        while not never.wait(pause):
            self.flush()


def _informs(record: logging.LogRecord) -> bool:
    return record.levelno < logging.WARNING


def handlers(said: Logging, out: TextIO, err: TextIO) -> list[logging.Handler]:
    """What writes records to the two streams."""
    if not said.split:
        found: list[logging.Handler] = [logging.StreamHandler(err)]
    else:
        info: logging.Handler = logging.StreamHandler(out)
        if said.buffer > 0:
            info = Held(FileIO(out.fileno(), "w", closefd=False), said.buffer, said.flush)
        error = logging.StreamHandler(err)
        # As upstream: warnings are JSON's information, and text's errors.
        informs = _informs if said.format == "text" else lambda record: record.levelno < logging.ERROR
        info.addFilter(informs)
        error.addFilter(lambda record: not informs(record))
        found = [info, error]
    damper = Damper()
    for handler in found:
        handler.setFormatter(Json() if said.format == "json" else Klog())
        if said.modules:
            handler.addFilter(ByModule(said.verbosity, said.modules))
        handler.addFilter(damper)
    return found


def begin(said: Logging) -> Callable[[], None]:
    """Log as the flags say; answers what writes down everything that is held back."""
    root = logging.getLogger()
    root.handlers[:] = handlers(said, sys.stdout, sys.stderr)
    most = max((said.verbosity, *(level for _, level in said.modules)))
    root.setLevel(V[min(most, len(V) - 1)])
    for name in _FOREIGN:
        logging.getLogger(name).setLevel(logging.WARNING)

    def flush() -> None:
        for handler in root.handlers:
            handler.flush()

    return flush
