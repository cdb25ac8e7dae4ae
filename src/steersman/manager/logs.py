"""Logging as Kubernetes components do it: klog's text lines, or one JSON object a line.

A record may carry values (`steersman.api.verbosity.structured`): they are written as ``key="value"`` after the message, or
as members of the object. Request bodies, tokens and keys are never logged, so nothing is masked here.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Literal, TextIO

import msgspec

from steersman.api.go_quote import printable, quote
from steersman.api.verbosity import V, verbosity
from steersman.manager.log_writer import BufferedHandler, LogHandler, writer_of

_LETTERS = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_FOREIGN = ("aiohttp", "asyncio")
"""Libraries whose own logs are of no use to an administrator."""


class LoggingOptions(msgspec.Struct, frozen=True):
    """The logging flags."""

    format: Literal["text", "json"] = "text"
    verbosity: int = 0
    modules: tuple[tuple[str, int], ...] = ()
    """``--vmodule``: verbosity by file name without ``.py``. The first matching pattern counts."""
    split: bool = False
    """Write info records to standard output, all others to standard error."""
    buffer: int = 0
    """Bytes of info records to buffer, with ``split``."""
    flush: float = 5.0
    """Seconds after which the buffer is flushed."""


# -- formatting -------------------------------------------------------------------------------


def _values(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """The values of a record in klog's order: the error first."""
    values: Mapping[str, Any] = getattr(record, "values", {})
    error = record.exc_info[1] if record.exc_info else values.get("err")
    if error is not None:
        yield "err", f"{type(error).__name__}: {error}" if record.exc_info else error
    yield from ((key, value) for key, value in values.items() if key != "err")
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
        # A plain message is not quoted, but a message must not be able to forge another line.
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


# -- filtering --------------------------------------------------------------------------------


class ByModule(logging.Filter):
    """``--vmodule``: verbosity by source file."""

    def __init__(self, default: int, modules: tuple[tuple[str, int], ...]) -> None:
        super().__init__()
        self._default = default
        self._modules = modules
        self._known: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        module = record.module
        wanted = self._known.get(module)
        if wanted is None:
            matching = (level for pattern, level in self._modules if fnmatchcase(module, pattern))
            wanted = self._known[module] = next(matching, self._default)
        return verbosity(record.levelno) <= wanted


class RateLimit(logging.Filter):
    """Limits how often a repeated warning is written.

    Failures are retried with back-off; while an API server is away, dozens of caches log the same warning. A repeated line
    is dropped until a pause has passed that doubles with each line written, from one second to five minutes. The next line
    written says how many were dropped. After a silence of two pauses the line counts as new.
    """

    FIRST, LONGEST = 1.0, 300.0
    CAPACITY = 1000
    """Lines that are remembered."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[tuple[str, int, str], _Line] = {}
        # Handlers call filters before they take their own lock, and leader election has a thread of its own.
        self._lock = threading.RLock()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        with self._lock:
            return self._filter(record)

    def _filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else getattr(record, "values", {})
        key = (record.pathname, record.lineno, f"{record.getMessage()} {error}")
        line = self._lines.get(key)
        if line is None or record.created - line.last > 2 * line.pause:
            self._lines.pop(key, None)
            while len(self._lines) >= self.CAPACITY:
                del self._lines[next(iter(self._lines))]
            self._lines[key] = _Line(record.created, record.created, self.FIRST)
            return True
        line.last = record.created
        if record.created - line.written < line.pause:
            line.dropped += 1
            return False
        record.repeated = line.dropped
        line.written, line.dropped, line.pause = record.created, 0, min(2 * line.pause, self.LONGEST)
        return True


class _Line(msgspec.Struct):
    written: float
    last: float
    pause: float
    dropped: int = 0


# -- handlers ---------------------------------------------------------------------------------


def _is_info(record: logging.LogRecord) -> bool:
    return record.levelno < logging.WARNING


def handler_of(stream: TextIO) -> logging.Handler:
    """The handler that writes to a stream, without waiting for its reader where that is possible."""
    writer = writer_of(stream)
    return LogHandler(writer) if writer is not None else logging.StreamHandler(stream)


def handlers(options: LoggingOptions, out: TextIO, err: TextIO) -> list[logging.Handler]:
    """The handlers that write records to the two streams."""
    if not options.split:
        found = [handler_of(err)]
    else:
        info = handler_of(out)
        if options.buffer > 0 and (writer := writer_of(out)) is not None:
            info = BufferedHandler(writer, options.buffer, options.flush)
        error = handler_of(err)
        # As upstream: warnings go to the info stream as JSON, and to the error stream as text.
        is_info = _is_info if options.format == "text" else lambda record: record.levelno < logging.ERROR
        info.addFilter(is_info)
        error.addFilter(lambda record: not is_info(record))
        found = [info, error]
    rate_limit = RateLimit()
    for handler in found:
        handler.setFormatter(Json() if options.format == "json" else Klog())
        if options.modules:
            handler.addFilter(ByModule(options.verbosity, options.modules))
        handler.addFilter(rate_limit)
    return found


def configure(options: LoggingOptions) -> Callable[[], None]:
    """Configure logging as the flags say. Returns a function that flushes all handlers."""
    root = logging.getLogger()
    root.handlers[:] = handlers(options, sys.stdout, sys.stderr)
    most = max((options.verbosity, *(level for _, level in options.modules)))
    root.setLevel(V[min(most, len(V) - 1)])
    for name in _FOREIGN:
        logging.getLogger(name).setLevel(logging.WARNING)

    def flush() -> None:
        for handler in root.handlers:
            handler.flush()

    return flush
