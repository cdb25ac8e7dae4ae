"""What an installation takes and costs: the wheel into an empty virtual environment, then its first commands.

::

    python -m benchmarks.install --rounds 9

Installing downloads the dependencies, so its seconds are those of the network, too. Times of commands are medians of whole processes,
interpreter included, which is measured alone first. ``up`` is measured until its kubeconfig is there, with bytecode (as pip and
``./dev`` leave it) and without (where Python may write none). Where seconds are many more than seconds of CPU, the machine was busy.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.harness.child_process import Child

ROOT = Path(__file__).resolve().parent.parent
_PAUSE = 0.002
_PATIENCE = 60.0


class Took(NamedTuple):
    """How long a process took."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall * 1000:5.0f} ms, CPU {self.cpu * 1000:5.0f} ms"


def median(each: Sequence[Took]) -> Took:
    return Took(statistics.median(one.wall for one in each), statistics.median(one.cpu for one in each))


def command(argv: Sequence[str | Path]) -> Took:
    """How long a command took to its end."""
    before, began = os.times(), time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, cwd="/")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Took(time.perf_counter() - began, cpu)


def up(program: Path, env: dict[str, str]) -> Took:
    """How long ``steersman up`` took to write its kubeconfig, which it does when it is ready."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config")
        began = time.perf_counter()
        child = Child([str(program), "up", "--port=0", f"--kubeconfig={config}"], Path(folder, "log"), env)
        try:
            while not config.exists() and time.perf_counter() < began + _PATIENCE:
                time.sleep(_PAUSE)
            return Took(time.perf_counter() - began, child.cpu_seconds())
        finally:
            child.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)  # not the sources of this repository, but what is installed
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(build, cwd=ROOT, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        [wheel] = Path(folder).glob("*.whl")
        venv = Path(folder, "venv")
        python, program = venv / "bin" / "python", venv / "bin" / "steersman"
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        made = time.perf_counter() - began
        pip: list[str | Path] = [python, "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", wheel], check=True)
        installed = time.perf_counter() - began - made
        listed = subprocess.run([*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True)
        names = {line.partition("=")[0] for line in listed.stdout.splitlines()} - {"pip", "setuptools"}
        print(f"wheel {wheel.stat().st_size / 1e6:.2f} MB, {len(names)} packages with it")
        print(f"virtual environment {made:.1f} s, pip install {installed:.1f} s")
        commands: list[list[str | Path]] = [
            [python, "-c", "pass"],
            [python, "-c", "import steersman"],
            [python, "-c", "import steersman.testing"],
            [program, "--help"],
            [program, "version"],
        ]
        for argv in commands:
            command(argv)  # the first one is not counted
            took = median([command(argv) for _ in range(options.rounds)])
            shown = " ".join([Path(argv[0]).name, *map(str, argv[1:])])
            print(f"{shown:<36} {took}")
        unwritable = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/nonexistent"}
        for name, env in {"with": {}, "without": unwritable}.items():
            took = median([up(program, env) for _ in range(options.rounds)])
            print(f"{f'steersman up, {name} bytecode':<36} {took}")
        print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
