"""What a stretch of work costs a manager: time, requests, CPU, memory."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.audit import AuditEntry
from tests.harness.child_process import Child
from tests.harness.envtest import MANAGER, RealPlane

_TICK = os.sysconf("SC_CLK_TCK")
_QUIET = 1.0
"""A manager that has asked for nothing this long, in seconds, has finished."""


@dataclass(frozen=True)
class Cost:
    """One phase of one run."""

    phase: str
    seconds: float
    """Until everything had converged."""
    pods: int
    """How many came or went."""
    cpu: float
    """Of the manager, in seconds, with what it did after convergence until it was quiet."""
    apiserver_cpu: float
    harness_cpu: float
    """Of this process: the hollow kubelet and the eyes. It is part of the load on the machine."""
    other_cpu: float
    """Of everything else on the machine. Where it is more than a little, the seconds mean nothing."""
    rss: int
    peak_rss: int
    """The most since the manager started."""
    requests: dict[str, int] = field(default_factory=dict)
    """By verb and resource, without watches. Empty when there is no audit log."""
    refused: dict[str, int] = field(default_factory=dict)
    """Those answered with 4xx or 5xx, by verb, resource and code."""

    @property
    def rate(self) -> float:
        """Pods a second."""
        return self.pods / self.seconds if self.seconds else 0.0

    @property
    def total(self) -> int:
        return sum(self.requests.values())


def by_manager(entry: AuditEntry) -> bool:
    """Whether a manager sent it, as itself or as one of its controllers' accounts."""
    return entry.user == MANAGER or entry.user.startswith("system:serviceaccount:kube-system:")


class Meter:
    """Measures the phases of one manager's run."""

    def __init__(self, manager: Child, plane: RealPlane | None) -> None:
        self._manager = manager
        self._plane = plane

    def begin(self) -> Stretch:
        return Stretch(self._manager, self._plane)

    async def quiet(self) -> None:
        """Wait until the manager has sent nothing for a while."""
        if self._plane is None:
            await asyncio.sleep(_QUIET)
            return
        mark = self._plane.mark()
        deadline = time.monotonic() + _QUIET
        while (now := time.monotonic()) < deadline:
            await asyncio.sleep(0.2)
            seen, mark = self._plane.audit(mark), self._plane.mark()
            if any(map(by_manager, seen)):
                deadline = now + _QUIET


class Stretch:
    """A phase being measured."""

    def __init__(self, manager: Child, plane: RealPlane | None) -> None:
        self._manager = manager
        self._plane = plane
        self._mark = plane.mark() if plane else 0
        self._cpu = manager.cpu_seconds()
        self._server = self._server_cpu()
        self._own = time.process_time()
        self._ours, self._busy = self._our_cpu(), busy()
        self._started = time.perf_counter()
        self._seconds = 0.0

    def converged(self) -> None:
        """Stop the watch. CPU and requests are counted on until `end`."""
        self._seconds = time.perf_counter() - self._started

    def end(self, phase: str, pods: int) -> Cost:
        asked = [e for e in self._plane.audit(self._mark) if by_manager(e)] if self._plane else []
        asked = [entry for entry in asked if entry.verb != "watch"]
        return Cost(
            phase=phase,
            seconds=self._seconds,
            pods=pods,
            cpu=self._manager.cpu_seconds() - self._cpu,
            apiserver_cpu=self._server_cpu() - self._server,
            harness_cpu=time.process_time() - self._own,
            other_cpu=max(0.0, busy() - self._busy - (self._our_cpu() - self._ours)),
            rss=self._manager.rss(),
            peak_rss=self._manager.peak_rss(),
            requests=dict(sorted(Counter(f"{e.verb} {e.target}" for e in asked).items())),
            refused=dict(
                sorted(Counter(f"{e.verb} {e.target} {e.code}" for e in asked if e.code >= 400).items())
            ),
        )

    def _server_cpu(self) -> float:
        server = self._plane.apiserver if self._plane else None
        return server.cpu_seconds() if server else 0.0

    def _our_cpu(self) -> float:
        """What all processes of this benchmark have used."""
        plane = self._plane
        children = (self._manager, plane.apiserver, plane.etcd) if plane else (self._manager,)
        return time.process_time() + sum(child.cpu_seconds() for child in children if child is not None)


def busy() -> float:
    """CPU seconds that the machine has spent on anything."""
    user, nice, system, _idle, _wait, *rest = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + sum(rest[:3])) / _TICK
