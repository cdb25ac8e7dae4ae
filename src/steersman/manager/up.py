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
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steersman.controllers import CONTROLLERS
from steersman.manager import logs, loops
from steersman.manager.flags import BOOL, FLOAT, INT, STRING, Option, UsageError, parse, usage
from steersman.runtime.clock import Clock, LiveClock
from steersman.runtime.fleet import Fleet
from steersman.server.auth.authority import Authority, Pair, self_signed, write_private
from steersman.server.auth.keys import Keys
from steersman.server.boot import Boot, equip
from steersman.server.core import Server
from steersman.server.local import LocalApi
from steersman.sim import metrics
from steersman.sim.hurry import HurriedClock, HurriedLoop
from steersman.sim.kubelet import Kubelets, Settings
from steersman.sim.scheduler import Scheduler

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
WITHOUT = ("TaintNodesByCondition",)
"""A new node would be tainted until the node lifecycle controller takes that away, which is not there yet."""
START_DELAY = 1.0
"""Seconds until a simulated container has started."""


@dataclass(frozen=True, slots=True)
class Options:
    kubeconfig: Path
    host: str
    port: int
    data_dir: Path | None
    nodes: int
    controllers: bool
    speed: float
    verbosity: int
    command: tuple[str, ...] = ()


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
        logs.configure(options.verbosity, as_json=False)
        if not options.verbosity:
            # What a newcomer needs is printed; what controllers do is asked for with -v.
            logging.getLogger().setLevel(logging.WARNING)
        return _run(options)
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _run(options: Options) -> int:
    if options.speed == 1.0:
        return loops.run(_stay(options, LiveClock))
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
            return await _command(options.command, str(running.kubeconfig), stop)
        who = f"{options.nodes} nodes" if options.nodes else "no nodes"
        loops = f"{len(CONTROLLERS)} controllers" if options.controllers else "no controllers"
        print(f"steersman is up at {running.url} with {who} and {loops} ({took:.1f} s)")
        print(f"  export KUBECONFIG={running.kubeconfig}")
        print("  kubectl get nodes            (Ctrl-C here stops everything)", flush=True)
        await stop.wait()
        print("stopping")
    return 0


async def _command(command: tuple[str, ...], kubeconfig: str, stop: asyncio.Event) -> int:
    """Run a command beside the plane; a signal to us is one to it."""
    env = {**os.environ, "KUBECONFIG": kubeconfig}
    try:
        child = await asyncio.create_subprocess_exec(*command, env=env)
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror}") from None
    ended = asyncio.create_task(child.wait())
    told = asyncio.create_task(stop.wait())
    await asyncio.wait((ended, told), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if not ended.done():
        child.terminate()
    code = await ended
    return code if code >= 0 else 128 - code


@dataclass(frozen=True, slots=True)
class Running:
    """A plane that is up."""

    url: str
    kubeconfig: Path
    server: Server


@asynccontextmanager
async def plane(options: Options, clock: Clock) -> AsyncIterator[Running]:
    """A whole control plane. Ready, with the default account in place, when it is entered."""
    async with AsyncExitStack() as stack:
        server, boot, durable = _server(options, clock, stack)
        authorizer = equip(server, authority=boot.authority.pair.cert, without=WITHOUT)
        if options.nodes:
            server.extend(metrics.install)
        try:
            edge = await boot.serve(server, authorizer, host=options.host, port=options.port, durable=durable)
        except OSError as error:
            where = f"{options.host}:{options.port}"
            raise UsageError(
                f"cannot listen on {where}: {error.strerror or error}; pass another --port, or --port=0"
            ) from None
        stack.push_async_callback(edge.close)
        path = options.kubeconfig
        if options.command:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steersman-")), "kubeconfig")
        try:
            write_private(path, boot.kubeconfig(edge.url))
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}; pass another --kubeconfig") from None
        crew = stack.enter_context(_Crew())
        stack.push_async_callback(crew.leave)
        ready = asyncio.Event()
        if options.controllers:
            fleet = Fleet(CONTROLLERS, LocalApi(server, "system:kube-controller-manager"), clock)
            crew.take(fleet.run(ready.set), "controllers")
        else:
            ready.set()
        if options.nodes:
            names = [f"node-{number}" for number in range(1, options.nodes + 1)]
            settings = Settings(start_delay=START_DELAY)
            kubelets = Kubelets(LocalApi(server, "system:nodes"), clock, names, settings=settings)
            crew.take(kubelets.run(), "kubelets")
            crew.take(Scheduler(LocalApi(server, "system:kube-scheduler"), clock).run(), "scheduler")
        await crew.until(ready)
        yield Running(edge.url, path, server)


class _Crew:
    """Tasks that stay for as long as the plane is up. One that fails is logged, and the others stay."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *exception: object) -> None:
        for task in self._tasks:
            task.cancel()

    def take(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_report)
        self._tasks.append(task)

    async def until(self, ready: asyncio.Event) -> None:
        """Wait for somebody to be ready, unless somebody has failed."""
        waiter = asyncio.create_task(ready.wait())
        await asyncio.wait((waiter, *self._tasks), return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()

    async def leave(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logging.getLogger(__name__).error("%s ended", task.get_name(), exc_info=error)


Durable = Callable[[], Coroutine[Any, Any, None]]


def _server(options: Options, clock: Clock, stack: AsyncExitStack) -> tuple[Server, Boot, Durable | None]:
    """The server, what it is trusted by, and how to wait until its writes are safe."""
    if options.data_dir is None:
        return Server(clock), Boot.fresh(clock.now), None
    from steersman.server.durable.disk import open_disk
    from steersman.server.durable.refusals import Refused

    try:
        disk = stack.enter_context(open_disk(options.data_dir))
    except Refused as error:
        raise UsageError(str(error)) from None
    cert, key, signing = (disk.meta(name) for name in ("ca.crt", "ca.key", "sa.key"))
    if cert is None or key is None or signing is None:
        pair, keys = self_signed("steersman", clock.now()), Keys.generate()
        cert, key, signing = pair.cert, pair.key, keys.pem
        for name, value in (("ca.crt", cert), ("ca.key", key), ("sa.key", signing)):
            disk.keep(name, value)
    boot = Boot(Authority(Pair(cert, key), clock.now), Keys.load(signing), clock.now)
    server = Server(clock, store=disk.store)
    disk.renew(server)
    return server, boot, disk.log.durable
