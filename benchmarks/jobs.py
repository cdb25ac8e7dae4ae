"""How fast and at what cost a manager runs Jobs, beside the reference in the same run.

    python benchmarks/jobs.py --jobs 200 --pods 25

Each pod is bound to a node by its template and succeeds as soon as the hollow kubelet sees it, so that what is
measured is the Job controller: making pods, counting them, taking their finalizers off, saying what came of it.
Both managers on a fresh API server each; see benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Any

if not __package__:
    # Run as a file: the package it belongs to is beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)


from benchmarks.kubelet import HollowKubelet, succeeded
from benchmarks.measure import Cost, Meter
from benchmarks.phases import watchdog
from benchmarks.rounds import Phases, arguments, compare, flags
from benchmarks.workload import each, pod_spec
from steersman.api.clock import RealClock
from steersman.api.conditions import is_condition_true
from steersman.api.kinds import JOBS, NAMESPACES, SERVICEACCOUNTS, Job
from steersman.client.http import HttpApi
from tests.harness.assets import Binary
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside, follow, until

CONTROLLERS = "job-controller,serviceaccount-controller"
NAMESPACE = "jobs"


def job(name: str, pods: int, parallelism: int, mode: str) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": pods,
            "parallelism": parallelism,
            "completionMode": mode,
            "template": {"spec": {**pod_spec(f"node-{name}"), "restartPolicy": "Never"}},
        },
    }


def complete(found: Job) -> bool:
    """Whether a Job has ended well and says all that it will."""
    return is_condition_true(found.status.conditions, "Complete")


async def run(api: HttpApi, plane: RealPlane, name: Binary, options: argparse.Namespace) -> list[Cost]:
    """One manager's run."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    await api.create(NAMESPACES, "", body)
    manager = plane.manager(*flags(options, CONTROLLERS), binary=name)
    phases = Phases(Meter(manager, plane), options.timeout)
    kubelet = HollowKubelet(api, RealClock(), NAMESPACE, become=succeeded)

    async def start() -> None:
        await until(api, SERVICEACCOUNTS, NAMESPACE, "default", lambda account: True)

    async def finish(mode: str, parallelism: int) -> None:
        names = [f"{mode.lower()}-{number}" for number in range(options.jobs)]
        left = dict.fromkeys(names)

        async def make(one: str) -> None:
            await api.create(JOBS, NAMESPACE, job(one, options.pods, parallelism, mode))

        async with asyncio.TaskGroup() as tasks, contextlib.aclosing(follow(api, JOBS, NAMESPACE)) as changes:
            tasks.create_task(each(names, make))
            async for _, found in changes:
                if complete(found):
                    left.pop(found.metadata.name, None)
                if not left:
                    return

    try:
        async with beside(watchdog(manager), kubelet.run()):
            count = options.jobs * options.pods
            await phases.run("start", 0, start)
            await phases.run("NonIndexed", count, lambda: finish("NonIndexed", options.pods))
            await phases.run("Indexed", count, lambda: finish("Indexed", max(1, options.pods // 5)))
    finally:
        manager.stop()
    return phases.costs


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--pods", type=int, default=25, help="completions of each Job")
    options = parser.parse_args()
    what = f"{options.jobs} Jobs x {options.pods} pods"
    compare(options, what, lambda api, plane, name: run(api, plane, name, options))


if __name__ == "__main__":
    main()
