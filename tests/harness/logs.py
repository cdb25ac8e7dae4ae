"""Programs that configure logging for their process, run inside the process of the tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logging_as_before() -> Iterator[None]:
    """Undo what happened to the root logger and to steersman's.

    A handler that is left writes to a stream that pytest closes after the test, and whose descriptor another file
    may get next. A level that is left hides what the next test waits for. Handlers of pytest's stay: it has others
    for the set-up, the test and its end, and takes them off itself.
    """
    loggers = [
        (log, log.level, log.propagate) for log in (logging.getLogger(), logging.getLogger("steersman"))
    ]
    handlers = [handler for log, *_ in loggers for handler in log.handlers]
    try:
        yield
    finally:
        for log, level, propagate in loggers:
            log.handlers[:] = [each for each in log.handlers if each in handlers or _is_pytests(each)]
            log.setLevel(level)
            log.propagate = propagate


def _is_pytests(handler: logging.Handler) -> bool:
    return type(handler).__module__.startswith("_pytest.")
