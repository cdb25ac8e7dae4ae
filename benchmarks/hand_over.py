"""Whether two managers agree about a cluster at rest: kube-controller-manager, this manager and kube-controller-manager run it in turn.

    python -m benchmarks.hand_over --minutes 10

The cluster has a bit of everything (tests/harness/hand_over.yaml). A write besides leases and events, or an object that changes, is
printed, and the exit code is 1. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.harness.hand_over import cluster


async def _run(minutes: float) -> int:
    async with cluster(lambda text: print(text, flush=True)) as handed:
        differences = 0
        for binary in ("kube-controller-manager", "steersman", "kube-controller-manager"):
            shift = await handed.shift(binary, minutes * 60)
            differences += len(shift.writes) + len(shift.changed)
            print(
                f"{binary}: {shift.seconds / 60:g} minutes, {shift.objects} objects, {len(shift.writes)} writes, "
                f"{len(shift.changed)} objects changed",
                flush=True,
            )
            for line in (*shift.writes[:20], *shift.changed[:20]):
                print(f"    {line}", flush=True)
        return 1 if differences else 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="how long each manager runs the cluster")
    sys.exit(asyncio.run(_run(parser.parse_args().minutes)))


if __name__ == "__main__":
    main()
