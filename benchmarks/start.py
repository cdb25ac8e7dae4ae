"""From the command ``steersman up`` to a control plane one can use, and what it takes when nothing happens.

The clock starts before the program is executed, so loading the interpreter and everything it imports counts. It stops
when ``/readyz`` says ok and the default ServiceAccount is there, asked over TLS every few milliseconds. The first round is
not counted: it leaves compiled modules behind, as an installation does.

::

    python -m benchmarks.start --rounds 9
    python -m benchmarks.start --rounds 5 --data-dir      # with a fresh data directory each
"""

from __future__ import annotations

import argparse
import asyncio
import os
import ssl
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import busy
from steersman.client import kubeconfig
from tests.harness.child_process import Child
from tests.harness.raw_http import Line, context

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
_PAUSE = 0.005
_PATIENCE = 60.0


@dataclass(frozen=True)
class Start:
    """One of them."""

    ready: float
    """Seconds until ``/readyz`` said ok."""
    usable: float
    """Seconds until the default account was there, too."""
    cpu: float
    """Seconds of processor time until then."""
    other: float
    """What else the machine did meanwhile."""
    rss: int = 0
    """MB, when it had been at rest for a while."""
    idle: float = 0.0
    """The share of a core it takes at rest."""


async def asked(line: Line, path: str) -> bool:
    code, _ = await line.ask("GET", path)
    return code == 200


async def dial(config: Path, deadline: float) -> Line:
    """Connect as soon as there is something to connect to."""
    while time.perf_counter() < deadline:
        try:
            connection = kubeconfig.load(str(config))
            return await Line.open(connection.server, context(connection))
        except (OSError, ssl.SSLError, ValueError):
            await asyncio.sleep(_PAUSE)
    raise SystemExit("it did not come up")


async def start(options: argparse.Namespace, env: dict[str, str], rest: float) -> Start:
    with tempfile.TemporaryDirectory() as name:
        where = Path(name)
        config = where / "config"
        command = [sys.executable, "-m", "steersman.manager.cli", "up", "--port=0", f"--kubeconfig={config}"]
        command.append(f"--nodes={options.nodes}")
        if options.data_dir:
            command.append(f"--data-dir={where / 'data'}")
        before, began = busy(), time.perf_counter()
        own = time.process_time()
        child = Child(command, where / "log", env)
        try:
            while not config.exists() and child.code is None:
                await asyncio.sleep(_PAUSE)
            line = await dial(config, began + _PATIENCE)
            while not await asked(line, "/readyz"):
                await asyncio.sleep(_PAUSE)
            ready = time.perf_counter() - began
            while not await asked(line, ACCOUNT):
                await asyncio.sleep(_PAUSE)
            usable, cpu = time.perf_counter() - began, child.cpu_seconds()
            other = max(0.0, busy() - before - cpu - (time.process_time() - own))
            line.close()
            if not rest:
                return Start(ready, usable, cpu, other)
            await asyncio.sleep(4)
            resting = child.cpu_seconds()
            await asyncio.sleep(rest)
            idle = (child.cpu_seconds() - resting) / rest
            return Start(ready, usable, cpu, other, child.rss() >> 20, idle)
        finally:
            child.stop()


async def measure(options: argparse.Namespace) -> list[Start]:
    with tempfile.TemporaryDirectory() as compiled:
        env = {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        await start(options, env, 0)
        rounds = [await start(options, env, 0) for _ in range(options.rounds)]
        return [*rounds, await start(options, env, options.rest)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--data-dir", action="store_true", help="with a data directory")
    parser.add_argument("--rest", type=float, default=10.0, help="seconds to look at it at rest")
    options = parser.parse_args()
    found = asyncio.run(measure(options))
    for each in found[:-1]:
        print(
            f"ready {each.ready:.2f} s, usable {each.usable:.2f} s, CPU {each.cpu:.2f} s, other CPU {each.other:.2f} s"
        )
    counted = found[:-1]
    print(
        f"median of {len(counted)}: ready {statistics.median(each.ready for each in counted):.2f} s, "
        f"usable {statistics.median(each.usable for each in counted):.2f} s, "
        f"CPU {statistics.median(each.cpu for each in counted):.2f} s; "
        f"best usable {min(each.usable for each in counted):.2f} s; load {os.getloadavg()[0]:.1f}"
    )
    print(f"at rest with {options.nodes} nodes: {found[-1].rss} MB, {found[-1].idle * 100:.2f}% of a core")


if __name__ == "__main__":
    main()
