"""Parallel execution: each worker is a process forked from this one, with everything loaded.

A world has no threads and no sockets, so a fork is a complete copy.
"""

from __future__ import annotations

import os
import pickle
import select
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class WorkerFailed(RuntimeError):
    """A worker process ended without a result."""


def run_parallel(work: Callable[[T], R], pieces: Sequence[T], jobs: int) -> Iterator[tuple[T, R]]:
    """Apply ``work`` to each piece in ``jobs`` processes; yields pieces with their results as they complete.

    Pieces are assigned to processes in advance, round robin: they are many and small.
    """
    jobs = min(jobs, len(pieces))
    if jobs <= 1 or not hasattr(os, "fork"):
        for piece in pieces:
            yield piece, work(piece)
        return
    readers: dict[int, tuple[int, bytearray]] = {}
    try:
        for number in range(jobs):
            pid, reader = _child(work, pieces, range(number, len(pieces), jobs), list(readers))
            readers[reader] = pid, bytearray()
        while readers:
            ready, _, _ = select.select(list(readers), (), ())
            for reader in ready:
                pid, held = readers[reader]
                chunk = os.read(reader, 1 << 16)
                held += chunk
                for number, answer in _results(held):
                    yield pieces[number], answer
                if not chunk:
                    os.close(reader)
                    del readers[reader]
                    _, status = os.waitpid(pid, 0)
                    if status:
                        raise WorkerFailed(f"a worker process ended with status {status}")
    finally:
        for reader, (pid, _) in readers.items():
            os.close(reader)
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def _child(
    work: Callable[[T], Any], pieces: Sequence[T], mine: Sequence[int], others: Sequence[int]
) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    code = 1
    try:
        for each in (reader, *others):
            os.close(each)
        for number in mine:
            result = pickle.dumps((number, work(pieces[number])))
            _write(writer, len(result).to_bytes(8, "big") + result)
        code = 0
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode())
    finally:
        # The parent's cleanup handlers must not run here.
        os._exit(code)


def _write(writer: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(writer, view) :]


def _results(held: bytearray) -> Iterator[tuple[int, Any]]:
    """The results that have arrived completely."""
    while len(held) >= 8:
        size = int.from_bytes(held[:8], "big")
        if len(held) < 8 + size:
            return
        number, answer = pickle.loads(held[8 : 8 + size])
        del held[: 8 + size]
        yield number, answer
