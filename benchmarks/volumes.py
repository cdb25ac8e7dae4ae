"""How fast and at what cost a manager binds claims to volumes, beside the reference in the same run.

    python benchmarks/volumes.py --claims 1000
    python benchmarks/volumes.py --claims 1000 --kills 5

Volumes and claims are alike and created together, so that any claim may take any volume. At the end each claim must be
bound to a volume of its own, and each volume to that claim. With ``--kills`` the manager is killed that many times meanwhile and
started again. Both managers on a fresh API server each; see benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, TypeVar

if not __package__:
    # Run as a file: the package it belongs to is beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)


from benchmarks.measure import Cost, Meter
from benchmarks.phases import watchdog
from benchmarks.rounds import Phases, arguments, compare, flags, say
from benchmarks.workload import each
from steersman.api.kinds import NAMESPACES, Object
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PersistentVolume,
    PersistentVolumeClaim,
)
from steersman.api.scheme import Kind
from steersman.client.http import HttpApi
from steersman.client.pager import list_all
from tests.harness.assets import Binary
from tests.harness.child_process import Child
from tests.harness.envtest import RealPlane
from tests.harness.follow import beside, follow

O = TypeVar("O", bound=Object)

CONTROLLERS = "persistentvolume-binder-controller"
NAMESPACE = "volumes"


def volume(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
        },
    }


def claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
        },
    }


def faults(claims: Iterable[PersistentVolumeClaim], volumes: Iterable[PersistentVolume]) -> list[str]:
    """The claims and volumes that are not bound one to one."""
    refs = {one.metadata.name: one.spec.claimRef for one in volumes}
    found, taken = [], set[str]()
    for one in claims:
        ref = refs.get(one.spec.volumeName)
        if ref is None or ref.uid != one.metadata.uid or one.spec.volumeName in taken:
            found.append(f"claim {one.metadata.name} and volume {one.spec.volumeName or '-'}")
        taken.add(one.spec.volumeName)
    return found


class Managers:
    """The manager of a run, which may be killed and started again."""

    def __init__(self, plane: RealPlane, name: Binary, argv: list[str]) -> None:
        self._plane, self._name, self._argv = plane, name, argv
        self.current: Child = plane.manager(*argv, binary=name)

    async def kill(self, times: int, bound: dict[str, None], count: int) -> None:
        """Kill the manager whenever a further part of the claims is bound."""
        for number in range(1, times + 1):
            while len(bound) < count * number / (times + 1):
                await asyncio.sleep(0.02)
            self.current.kill(signal.SIGKILL)
            self.current = self._plane.manager(*self._argv, binary=self._name)


async def run(api: HttpApi, plane: RealPlane, name: Binary, options: argparse.Namespace) -> list[Cost]:
    """One manager's run."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    await api.create(NAMESPACES, "", body)
    managers = Managers(plane, name, flags(options, CONTROLLERS))
    phases = Phases(Meter(managers.current, plane), options.timeout)
    count = options.claims

    async def start() -> None:
        await bind("first", 1, 0)

    async def bind(prefix: str, number: int, kills: int) -> None:
        names = [f"{prefix}-{index}" for index in range(number)]
        bound: dict[str, None] = {}

        async def make(one: str) -> None:
            await api.create(PERSISTENTVOLUMES.untyped, "", volume(one))
            await api.create(PERSISTENTVOLUMECLAIMS.untyped, NAMESPACE, claim(one))

        async with (
            asyncio.TaskGroup() as tasks,
            contextlib.aclosing(follow(api, PERSISTENTVOLUMECLAIMS, NAMESPACE)) as changes,
        ):
            tasks.create_task(each(names, make))
            tasks.create_task(managers.kill(kills, bound, number))
            async for _, found in changes:
                if found.status.phase == "Bound" and found.metadata.name.startswith(prefix):
                    bound[found.metadata.name] = None
                if len(bound) == number:
                    return

    try:
        await phases.run("start", 1, start)
        if options.kills:
            # What a killed manager has used cannot be read any more, so that only the time is told.
            began = time.monotonic()
            await bind("together", count, options.kills)
            say(f"{name}: bound {count} claims in {time.monotonic() - began:.1f} s, {options.kills} kills")
        else:
            async with beside(watchdog(managers.current)):
                await phases.run("together", count, lambda: bind("together", count, 0))
    finally:
        managers.current.stop()
    claims = [one async for one in everything(api, PERSISTENTVOLUMECLAIMS, NAMESPACE)]
    wrong = faults(claims, [one async for one in everything(api, PERSISTENTVOLUMES, "")])
    if wrong:
        raise RuntimeError(f"{len(wrong)} bindings are wrong: {', '.join(wrong[:5])}")
    say(f"{name}: {len(claims)} claims are bound one to one")
    return phases.costs


async def everything(api: HttpApi, kind: Kind[O], namespace: str) -> AsyncIterator[O]:
    for one in (await list_all(api, kind, namespace)).items:
        if isinstance(one, kind.type):
            yield one


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--claims", type=int, default=1000, help="claims, and as many volumes")
    parser.add_argument("--kills", type=int, default=0, help="how often the manager is killed meanwhile")
    options = parser.parse_args()
    what = f"{options.claims} claims and volumes"
    if options.kills:
        what += f", {options.kills} kills"
    compare(options, what, lambda api, plane, name: run(api, plane, name, options))


if __name__ == "__main__":
    main()
