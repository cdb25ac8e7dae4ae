"""A shadow beside kube-controller-manager on a real API server, under a load, for some minutes.

    python -m tests.harness.shadow_run --minutes 10 --load converge
    python -m tests.harness.shadow_run --minutes 10 --load jobs
    python -m tests.harness.shadow_run --minutes 10 --load stories

Prints the report of the shadow, and what the audit log has of it. The exit code is that of the shadow, or 3 where it has written.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import itertools
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.jobs import job
from benchmarks.kubelet import HollowKubelet, succeeded
from benchmarks.workload import deployment, each
from steersman.api.clock import RealClock
from steersman.api.kinds import DEPLOYMENTS, JOBS, NAMESPACES
from steersman.client.http import HttpApi
from steersman.sim.kubelet import Kubelets
from tests.harness.audit import AuditEntry
from tests.harness.child_process import Child, until
from tests.harness.envtest import Binary, RealPlane
from tests.harness.follow import beside

ROLE = Path(__file__).parents[2] / "deploy" / "rbac-read-only.yaml"
REAL = Path(__file__).parents[1] / "real"
USER = "shadow"
READS = ("get", "list", "watch")
REFERENCE: Binary = "kube-controller-manager"
FLAGS = (
    "--leader-elect=false",
    "--use-service-account-credentials=true",
    "--kube-api-qps=200",
    "--kube-api-burst=300",
)
STORIES = (
    "jobs",
    "daemonsets",
    "endpointslices",
    "disruption",
    "tainteviction",
    "podgc",
    "persistentvolumes",
)
"""Modules of tests/real whose story is told to both managers there."""


class RealShadow:
    """`steersman shadow` as a process, with the rights of deploy/rbac-read-only.yaml."""

    def __init__(self, plane: RealPlane, *flags: str) -> None:
        self._plane = plane
        self.path = plane.dir / "shadow.json"
        self.path.unlink(missing_ok=True)
        plane.kubectl("apply", "-f", str(ROLE))
        binding = plane.kubectl(
            "create",
            "clusterrolebinding",
            "shadow",
            "--clusterrole=steersman-read-only",
            f"--user={USER}",
            "--dry-run=client",
            "-o=json",
        )
        plane.kubectl("apply", "-f", "-", stdin=binding)
        self._mark = plane.mark()
        command = [sys.executable, "-m", "steersman.manager.cli", "shadow"]
        own = (f"--kubeconfig={plane.kubeconfig(USER)}", "-o=json", f"--report={self.path}")
        self.child = Child([*command, *own, *flags], plane.dir / "shadow.log")
        plane.managers.append(self.child)
        until(self._compares, self.child, 60.0, "the shadow compares")

    def _compares(self) -> bool:
        return "comparing " in self.child.log()

    def found(self) -> list[str]:
        """The differences so far, a line each."""
        return [line for line in self.child.log().splitlines() if " we " in line or " they " in line]

    def end(self, timeout: float = 30.0) -> dict[str, Any]:
        """End it as Ctrl-C does; its report."""
        if self.child.code is None:
            self.child.kill(signal.SIGINT)
        self.child.wait(timeout)
        if not self.path.exists():
            raise AssertionError(f"no report:\n{self.child.log()}")
        report: dict[str, Any] = json.loads(self.path.read_text())
        return report

    def requests(self) -> list[AuditEntry]:
        """All that it has asked of the server."""
        return [entry for entry in self._plane.audit(self._mark) if entry.user == USER]

    def writes(self) -> list[AuditEntry]:
        """What of it is no read."""
        return [entry for entry in self.requests() if entry.verb not in READS]


def summary(report: dict[str, Any]) -> str:
    """The report in a few lines."""
    fields = ("rounds", "wanted", "fulfilled", "superseded", "open", "late", "checked", "unclear", "failed")
    sums = {field: sum(each[field] for each in report["controllers"]) for field in fields}
    lines = [f"{len(report['differences'])} differences in {report['seconds']:.0f} s; {sums}"]
    for one in (*report["differences"], *report["late"]):
        late = f" (late: {one['resolved']})" if one["resolved"] else ""
        lines.append(f"  {one['side']} {one['controller']} {one['object']}{late}")
        lines += [f"    we:   {one['ours']}", f"    they: {one['theirs']}", f"    since {one['since']}"]
    lines += [f"  error: {one['where']}: {one['error']}" for one in report["errors"]]
    return "\n".join(lines)


# -- loads ------------------------------------------------------------------------------------

Load = Callable[[HttpApi, float], Awaitable[None]]


CHANGES: tuple[dict[str, Any], ...] = (
    {"spec": {"replicas": 20}},
    {"spec": {"template": {"metadata": {"annotations": {"rolled": "once"}}}}},
    {"spec": {"replicas": 1}},
)
"""What is done to each Deployment, one after another."""
PAUSE = 12.0
"""Seconds between two changes of a load: the managers come to an end, or nearly."""


async def converge(api: HttpApi, deadline: float) -> None:
    """Deployments come, are scaled and rolled, and go, in a namespace of their own each time."""
    for number in itertools.count():
        if time.monotonic() > deadline:
            return
        await _converge_in(api, f"converge-{number}")


async def _converge_in(api: HttpApi, space: str, deployments: int = 20, replicas: int = 10) -> None:
    names = [f"web-{number}" for number in range(deployments)]

    async def change_all(change: dict[str, Any]) -> None:
        await each(names, lambda name: api.patch(DEPLOYMENTS.untyped, space, name, change))
        await asyncio.sleep(PAUSE)

    await _namespace(api, space)
    async with beside(HollowKubelet(api, RealClock(), space).run()):
        await each(names, lambda name: api.create(DEPLOYMENTS, space, deployment(name, replicas)))
        await asyncio.sleep(PAUSE)
        for change in CHANGES:
            await change_all(change)
        await each(names, lambda name: api.delete(DEPLOYMENTS, space, name))
        await asyncio.sleep(PAUSE)
    await api.delete(NAMESPACES, "", space)


async def jobs(api: HttpApi, deadline: float) -> None:
    """Jobs whose pods succeed at once, of both completion modes; then they are deleted."""
    for number in itertools.count():
        if time.monotonic() > deadline:
            return
        await _jobs_in(api, f"jobs-{number}")


async def _jobs_in(api: HttpApi, space: str, count: int = 20, pods: int = 10) -> None:
    async def run_all(mode: str) -> None:
        names = [f"{mode.lower()}-{number}" for number in range(count)]
        await each(names, lambda name: api.create(JOBS, space, job(name, pods, pods // 2, mode)))
        await asyncio.sleep(PAUSE)
        await each(names, lambda name: api.delete(JOBS, space, name, propagation="Background"))

    await _namespace(api, space)
    async with beside(HollowKubelet(api, RealClock(), space, become=succeeded).run()):
        for mode in ("NonIndexed", "Indexed"):
            await run_all(mode)
        await asyncio.sleep(PAUSE)
    await api.delete(NAMESPACES, "", space)


async def _namespace(api: HttpApi, name: str) -> None:
    await api.create(NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await asyncio.sleep(1)


LOADS: dict[str, Load] = {"converge": converge, "jobs": jobs}
NO_NODES = "*,-node-lifecycle-controller,-pod-garbage-collector-controller,-taint-eviction-controller"
"""The pods of these loads are bound to nodes that do not exist, so that what looks after nodes must not run."""


async def under_load(
    plane: RealPlane, load: Load, minutes: float, acting: Sequence[str] = (), ours: Sequence[str] = ()
) -> tuple[dict[str, Any], RealShadow]:
    """Run a load beside the reference manager and a shadow, with further flags of each; the report."""
    manager = plane.manager(f"--controllers={NO_NODES}", *FLAGS, *acting, binary=REFERENCE)
    async with plane.connect() as api:
        shadow = RealShadow(plane, f"--controllers={NO_NODES}", *ours)
        await load(api, time.monotonic() + minutes * 60)
        await asyncio.sleep(40)
        report = await asyncio.to_thread(shadow.end)
    manager.stop()
    return report, shadow


# -- stories ----------------------------------------------------------------------------------


class Captured(Exception):
    """Ends a fixture that would tell its story, once the story is known."""

    def __init__(self, story: Any, namespace: str, options: dict[str, Any]) -> None:
        super().__init__(namespace)
        self.story, self.namespace, self.options = story, namespace, options


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REAL / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def story_of(name: str) -> Captured:
    """The story of a module of tests/real, with the controllers, nodes and flags it is told with."""
    module = _load(f"test_{name}")

    def both(story: Any, namespace: str, **options: Any) -> Any:
        raise Captured(story, namespace, options)

    try:
        module.ends._get_wrapped_function()(both)
    except Captured as captured:
        return captured
    raise LookupError(f"tests/real/test_{name}.py tells no story")


async def tell(plane: RealPlane, captured: Captured, *ours: str) -> tuple[dict[str, Any], RealShadow]:
    """Tell a story to the reference manager with a shadow beside it; the report."""
    told, options = _load("both"), captured.options
    flags = options.get("flags", ())
    argv = [f"--controllers={','.join(options['controllers'])}", *FLAGS]
    argv += flags(plane) if callable(flags) else flags
    async with plane.connect() as api, _stage(told, plane, api, captured) as stage:
        manager = plane.manager(*argv, binary=REFERENCE)
        shadow = RealShadow(plane, *argv, *ours)
        kubelets = Kubelets(api, RealClock(), tuple(options.get("nodes", ("node-1",))), register=False)
        async with beside(kubelets.run()):
            await captured.story(stage)
            await asyncio.sleep(35)
            report = await asyncio.to_thread(shadow.end)
        manager.stop()
    return report, shadow


@asynccontextmanager
async def _stage(told: ModuleType, plane: RealPlane, api: HttpApi, captured: Captured) -> AsyncIterator[Any]:
    await _namespace(api, captured.namespace)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    plane.kubectl("apply", "-n", captured.namespace, "-f", "-", stdin=json.dumps(account))
    stage = told.Stage(plane, api, REFERENCE, captured.namespace)
    before = captured.options.get("before")
    if before is not None:
        await before(stage)
    yield stage


def stories(minutes: float, names: Sequence[str]) -> int:
    """Tell stories one after another until the time is over, each on an API server of its own."""
    deadline, worst = time.monotonic() + minutes * 60, 0
    for name in itertools.cycle(names):
        captured = story_of(name)
        with RealPlane.start(apiserver=captured.options.get("apiserver", ())) as plane:
            report, shadow = asyncio.run(tell(plane, captured))
            worst = max(worst, _told(name, report, shadow))
        if time.monotonic() > deadline:
            return worst
    return worst


def _told(name: str, report: dict[str, Any], shadow: RealShadow) -> int:
    asked = f"{len(shadow.requests())} requests, {len(shadow.writes())} writes"
    sys.stdout.write(f"{name}: exit code {shadow.child.code}; {asked}\n{summary(report)}\n")
    sys.stdout.flush()
    return 3 if shadow.writes() else shadow.child.code or 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--load", choices=[*LOADS, "stories"], default="converge")
    parser.add_argument("--story", action="append", choices=STORIES, help="tell these only")
    parser.add_argument(
        "--acting", action="append", default=[], help="a further flag of the reference manager"
    )
    parser.add_argument("--shadow", action="append", default=[], help="a further flag of the shadow")
    given = parser.parse_args()
    if given.load == "stories":
        return stories(given.minutes, given.story or STORIES)
    with RealPlane.start() as plane:
        report, shadow = asyncio.run(
            under_load(plane, LOADS[given.load], given.minutes, given.acting, given.shadow)
        )
        return _told(given.load, report, shadow)


if __name__ == "__main__":
    sys.exit(main())
