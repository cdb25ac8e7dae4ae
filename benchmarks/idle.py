"""A plane with nothing to do: how long do days take in which nothing happens?

python benchmarks/idle.py --days 30 --nodes 3 --deployments 100
python benchmarks/idle.py --days 3 --profile 25
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import time
from pathlib import Path

if not __package__:
    # Run as a file: the package it belongs to is beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.world import build, check, converge
from steersman.sim.world import World


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--deployments", type=int, default=100)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--profile", type=int, default=0, metavar="LINES", help="show the busiest functions")
    options = parser.parse_args()
    with World(seed=1) as world:
        build(world, options.nodes, "all")
        converge(world, options.deployments, options.replicas)
        before = world.server.store.revision
        profile = cProfile.Profile() if options.profile else None
        began, cpu = time.perf_counter(), time.process_time()
        if profile is not None:
            profile.enable()
        world.run(world.advance(86_400 * options.days))
        if profile is not None:
            profile.disable()
        took, used = time.perf_counter() - began, time.process_time() - cpu
        check(world, options.deployments, options.replicas)
        writes = world.server.store.revision - before
        print(f"{options.days:g} idle days with {options.nodes} nodes and {options.deployments} Deployments:")
        print(f"{took:.2f} s, CPU {used:.2f} s, {writes} writes")
        if profile is not None:
            statistics = pstats.Stats(profile)
            statistics.sort_stats("tottime").print_stats(options.profile)
            statistics.sort_stats("cumtime").print_stats("steersman", options.profile)


if __name__ == "__main__":
    main()
