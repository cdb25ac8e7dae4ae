"""How fast and at what cost a manager converges, beside the reference in the same run.

    python benchmarks/converge.py --deployments 50 --replicas 20

See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

if not __package__:
    # Run as a file: the package it belongs to is beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import report
from benchmarks.cache import CacheCost, CacheRun
from benchmarks.measure import Cost
from benchmarks.phases import Run
from benchmarks.rounds import say, turns
from steersman.client.http import HttpApi
from steersman.client.kubeconfig import load
from steersman.manager.tracing import SWITCH
from tests.harness.assets import Binary, MissingAssets, assets, manager_command
from tests.harness.child_process import Child
from tests.harness.envtest import MANAGER, RealPlane

CONTROLLERS = (
    "replicaset-controller",
    "deployment-controller",
    "replicationcontroller-controller",
    "ttl-after-finished-controller",
    "serviceaccount-controller",
)
GARBAGE_COLLECTOR = "garbage-collector-controller"


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--deployments", type=int, default=50)
    parser.add_argument("--replicas", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=1, help="runs of each manager; who is first alternates")
    parser.add_argument("--manager", action="append", choices=[report.OURS, report.REFERENCE])
    parser.add_argument(
        "--trace",
        choices=["on", "off", "both"],
        default="on",
        help="whether steersman records rounds; both: one run with and one without in each round",
    )
    parser.add_argument("--part", action="append", choices=["converge", "cache"])
    parser.add_argument("--pods", type=int, default=5000, help="pods of the cache part")
    parser.add_argument("--controllers", default=",".join(CONTROLLERS))
    parser.add_argument("--qps", type=int, default=2000)
    parser.add_argument("--burst", type=int, default=3000)
    parser.add_argument("--timeout", type=float, default=300, help="seconds a phase may take")
    parser.add_argument("--flag", action="append", default=[], help="a further flag for both managers")
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        help="an API server where no manager runs, instead of a fresh one each; requests are then not counted",
    )
    parser.add_argument("--profile", type=Path, help="write a py-spy flame graph of steersman here")
    parser.add_argument("--logs", type=Path, help="keep the managers' logs in this directory")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    return parser.parse_args()


def managers(options: argparse.Namespace) -> list[Binary]:
    """Those that can be run here, of those asked for."""
    asked: list[Binary] = options.manager or [report.OURS, report.REFERENCE]
    found: list[Binary] = []
    for name in asked:
        if name == report.OURS:
            there = importlib.util.find_spec("steersman.manager.cli") is not None
        else:
            there = os.access(assets() / name, os.X_OK)
        if there:
            found.append(name)
        else:
            say(f"{name} is left out: it is not there")
    return found


def flags(options: argparse.Namespace) -> list[str]:
    """What both managers are started with: defaults, but for a throttle that would be measured."""
    return [
        f"--controllers={options.controllers}",
        f"--kube-api-qps={options.qps}",
        f"--kube-api-burst={options.burst}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        *options.flag,
    ]


def _labels(name: Binary, trace: str) -> list[str]:
    """The names under which a manager is measured: ours with its trace, without it, or both."""
    if name != report.OURS:
        return [name]
    return [
        label for label, state in ((report.OURS, "on"), (report.UNTRACED, "off")) if trace in (state, "both")
    ]


class Bench:
    """All runs, and what came of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.converge: dict[str, list[list[Cost]]] = {}
        self.cache: dict[str, list[CacheCost]] = {}

    async def run(self) -> None:
        options = self._options
        names = managers(options)
        if not names:
            raise SystemExit("no manager to measure")
        parts = options.part or (["converge"] if options.kubeconfig else ["converge", "cache"])
        labels = {label: name for name in names for label in _labels(name, options.trace)}
        for number, label in turns(list(labels), options.rounds):
            name, env = labels[label], {SWITCH: "off"} if label == report.UNTRACED else {}
            if "converge" in parts:
                say(f"round {number + 1}: {label}, {options.deployments} x {options.replicas}")
                self.converge.setdefault(label, []).append(await self._converge(name, number, env))
            if "cache" in parts:
                say(f"round {number + 1}: {label}, {options.pods} cached pods")
                self.cache.setdefault(label, []).append(await self._cache(name, env))
        # Ours first, whoever ran first.
        self.converge = {label: self.converge[label] for label in labels if label in self.converge}
        self.cache = {label: self.cache[label] for label in labels if label in self.cache}

    async def _converge(self, name: Binary, number: int, env: dict[str, str]) -> list[Cost]:
        options = self._options
        with contextlib.ExitStack() as stack:
            plane = None if options.kubeconfig else stack.enter_context(RealPlane.start())
            room = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            children: list[Child] = []

            def start() -> Child:
                kubeconfig = options.kubeconfig or cast("RealPlane", plane).kubeconfig(MANAGER)
                children.append(Child(manager_command(name, kubeconfig, flags(options)), room / "log", env))
                if options.profile and name == report.OURS:
                    children.append(profile(children[0], options.profile, room / "py-spy.log"))
                return children[0]

            async with plane.connect() if plane else connect(options.kubeconfig) as api:
                run = Run(
                    api,
                    plane,
                    start,
                    namespace=f"bench-{name}-{number}",
                    deployments=options.deployments,
                    replicas=options.replicas,
                    collects=any(word in options.controllers for word in (GARBAGE_COLLECTOR, "*")),
                    timeout=options.timeout,
                    say=say,
                )
                try:
                    return await run.run()
                finally:
                    if options.logs and children:
                        options.logs.mkdir(parents=True, exist_ok=True)
                        (options.logs / f"{name}-{number}.log").write_text(children[0].log())
                    for manager in children[:1]:
                        manager.stop()
                    # A profiler writes its file once its subject has ended.
                    for profiler in children[1:]:
                        profiler.wait(60)

    async def _cache(self, name: Binary, env: dict[str, str]) -> CacheCost:
        with RealPlane.start() as plane:
            async with plane.connect() as api:

                def start(port: int) -> Child:
                    serving = [
                        f"--secure-port={port}",
                        "--bind-address=127.0.0.1",
                        "--permit-port-sharing=true",
                        f"--authentication-kubeconfig={plane.kubeconfig(MANAGER)}",
                        f"--authorization-kubeconfig={plane.kubeconfig(MANAGER)}",
                    ]
                    argv = (*flags(self._options), *(serving if port else ()))
                    return plane.manager(*argv, binary=name, env=env)

                run = CacheRun(api, plane, start, name == report.REFERENCE, self._options.pods, say)
                return await run.run()


def connect(kubeconfig: Path) -> HttpApi:
    """An administrator's client, not throttled: it must never be what a benchmark waits for."""
    return HttpApi(load(str(kubeconfig)), qps=0, user_agent="steersman-benchmark")


def profile(manager: Child, to: Path, log: Path) -> Child:
    """Sample a manager until it ends."""
    program = shutil.which("py-spy", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if program is None:
        raise SystemExit("--profile needs py-spy")
    return Child([program, "record", "--pid", str(manager.pid), "--output", str(to), "--rate", "200"], log)


def save(bench: Bench, options: argparse.Namespace) -> None:
    figures: dict[str, Any] = {
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
        },
        "options": {name: str(value) for name, value in sorted(vars(options).items())},
        "converge": {
            name: [[asdict(cost) for cost in run] for run in rounds]
            for name, rounds in bench.converge.items()
        },
        "cache": {name: [asdict(cost) for cost in rounds] for name, rounds in bench.cache.items()},
    }
    options.json.write_text(json.dumps(figures, indent=1) + "\n")


def leaves(failed: BaseException) -> Iterator[BaseException]:
    """What went wrong, without the task groups around it."""
    if isinstance(failed, BaseExceptionGroup):
        for inner in failed.exceptions:
            yield from leaves(inner)
    else:
        yield failed


def main() -> None:
    options = read_arguments()
    bench = Bench(options)
    try:
        import uvloop

        uvloop.run(bench.run())
    except* KeyboardInterrupt:
        raise SystemExit(130) from None
    except* (MissingAssets, RuntimeError) as failed:
        raise SystemExit("\n".join(map(str, leaves(failed)))) from None
    tables = []
    if bench.converge:
        tables += [report.converge(bench.converge), report.requests(bench.converge)]
    if bench.cache:
        tables.append(report.cache(bench.cache))
    print("\n\n".join(report.render(table, options.markdown) for table in tables))
    if options.json:
        save(bench, options)


if __name__ == "__main__":
    main()
