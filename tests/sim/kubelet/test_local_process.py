"""Commands of exec: what they leave behind ends with them."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from steersman.api.generated.core_v1 import Pod
from steersman.server.kubelet_api import CommandOptions, TerminalSize
from steersman.sim.kubelet.local_process import run_command

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="processes are found in /proc"
)

LEAVES = """
import os, signal
for child in range(2):
    if os.fork() == 0:
        if child:
            os.setsid()
            os.chdir("/")
        else:
            os.setpgid(0, 0)
        print(os.getpid(), flush=True)
        while True:
            signal.pause()
os.wait()
"""
"""Starts two processes: one in a process group of its own, one in a session and a directory of its own."""


class Streams:
    """A client that reads two lines, and then goes."""

    def __init__(self) -> None:
        self.pids: list[int] = []
        self.both = asyncio.Event()
        self._text = b""

    async def read(self) -> bytes | TerminalSize:
        await asyncio.Event().wait()
        return b""

    async def write(self, data: bytes, *, error: bool = False) -> None:
        self._text += data
        self.pids = [int(line) for line in self._text.split(b"\n")[:-1]]
        if len(self.pids) == 2:
            self.both.set()


def _runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(") ")[2][0] != "Z"


async def test_processes_that_leave_the_group_of_a_command_end_with_its_client() -> None:
    streams = Streams()
    options = CommandOptions(stdout=True, stderr=True)
    command = (sys.executable, "-c", LEAVES)
    running = asyncio.create_task(run_command(command, Pod(), "main", options, streams))
    async with asyncio.timeout(30):
        await streams.both.wait()
    assert all(map(_runs, streams.pids))
    assert len({os.getpgid(pid) for pid in streams.pids}) == 2
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with asyncio.timeout(30):
        while any(map(_runs, streams.pids)):
            await asyncio.sleep(0)
