"""Logs of simulated containers that are files: read in pieces, from their end, and followed while they grow."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from steersman.server.kubelet_api import LogOptions
from steersman.sim.kubelet.container_log import Limit, LogLine, written_line

PIECE = 64 * 1024
"""Bytes that are read at once, and the longest part of a line that is sent at once."""
POLL = 0.5
"""Seconds between two looks at a file that is followed."""


async def read_file(path: Path, options: LogOptions) -> AsyncIterator[bytes]:
    """The lines of a log file that are asked for. Its lines are as old as its last change."""
    limit = Limit(options.limit)
    with path.open("rb") as file:
        await _seek(file, options.tail)
        async for piece in _rest(file, options, b""):
            yield limit.take(piece)
            if limit.reached:
                return


async def follow_file(path: Path, options: LogOptions, ended: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The lines of a log file, and those that are added to it until the container has ended."""
    limit, last = Limit(options.limit), False
    with path.open("rb") as file:
        await _seek(file, options.tail)
        while True:
            async for piece in _rest(file, options, b""):
                yield limit.take(piece)
                if limit.reached:
                    return
            if last:
                return
            last = ended()  # what was written before the end is sent, too
            if not last:
                await asyncio.sleep(POLL)


async def _rest(file: BinaryIO, options: LogOptions, rest: bytes) -> AsyncIterator[bytes]:
    """The rest of a file, in whole lines where these are not very long."""
    changed = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
    if options.since is not None and changed < options.since:
        return
    while data := file.read(PIECE):
        end = data.rfind(b"\n") + 1
        if end and end < len(data):
            file.seek(end - len(data), os.SEEK_CUR)
            data = data[:end]
        if options.timestamps:
            lines = data.decode("utf-8", "replace").splitlines()
            data = b"".join(written_line(LogLine(changed, line), True) for line in lines)
        yield data
        await asyncio.sleep(0)


async def _seek(file: BinaryIO, tail: int | None) -> None:
    """Go to the beginning of the last lines of a file."""
    if tail is None:
        return
    at = file.seek(0, os.SEEK_END)
    if not tail or not at:
        return
    left = tail
    file.seek(at - 1)
    if file.read(1) == b"\n":
        left += 1  # the end of the last line
    while at:
        size = min(PIECE, at)
        at -= size
        file.seek(at)
        data = file.read(size)
        count = data.count(b"\n")
        if count >= left:
            for _ in range(left):
                size = data.rfind(b"\n", 0, size)
            file.seek(at + size + 1)
            return
        left -= count
        await asyncio.sleep(0)
    file.seek(0)
