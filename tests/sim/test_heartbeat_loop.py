"""Beats under virtual time: left out where nobody could tell, there to the second where somebody looks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from steersman.api.generated import load
from steersman.api.kinds import LEASES, PODS
from steersman.client.capabilities import REMOTE
from steersman.runtime.heartbeat import Heartbeat, call_unless_renewed
from steersman.server.local import LocalApi
from steersman.server.server import Server
from steersman.sim.kubelet import Kubelets
from steersman.sim.loop import Deadlock, VirtualLoop
from steersman.sim.world import World

NODES = load("", "v1", "Node")


class Pacer:
    """A rhythm of ten seconds that notes when it beats."""

    def __init__(self, *, steady: bool = True, renews: Callable[[str], bool] = lambda voice: True) -> None:
        self.rhythm = Heartbeat(10.0, 10.0, writes="leases", repeatable=lambda: steady, renews=renews)
        self.beats: list[float] = []

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self.rhythm.beat()
            await asyncio.sleep(0)
            self.beats.append(loop.time())


def play(*parts: Any, until: float, loop: VirtualLoop | None = None) -> VirtualLoop:
    loop = loop or VirtualLoop()

    async def main() -> None:
        tasks = [asyncio.ensure_future(part) for part in parts]
        await loop.until(until)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    loop.run_until_complete(main())
    loop.close()
    return loop


def test_of_many_beats_in_a_row_only_the_last_happens() -> None:
    pacer = Pacer()
    play(pacer.run(), until=1_000_005.0)
    assert pacer.beats == [1_000_000.0]


def test_before_anything_else_happens_the_last_beat_up_to_then_has() -> None:
    pacer, seen = Pacer(), []

    async def look() -> None:
        for delay in (5.0, 7.0, 28.0, 1.0):
            await asyncio.sleep(delay)
            seen.append((asyncio.get_running_loop().time(), pacer.beats[-1:]))

    play(pacer.run(), look(), until=45.0)
    assert seen == [(5.0, []), (12.0, [10.0]), (40.0, [40.0]), (41.0, [40.0])]


def test_a_beat_comes_before_everything_else_of_its_instant_however_long_it_takes() -> None:
    """In turns of the loop: time does not pass."""
    order: list[str] = []

    async def beat() -> None:
        rhythm = Heartbeat(10.0, 10.0, repeatable=lambda: True)
        while True:
            await rhythm.beat()
            for _ in range(50):
                await asyncio.sleep(0)
            order.append("beat")

    async def look() -> None:
        await asyncio.sleep(10.0)
        order.append("look")

    play(look(), beat(), until=15.0)
    assert order == ["beat", "look"]


def test_where_requests_may_fail_by_chance_every_beat_happens() -> None:
    pacer = Pacer(steady=False)
    play(pacer.run(), until=45.0)
    assert pacer.beats == [10.0, 20.0, 30.0, 40.0]


def test_who_follows_every_change_gets_every_beat() -> None:
    pacer, loop = Pacer(), VirtualLoop()
    loop.beats.followed = lambda resource: resource == "leases" and loop.time() < 25.0
    play(pacer.run(), until=105.0, loop=loop)
    assert pacer.beats == [10.0, 20.0, 30.0, 100.0]


def test_a_program_that_waits_while_only_hearts_beat_is_jammed() -> None:
    loop, pacer = VirtualLoop(), Pacer()

    async def main() -> None:
        asyncio.get_running_loop().create_task(pacer.run(), name="heart")
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match=r"only heartbeats are left at 0(.|\n)*heart: .*wait.*\n"):
        loop.run_until_complete(main())
    loop.close()


def test_before_a_beat_that_looks_all_others_have_beaten() -> None:
    pacer, seen = Pacer(), []

    async def look() -> None:
        loop = asyncio.get_running_loop()
        rhythm = Heartbeat(77.0, 77.0, repeatable=lambda: True, reads=True)
        while True:
            await rhythm.beat()
            seen.append((loop.time(), pacer.beats[-1:]))

    play(look(), pacer.run(), until=400.0)
    assert seen == [(385.0, [380.0])]
    assert pacer.beats == [380.0, 400.0]


def test_before_a_beat_that_somebody_sees_all_others_have_beaten() -> None:
    pacer, seen, loop = Pacer(), [], VirtualLoop()
    loop.beats.followed = lambda resource: resource == "nodes"

    async def shown() -> None:
        rhythm = Heartbeat(77.0, 77.0, writes="nodes", repeatable=lambda: True)
        while True:
            await rhythm.beat()
            seen.append((loop.time(), pacer.beats[-1:]))

    play(shown(), pacer.run(), until=200.0, loop=loop)
    assert seen == [(77.0, [70.0]), (154.0, [150.0])]


# -- watchdogs --------------------------------------------------------------------------------


class Dog:
    """Barks after fifty seconds without a beat."""

    def __init__(self, pacer: Pacer, voice: str = "n1") -> None:
        self.barked: list[float] = []
        self.checked = 0
        self._pacer = pacer
        self._voice = voice
        self._heard = 0

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        handle = call_unless_renewed(50.0, self._voice, self._bark)
        while True:
            # As an informer would: woken by the beat, not by time.
            while len(self._pacer.beats) == self._heard:
                await Wait(self._pacer)
            self._heard = len(self._pacer.beats)
            self.checked += 1
            handle.cancel()
            handle = call_unless_renewed(self._pacer.beats[-1] + 50.0 - loop.time(), self._voice, self._bark)

    def _bark(self) -> None:
        self.barked.append(asyncio.get_running_loop().time())


class Wait:
    """Until the pacer has beaten."""

    def __init__(self, pacer: Pacer) -> None:
        self._pacer = pacer

    def __await__(self) -> Any:
        waiter = asyncio.get_running_loop().create_future()
        told = self._pacer.beats

        class Told(list[float]):
            def append(self, at: float) -> None:
                super().append(at)
                if not waiter.done():
                    waiter.set_result(None)

        self._pacer.beats = Told(told)
        yield from waiter


def test_a_watchdog_that_is_fed_neither_barks_nor_makes_time_stop() -> None:
    pacer = Pacer()
    dog = Dog(pacer)
    play(pacer.run(), dog.run(), until=1_000_005.0)
    assert dog.barked == []
    assert dog.checked == 1
    assert pacer.beats == [1_000_000.0]


def test_a_watchdog_barks_to_the_second_once_the_voice_falls_silent() -> None:
    alive = [True]
    pacer = Pacer(renews=lambda voice: alive[0])
    dog = Dog(pacer)

    async def fail() -> None:
        await asyncio.sleep(123.0)
        alive[0] = False
        pacer.rhythm.due = float("inf")

    play(pacer.run(), dog.run(), fail(), until=1000.0)
    assert pacer.beats == [120.0]
    assert dog.barked == [170.0]


def test_a_watchdog_nobody_feeds_is_a_timer() -> None:
    pacer = Pacer(renews=lambda voice: voice == "n1")
    barked: list[float] = []

    async def listen() -> None:
        loop = asyncio.get_running_loop()
        call_unless_renewed(33.0, "n2", lambda: barked.append(loop.time()))
        call_unless_renewed(44.0, "n2", lambda: barked.append(loop.time())).cancel()
        call_unless_renewed(33.0, "n1", pytest.fail, "it was fed")
        await asyncio.Event().wait()

    play(pacer.run(), listen(), until=100.0)
    assert barked == [33.0]
    assert pacer.beats == [30.0, 100.0]


def test_a_rhythm_too_slow_for_a_watchdog_does_not_feed_it() -> None:
    rhythm = Heartbeat(60.0, 60.0, repeatable=lambda: True, renews=lambda voice: True)
    barked: list[float] = []

    async def beat() -> None:
        while True:
            await rhythm.beat()

    async def listen() -> None:
        loop = asyncio.get_running_loop()
        call_unless_renewed(50.0, "n1", lambda: barked.append(loop.time()))
        await asyncio.Event().wait()

    play(beat(), listen(), until=100.0)
    assert barked == [50.0]


def test_settling_waits_for_a_watchdog_that_will_bark() -> None:
    loop = VirtualLoop()

    async def main() -> float | None:
        call_unless_renewed(7.0, "n1", print)
        return loop.due()

    assert loop.run_until_complete(main()) == 7.0
    loop.close()


# -- the heartbeats of nodes ------------------------------------------------------------------


class Unsteady(LocalApi):
    """An API through which every heartbeat is tried."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.capabilities = REMOTE


Step = tuple[float, str]


def readings(world: World, api: LocalApi, steps: list[Step]) -> list[Any]:
    """What is read of leases and nodes, and what is done to them, after each of some spans."""
    with world:
        kubelets = Kubelets(api, world, ("n1", "n2"))
        world.spawn(kubelets.run(), name="kubelets")
        found: list[Any] = []
        for span, deed in steps:
            world.run(world.advance(span))
            leases: list[Any] = list(world.run(world.api().list(LEASES)).items)
            nodes: list[Any] = list(world.run(world.api().list(NODES)).items)
            found.append([(each.metadata.name, each.spec.renewTime) for each in leases])
            found.append([each.status.conditions for each in nodes])
            match deed:
                case "fail":
                    kubelets.fail("n1")
                case "recover":
                    kubelets.recover("n1")
                case "pod":
                    body: dict[str, Any] = {"metadata": {"generateName": "p-"}}
                    body["spec"] = {"nodeName": "n2", "containers": [{"name": "c", "image": "i"}]}
                    world.run(world.api().create(PODS, "default", body))
        return found


@settings(max_examples=30, deadline=None)
@given(
    some.lists(
        some.tuples(
            some.one_of(some.integers(0, 700).map(float), some.floats(0, 700)),
            some.sampled_from(["", "", "fail", "recover", "pod"]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_whoever_looks_sees_what_they_would_have_seen_had_every_beat_happened(steps: list[Step]) -> None:
    lazy, busy = World(seed=1), World(seed=1)
    assert readings(lazy, lazy.api(), steps) == readings(busy, Unsteady(busy.server), steps)


def test_a_watch_that_is_read_change_by_change_shows_every_renewal() -> None:
    async def follow(api: LocalApi, seen: list[float], begin: float) -> None:
        stream: AsyncIterator[Any] = api.watch(LEASES)
        async for event in stream:
            seen.append((event.obj.spec.renewTime.timestamp() - begin) // 1)

    with World(seed=1) as world:
        world.spawn(Kubelets(world.api(), world, ("n1",)).run())
        seen: list[float] = []
        task = world.spawn(follow(world.api(), seen, world.now().timestamp()))
        world.run(world.advance(35))
        assert seen == [0, 10, 20, 30]
        task.cancel()
        world.run(world.advance(86400))
        assert seen == [0, 10, 20, 30]
        before = world.server.store.revision
        world.run(world.advance(86400))
        assert world.server.store.revision - before == 2, "a lease and a status"


def test_who_only_wants_to_know_how_things_are_does_not_make_hearts_beat() -> None:
    async def follow(api: LocalApi, seen: list[str]) -> None:
        stream: AsyncIterator[Any] = api.watch(LEASES, level_triggered=True)
        async for event in stream:
            seen.append(event.obj.metadata.name)

    with World(seed=1) as world:
        world.spawn(Kubelets(world.api(), world, ("n1",)).run())
        seen: list[str] = []
        world.spawn(follow(world.api(), seen))
        world.run(world.advance(86400))
        assert seen == ["n1", "n1"]
