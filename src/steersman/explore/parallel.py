"""Work on all cores: each piece in a process of its own, forked from this one, which has all loaded.

A world has no threads and no sockets, so a fork of it is a whole copy.
"""

from __future__ import annotations

import os
import pickle
import select
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Lost(RuntimeError):
    """A process ended without an answer."""


def spread(work: Callable[[T], R], pieces: Sequence[T], jobs: int) -> Iterator[tuple[T, R]]:
    """Each piece with what ``work`` made of it, in the order they are done.

    The pieces are dealt to the processes beforehand, in turn: they are many and small.
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
                for number, answer in _answers(held):
                    yield pieces[number], answer
                if not chunk:
                    os.close(reader)
                    del readers[reader]
                    _, status = os.waitpid(pid, 0)
                    if status:
                        raise Lost(f"a process of the exploration ended with {status}")
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
            said = pickle.dumps((number, work(pieces[number])))
            _write(writer, len(said).to_bytes(8, "big") + said)
        code = 0
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode())
    finally:
        # Nothing of the parent's is to be cleaned up here.
        os._exit(code)


def _write(writer: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(writer, view) :]


def _answers(held: bytearray) -> Iterator[tuple[int, Any]]:
    """Take the answers that have arrived whole."""
    while len(held) >= 8:
        size = int.from_bytes(held[:8], "big")
        if len(held) < 8 + size:
            return
        number, answer = pickle.loads(held[8 : 8 + size])
        del held[: 8 + size]
        yield number, answer
