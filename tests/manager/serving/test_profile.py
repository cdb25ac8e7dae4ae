"""Profiles one can open."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress

import pytest

from steersman.manager.serving import profile


def test_a_busy_function_is_what_a_profile_shows() -> None:
    stop, begun = threading.Event(), threading.Event()

    def busy() -> None:
        begun.set()
        while not stop.is_set():
            sum(range(100))

    thread = threading.Thread(target=busy)
    thread.start()
    begun.wait()
    try:
        found = profile.sample(thread.ident or 0, 0.05, threading.Event())
    finally:
        stop.set()
        thread.join()
    assert all(any("busy" in name for name, _, _ in stack) for stack in found)
    assert sum(found.values()) == 5


def test_a_sampler_that_is_told_to_stop_does() -> None:
    stop = threading.Event()
    stop.set()
    assert profile.sample(threading.get_ident(), 600, stop) == {}


STACKS = {
    (("run", "a.py", 1), ("work", "b.py", 7)): 3,
    (("run", "a.py", 1),): 1,
}


def test_speedscope_reads_what_is_made_for_it() -> None:
    document = json.loads(profile.speedscope(STACKS))
    frames = [(one["name"], one["file"], one["line"]) for one in document["shared"]["frames"]]
    (sampled,) = document["profiles"]
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert [[frames[place] for place in stack] for stack in sampled["samples"]] == [
        list(one) for one in STACKS
    ]
    assert (sampled["type"], sampled["unit"], sampled["weights"], sampled["endValue"]) == (
        "sampled",
        "seconds",
        [0.03, 0.01],
        0.04,
    )


def test_collapsed_stacks_are_a_line_each() -> None:
    assert profile.collapsed(STACKS) == "run;work 3\nrun 1\n"


async def test_what_tasks_wait_for_is_told() -> None:
    async def waits_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(waits_for_ever(), name="idle")
    await asyncio.sleep(0)
    answer = await profile.serve("goroutine", {})
    assert "waits_for_ever" in answer.body.decode()
    task.cancel()


async def test_a_profile_of_no_length_is_refused() -> None:
    for seconds in ("0", "601", "x", "-1"):
        assert (await profile.serve("profile", {"seconds": [seconds]})).status == 400
    assert (await profile.serve("cmdline", {})).status == 404


async def test_one_profile_is_taken_at_a_time_in_a_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, begun = asyncio.get_running_loop(), asyncio.Event()
    threads: list[str] = []

    def sample(thread: int, seconds: float, stop: threading.Event) -> dict[profile.Stack, int]:
        threads.append(threading.current_thread().name)
        if len(threads) == 1:
            loop.call_soon_threadsafe(begun.set)
            stop.wait()
        return {}

    monkeypatch.setattr(profile, "sample", sample)
    first = asyncio.create_task(profile.serve("profile", {"seconds": ["600"]}))
    await begun.wait()
    second = await profile.serve("profile", {"seconds": ["1"]})
    assert second.status == 500
    assert second.body == b"Could not enable CPU profiling: cpu profiling already in use\n"
    assert ("X-Go-Pprof", "1") in second.headers
    # A client that disconnects ends its profile, and makes room for another.
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    assert (await profile.serve("profile", {"seconds": ["1"]})).status == 200
    assert len(threads) == 2
    assert all(name.startswith("profiler") for name in threads)
