"""Commands of exec and attach, run on this machine: bounded, and ended with their client.

A command runs as the user of this process, in a temporary directory that is removed after it, in a session of its own. It is started
as it is given, without a shell. It gets a small environment (`environment`), not that of this process, which may hold credentials.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import shutil
import signal
import struct
import sys
import tempfile
import termios
from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO

from steersman.api.generated import core_v1 as v1
from steersman.server.kubelet_api import CommandOptions, CommandStreams, TerminalSize
from steersman.sim.kubelet.container_log import container_spec

PIECE = 16 * 1024
"""Bytes of output that are read at once."""
_CONTROL_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    sys.exit(f"exec: {sys.argv[1]!r}: {error.strerror}")
"""
"""Makes standard input the controlling terminal of a new session, so that Ctrl-C reaches it, and becomes the command. A program of
its own, as not every event loop can run code between the two."""
_MOST_LOOKS = 20
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ")
"""Variables of this process that commands get, too."""


def environment(pod: v1.Pod, container: str, home: str, tty: bool) -> dict[str, str]:
    """The environment of a command: where it runs, and the variables of the container that have a plain value."""
    found = {name: os.environ[name] for name in _KEPT if name in os.environ}
    spec = container_spec(pod, container)
    if spec is not None:
        found |= {each.name: each.value for each in spec.env if each.value and "=" not in each.name}
    meta = pod.metadata
    found |= {
        "HOME": home,
        "HOSTNAME": meta.name,
        "STEERSMAN_POD": meta.name,
        "STEERSMAN_NAMESPACE": meta.namespace,
        "STEERSMAN_CONTAINER": container,
        "STEERSMAN_NODE": pod.spec.nodeName,
        "STEERSMAN_POD_IP": pod.status.podIP,
    }
    if tty:
        found["TERM"] = os.environ.get("TERM", "xterm")
    return found


async def run_command(
    command: tuple[str, ...], pod: v1.Pod, container: str, options: CommandOptions, streams: CommandStreams
) -> int | str:
    """Run a command for a client; returns its exit code, or why it could not be started."""
    home = tempfile.mkdtemp(prefix="steersman-exec-")
    try:
        variables = environment(pod, container, home, options.tty)
        if shutil.which(command[0], path=variables.get("PATH")) is None and "/" not in command[0]:
            return f'exec: "{command[0]}": executable file not found in $PATH'
        run = _run_with_terminal if options.tty else _run_with_pipes
        try:
            return await run(command, variables, home, options, streams)
        except (OSError, ValueError) as error:
            if isinstance(error, ConnectionError):
                raise
            return f'exec: "{command[0]}": {error}'
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def _run_with_pipes(
    command: tuple[str, ...],
    variables: Mapping[str, str],
    home: str,
    options: CommandOptions,
    streams: CommandStreams,
) -> int:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=pipe if options.stdin else nothing,
        stdout=pipe,
        stderr=pipe,
        cwd=home,
        env=variables,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    feeder = asyncio.create_task(_feed(streams, process.stdin), name="exec: input")
    copiers = [
        asyncio.create_task(_copy(reader, streams, error=error), name="exec: output")
        for reader, error in ((process.stdout, False), (process.stderr, True))
    ]
    try:
        code = await process.wait()
        await _kill(process, home)  # what it left in the background holds its output open
        await asyncio.wait(copiers)
        return _exit_code(code)
    finally:
        for task in (feeder, *copiers):
            task.cancel()
        await _end(process, home)


async def _run_with_terminal(
    command: tuple[str, ...],
    variables: Mapping[str, str],
    home: str,
    options: CommandOptions,
    streams: CommandStreams,
) -> int:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-ISc",
                _CONTROL_TERMINAL,
                *command,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                cwd=home,
                env=variables,
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        reader = asyncio.StreamReader(limit=PIECE)
        output = await _pipe_of(terminal, reader)
        feeder = asyncio.create_task(_type(streams, terminal), name="exec: terminal")
        copier = asyncio.create_task(_copy(reader, streams, error=False), name="exec: output")
        try:
            code = await process.wait()
            await _kill(process, home)
            await asyncio.wait((copier,), timeout=1.0)
            return _exit_code(code)
        finally:
            feeder.cancel()
            copier.cancel()
            output.close()
            await _end(process, home)


async def _pipe_of(terminal: BinaryIO, reader: asyncio.StreamReader) -> asyncio.ReadTransport:
    loop = asyncio.get_running_loop()
    duplicate = os.fdopen(os.dup(terminal.fileno()), "rb", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), duplicate)
    return transport


async def _copy(reader: asyncio.StreamReader, streams: CommandStreams, *, error: bool) -> None:
    """Send output to the client, as fast as it reads."""
    with suppress(OSError):  # a terminal whose last user is gone
        while data := await reader.read(PIECE):
            try:
                await streams.write(data, error=error)
            except ConnectionError:
                return  # the client is gone: its handler is cancelled


async def _feed(streams: CommandStreams, writer: asyncio.StreamWriter | None) -> None:
    """Send input to a command."""
    with suppress(ConnectionError):
        while data := await streams.read():
            if writer is not None and isinstance(data, bytes):
                writer.write(data)
                await writer.drain()
        if writer is not None:
            writer.close()


async def _type(streams: CommandStreams, terminal: BinaryIO) -> None:
    """Send input to a terminal, and set its size."""
    with suppress(OSError):
        while data := await streams.read():
            if isinstance(data, TerminalSize):
                size = struct.pack("HHHH", data.height, data.width, 0, 0)
                fcntl.ioctl(terminal.fileno(), termios.TIOCSWINSZ, size)
                continue
            while data:
                try:
                    data = data[os.write(terminal.fileno(), data) :]
                except BlockingIOError:
                    await asyncio.sleep(0.02)
        os.write(terminal.fileno(), b"\x04")


async def _end(process: asyncio.subprocess.Process, home: str) -> None:
    """Kill a command, and what it has started."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
    await _kill(process, home)
    if process.returncode is None:
        await process.wait()


async def _kill(process: asyncio.subprocess.Process, home: str) -> None:
    """Kill the process group of a command, and processes that have left it: background jobs of a shell, daemons."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # In a thread: a machine may have many processes.
    await asyncio.to_thread(_kill_left_behind, home)


def _kill_left_behind(home: str) -> None:
    """Kill the processes whose directory or environment is that of a command. They may fork meanwhile, so they are looked for again."""
    for _ in range(_MOST_LOOKS):
        found = [pid for pid in _processes() if _belongs(pid, home)]
        if not found:
            return
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _processes() -> list[int]:
    """All processes; none where there is no /proc."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    except OSError:
        return []


def _belongs(pid: int, home: str) -> bool:
    """Whether a process was started by the command that has this directory, which no other has."""
    try:
        if os.readlink(f"/proc/{pid}/cwd").removesuffix(" (deleted)") == home:
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"HOME={home}".encode() in file.read().split(b"\0")
    except OSError:
        return False  # it has ended, or is another user's


def _exit_code(code: int) -> int:
    """The exit code as a shell tells it: 128 and the signal for a command that was killed."""
    return code if code >= 0 else 128 - code
