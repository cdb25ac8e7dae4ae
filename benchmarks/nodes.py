"""What nodes at rest cost a manager, beside the reference in the same run.

    python benchmarks/nodes.py --nodes 1000 --minutes 3

Nodes join, get their CIDRs and lose the taint of new nodes; then nothing happens but what kubelets do anyway: each renews its lease
every 10 seconds and posts its status every 5 minutes, all of them evenly spread. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

if not __package__:
    # Run as a file: the package it belongs to is beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.hollow_nodes import HollowNodes
from benchmarks.measure import Cost, Meter
from benchmarks.phases import watchdog
from benchmarks.rounds import Phases, arguments, compare, flags
from steersman.client.http import HttpApi
from tests.harness.assets import Binary
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside

CONTROLLERS = "node-lifecycle-controller,taint-eviction-controller,node-ipam-controller,ttl-controller"


async def run(api: HttpApi, plane: RealPlane, name: Binary, options: argparse.Namespace) -> list[Cost]:
    """One manager's run."""
    manager = plane.manager(
        *flags(options, options.controllers),
        "--allocate-node-cidrs=true",
        "--cluster-cidr=10.128.0.0/10",
        "--service-cluster-ip-range=10.0.0.0/24",
        binary=name,
    )
    phases = Phases(Meter(manager, plane), options.timeout)
    nodes = HollowNodes(api, options.nodes)

    async def minute() -> None:
        await asyncio.sleep(60)

    try:
        async with beside(watchdog(manager)):
            await phases.run("join", options.nodes, nodes.join)
            async with beside(nodes.run()):
                # What is left over from joining is not measured.
                await asyncio.sleep(options.settle)
                for number in range(options.minutes):
                    await phases.run(f"minute {number + 1}", 0, minute)
    finally:
        manager.stop()
    return phases.costs


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--minutes", type=int, default=3, help="minutes at rest, each measured by itself")
    parser.add_argument("--settle", type=float, default=20, help="seconds of rest before the first of them")
    parser.add_argument("--controllers", default=CONTROLLERS)
    options = parser.parse_args()
    what = f"{options.nodes} nodes"
    compare(options, what, lambda api, plane, name: run(api, plane, name, options))


if __name__ == "__main__":
    main()
