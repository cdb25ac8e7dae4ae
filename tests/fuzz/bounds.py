"""Runs one input of a fuzz target, under bounds on CPU time and memory that are linear in the input's length.

The bounds are generous: they are there for parsers whose work grows with the square of the input, or without end.
"""

from __future__ import annotations

import signal
import tracemalloc
import zlib
from types import FrameType

from tests.fuzz.target import Target

BASE_SECONDS = 0.2
"""CPU time that an input of any length may take."""
BASE_MEMORY = 8 * 1024 * 1024
"""Bytes of memory that an input of any length may take."""
ATTEMPTS = 3
"""Runs that must all be too slow. A single one may have paid for imports, caches or a garbage collection."""
MEMORY_SHARE = 16
"""One input of as many is measured for memory, which makes it several times slower. The input's checksum selects it."""


class Finding(Exception):
    """An input that broke an invariant or a bound. The cause is the exception of the check, if there was one."""


class _TimeExceeded(BaseException):
    """The CPU time is used up. No ``except Exception`` of the code under test catches it."""


def examine(target: Target, data: bytes) -> None:
    """Check one input. Raises `Finding`."""
    seconds = BASE_SECONDS + len(data) * target.seconds_per_byte
    for _ in range(ATTEMPTS):
        try:
            _check_within(seconds, target, data)
            break
        except _TimeExceeded:
            continue
    else:
        raise Finding(f"{len(data)} bytes take more than {seconds:.2f} s of CPU time")
    if zlib.crc32(data) % MEMORY_SHARE == 0:
        allowed = BASE_MEMORY + len(data) * target.memory_per_byte
        # The first run may fill caches and import modules.
        if _peak_memory(target, data) > allowed and (peak := _peak_memory(target, data)) > allowed:
            raise Finding(f"{len(data)} bytes take {peak} bytes of memory, more than {allowed}")


def _check_within(seconds: float, target: Target, data: bytes) -> None:
    expired = False

    def expire(number: int, frame: FrameType | None) -> None:
        nonlocal expired
        expired = True
        raise _TimeExceeded

    before = signal.signal(signal.SIGVTALRM, expire)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        target.check(data)
    except Exception as error:
        raise Finding(f"{type(error).__name__}: {error}") from error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    if expired:
        # An event loop keeps the exceptions of its callbacks to itself.
        raise _TimeExceeded


def _peak_memory(target: Target, data: bytes) -> int:
    tracemalloc.start()
    try:
        target.check(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
