"""What a run of pytest with clusters costs, from the start of its process to its end: wall time and CPU time of one test and of
twenty, with and without bytecode of our modules.

    python benchmarks/pytest_start.py

Each row is the least of `TRIES` runs. No other plugin is loaded. Pytest and the standard library are compiled already; "cold" is a
run that finds no bytecode of this package and of the libraries that it uses.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

TRIES = 5
WEB = '''
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:v1"}]}
"""


def roll_out(cluster):
    cluster.apply(WEB)
    cluster.wait_until(lambda: cluster.get("Deployment", "web").status.readyReplicas == 3)
'''
CASES = {
    "a test without a cluster": "def test_it():\n    pass\n",
    "one test": WEB + "\n\ndef test_it(cluster):\n    roll_out(cluster)\n",
    "twenty tests": WEB + "".join(f"\n\ndef test_{n}(cluster):\n    roll_out(cluster)\n" for n in range(20)),
}
# An installed package with a plugin is marked like this by pytest itself; an editable one is not.
CONFTEST = 'import pytest\n\npytest.register_assert_rewrite("steersman")\n'


class Spent(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float


def run(folder: Path, file: str, bytecode: Path) -> Spent:
    """One run of pytest on a file."""
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPYCACHEPREFIX": str(bytecode),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "steersman.testing.plugin"]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [*command, "-p", "no:cacheprovider", file],
        cwd=folder,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def least(runs: list[Spent]) -> Spent:
    return Spent(min(each.wall for each in runs), min(each.cpu for each in runs))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.joinpath("conftest.py").write_text(CONFTEST)
        files = {}
        for number, (what, text) in enumerate(CASES.items()):
            files[what] = f"test_{number}.py"
            folder.joinpath(files[what]).write_text(text)
        pristine, warm = folder / "pristine", folder / "warm"
        plain = next(iter(files.values()))
        run(folder, plain, pristine)  # compiles pytest, the plugin and the standard library
        shutil.copytree(pristine, warm)
        print(f"{'':<26} {'':<5} {'wall s':>8} {'CPU s':>8}")
        for what, file in files.items():
            run(folder, file, warm)
            spent = least([run(folder, file, warm) for _ in range(TRIES)])
            print(f"{what:<26} warm  {spent.wall:8.2f} {spent.cpu:8.2f}", flush=True)
            if file == plain:
                continue
            runs = []
            for _ in range(TRIES):
                cold = shutil.copytree(pristine, folder / "cold")
                runs.append(run(folder, file, cold))
                shutil.rmtree(cold)
            spent = least(runs)
            print(f"{what:<26} cold  {spent.wall:8.2f} {spent.cpu:8.2f}", flush=True)


if __name__ == "__main__":
    main()
