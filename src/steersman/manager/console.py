"""The console of ``steersman up``: short lines for a person, and one line for each thing that repeats.

A controller retries what fails, and fails alike for many objects: one exceeded quota is hundreds of log lines in a minute.
Such a line is shown when it first comes, and then with its number the tenth, the hundredth and the thousandth time. ``-v=1``
and above log as kube-controller-manager does.
"""

from __future__ import annotations

import logging
import re
import sys

from steersman.api.printable import one_line
from steersman.manager.logs import handler_of

CAPACITY = 1000
"""Lines that are remembered."""
_NAMES = re.compile(r'"(?:[^"\\]|\\.)*"')


class Repeats(logging.Filter):
    """Drops lines that repeat, but for the tenth, the hundredth and so on."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[tuple[str, ...], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        key = repeat_key(record)
        # The oldest is forgotten, and a line that came lately is not: it is inserted anew.
        count = self._counts.pop(key, 0) + 1
        while len(self._counts) >= CAPACITY:
            del self._counts[next(iter(self._counts))]
        self._counts[key] = count
        record.count = count
        return str(count).strip("0") == "1"


def repeat_key(record: logging.LogRecord) -> tuple[str, ...]:
    """The key that repeated lines share: where a line was logged, and its text without the names of single objects."""
    values = getattr(record, "values", {})
    error = str(values.get("err") or (record.exc_info[1] if record.exc_info else "") or "")
    text = error or record.getMessage()
    logger = str(values.get("logger", ""))
    return (record.pathname, str(record.lineno), logger, _NAMES.sub('""', text))


class Line(logging.Formatter):
    """``warning: replicaset-controller default/web: …``"""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text += f": {type(error).__name__}: {error} (-v=1 shows where)"
        count: int = getattr(record, "count", 1)
        times = f" (the {count:,}th time)" if count > 1 else ""
        return f"{record.levelname.lower()}: {one_line(text)}{times}"


def configure(*, quiet: bool) -> None:
    """Log warnings and errors to standard error as short lines; with ``quiet`` errors only."""
    handler = handler_of(sys.stderr)
    handler.setFormatter(Line())
    handler.addFilter(Repeats())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.ERROR if quiet else logging.WARNING)
