"""The embedded server at its socket: creates and gets a second, watches at rest, and what events cost.

The server runs in this process and the clients in another, over TLS on loopback, as they would on a machine of
two cores. Everything is bounded: a run takes about half a minute.

::

    python -m benchmarks.edge --clients 16 --requests 6000 --watches 1000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import ssl
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp

from steersman.client.connection import Connection
from steersman.client.kubeconfig import load
from steersman.runtime.clock import LiveClock
from steersman.server.auth.authority import write_private
from steersman.server.boot import Boot, equip
from steersman.server.core import Server

PODS = "/api/v1/namespaces/default/pods"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "load-", "labels": {"app": "load"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.test/app:1",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "ports": [{"containerPort": 8080}],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }
        ]
    },
}


def cpu() -> float:
    """Seconds of processor time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# -- the clients' process ---------------------------------------------------------------------


def clients(config: str, clients: int, requests: int, watches: int, pipe: Any) -> None:
    """Run the load, phase by phase, as the other side says."""
    asyncio.run(_clients(config, clients, requests, watches, pipe))


def _context(connection: Connection) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=connection.tls.ca.data.decode())
    with tempfile.TemporaryDirectory() as where:
        cert, key = Path(where, "cert"), Path(where, "key")
        cert.write_bytes(connection.tls.cert.data)
        key.write_bytes(connection.tls.key.data)
        context.load_cert_chain(cert, key)
    return context


async def _clients(config: str, clients: int, requests: int, watches: int, pipe: Any) -> None:
    connection = load(config)
    loop = asyncio.get_running_loop()

    async def told() -> Any:
        return await loop.run_in_executor(None, pipe.recv)

    connector = aiohttp.TCPConnector(ssl=_context(connection), limit=0)
    base = connection.server
    async with aiohttp.ClientSession(base, connector=connector) as session:
        names: list[str] = []

        async def create(count: int) -> None:
            body = json.dumps(POD).encode()
            for _ in range(count):
                async with session.post(
                    PODS, data=body, headers={"Content-Type": "application/json"}
                ) as answer:
                    assert answer.status == 201, await answer.text()
                    names.append((await answer.json())["metadata"]["name"])

        async def get(count: int) -> None:
            for i in range(count):
                async with session.get(f"{PODS}/{names[i % len(names)]}") as answer:
                    assert answer.status == 200
                    await answer.read()

        async def follow(count: list[int], ready: asyncio.Semaphore) -> None:
            async with session.get(f"{PODS}?watch=1&timeoutSeconds=600&resourceVersion={version}") as answer:
                ready.release()
                async for _ in answer.content:
                    count[0] += 1

        version = "0"
        while True:
            phase = await told()
            began = time.perf_counter()
            match phase:
                case "warm":
                    await create(100)
                    await get(100)
                    pipe.send(0.0)
                case "create" | "get":
                    work = create if phase == "create" else get
                    await asyncio.gather(*(work(requests // clients) for _ in range(clients)))
                    pipe.send(requests // clients * clients / (time.perf_counter() - began))
                case "watch":
                    async with session.get(f"{PODS}?limit=1") as answer:
                        version = (await answer.json())["metadata"]["resourceVersion"]
                    seen, ready = [0], asyncio.Semaphore(0)
                    tasks = [asyncio.create_task(follow(seen, ready)) for _ in range(watches)]
                    for _ in tasks:
                        await ready.acquire()
                    pipe.send(time.perf_counter() - began)
                case "events":
                    before = seen[0]
                    await create(20)
                    while seen[0] < before + 20 * watches:
                        await asyncio.sleep(0.01)
                    pipe.send(20 * watches / (time.perf_counter() - began))
                case _:
                    return


# -- the server's process ---------------------------------------------------------------------


async def measure(options: argparse.Namespace) -> dict[str, float]:
    """All phases; requests a second, and microseconds of the server's processor time for each."""
    clock = LiveClock()
    server = Server(clock)
    boot = Boot.fresh(clock.now)
    authorizer = equip(server)
    server_account(server)
    edge = await boot.serve(server, authorizer)
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as where:
        config = Path(where, "kubeconfig")
        write_private(config, boot.kubeconfig(edge.url))
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=clients,
            args=(str(config), options.clients, options.requests, options.watches, theirs),
            daemon=True,
        )
        process.start()
        loop = asyncio.get_running_loop()

        async def phase(name: str) -> float:
            ours.send(name)
            return float(await loop.run_in_executor(None, ours.recv))

        try:
            await phase("warm")
            for name in ("create", "get"):
                before = cpu()
                found[f"{name}s/s"] = await phase(name)
                found[f"{name} us"] = (cpu() - before) / options.requests * 1e6
            found["watches begun in s"] = await phase("watch")
            before = cpu()
            await asyncio.sleep(5)
            found["idle watches' share of a core"] = (cpu() - before) / 5
            before = cpu()
            found["events/s"] = await phase("events")
            found["event us"] = (cpu() - before) / (20 * options.watches) * 1e6
            found["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        finally:
            ours.send("end")
            await loop.run_in_executor(None, process.join, 10)
            process.kill()
            await edge.close()
    return found


def server_account(server: Server) -> None:
    """Pods need the account that a controller would have made."""
    from steersman.api.generated.core_v1 import ServiceAccount
    from steersman.api.generated.meta_v1 import ObjectMeta
    from steersman.server import verbs

    accounts = server.registry.find("", "v1", "serviceaccounts")
    verbs.create(server, accounts, "default", ServiceAccount(metadata=ObjectMeta(name="default")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--watches", type=int, default=1000)
    parser.add_argument("--uvloop", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if options.uvloop:
        import uvloop

        run: Any = uvloop.run
    else:
        run = asyncio.run
    if options.profile:
        import cProfile
        import pstats

        profile = cProfile.Profile()
        found = profile.runcall(run, measure(options))
        pstats.Stats(profile).sort_stats("tottime").print_stats(35)
    else:
        found = run(measure(options))
    for name, value in found.items():
        print(f"{name:32} {value:12.2f}")


if __name__ == "__main__":
    main()
