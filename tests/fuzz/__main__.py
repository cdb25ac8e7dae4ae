"""``./dev fuzz``: fuzzes the named targets one after the other, or all of them."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from tests.fuzz.engine import INTERRUPTED
from tests.fuzz.target import names


def main() -> int:
    """Run each target in a process of its own. The exit code is 1 if there was a finding."""
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"targets: {', '.join(names())}")
    parser.add_argument("--minutes", type=float, default=1.0, help="minutes for each target (default: 1)")
    parser.add_argument("--seed", type=int, help="seed of the random generator (default: a new one)")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(names())):
        parser.error(f"no target {', '.join(unknown)}; there are: {', '.join(names())}")
    seed = int.from_bytes(os.urandom(4)) if options.seed is None else options.seed
    found = []
    for name in options.names or names():
        print(f"{name}: {options.minutes:g} minutes, seed {seed}", flush=True)
        command = [sys.executable, "-m", "tests.fuzz.engine", name, str(options.minutes * 60), str(seed)]
        with subprocess.Popen(command) as process:
            try:
                code = process.wait()
            except KeyboardInterrupt:
                # The process got the signal, too, and reports how far it came.
                process.wait()
                return INTERRUPTED
        if code == INTERRUPTED:
            return INTERRUPTED
        if code:
            found.append(name)
    print(f"findings in: {', '.join(found)}" if found else "no findings", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
