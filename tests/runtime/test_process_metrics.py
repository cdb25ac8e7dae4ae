"""What the system says about this process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from steersman.api.prometheus import Registry, exposition
from steersman.runtime import process_metrics


def read(registry: Registry) -> dict[str, float]:
    lines = exposition(registry).decode().splitlines()
    return {
        line.split(" ")[0]: float(line.split(" ")[1]) for line in lines if not line.startswith(("#", "reg"))
    }


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_a_process_knows_itself() -> None:
    registry = Registry()
    process_metrics.follow(registry)
    found = read(registry)
    assert found["process_cpu_seconds_total"] == pytest.approx(time.process_time(), abs=5)
    assert time.time() - 86_400 < found["process_start_time_seconds"] <= time.time() + 1
    assert found["process_resident_memory_bytes"] < found["process_virtual_memory_bytes"]
    assert found["process_open_fds"] < found["process_max_fds"]
    with open(os.devnull):
        assert read(registry)["process_open_fds"] == found["process_open_fds"] + 1


def test_where_the_system_tells_nothing_nothing_is_shown(tmp_path: Path) -> None:
    registry = Registry()
    process_metrics.follow(registry, tmp_path)
    assert registry.families == ()


def test_the_name_of_the_program_may_have_anything_in_it(tmp_path: Path) -> None:
    here = tmp_path / "self"
    (here / "fd").mkdir(parents=True)
    numbers = ["R", *map(str, range(4, 53))]
    (here / "stat").write_text(f"17 (a (strange) name) {' '.join(numbers)}\n")
    (tmp_path / "stat").write_text("cpu 1 2 3\nbtime 1000\n")
    (here / "net").mkdir()
    (here / "net" / "netstat").write_text("TcpExt: A\nTcpExt: 1\nIpExt: InOctets OutOctets\nIpExt: 5 6\n")
    registry = Registry()
    process_metrics.follow(registry, tmp_path)
    found = read(registry)
    tick = os.sysconf("SC_CLK_TCK")
    assert found["process_start_time_seconds"] == pytest.approx(1000 + 22 / tick)
    assert found["process_cpu_seconds_total"] == pytest.approx((14 + 15) / tick)
    assert found["process_virtual_memory_bytes"] == 23
    assert found["process_resident_memory_bytes"] == 24 * os.sysconf("SC_PAGE_SIZE")
    assert (found["process_network_receive_bytes_total"], found["process_network_transmit_bytes_total"]) == (
        5,
        6,
    )
