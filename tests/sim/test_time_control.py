"""Time that is steered while it runs: speed, pause, fast-forward, and what counts as something that happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from steersman.api.errors import Conflict
from steersman.api.generated import load
from steersman.api.kinds import PODS
from steersman.api.kinds.nodes import NODES
from steersman.server.local import LocalApi
from steersman.server.server import Server
from steersman.sim.scaled_clock import Pace, ScaledClock, ScaledLoop
from steersman.sim.time_control import HORIZON, TimeControl

LEASES = load("coordination.k8s.io", "v1", "Lease")


def play(main: Callable[[ScaledLoop], Coroutine[Any, Any, None]], speed: float = 1.0) -> None:
    loop = ScaledLoop(speed)
    try:
        loop.run_until_complete(main(loop))
    finally:
        loop.close()


def test_time_goes_on_from_where_it_was_at_every_change_of_pace() -> None:
    pace = Pace(2.0, 100.0)
    assert pace.at(100.0) == 200.0
    pace.change(101.0, speed=60.0)
    assert pace.at(101.0) == 202.0
    assert pace.at(102.0) == 262.0
    pace.change(102.0, paused=True)
    assert pace.at(500.0) == 262.0
    pace.change(500.0, speed=1.0)
    assert pace.at(600.0) == 262.0, "still paused"
    pace.change(600.0, paused=False)
    assert pace.at(601.0) == 263.0
    pace.skip(7.0)
    assert pace.at(601.0) == 270.0


def test_a_timer_that_waits_follows_a_change_of_speed() -> None:
    async def main(loop: ScaledLoop) -> None:
        waiting = asyncio.create_task(asyncio.sleep(3600))
        await asyncio.sleep(0)
        loop.set_speed(1_000_000)
        await waiting

    began = time.monotonic()
    play(main)
    assert time.monotonic() - began < 60


def test_in_a_pause_tasks_run_and_timers_wait() -> None:
    async def main(loop: ScaledLoop) -> None:
        loop.set_speed(1_000_000)
        loop.set_paused(True)
        before = loop.time()
        waiting = asyncio.create_task(asyncio.sleep(0.001))
        await loop.sleep_in_real_time(0.05)
        assert not waiting.done()
        assert loop.time() == before
        loop.set_paused(False)
        await waiting

    play(main)


def test_a_fast_forward_runs_every_timer_in_its_order() -> None:
    async def main(loop: ScaledLoop) -> None:
        loop.set_paused(True)
        begin, ran = loop.time(), []

        async def beat(name: str, period: float) -> None:
            while True:
                await asyncio.sleep(period)
                ran.append((name, round(loop.time() - begin)))

        beats = [asyncio.create_task(beat("a", 10)), asyncio.create_task(beat("b", 27))]
        await asyncio.sleep(0)
        await loop.fast_forward(58, within=30).ended
        for each in beats:
            each.cancel()
        assert ran == [("a", 10), ("a", 20), ("b", 27), ("a", 30), ("a", 40), ("a", 50), ("b", 54)]
        assert loop.time() - begin == pytest.approx(58)
        assert loop.paused, "as it was before"

    play(main)


def test_a_fast_forward_that_is_never_idle_ends_after_its_real_time() -> None:
    async def main(loop: ScaledLoop) -> None:
        async def busy() -> None:
            while True:
                await asyncio.sleep(0)

        task = asyncio.create_task(busy())
        await loop.fast_forward(60, within=0.05).ended
        task.cancel()

    play(main)


def test_timeouts_in_real_time_expire_in_a_pause_and_not_early() -> None:
    async def main(loop: ScaledLoop) -> None:
        loop.set_paused(True)
        with pytest.raises(TimeoutError):
            async with loop.timeout_in_real_time(0.01):
                await asyncio.sleep(1)
        loop.set_paused(False)
        loop.set_speed(1_000_000)
        async with loop.timeout_in_real_time(60):
            await asyncio.sleep(100)
        async with loop.timeout_in_real_time(None):
            await asyncio.sleep(100)

    play(main)


def test_a_jump_stops_at_a_write_that_changes_something_and_not_at_heartbeats() -> None:
    async def main(loop: ScaledLoop) -> None:
        clock = ScaledClock(loop)
        server = Server(clock)
        api = LocalApi(server)
        await api.create(load("", "v1", "Namespace").untyped, "", {"metadata": {"name": "default"}})
        await api.create(NODES.untyped, "", {"metadata": {"name": "n"}})
        control = TimeControl(loop, clock, server.store, lambda: (None, loop.time() + 300))
        control.set_paused(True)
        begin = clock.now()
        lease = {"metadata": {"name": "n"}, "spec": {"holderIdentity": "n"}}
        await api.create(LEASES.untyped, "default", lease)
        spec = {"containers": [{"name": "main", "image": "app:1"}]}

        async def live() -> None:
            for beat in range(30):
                await asyncio.sleep(10)
                await api.patch(LEASES, "default", "n", {"spec": {"leaseTransitions": beat}})
                ready = {
                    "type": "Ready",
                    "status": "True",
                    "lastHeartbeatTime": f"2026-01-01T00:00:{beat:02d}Z",
                }
                await api.patch(NODES, "", "n", {"status": {"conditions": [ready]}}, subresource="status")
            await api.create(PODS.untyped, "default", {"metadata": {"name": "p"}, "spec": spec})
            await asyncio.sleep(5)
            unknown = {"type": "Ready", "status": "Unknown"}
            await api.patch(NODES, "", "n", {"status": {"conditions": [unknown]}}, subresource="status")

        work = asyncio.create_task(live())
        told = control.state()
        assert (told["paused"], told["next"]["inSeconds"]) == (True, 300.0)
        passed = []
        for _ in range(4):
            await control.jump()
            passed.append(round((clock.now() - begin).total_seconds()))
        # The node becomes Ready with its first heartbeat, the pod is created, the node is silent, and then nothing.
        assert passed == [10, 300, 305, round(305 + HORIZON)]
        await work

    play(main)


def test_there_is_one_jump_at_a_time_and_listeners_are_told() -> None:
    async def main(loop: ScaledLoop) -> None:
        clock = ScaledClock(loop)
        control = TimeControl(loop, clock, Server(clock).store, lambda: ())
        told: list[dict[str, Any]] = []
        control.listeners.append(lambda: told.append(control.state()))
        control.set_speed(50)
        control.set_paused(True)
        first = asyncio.create_task(control.jump())
        await asyncio.sleep(0)
        with pytest.raises(Conflict, match="under way"):
            await control.jump()
        await first
        assert [(each["speed"], each["paused"], each["jumping"]) for each in told] == [
            (50, False, False),
            (50, True, False),
            (50, True, False),
        ]
        assert told[-1]["next"] is None
        control.release()
        assert (loop.speed, loop.paused) == (1.0, False)
        with pytest.raises(ValueError, match=r"speed must be from 0\.01 to 10000, but got nan"):
            control.set_speed(float("nan"))

    play(main)
