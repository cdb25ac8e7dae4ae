"""Child processes that never outlive us, and what they cost.

Each child leads its own process group, so it can be ended with all that it started. On Linux the
kernel kills it when its parent dies, even of SIGKILL: nothing is left over whatever happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")

# The parent-death signal must be asked for by the child itself, and preexec_fn is not safe in a
# process with threads: so a bare interpreter asks for it and then becomes the program. It looks
# at its parent after asking, for the parent may have died in between.
_LAUNCH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


class Child:
    """A running program with its output in a file.

    The kernel ties a child to the *thread* that started it: start children from a thread that
    lives as long as they should, such as the main one.
    """

    def __init__(self, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> None:
        self.argv = tuple(argv)
        self.log_path = log
        self._peak = 0
        self._cpu = 0.0
        command = list(argv)
        if sys.platform == "linux":
            command = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *argv]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
                env=None if env is None else {**os.environ, **env},
            )

    @property
    def name(self) -> str:
        return Path(self.argv[0]).name

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def log(self) -> str:
        """Everything it has written so far."""
        return self.log_path.read_text(errors="replace")

    # -- what it costs --------------------------------------------------------------------------

    def cpu_seconds(self) -> float:
        """CPU used so far, by all its threads and the children it has waited for."""
        if self.code is None:
            # The command is in parentheses and may itself hold spaces; fields count from behind it.
            stat = Path(f"/proc/{self.pid}/stat").read_text()
            fields = stat[stat.rfind(")") + 2 :].split()
            self._cpu = sum(map(int, fields[11:15])) / _TICK
        return self._cpu

    def rss(self) -> int:
        """Bytes of memory it holds now, with the processes it has started itself."""
        return sum(map(_rss, [self.pid, *_children(self.pid)]))

    def peak_rss(self) -> int:
        """The most bytes of memory it has held; the last known figure once it has ended."""
        if self.code is None:
            self._peak = _status(self.pid, "VmHWM")
        return self._peak

    # -- its end --------------------------------------------------------------------------------

    def kill(self, sig: int = signal.SIGTERM) -> None:
        """Send a signal to it alone; nothing happens when it has ended."""
        self._sample()
        self._process.send_signal(sig)

    def wait(self, timeout: float | None = None) -> int:
        """Block until it ends; its exit code. Raises `TimeoutError`."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.name} (pid {self.pid}) still runs") from None

    async def exited(self) -> int:
        """Wait until it ends; its exit code."""
        while (code := self.code) is None:
            try:
                watched = os.pidfd_open(self.pid)
            except ProcessLookupError:
                # It ended between the two looks.
                continue
            loop = asyncio.get_running_loop()
            ended = asyncio.Event()
            loop.add_reader(watched, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(watched)
                os.close(watched)
        return code

    def stop(self, grace: float = 5.0) -> int:
        """Ask it to end, and after the grace make it; its exit code."""
        if self.code is None and grace > 0:
            self.kill(signal.SIGTERM)
            try:
                self.wait(grace)
            except TimeoutError:
                pass
        return self.end()

    def end(self) -> int:
        """Kill it and all that it started."""
        self._sample()
        if self.code is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                # It has not been reaped, so the group is there but for a race in its first moment.
                self._process.kill()
        return self._process.wait()

    def freeze(self) -> None:
        """Stop it in its tracks, as a machine that hangs does."""
        self.kill(signal.SIGSTOP)

    def thaw(self) -> None:
        self.kill(signal.SIGCONT)

    def _sample(self) -> None:
        try:
            self.cpu_seconds()
            self.peak_rss()
        except (OSError, ValueError, IndexError):
            # It ended while we looked, or there is no /proc: the last figures stand.
            pass


def until(ready: Callable[[], bool], child: Child, timeout: float, what: str, *, step: float = 0.01) -> None:
    """Look again and again, in short steps, until ``ready()`` is true.

    Raises `RuntimeError` with the end of the child's log when it dies or takes too long.
    """
    deadline = time.monotonic() + timeout
    while not ready():
        if child.code is not None:
            raise RuntimeError(f"{child.name} ended with code {child.code}:\n{tail(child)}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} not within {timeout:g} s; {child.name} says:\n{tail(child)}")
        time.sleep(step)


def tail(child: Child, lines: int = 30) -> str:
    """The last lines of a child's log, for error messages."""
    return "\n".join(child.log().splitlines()[-lines:])


# -- /proc ------------------------------------------------------------------------------------


def _status(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    return 0


def _rss(pid: int) -> int:
    try:
        return _status(pid, "VmRSS")
    except (FileNotFoundError, ProcessLookupError):
        return 0  # a process that has just ended


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.extend(map(int, (thread / "children").read_text().split()))
    return found
