"""``steersman up``: a control plane on this machine, for kubectl and every other client.

API server, controllers, a scheduler and simulated nodes in one process. Nothing listens beyond loopback
unless it is told to, and without ``--data-dir`` nothing is left when it ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from steersman.manager import event_loop, logs
from steersman.manager.control_plane import Options, Running, plane
from steersman.manager.flag_types import BOOL, FLOAT, INT, STRING
from steersman.manager.flags import Option, UsageError, parse, usage
from steersman.manager.supervisor import Lost
from steersman.runtime.clock import Clock, LiveClock
from steersman.sim.scaled_clock import HurriedClock, HurriedLoop

OPTIONS = (
    Option(
        "kubeconfig", STRING, "steersman.kubeconfig", "Where to write the administrator's kubeconfig.", "Up"
    ),
    Option(
        "host",
        STRING,
        "127.0.0.1",
        "The address to listen on. Anything but loopback is open to others.",
        "Up",
    ),
    Option("port", INT, 6443, "The port to listen on; 0 takes any that is free.", "Up"),
    Option("data-dir", STRING, "", "Keep everything in this directory; without it, in memory only.", "Up"),
    Option("nodes", INT, 3, "How many simulated nodes; 0 leaves nodes and scheduling to real ones.", "Up"),
    Option(
        "no-controllers", BOOL, False, "Run no controllers: only the API server, nodes and scheduler.", "Up"
    ),
    Option("speed", FLOAT, 1.0, "How many times as fast as the wall's the cluster's clock runs.", "Up"),
    Option("v", INT, 0, "How much to log: 0 to 10.", "Up", "v"),
    Option("help", BOOL, False, "Show this and end.", "Up", "h"),
)
HEAD = """\
Run a Kubernetes control plane on this machine: API server, controllers, scheduler and simulated nodes.

Usage: steersman up [flags]
       steersman up [flags] -- COMMAND...     run a command with KUBECONFIG set, and end with its exit code
"""


def read(argv: Sequence[str]) -> Options:
    """Options from a command line. Raises `UsageError`."""
    words = list(argv)
    command: tuple[str, ...] = ()
    if "--" in words:
        cut = words.index("--")
        words, command = words[:cut], tuple(words[cut + 1 :])
        if not command:
            raise UsageError("there is no command behind --")
    values = parse(OPTIONS, words)
    if values["nodes"] < 0:
        raise UsageError(f"--nodes must be at least 0, but got {values['nodes']}")
    if values["speed"] <= 0:
        raise UsageError(f"--speed must be more than 0, but got {values['speed']:g}")
    if not 0 <= values["port"] < 65536:
        raise UsageError(f"--port must be from 0 to 65535, but got {values['port']}")
    return Options(
        kubeconfig=Path(values["kubeconfig"]).absolute(),
        host=values["host"],
        port=values["port"],
        data_dir=Path(values["data-dir"]) if values["data-dir"] else None,
        nodes=values["nodes"],
        controllers=not values["no-controllers"],
        speed=values["speed"],
        verbosity=values["v"],
        command=command,
    )


def main(argv: Sequence[str]) -> int:
    """Entry point; answers the exit code."""
    ours = argv[: argv.index("--")] if "--" in argv else argv
    if any(word in ("-h", "--help") for word in ours):
        print(HEAD + "\n" + usage(OPTIONS))
        return 0
    try:
        options = read(argv)
        logs.begin(logs.Logging(verbosity=options.verbosity))
        if not options.verbosity:
            # What a newcomer needs is printed; what controllers do is asked for with -v.
            logging.getLogger().setLevel(logging.WARNING)
        return _run(options)
    except (UsageError, Lost) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _run(options: Options) -> int:
    if options.speed == 1.0:
        return event_loop.run(_stay(options, LiveClock))
    with asyncio.Runner(loop_factory=lambda: HurriedLoop(options.speed)) as runner:
        loop = runner.get_loop()
        return runner.run(_stay(options, lambda: HurriedClock(loop)))


async def _stay(options: Options, clock: Callable[[], Clock]) -> int:
    """Be up until told to stop, or until the command has ended; answers the exit code."""
    began = time.perf_counter()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with plane(options, clock()) as running:
        took = time.perf_counter() - began
        if options.command:
            return await _command(options.command, running, stop)
        who = f"{options.nodes} nodes" if options.nodes else "no nodes"
        many = f"{running.controllers} controllers" if running.controllers else "no controllers"
        print(f"steersman is up at {running.url} with {who} and {many} ({took:.1f} s)")
        print(f"  export KUBECONFIG={running.kubeconfig}")
        print("  kubectl get nodes            (Ctrl-C here stops everything)", flush=True)
        told = asyncio.create_task(stop.wait())
        lost = asyncio.create_task(running.lost())
        await asyncio.wait((told, lost), return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if lost.done():
            raise lost.result()
        lost.cancel()
        print("stopping")
    return 0


async def _command(command: tuple[str, ...], running: Running, stop: asyncio.Event) -> int:
    """Run a command beside the plane; a signal to us is one to it. Raises `Lost` where the plane ends first."""
    env = {**os.environ, "KUBECONFIG": str(running.kubeconfig)}
    try:
        child = await asyncio.create_subprocess_exec(*command, env=env)
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror}") from None
    ended = asyncio.create_task(child.wait())
    told = asyncio.create_task(stop.wait())
    lost = asyncio.create_task(running.lost())
    await asyncio.wait((ended, told, lost), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if not ended.done():
        child.terminate()
    code = await ended
    if lost.done():
        raise lost.result()
    lost.cancel()
    return code if code >= 0 else 128 - code
