"""Deployment -> ReplicaSet -> Pod -> Ready in one process: the embedded server, the controllers, a scheduler
and kubelets on one loop, nothing serialised.

    python benchmarks/world.py --deployments 500 --replicas 20 --nodes 10
    python benchmarks/world.py --profile 25
    python benchmarks/world.py --trace both --pairs 9      what the trace costs, each run in a process of its own
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import os
import pstats
import subprocess
import sys
import time
from collections import deque
from statistics import median
from typing import Any

import msgspec

from steersman.api.kinds import DEPLOYMENTS
from steersman.api.scheme import Kind
from steersman.controllers import CONTROLLERS
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.trace import Trace
from steersman.sim.kubelet import Kubelets, KubeletSettings
from steersman.sim.kubelet.node import Shape
from steersman.sim.scheduler import Scheduler
from steersman.sim.world import World

WANTED = ("deployment-controller", "replicaset-controller", "serviceaccount-controller")


def deployment(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    main = {
        "name": "main",
        "image": "app:1",
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [main]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def build(world: World, nodes: int, controllers: str, trace: Trace | None = None) -> None:
    chosen = [each for each in CONTROLLERS if controllers == "all" or each.name in WANTED]
    capacity = {"cpu": "10000", "memory": "16Ti", "pods": "100000"}
    names = [f"node-{i}" for i in range(nodes)]
    kubelets = Kubelets(
        world.api("kubelets"), world, names, settings=KubeletSettings(), shape=Shape(capacity=capacity)
    )
    world.spawn(ControllerGroup(chosen, world.api("manager"), world, trace=trace).run(), name="manager")
    world.spawn(Scheduler(world.api("scheduler"), world).run(), name="scheduler")
    world.spawn(kubelets.run(), name="kubelets")
    world.run(world.settle())


def converge(world: World, deployments: int, replicas: int) -> None:
    api = world.api()

    async def create() -> None:
        for i in range(deployments):
            await api.create(DEPLOYMENTS, "default", deployment(f"web-{i}", replicas))

    world.run(create())
    world.run(world.settle())


def check(world: World, deployments: int, replicas: int) -> None:
    found: list[Any] = list(world.run(world.api().list(DEPLOYMENTS, "default")).items)
    ready = sum(each.status.readyReplicas for each in found)
    if ready != deployments * replicas:
        raise SystemExit(f"{ready} of {deployments * replicas} pods are ready")


def sizes(trace: Trace) -> int:
    """The bytes that a trace alone holds: every object that is reachable from its rounds, strings and kinds shared."""
    seen: dict[int, int] = {}
    stack: list[Any] = [trace.__dict__]
    while stack:
        each = stack.pop()
        if id(each) in seen or isinstance(each, type | Kind):
            continue
        seen[id(each)] = sys.getsizeof(each)
        if isinstance(each, dict):
            stack += [*each.keys(), *each.values()]
        elif isinstance(each, msgspec.Struct):
            stack += [getattr(each, field) for field in each.__struct_fields__]
        elif isinstance(each, list | tuple | deque):
            stack += each
    return sum(seen.values())


def compare(options: argparse.Namespace) -> None:
    """Print what the trace costs: the median of the ratios of pairs, whose order is turned round each time."""
    words = [
        f"--{name}={getattr(options, name)}" for name in ("deployments", "replicas", "nodes", "controllers")
    ]
    used: dict[str, list[float]] = {"on": [], "off": []}
    for number in range(options.pairs):
        for trace in ("on", "off") if number % 2 == 0 else ("off", "on"):
            # Same seed for hashes, so that all runs do the same.
            environ = {**os.environ, "PYTHONHASHSEED": "0"}
            command = [sys.executable, __file__, *words, f"--trace={trace}"]
            said = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
            used[trace].append(float(said.split("CPU ")[1].split()[0]))
        print(
            f"pair {number + 1}: {used['on'][-1]:.3f} s with the trace, {used['off'][-1]:.3f} s without",
            flush=True,
        )
    ratios = [with_ / without for with_, without in zip(used["on"], used["off"], strict=True)]
    print(
        f"medians: {median(used['on']):.3f} s with, {median(used['off']):.3f} s without; "
        f"of the pairs {(median(ratios) - 1) * 100:+.1f}%; least against least {(min(used['on']) / min(used['off']) - 1) * 100:+.1f}%"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--deployments", type=int, default=500)
    parser.add_argument("--replicas", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--controllers", choices=("two", "all"), default="two")
    parser.add_argument(
        "--trace",
        choices=("on", "off", "size", "both"),
        default="on",
        help="size: measure its memory, too; both: with and without in turns",
    )
    parser.add_argument("--pairs", type=int, default=5, help="runs with and without, with --trace both")
    parser.add_argument("--profile", type=int, default=0, metavar="LINES", help="show the busiest functions")
    options = parser.parse_args()
    if options.trace == "both":
        compare(options)
        return
    with World(seed=1) as world:
        trace = Trace(enabled=options.trace != "off")
        build(world, options.nodes, options.controllers, trace)
        before = world.server.store.revision
        gc.collect()
        gc.freeze()
        profile = cProfile.Profile() if options.profile else None
        began, cpu = time.perf_counter(), time.process_time()
        if profile is not None:
            profile.enable()
        converge(world, options.deployments, options.replicas)
        if profile is not None:
            profile.disable()
        took, used = time.perf_counter() - began, time.process_time() - cpu
        check(world, options.deployments, options.replicas)
        pods, writes = options.deployments * options.replicas, world.server.store.revision - before
        print(f"{pods} pods on {options.nodes} nodes: {took:.2f} s, {pods / took:.0f} pods/s")
        print(f"CPU {used:.3f} s, {used / pods * 1e6:.0f} us a pod, {writes / pods:.2f} writes a pod")
        if options.trace == "size":
            size, rounds = sizes(trace), trace.numbered()
            print(f"trace: {len(rounds)} rounds, {size / 1e6:.2f} MB")
        if profile is not None:
            statistics = pstats.Stats(profile)
            statistics.sort_stats("tottime").print_stats(options.profile)
            statistics.sort_stats("cumtime").print_stats("steersman", options.profile)


if __name__ == "__main__":
    main()
