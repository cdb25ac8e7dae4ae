"""What should take moments: a rollout that misses its deadline ten minutes later, and a fork.

python benchmarks/moments.py --rounds 20
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if not __package__:
    # Run as a file: the package it belongs to is beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.world import build, converge, deployment
from steersman.api.kinds import DEPLOYMENTS
from steersman.sim.world import World


def measured(rounds: int, work: Callable[[], object]) -> str:
    times = []
    for _ in range(rounds):
        began, cpu = time.perf_counter(), time.process_time()
        work()
        times.append(((time.process_time() - cpu) * 1e3, (time.perf_counter() - began) * 1e3))
    used, took = (statistics.median(each) for each in zip(*times, strict=True))
    return f"{used:7.2f} ms of CPU, {took:.2f} by the wall, {min(times)[1]:.2f} at best"


def rollout() -> None:
    """A world with 3 nodes and all controllers, a Deployment whose image never comes, ten minutes."""
    with World(seed=1) as world:
        build(world, 3, "all")
        miss(world)


def miss(world: World) -> None:
    body = deployment("stuck", 3)
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "bad:1"
    body["spec"]["progressDeadlineSeconds"] = 600
    world.run(world.api().create(DEPLOYMENTS, "default", body))
    world.run(world.settle(700))
    status: Any = world.run(world.api().get(DEPLOYMENTS, "default", "stuck")).status
    reasons = {each.type: each.reason for each in status.conditions}
    if reasons["Progressing"] != "ProgressDeadlineExceeded" or world.monotonic() < 600:
        raise SystemExit(f"the rollout did not fail: {reasons}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--deployments", type=int, default=100, help="of 10 replicas, in what is forked")
    options = parser.parse_args()
    rollout()  # what is loaded once is not measured
    print("a rollout misses its deadline, world included:", measured(options.rounds, rollout))
    with World(seed=1) as world:
        build(world, 3, "all")
        converge(world, options.deployments, 10)
        size = sum(len(table) for table in world.server.store.tables())
        print(f"fork of a world of {size} objects:          ", measured(options.rounds, world.fork))

        def failed() -> None:
            with world.fork() as fork:
                build(fork, 3, "all")
                miss(fork)

        print("a rollout misses its deadline in a fork of it:", measured(options.rounds, failed))


if __name__ == "__main__":
    main()
