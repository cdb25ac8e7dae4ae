"""A manager that starts, and then has nothing to do: beside kube-controller-manager, on the same API server.

Both run the controllers that are on by default, with the same flags, one after the other in turns, each as leader of a lease of
its own. Before each start there is a namespace that lacks what controllers make, and a Deployment of no replicas: the start is over when all
of it is there. After a while of rest, CPU and memory are read.

Seconds depend on what else the machine does; CPU seconds hardly do, and memory not at all.

::

    KUBEBUILDER_ASSETS=... python -m benchmarks.rest --rounds 3 --markdown
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import get_args

from benchmarks.measure import busy, by_manager
from benchmarks.report import render
from steersman.api.kinds import DEPLOYMENTS, NAMESPACES, SERVICEACCOUNTS
from steersman.api.kinds.config import CONFIGMAPS
from steersman.client.http import HttpApi
from tests.harness.assets import Binary
from tests.harness.child_process import Child, tail
from tests.harness.envtest import RealPlane
from tests.harness.follow import until


@dataclass(frozen=True)
class Cost:
    """One life of a manager."""

    seconds: float
    """From executing it until its controllers had done what was to be done."""
    first: float
    """Until the API server heard of the first of those writes."""
    start_cpu: float
    idle_cpu: float
    """Milliseconds of CPU in a second of rest."""
    rss: float
    """MiB."""
    requests: float
    """A minute at rest, without watches."""
    other: float
    """CPU seconds that the rest of the machine used during the start."""


async def begun(api: HttpApi, namespace: str) -> None:
    """Wait until a namespace has what controllers make, and its Deployment has been looked at."""
    await asyncio.gather(
        until(api, SERVICEACCOUNTS, namespace, "default", lambda found: True),
        until(api, CONFIGMAPS, namespace, "kube-root-ca.crt", lambda found: True),
        until(api, DEPLOYMENTS, namespace, "web", lambda found: found.status.observedGeneration > 0),
    )


def deployment() -> dict[str, object]:
    labels = {"app": "web"}
    spec = {"containers": [{"name": "c", "image": "web"}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }


async def live(
    plane: RealPlane, api: HttpApi, binary: Binary, number: int, rest: float, env: dict[str, str]
) -> Cost:
    namespace = f"round-{number}"
    await api.create(NAMESPACES, "", {"metadata": {"name": namespace}})
    await api.create(DEPLOYMENTS, namespace, deployment())
    mark, before, own, began, wall = plane.mark(), busy(), time.process_time(), time.monotonic(), time.time()
    servers = [each for each in (plane.apiserver, plane.etcd) if each is not None]
    served = sum(each.cpu_seconds() for each in servers)
    manager = plane.manager(
        "--controllers=*",
        "--use-service-account-credentials=true",
        f"--leader-elect-resource-name=rest-{number}",
        f"--root-ca-file={plane.ca}",
        f"--service-account-private-key-file={plane.service_account_key}",
        f"--cluster-signing-cert-file={plane.ca}",
        f"--cluster-signing-key-file={plane.ca_key}",
        binary=binary,
        env=env,
    )
    try:
        async with asyncio.timeout(120):
            await begun(api, namespace)
        seconds, cpu = time.monotonic() - began, manager.cpu_seconds()
        served = sum(each.cpu_seconds() for each in servers) - served
        other = busy() - before - cpu - served - (time.process_time() - own)
        await asyncio.sleep(10)
        mark_rest, resting = plane.mark(), manager.cpu_seconds()
        await asyncio.sleep(rest)
        spent = manager.cpu_seconds() - resting
        asked = [e for e in plane.audit(mark_rest) if by_manager(e) and e.verb != "watch"]
        return Cost(
            seconds=seconds,
            first=_first(plane, mark, namespace) - wall,
            start_cpu=cpu,
            idle_cpu=spent / rest * 1000,
            rss=manager.rss() / 2**20,
            requests=len(asked) / rest * 60,
            other=max(0.0, other),
        )
    except TimeoutError:
        raise SystemExit(f"{binary} did not begin to work:\n{tail(manager)}") from None
    finally:
        _end(manager)


def _first(plane: RealPlane, mark: int, namespace: str) -> float:
    """When a controller first wrote into a namespace."""
    writes = (
        entry.received.timestamp()
        for entry in plane.audit(mark)
        if by_manager(entry)
        and entry.namespace == namespace
        and entry.verb not in ("get", "list", "watch")
        and entry.resource != "events"
    )
    return min(writes)


def _end(manager: Child) -> None:
    manager.stop(grace=10.0)


def table(results: dict[str, list[Cost]]) -> list[tuple[str, ...]]:
    ours, theirs = (results[name] for name in get_args(Binary))
    rows: list[tuple[str, ...]] = [("what", *get_args(Binary), "ratio")]
    for what, field, digits in (
        ("start, seconds", "seconds", 2),
        ("start to the first write, seconds", "first", 2),
        ("start, CPU s", "start_cpu", 2),
        ("other CPU s meanwhile", "other", 2),
        ("idle CPU, ms a second", "idle_cpu", 1),
        ("idle requests a minute", "requests", 0),
        ("idle RSS, MiB", "rss", 0),
    ):
        one, other = (median(getattr(cost, field) for cost in costs) for costs in (ours, theirs))
        ratio = "-" if field == "other" or not other else f"{one / other:.2f}"
        rows.append((what, f"{one:,.{digits}f}", f"{other:,.{digits}f}", ratio))
    return rows


async def measure(options: argparse.Namespace, plane: RealPlane) -> dict[str, list[Cost]]:
    results: dict[str, list[Cost]] = {name: [] for name in get_args(Binary)}
    number = 0
    with tempfile.TemporaryDirectory() as compiled:
        # What an installation has: modules that are compiled. The first life leaves them behind and is not counted.
        env = {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        async with plane.connect() as api:
            await live(plane, api, "steersman", 1000, 0.1, env)
            for turn in range(options.rounds):
                order: Sequence[Binary] = get_args(Binary) if turn % 2 else get_args(Binary)[::-1]
                for binary in order:
                    number += 1
                    cost = await live(plane, api, binary, number, options.rest, env)
                    results[binary].append(cost)
                    print(f"{binary}: {cost}", file=sys.stderr)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rest", type=float, default=60.0, help="seconds to look at it at rest")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    with RealPlane.start() as plane:
        rows = table(asyncio.run(measure(options, plane)))
    print(render(rows, options.markdown))


if __name__ == "__main__":
    main()
