"""The session of ``steersman top`` on a terminal: reads keys, asks for answers, draws, and gives the terminal back as it was."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from time import monotonic
from typing import Protocol

from msgspec.structs import replace
from rich.console import Console, Group
from rich.live import Live

from steersman.manager.top.draw import Connection, screen
from steersman.manager.top.keys import View, decode, press
from steersman.manager.top.model import Picture
from steersman.manager.trace_client import NoTrace

RETRY = 1.0
"""Seconds at least between two attempts while there is no answer."""


class Source(Protocol):
    """Where pictures come from."""

    @property
    def server(self) -> str:
        """The URL that is asked."""
        ...

    async def look(self, before: Picture | None) -> Picture:
        """The next picture from the last one. Raises `NoTrace`."""
        ...


class Session:
    """A live view: what was last seen, what the user chose, and the terminal."""

    def __init__(
        self,
        source: Source,
        picture: Picture,
        view: View,
        interval: float,
    ) -> None:
        """``picture`` is the first one of the source."""
        self._source = source
        self._picture = picture
        self._view = view
        self._interval = interval
        self._connection = Connection(source.server, datetime.now(UTC))
        self._seen = monotonic()
        """When the last answer came."""
        self._resumed = asyncio.Event()
        self._ended = asyncio.Event()
        self._console = Console()
        self._live = Live(console=self._console, screen=True, auto_refresh=False)

    async def run(self) -> None:
        """Show the view until the user ends it, or a signal does."""
        loop = asyncio.get_running_loop()
        handlers = {
            signal.SIGINT: self._ended.set,
            signal.SIGTERM: self._ended.set,
            signal.SIGWINCH: self._draw,
            signal.SIGTSTP: self._suspend,
        }
        with self._terminal():
            for number, handler in handlers.items():
                loop.add_signal_handler(number, handler)
            loop.add_reader(sys.stdin.fileno(), self._read_keys)
            looking = asyncio.create_task(self._look_again(), name="looking")
            try:
                self._draw()
                ending = asyncio.create_task(self._ended.wait(), name="waiting for the end")
                # An unexpected error ends the session, too, and is raised after the terminal is restored.
                await asyncio.wait((looking, ending), return_when=asyncio.FIRST_COMPLETED)
                ending.cancel()
            finally:
                loop.remove_reader(sys.stdin.fileno())
                for number in handlers:
                    loop.remove_signal_handler(number)
                looking.cancel()
                with suppress(asyncio.CancelledError):
                    await looking

    # -- answers ------------------------------------------------------------------------------

    async def _look_again(self) -> None:
        while True:
            await asyncio.sleep(max(self._interval, RETRY) if self._connection.lost else self._interval)
            if self._view.paused:
                self._resumed.clear()
                await self._resumed.wait()
            try:
                self._picture = await self._source.look(self._picture)
            except NoTrace as error:
                lost_for = monotonic() - self._seen
                self._connection = replace(self._connection, lost=str(error), lost_for=lost_for)
            else:
                self._seen = monotonic()
                self._connection = Connection(self._source.server, datetime.now(UTC))
            self._draw()

    # -- keys ---------------------------------------------------------------------------------

    def _read_keys(self) -> None:
        try:
            typed = os.read(sys.stdin.fileno(), 1024)
        except OSError:
            typed = b""
        if not typed:
            # The terminal is gone.
            self._ended.set()
            return
        for key in decode(typed):
            self._view = press(self._view, key, self._picture)
        if not self._view.paused:
            self._resumed.set()
        if self._view.ended:
            self._ended.set()
        else:
            self._draw()

    # -- the terminal -------------------------------------------------------------------------

    def _draw(self) -> None:
        width, height = self._console.size
        lines = screen(self._picture, self._view, self._connection, width, height)
        self._live.update(Group(*lines), refresh=True)

    @contextmanager
    def _terminal(self) -> Iterator[None]:
        """Keys one by one and unseen, on the alternate screen; afterwards all is as it was."""
        stdin = sys.stdin.fileno()
        self._before = termios.tcgetattr(stdin)
        tty.setcbreak(stdin)
        try:
            with self._live:
                yield
        finally:
            termios.tcsetattr(stdin, termios.TCSADRAIN, self._before)

    def _suspend(self) -> None:
        """Ctrl-Z: the shell gets its terminal back until the process goes on."""
        stdin = sys.stdin.fileno()
        self._live.stop()
        termios.tcsetattr(stdin, termios.TCSADRAIN, self._before)
        os.kill(os.getpid(), signal.SIGSTOP)
        tty.setcbreak(stdin)
        self._live.start()
        self._draw()
