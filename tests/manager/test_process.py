"""How a manager ends when it is told to, and when it does not want to: as a process, with real signals."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

SCRIPT = """
import asyncio, logging, sys
from steersman.manager.process import run, run_until_signal

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)

async def willing():
    print("ready", flush=True)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        print("stopping", flush=True)

async def stubborn():
    try:
        await willing()
    except asyncio.CancelledError:
        while True:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                continue

async def busy():
    try:
        await willing()
    except asyncio.CancelledError:
        while True:
            pass

async def leaving():
    orphan = asyncio.create_task(stubborn(), name="an orphan")
    await asyncio.sleep(0)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        orphan.cancel()

async def failing():
    raise SystemError("by itself")

run(run_until_signal({work}(), {limit}))
"""


@contextmanager
def process(work: str, limit: float | None) -> Iterator[subprocess.Popen[str]]:
    script = SCRIPT.replace("{work}", work).replace("{limit}", str(limit))
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def await_line(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == f"{line}\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_once_it_stops_and_that_is_a_success(number: signal.Signals) -> None:
    with process("willing", 10) as child:
        await_line(child, "ready")
        child.send_signal(number)
        await_line(child, "stopping")
        await_line(child, "stopped by a signal")
        assert child.wait(10) == 0


@pytest.mark.parametrize("work", ["stubborn", "busy"])
def test_told_twice_it_ends_at_once_whatever_it_is_doing(work: str) -> None:
    with process(work, None) as child:
        await_line(child, "ready")
        child.send_signal(signal.SIGTERM)
        await_line(child, "stopping")
        child.send_signal(signal.SIGINT)
        await_line(child, "second signal: exiting at once")
        assert child.wait(10) == 1


def test_work_that_does_not_stop_in_time_is_named_and_left_behind() -> None:
    with process("stubborn", 0.05) as child:
        await_line(child, "ready")
        child.send_signal(signal.SIGTERM)
        await_line(child, "stopping")
        await_line(child, "controller shutdown timeout reached: manager did not end")
        assert child.wait(10) == 1


def test_a_task_that_outlives_the_work_does_not_keep_the_process_alive() -> None:
    with process("leaving", None) as child:
        await_line(child, "ready")
        child.send_signal(signal.SIGTERM)
        await_line(child, "stopping")
        await_line(child, "controller shutdown timeout reached: an orphan did not end")
        assert child.wait(10) == 1


def test_work_that_fails_by_itself_fails_as_it_did() -> None:
    with process("failing", 10) as child:
        assert child.wait(10) == 1
        assert child.stderr is not None
        assert "SystemError: by itself" in child.stderr.read()


HANGING = """
import logging, sys, threading
from steersman.manager import process

process.EXIT_TIMEOUT = 0.05
logging.basicConfig(stream=sys.stdout)
logging.getLogger().handlers[0].acquire()
threading.Thread(target=process.exit_at_once, args=("lost",)).start()
while True:
    pass
"""


def test_a_thread_ends_the_process_while_another_hangs_with_the_lock_of_the_log() -> None:
    assert subprocess.run([sys.executable, "-c", HANGING], timeout=60).returncode == 1


def test_a_process_may_open_as_many_files_as_it_is_ever_allowed() -> None:
    script = """
import resource
from steersman.manager.process import raise_file_limit

_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (50, hard))
assert raise_file_limit() == hard
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
