"""``steersman up`` under attacks that try to exhaust it: its memory, ``/readyz``, and the lease of a manager meanwhile.

Each attack (tests.harness.exhaustion) meets a control plane of its own with some megabytes of ConfigMaps, and a
``steersman run`` that leads by a lease there. The attack comes from another process and lasts until its last request is
sent and a while longer. Its own figure must hold for each: memory at most twice that at rest and 64 MiB, ``/readyz``
within 250 ms on a connection of its own, and the lease kept by its holder.

::

    python -m benchmarks.exhaustion
    python -m benchmarks.exhaustion --only watches --only "unread lists"
    python -m benchmarks.exhaustion --scale 0.1        # a tenth of the connections
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import busy
from steersman.client import kubeconfig
from tests.harness.child_process import Child, until
from tests.harness.exhaustion import ATTACKS, MIB, Attack, Target, ceiling, close, raise_file_limit, seed
from tests.harness.raw_http import Line, context

READY_MS = 250.0
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
_OBJECTS, _SIZE = 200, 20_000
"""ConfigMaps to list and watch, and the bytes of each."""
_PROBE = 0.02
"""Seconds between two requests for ``/readyz``."""
_HOLD = 6.0
"""Seconds that an attack lasts after its last request: a lease is renewed every two."""
_PATIENCE = 60.0


@dataclass(frozen=True)
class Outcome:
    """What one attack did."""

    attack: str
    size: int
    held: int
    """Connections that the attacker still had at the end, as far as it knew."""
    seconds: float
    idle: int
    peak: int
    ready_median: float
    """Milliseconds."""
    ready_worst: float
    lease: bool
    """The lease was renewed, and kept by its holder."""
    other_cpu: float
    """Seconds of processor time of the rest of the machine, the attacker included."""

    @property
    def ceiling(self) -> int:
        return ceiling(self.idle)

    @property
    def passed(self) -> bool:
        return self.peak <= self.ceiling and self.ready_worst <= READY_MS and self.lease


async def lease(line: Line) -> tuple[str, int, str]:
    """The holder of the manager's lease, how often it changed hands, and when it was renewed."""
    code, body = await line.ask("GET", LEASE)
    if code != 200:
        return "", 0, ""
    spec: dict[str, Any] = json.loads(body)["spec"]
    return spec["holderIdentity"], spec.get("leaseTransitions", 0), spec["renewTime"]


async def measure(attack: Attack, size: int, where: Path) -> Outcome:
    """Run one attack against a control plane of its own."""
    config = where / "config"
    program = [sys.executable, "-m", "steersman.manager.cli"]
    up = Child([*program, "up", "--port=0", f"--kubeconfig={config}"], where / "up.log")
    manager: Child | None = None
    try:
        until(lambda: "steersman is up" in up.log(), up, _PATIENCE, "the control plane")
        manager = Child(
            [*program, "run", f"--kubeconfig={config}", "--secure-port=0", "--controllers=ttl-controller"],
            where / "run.log",
        )
        connection = kubeconfig.load(str(config))
        seed(Target.of(connection), _OBJECTS, _SIZE)
        probe = await Line.open(connection.server, context(connection))
        while not (before := await lease(probe))[0]:
            await asyncio.sleep(_PROBE)
        await asyncio.sleep(2.0)
        idle = up.rss()
        attacker = await asyncio.create_subprocess_exec(
            sys.executable,
            *(
                "-m",
                "benchmarks.exhaustion",
                "--attack",
                attack.name,
                "--target",
                str(config),
                "--size",
                str(size),
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert attacker.stdout is not None
        assert attacker.stdin is not None
        began, busy_before, own = time.perf_counter(), busy(), up.cpu_seconds()
        established = asyncio.create_task(attacker.stdout.readline())
        times: list[float] = []
        peak, ends = idle, float("inf")
        while time.perf_counter() < ends:
            asked = time.perf_counter()
            code, _ = await probe.ask("GET", "/readyz")
            assert code == 200, code
            times.append((time.perf_counter() - asked) * 1000)
            peak = max(peak, up.rss())
            if established.done() and ends == float("inf"):
                ends = time.perf_counter() + _HOLD
            await asyncio.sleep(_PROBE)
        seconds, cpu = time.perf_counter() - began, up.cpu_seconds() - own
        after = await lease(probe)
        attacker.stdin.close()
        await attacker.wait()
        kept = before[:2] == after[:2] and after[2] > before[2] and manager.code is None
        return Outcome(
            attack.name,
            size,
            int(established.result() or b"0"),
            seconds,
            idle,
            peak,
            statistics.median(times),
            max(times),
            kept,
            busy() - busy_before - cpu,
        )
    finally:
        if manager is not None:
            manager.stop()
        up.stop()


def attack_now(name: str, config: str, size: int) -> None:
    """Carry out an attack, say that it is established, and hold it until standard input ends."""
    raise_file_limit()
    attack = next(each for each in ATTACKS if each.name == name)
    held = attack.run(Target.of(kubeconfig.load(config)), size)
    print(len(held), flush=True)
    sys.stdin.read()
    close(held)


def table(outcomes: list[Outcome]) -> str:
    """The outcomes as a table for a document."""
    head = "| attack | size | idle MiB | peak MiB | ceiling MiB | /readyz median ms | worst ms | lease kept |"
    lines = [head, "|---|---:|---:|---:|---:|---:|---:|---|"]
    for each in outcomes:
        lines.append(
            f"| {each.attack} | {each.size:,} | {each.idle / MIB:.0f} | {each.peak / MIB:.0f} | {each.ceiling / MIB:.0f} "
            f"| {each.ready_median:.1f} | {each.ready_worst:.0f} | {'yes' if each.lease else 'NO'} |"
        )
    return "\n".join(lines)


async def main(options: argparse.Namespace) -> int:
    chosen = [each for each in ATTACKS if not options.only or each.name in options.only]
    if not chosen:
        raise SystemExit(f"there are: {', '.join(each.name for each in ATTACKS)}")
    outcomes = []
    for attack in chosen:
        with tempfile.TemporaryDirectory() as where:
            outcome = await measure(attack, max(1, int(attack.size * options.scale)), Path(where))
        outcomes.append(outcome)
        print(
            f"{outcome.attack}: {outcome.seconds:.0f} s, {outcome.held} connections, peak {outcome.peak / MIB:.0f} MiB of "
            f"{outcome.ceiling / MIB:.0f}, worst {outcome.ready_worst:.0f} ms, lease {'kept' if outcome.lease else 'LOST'}, other CPU {outcome.other_cpu:.1f} s",
            file=sys.stderr,
        )
    print(table(outcomes))
    return 0 if all(each.passed for each in outcomes) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", default=[], help="the name of an attack; may be repeated")
    parser.add_argument("--scale", type=float, default=1.0, help="a factor for the size of each attack")
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    parser.add_argument("--target", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.attack:
        attack_now(given.attack, given.target, given.size)
    else:
        sys.exit(asyncio.run(main(given)))
