"""``steersman up``: a control plane on this machine, for kubectl and every other client.

API server, controllers, scheduler and simulated nodes run in one process. It listens on loopback only unless ``--host``
says otherwise, and without ``--data-dir`` nothing is left when it ends.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from steersman.api.clock import Clock, RealClock
from steersman.manager import console, logs, process
from steersman.manager.control_plane import ControlPlaneOptions, RunningControlPlane, run_control_plane
from steersman.manager.feature_gates import read_features
from steersman.manager.flags import UsageError
from steersman.manager.supervisor import ComponentFailed
from steersman.manager.verb import Given, parse
from steersman.manager.verbs import KUBECONFIG, UP
from steersman.runtime.python_gc import freeze, without_collector
from steersman.server.calls import parse_webhook_address
from steersman.server.storage.durable.errors import DataDirError
from steersman.sim.dynamicresources import MAX_DEVICES, Devices
from steersman.sim.scaled_clock import ScaledClock, ScaledLoop

if TYPE_CHECKING:
    from steersman.snapshot.model import LoadedSnapshot

_OTHER_FILES = 64
"""Files that are open besides the connections: listeners, libraries, the data directory."""


def read(argv: Sequence[str]) -> ControlPlaneOptions:
    """Parse a command line. Raises `UsageError`."""
    return options(parse(UP, argv))


def options(given: Given) -> ControlPlaneOptions:
    """Validate the flags. Raises `UsageError`."""
    values = given.values
    if values["nodes"] < 0:
        raise UsageError(f"--nodes must be at least 0, but got {values['nodes']}")
    if not 0 <= values["devices"] <= MAX_DEVICES:
        raise UsageError(f"--devices must be from 0 to {MAX_DEVICES}, but got {values['devices']}")
    if "devices" in given.set and not values["dra"]:
        raise UsageError("--devices is about the nodes of --dra: pass --dra, too")
    if values["dra"] and not values["nodes"]:
        raise UsageError("--dra needs nodes that have devices: pass --nodes=1 or more")
    if values["csi"] and not values["nodes"]:
        raise UsageError("--csi needs nodes to attach volumes to: pass --nodes=1 or more")
    if values["allow-exec"] and not values["nodes"]:
        raise UsageError("--allow-exec needs nodes that pods run on: pass --nodes=1 or more")
    if values["pod-logs"] and not Path(values["pod-logs"]).is_dir():
        raise UsageError(f"--pod-logs: {values['pod-logs']} is no directory")
    if not 0 < values["speed"] < math.inf:
        raise UsageError(f"--speed must be more than 0, but got {values['speed']:g}")
    if not values["host"] or not values["host"].isascii():
        raise UsageError(f"--host must be a host name in ASCII or an IP address, but got {values['host']!r}")
    if not 0 <= values["port"] < 65536:
        raise UsageError(f"--port must be from 0 to 65535, but got {values['port']}")
    if not 0 <= values["ui-port"] < 65536:
        raise UsageError(f"--ui-port must be from 0 to 65535, but got {values['ui-port']}")
    if values["max-watches"] < 1:
        raise UsageError(f"--max-watches must be at least 1, but got {values['max-watches']}")
    if values["max-connections"] <= values["max-watches"]:
        raise UsageError(
            f"--max-connections must be more than --max-watches ({values['max-watches']}), "
            f"but got {values['max-connections']}"
        )
    if values["from"] and values["data-dir"]:
        raise UsageError("--from starts from a snapshot and keeps nothing: leave out --data-dir")
    if values["from"] and "nodes" in given.set:
        raise UsageError("--from has the nodes of the snapshot: leave out --nodes")
    try:
        addresses = dict(map(parse_webhook_address, values["webhook-address"]))
    except ValueError as error:
        raise UsageError(f"--webhook-address: {error}") from None
    return ControlPlaneOptions(
        kubeconfig=Path(values["kubeconfig"] or KUBECONFIG).absolute(),
        host=values["host"],
        port=values["port"],
        data_dir=Path(values["data-dir"]) if values["data-dir"] else None,
        nodes=values["nodes"],
        controllers=not values["no-controllers"],
        scheduler=not values["no-scheduler"],
        speed=values["speed"] if "speed" in given.set else None,
        verbosity=values["v"],
        max_connections=values["max-connections"],
        max_watches=values["max-watches"],
        gates=read_features({**values, "emulated-version": (), "min-compatibility-version": ()}).overrides(),
        csi=values["csi"],
        dra=Devices(count=values["devices"]) if values["dra"] else None,
        webhook_addresses=addresses,
        command=given.command,
        allow_exec=values["allow-exec"],
        pod_logs=Path(values["pod-logs"]) if values["pod-logs"] else None,
        snapshot=_snapshot(values["from"]) if values["from"] else None,
        audit_log=Path(values["audit-log"]).absolute() if values["audit-log"] else None,
        keep_kubeconfig=bool(values["kubeconfig"]),
        quiet=values["quiet"],
        ui=not values["no-ui"],
        # Without a greeting there is no way to learn the token.
        ui_port=None if values["no-ui"] or values["quiet"] or given.command else values["ui-port"],
    )


def _snapshot(path: str) -> LoadedSnapshot:
    from steersman.snapshot.loading import load_file

    try:
        return load_file(Path(path))
    except DataDirError as error:
        raise UsageError(str(error)) from None


def main(given: Given) -> int:
    """Entry point; returns the exit code."""
    try:
        requested = options(given)
        if requested.verbosity:
            logs.configure(logs.LoggingOptions(verbosity=requested.verbosity))
        else:
            console.configure(quiet=requested.quiet)
        return _run(requested)
    except ComponentFailed as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _run(options: ControlPlaneOptions) -> int:
    files = max(process.raise_file_limit() - _OTHER_FILES, 2)
    if files < options.max_connections:
        # Connections that cannot be accepted would keep others from being noticed.
        watches = min(options.max_watches, files * 3 // 4)
        options = replace(options, max_connections=files, max_watches=watches)
    speed = options.speed
    if speed is None:
        return process.run(_serve(options, RealClock))
    with asyncio.Runner(loop_factory=lambda: ScaledLoop(speed)) as runner:
        loop = runner.get_loop()
        return runner.run(_serve(options, lambda: ScaledClock(loop)))


async def _serve(options: ControlPlaneOptions, clock: Callable[[], Clock]) -> int:
    """Run the control plane until a signal, or until the command ends; returns the exit code."""
    start = time.perf_counter()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A terminal that is closed hangs up; nohup ignores that, and so does what it starts.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        with without_collector():
            running = await stack.enter_async_context(
                run_control_plane(options, clock(), partial(_silence, options))
            )
        # Otherwise a full collection would hold up requests later, when it comes. One now would hold up those that wait for the start.
        freeze(collect=False)
        took = time.perf_counter() - start
        if options.command:
            return await _command(options, running, stop)
        if not options.quiet:
            print(*_greeting(options, running, took), sep="\n", flush=True)
        signalled = asyncio.create_task(stop.wait())
        failed = asyncio.create_task(running.failed())
        await asyncio.wait((signalled, failed), return_when=asyncio.FIRST_COMPLETED)
        signalled.cancel()
        if failed.done():
            raise failed.result()
        failed.cancel()
        if not options.quiet:
            with suppress(OSError):  # the terminal may be gone
                print("stopping", flush=True)
    return 0


def _greeting(options: ControlPlaneOptions, running: RunningControlPlane, took: float) -> Iterator[str]:
    count = len(options.node_names)
    nodes = f"{count} nodes" if count else "no nodes"
    controllers = f"{running.controllers} controllers" if running.controllers else "no controllers"
    yield f"steersman is up at {running.url} with {nodes} and {controllers} ({took:.1f} s)"
    if running.other_manager:
        yield f"  the controllers wait: {running.other_manager} holds the Lease kube-system/kube-controller-manager"
    if options.snapshot is not None:
        found = options.snapshot
        yield f"  the objects are those of a cluster at {found.time:%Y-%m-%d %H:%M:%S} UTC"
        for resource, why in (*found.unread.items(), *found.unknown.items()):
            yield f"  not in the snapshot: {resource} ({why})"
    for warning in warnings(options):
        yield f"  warning: {warning}"
    yield f"  export KUBECONFIG={running.kubeconfig}"
    yield "  kubectl get nodes            (Ctrl-C here stops the control plane)"
    if running.dashboard:
        yield f"  dashboard: {running.dashboard}"


def warnings(options: ControlPlaneOptions) -> Iterator[str]:
    """Choices that are allowed, and dangerous."""
    if options.allow_exec and not _is_loopback(options.host):
        yield f"--allow-exec with --host={options.host} lets users on other machines run commands on this one"


def _is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address to listen on."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _silence(options: ControlPlaneOptions) -> None:
    """Hide the log lines of components that stop because another one has failed, unless ``-v`` asks for them."""
    if not options.verbosity:
        logging.getLogger().setLevel(logging.CRITICAL)


async def _command(options: ControlPlaneOptions, running: RunningControlPlane, stop: asyncio.Event) -> int:
    """Run a command beside the control plane, and pass signals on to it. Raises `ComponentFailed`."""
    command = options.command
    env = {**os.environ, "KUBECONFIG": str(running.kubeconfig)}
    try:
        child = await asyncio.create_subprocess_exec(*command, env=env)
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror}") from None
    ended = asyncio.create_task(child.wait())
    signalled = asyncio.create_task(stop.wait())
    failed = asyncio.create_task(running.failed())
    await asyncio.wait((ended, signalled, failed), return_when=asyncio.FIRST_COMPLETED)
    signalled.cancel()
    if not ended.done():
        child.terminate()
    code = await ended
    if failed.done():
        raise failed.result()
    failed.cancel()
    return code if code >= 0 else 128 - code
