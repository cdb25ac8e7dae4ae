"""A program on a terminal of its own: keys go in, and what it draws is read back as text."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

TIMEOUT = 60.0
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\].*?\x07|[=>()][0-9A-Z]?)")
# A program gets keys as signals only from the terminal that controls it, which it has to take itself.
_LAUNCH = "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


class Terminal:
    """A pseudo-terminal with one program on it."""

    def __init__(
        self, argv: Sequence[str], columns: int, lines: int, env: Mapping[str, str] | None = None
    ) -> None:
        self._ours, self._theirs = pty.openpty()
        self.resize(columns, lines)
        self.attributes: list[object] = termios.tcgetattr(self._theirs)
        """The modes of the terminal before the program changed them."""
        self.written = ""
        """All that the program wrote, with its escape sequences."""
        self._read_to = 0
        environ = {**os.environ, "TERM": "xterm-256color", **(env or {})}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            environ.pop(name, None)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, *argv],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env=environ,
        )

    def resize(self, columns: int, lines: int) -> None:
        """Change the size; the program gets SIGWINCH."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: str) -> None:
        """Type keys. What was drawn before is not looked at any more by `see`."""
        self._pump(0.0)
        self._read_to = len(self.written)
        os.write(self._ours, keys.encode())

    def see(self, text: str) -> str:
        """Wait until the program has drawn a text since the last key; what it drew, without escape sequences."""
        deadline = time.monotonic() + TIMEOUT
        while text not in (shown := _ESCAPE.sub("", self.written[self._read_to :]).replace("\r", "")):
            if time.monotonic() > deadline or not self._pump(deadline - time.monotonic()):
                raise AssertionError(f"{text!r} does not appear:\n{shown[-4000:]}")
        return shown

    def modes_now(self) -> list[object]:
        """The modes of the terminal."""
        return termios.tcgetattr(self._theirs)

    def kill(self, number: signal.Signals) -> None:
        """Send a signal to the program."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for the program's end; its exit code."""
        deadline = time.monotonic() + TIMEOUT
        while self._process.poll() is None and time.monotonic() < deadline:
            self._pump(0.05)
        code = self._process.wait(timeout=0)
        self._pump(0.0)
        return code

    def _pump(self, seconds: float) -> bool:
        """Read what there is, waiting at most so long for it; whether there was something."""
        ready, _, _ = select.select([self._ours], [], [], max(seconds, 0.0))
        if not ready:
            return False
        self.written += os.read(self._ours, 65536).decode("utf-8", "replace")
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)
        os.close(self._theirs)
