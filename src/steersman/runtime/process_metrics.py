"""Metrics of this process from the system, under the names every Prometheus client uses."""

from __future__ import annotations

import itertools
import os
import resource
from pathlib import Path

from steersman.api.prometheus import Registry, Stability

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")


def started(proc: Path = _PROC) -> float:
    """When this process started, in seconds since 1970; 0 where the system does not tell."""
    try:
        boot = next(
            float(line.split()[1])
            for line in (proc / "stat").read_text().splitlines()
            if line.startswith("btime ")
        )
        return boot + float(_stat(proc)[19]) / _TICK
    except (OSError, StopIteration, IndexError):
        return 0.0


def _stat(proc: Path) -> list[str]:
    """The fields behind the command, which may have blanks and parentheses in it."""
    return (proc / "self" / "stat").read_text().rpartition(")")[2].split()


def start_time(registry: Registry, stability: Stability = "", proc: Path = _PROC) -> None:
    """Declare when the process started."""
    help = "Start time of the process since unix epoch in seconds."
    registry.gauge("process_start_time_seconds", help, stability=stability).of().set(started(proc))


def follow(registry: Registry, proc: Path = _PROC) -> None:
    """Declare what is known of the process. Where there is no ``/proc``, nothing is shown."""
    if not (proc / "self" / "stat").exists():
        return
    start_time(registry, proc=proc)
    cpu = registry.counter(
        "process_cpu_seconds_total", "User and system CPU time spent in seconds.", stability=""
    ).of()
    received, sent = (
        registry.counter(f"process_network_{way}_bytes_total", f"Bytes {word}.", stability="").of()
        for way, word in (("receive", "received"), ("transmit", "sent"))
    )
    gauges = {
        name: registry.gauge(f"process_{name}", help, stability="").of()
        for name, help in (
            ("max_fds", "Files that may be open."),
            ("open_fds", "Files that are open."),
            ("resident_memory_bytes", "Memory in use."),
            ("virtual_memory_bytes", "Address space in use."),
            ("virtual_memory_max_bytes", "Address space that may be used."),
        )
    }

    def refresh() -> None:
        stat = _stat(proc)
        cpu.value = (int(stat[11]) + int(stat[12])) / _TICK
        gauges["virtual_memory_bytes"].set(int(stat[20]))
        gauges["resident_memory_bytes"].set(int(stat[21]) * _PAGE)
        gauges["open_fds"].set(len(os.listdir(proc / "self" / "fd")))
        gauges["max_fds"].set(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        gauges["virtual_memory_max_bytes"].set(1.8446744073709552e19 if most < 0 else most)
        received.value, sent.value = _octets(proc)

    registry.refreshes.append(refresh)


def _octets(proc: Path) -> tuple[float, float]:
    """Bytes received and sent by everything in this network namespace, as upstream has them."""
    try:
        lines = [line.split() for line in (proc / "self" / "net" / "netstat").read_text().splitlines()]
    except OSError:
        return 0.0, 0.0
    for names, values in itertools.pairwise(lines):
        if names[:1] == values[:1] == ["IpExt:"]:
            found = dict(zip(names, values, strict=False))
            return float(found.get("InOctets", 0)), float(found.get("OutOctets", 0))
    return 0.0, 0.0
