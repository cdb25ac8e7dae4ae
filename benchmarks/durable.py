"""What a data directory costs, and whether it keeps its word.

::

    python -m benchmarks.durable               # writes a second, load, fork, snapshot
    python -m benchmarks.durable --kills 200   # kill a writer that often, and check after each

The event loop and the writer's thread share the machine with everything else on it: read times as upper bounds.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import msgspec

from steersman.api.generated import load
from steersman.server.storage.durable.data_dir import open_data_dir
from steersman.server.storage.durable.documents import encode
from steersman.server.storage.durable.snapshot import restore, save
from steersman.server.storage.store import Store
from steersman.server.storage.watch import with_version
from tests.harness.data_dir_crash import Story, check, kill

POD = load("", "v1", "Pod").type


def pod(number: int) -> object:
    """A pod as they are in a cluster: some 3 KB of JSON."""
    env = [{"name": f"VARIABLE_{n}", "value": f"value of {n}"} for n in range(10)]
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10, "failureThreshold": 3}
    container = {
        "name": "main",
        "image": "example/app:1.2.3",
        "env": env,
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    at = "2026-01-01T00:00:00Z"
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": at}
        for type_ in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    document = {
        "metadata": {
            "name": f"app-7d4b9c6f5-{number:05}",
            "namespace": "default",
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "creationTimestamp": at,
            "labels": {"app": "app", "pod-template-hash": "7d4b9c6f5", "tier": "web"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "app-7d4b9c6f5",
                    "uid": "u",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "containers": [container, {**container, "name": "sidecar"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "nodeName": f"node-{number % 100}",
            "serviceAccountName": "default",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
            ],
        },
        "status": {"phase": "Running", "podIP": "10.0.0.1", "startTime": at, "conditions": conditions},
    }
    return msgspec.convert(document, POD)


def put(store: Store, number: int, obj: object) -> int:
    store.table("pods").put(f"default/app-7d4b9c6f5-{number:05}", with_version(obj, store.next_version))
    return store.revision


async def fill(path: Path, count: int, writers: int) -> None:
    """Write pods from several clients, each of which waits for its write before it goes on."""
    pods = [pod(n) for n in range(count)]
    waits: list[float] = []
    with open_data_dir(path) as data_dir:

        async def client(first: int) -> None:
            for n in range(first, count, writers):
                began = time.perf_counter()
                await data_dir.log.durable(put(data_dir.store, n, pods[n]))
                waits.append(time.perf_counter() - began)

        began = time.perf_counter()
        await asyncio.gather(*(client(first) for first in range(writers)))
        took = time.perf_counter() - began
        waits.sort()
        print(
            f"{writers:4} clients: {count / took:7.0f} durable writes/s in {data_dir.log.groups} groups, "
            f"waiting {1e3 * waits[count // 2]:.2f} ms (p99 {1e3 * waits[count * 99 // 100]:.2f} ms)"
        )


def costs(directory: Path, count: int) -> None:
    """Print what everything costs with a number of pods."""
    one = pod(1)
    raw = encode(Store(), "pods", one)
    print(f"a pod is {len(raw)} bytes of JSON, {len(msgspec.msgpack.encode(one))} of MessagePack")
    for what, work in (
        ("JSON", lambda: msgspec.json.Decoder(POD).decode(raw)),
        (
            "MessagePack",
            lambda packed=msgspec.msgpack.encode(one): msgspec.msgpack.Decoder(POD).decode(packed),
        ),
    ):
        print(f"  decoding {what}: {1e6 * best(work, 300):.1f} µs")
    print(f"  encoding JSON: {1e6 * best(lambda: encode(Store(), 'pods', one), 300):.1f} µs")
    for writers in (1, 32, 256):
        asyncio.run(fill(directory / f"data-{writers}", count if writers > 1 else count // 10, writers))
    path = directory / "data-256"
    began = time.perf_counter()
    with open_data_dir(path) as data_dir:
        print(f"opening {count} pods: {time.perf_counter() - began:.3f} s")
        print(f"forking them: {1e3 * best(data_dir.store.fork, 20):.2f} ms")
        bare = data_dir.store.fork()
        print(f"a write in memory alone: {1e6 * best(lambda: put(bare, 1, one), 2000):.1f} µs")
        print(f"  followed by the log:   {1e6 * best(lambda: put(data_dir.store, 1, one), 2000):.1f} µs")
    began = time.perf_counter()
    save(path, directory / "snapshot")
    print(
        f"saving a snapshot: {time.perf_counter() - began:.3f} s, {(directory / 'snapshot').stat().st_size >> 20} MiB"
    )
    began = time.perf_counter()
    restore(directory / "snapshot", directory / "restored")
    print(f"restoring it: {time.perf_counter() - began:.3f} s")


def best(work: object, times: int) -> float:
    """The median time of one call, in seconds."""
    assert callable(work)
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return sorted(taken)[times // 2]


def ordeal(directory: Path, kills: int, seed: int) -> None:
    """Kill writers of one directory, and check after each."""
    story, acknowledged, lost = Story(), 0, 0
    for number in range(kills):
        acknowledged += kill(directory / "data", seed + number, story)
        lost += check(directory / "data", story)
    print(
        f"{kills} kills: {acknowledged} acknowledged writes, none missing, none half-written; "
        f"{lost} that nobody was told of were lost; revision {story.highest}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=0, help="kill a writer so often, and measure nothing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--directory", type=Path, help="where to make data directories: the disk to measure")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as name:
        if given.kills:
            ordeal(Path(name), given.kills, given.seed)
        else:
            costs(Path(name), given.pods)


if __name__ == "__main__":
    main()
