"""Kill ``steersman up --data-dir`` at random moments under load, and check after each what it kept.

::

    python -m benchmarks.kills --kills 200 --seed 1
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from tests.harness.crash_loop import Ordeal


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--writes", type=int, default=400, help="how many come between two kills, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, help="where to make the data directory: the disk to try")
    given = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=given.directory) as where:
        ordeal = Ordeal(Path(where), given.seed, clients=given.clients)
        tally = asyncio.run(ordeal.go(given.kills, most=given.writes))
    verbs = ", ".join(f"{count} {verb}" for verb, count in sorted(tally.verbs.items()))
    print(
        f"seed {given.seed}: {tally.kills} kills in {time.perf_counter() - began:.0f} s; "
        f"{tally.acknowledged} acknowledged writes ({verbs}), none lost, none half-written, no version given out twice; "
        f"of those nobody was told of {tally.whole} were there and {tally.absent} were not"
    )


if __name__ == "__main__":
    main()
