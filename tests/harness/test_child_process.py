"""Children: their cost, their end, and that none outlives its parent."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.child_process import Child, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

WAIT = "print('up', flush=True); import signal; signal.pause()"


def python(code: str, log: Path) -> Child:
    child = Child([sys.executable, "-c", code], log)
    until(lambda: "up" in child.log(), child, 30, "it is up")
    return child


def test_a_child_knows_what_it_costs_while_it_runs_and_after(tmp_path: Path) -> None:
    child = python(f"held = b'x' * (64 << 20); sum(range(5_000_000)); del held; {WAIT}", tmp_path / "log")
    assert child.cpu_seconds() >= 0.02
    assert child.peak_rss() >= 64 << 20
    assert 0 < child.rss() < 64 << 20
    peak = child.peak_rss()
    assert child.stop() == -signal.SIGTERM
    assert child.peak_rss() == peak
    assert child.cpu_seconds() >= 0.02


def test_a_child_that_ignores_a_request_to_end_is_made_to(tmp_path: Path) -> None:
    deaf = python(f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAIT}", tmp_path / "log")
    assert deaf.stop(grace=0.1) == -signal.SIGKILL


def test_ending_a_child_ends_what_it_started(tmp_path: Path) -> None:
    code = (
        f"import subprocess, sys; p = subprocess.Popen(['sleep', '1000']); print(p.pid, flush=True); {WAIT}"
    )
    child = python(code, tmp_path / "log")
    grandchild = os.pidfd_open(int(child.log().split()[0]))
    child.end()
    assert select.select([grandchild], [], [], 10)[0]
    os.close(grandchild)


def test_a_child_dies_with_its_parent_even_when_that_is_killed(tmp_path: Path) -> None:
    code = f"""
import signal
from pathlib import Path
from tests.harness.child_process import Child
child = Child(["/bin/sleep", "1000"], Path({str(tmp_path / "log")!r}))
print(child.pid, flush=True)
signal.pause()
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = os.pidfd_open(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert select.select([child], [], [], 10)[0]
    os.close(child)


def test_waiting_for_a_child_that_dies_shows_its_last_words(tmp_path: Path) -> None:
    child = Child([sys.executable, "-c", "raise SystemExit('no such luck')"], tmp_path / "log")
    with pytest.raises(RuntimeError, match="ended with code 1:\nno such luck"):
        until(lambda: False, child, 30, "luck")


async def test_the_end_of_a_child_can_be_awaited(tmp_path: Path) -> None:
    child = python(WAIT, tmp_path / "log")
    child.kill(signal.SIGKILL)
    assert await child.exited() == -signal.SIGKILL


def test_the_memory_of_processes_that_a_child_started_counts(tmp_path: Path) -> None:
    inner = "import sys; held = b'x' * (64 << 20); print('up', flush=True); sys.stdin.read()"
    start = f"subprocess.Popen([sys.executable, '-c', {inner!r}], stdin=subprocess.PIPE)"
    child = python(f"import subprocess, sys; {start}.wait()", tmp_path / "log")
    assert child.rss() > 64 << 20
    child.stop()
