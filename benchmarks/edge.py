"""The embedded server at its socket: creates and gets a second, watches at rest, and what events cost.

The server runs in this process and the clients in another, over TLS on loopback, as they would on a machine of
two cores. Everything is bounded: a run takes about half a minute.

Rates belong to the machine and to what else it does (``other CPU s``). What a request costs the server in
processor time hardly does: a core can serve a million of them divided by that many a second, where clients have the other.

::

    python -m benchmarks.edge --clients 16 --requests 6000 --watches 1000
    python -m benchmarks.edge --specs own     # no two pods are alike
    python -m benchmarks.edge --rest 30       # how long to look at watches that nothing happens to
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.measure import busy
from steersman.api.clock import RealClock
from steersman.client.kubeconfig import load
from steersman.manager import process
from steersman.server.auth.ca import write_private
from steersman.server.bootstrap import Bootstrap, bootstrap_server
from steersman.server.server import Server
from steersman.server.storage.durable.data_dir import open_data_dir
from tests.harness.raw_http import Line, context

PODS = "/api/v1/namespaces/default/pods"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "@name", "labels": {"app": "load"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.test/app:1",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "@value"}],
                "ports": [{"containerPort": 8080}],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }
        ]
    },
}
EVENTS = 20
"""How many objects are created with everybody watching."""


def cpu() -> float:
    """Seconds of processor time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# -- the clients' process ---------------------------------------------------------------------


class Load:
    """Clients that each wait for an answer before they ask again."""

    def __init__(self, config: str, clients: int, requests: int, watches: int, own: bool) -> None:
        self.connection = load(config)
        self.tls = context(self.connection)
        self.clients, self.requests, self.watches = clients, requests, watches
        self.own = own
        self.template = json.dumps(POD).encode()
        self.made = 0
        self.lines: list[Line] = []
        self.watching: list[Line] = []
        self.heard = 0

    async def open(self) -> Line:
        return await Line.open(self.connection.server, self.tls)

    async def create(self, line: Line, count: int) -> None:
        for _ in range(count):
            number = self.made
            self.made += 1
            body = self.template.replace(b"@name", b"load-%d" % number)
            body = body.replace(b"@value", b"%d" % (number if self.own else 0))
            code, answer = await line.ask("POST", PODS, body)
            assert code == 201, answer

    async def get(self, line: Line, count: int, first: int) -> None:
        for n in range(first, first + count):
            code, answer = await line.ask("GET", f"{PODS}/load-{n % self.made}")
            assert code == 200, answer

    async def phase(self, name: str) -> float:
        """Carry one out; the seconds its requests took, or 0 where all of it counts."""
        each = self.requests // self.clients
        work: list[Coroutine[Any, Any, None]] = []
        match name:
            case "warm":
                self.lines = [await self.open() for _ in range(self.clients)]
                await self.create(self.lines[0], 100)
                await self.get(self.lines[0], 100, 0)
            case "create":
                work = [self.create(line, each) for line in self.lines]
            case "get":
                work = [self.get(line, each, n * each) for n, line in enumerate(self.lines)]
            case "watch":
                _, answer = await self.lines[0].ask("GET", f"{PODS}?limit=1")
                version = json.loads(answer)["metadata"]["resourceVersion"]
                where = f"{PODS}?watch=1&allowWatchBookmarks=1&timeoutSeconds=600&resourceVersion={version}"
                for _ in range(self.watches):
                    line = await self.open()
                    code, answer = await line.follow(where, self.hear)
                    assert code == 200, answer
                    self.watching.append(line)
            case "events":
                before = self.heard
                await self.create(self.lines[0], EVENTS)
                while self.heard < before + EVENTS * self.watches:
                    await asyncio.sleep(0.01)
        began = time.perf_counter()
        await asyncio.gather(*work)
        return time.perf_counter() - began if work else 0.0

    def hear(self, data: bytes) -> None:
        self.heard += data.count(b"}\n")


def clients(config: str, clients: int, requests: int, watches: int, own: bool, pipe: Any) -> None:
    """Run the load, phase by phase, as the other side says."""

    async def run() -> None:
        load = Load(config, clients, requests, watches, own)
        loop = asyncio.get_running_loop()
        while (name := await loop.run_in_executor(None, pipe.recv)) != "end":
            began, used = time.perf_counter(), cpu()
            took = await load.phase(name)
            pipe.send((took or time.perf_counter() - began, cpu() - used))

    process.run(run())


# -- the server's process ---------------------------------------------------------------------


async def measure(options: argparse.Namespace) -> dict[str, float]:
    """All phases; requests a second, and microseconds of processor time for each."""
    clock = RealClock()
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as where, ExitStack() as stack:
        data_dir = stack.enter_context(open_data_dir(Path(where, "data"))) if options.data_dir else None
        server = Server(clock) if data_dir is None else Server(clock, store=data_dir.store)
        boot = Bootstrap.generate(clock.now)
        authorizer = bootstrap_server(server)
        server_account(server)
        edge = await boot.serve(
            server, authorizer, durable=None if data_dir is None else data_dir.log.durable
        )
        config = Path(where, "kubeconfig")
        write_private(config, boot.kubeconfig(edge.url))
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=clients,
            args=(
                str(config),
                options.clients,
                options.requests,
                options.watches,
                options.specs == "own",
                theirs,
            ),
            daemon=True,
        )
        process.start()
        theirs.close()  # so that the pipe ends with the process
        loop = asyncio.get_running_loop()

        async def phase(name: str) -> tuple[float, float, float, float]:
            """Seconds by the wall, of the server, of the clients and of everybody else."""
            mine, all_ = cpu(), busy()
            ours.send(name)
            took, theirs = await loop.run_in_executor(None, ours.recv)
            mine = cpu() - mine
            return took, mine, theirs, max(0.0, busy() - all_ - mine - theirs)

        try:
            await phase("warm")
            requests = options.requests // options.clients * options.clients
            for name in ("create", "get"):
                took, mine, spent, others = await phase(name)
                found[f"{name}s/s"] = requests / took
                found[f"{name}: server's CPU us"] = mine / requests * 1e6
                found[f"{name}: clients' CPU us"] = spent / requests * 1e6
                found[f"{name}: other CPU s"] = others
            before = cpu()
            await asyncio.sleep(options.rest)
            found[f"CPU s in {options.rest:g} s of rest, no watches"] = cpu() - before
            took, mine, _, _ = await phase("watch")
            found[f"{options.watches} watches begun in s"] = took
            await asyncio.sleep(1)
            before = cpu()
            await asyncio.sleep(options.rest)
            found[f"CPU s in {options.rest:g} s of rest, {options.watches} watches"] = cpu() - before
            took, mine, _, _ = await phase("events")
            found["events/s"] = EVENTS * options.watches / took
            found["event: server's CPU us"] = mine / (EVENTS * options.watches) * 1e6
            found["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        finally:
            if process.is_alive():
                ours.send("end")
                await loop.run_in_executor(None, process.join, 10)
            process.kill()
            await edge.close()
    return found


def server_account(server: Server) -> None:
    """Pods need the account that a controller would have made."""
    from steersman.api.generated.core_v1 import ServiceAccount
    from steersman.api.generated.meta_v1 import ObjectMeta
    from steersman.server.rest.create import create_as_server

    accounts = server.registry.find("", "v1", "serviceaccounts")
    create_as_server(server, accounts, "default", ServiceAccount(metadata=ObjectMeta(name="default")))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--watches", type=int, default=1000)
    parser.add_argument("--specs", choices=("same", "own"), default="same", help="of the pods")
    parser.add_argument("--rest", type=float, default=5.0, help="seconds to look at what rests")
    parser.add_argument("--data-dir", action="store_true", help="acknowledge writes that are on the disk")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if options.profile:
        import cProfile
        import pstats

        profile = cProfile.Profile()
        found = profile.runcall(process.run, measure(options))
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
    else:
        found = process.run(measure(options))
    for name, value in found.items():
        print(f"{name:44} {value:12.2f}")


if __name__ == "__main__":
    main()
