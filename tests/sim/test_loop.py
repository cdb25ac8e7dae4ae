"""The virtual loop: order, time, jams."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator

import pytest

from steersman.sim.loop import Deadlock, Livelock, VirtualLoop, background, in_background


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def test_a_year_of_sleep_takes_no_time(loop: VirtualLoop) -> None:
    year = 365 * 86400.0
    began = time.monotonic()
    loop.run_until_complete(asyncio.sleep(year))
    assert loop.time() == year
    assert time.monotonic() - began < 5


def test_timers_go_off_in_order_and_those_of_one_instant_as_they_were_set(loop: VirtualLoop) -> None:
    fired: list[str] = []

    async def main() -> None:
        for name, when in (("c", 2.0), ("a", 1.0), ("d", 2.0), ("b", 1.0), ("e", 2.0)):
            loop.call_at(when, fired.append, name)
        await asyncio.sleep(3)

    loop.run_until_complete(main())
    assert fired == ["a", "b", "c", "d", "e"]


def test_time_stands_still_while_anything_is_ready(loop: VirtualLoop) -> None:
    seen: list[float] = []

    async def main() -> None:
        loop.call_later(1, lambda: None)
        for _ in range(100):
            await asyncio.sleep(0)
            seen.append(loop.time())

    loop.run_until_complete(main())
    assert seen == [0.0] * 100


def test_a_cancelled_timer_does_not_move_time(loop: VirtualLoop) -> None:
    async def main() -> None:
        handle = loop.call_later(100, lambda: None)
        loop.call_later(1, lambda: None)
        handle.cancel()
        await asyncio.sleep(2)
        assert loop.due() is None

    loop.run_until_complete(main())
    assert loop.time() == 2


def test_many_cancelled_timers_leave_the_live_ones(loop: VirtualLoop) -> None:
    fired: list[int] = []

    async def main() -> None:
        handles = [loop.call_later(i + 1, fired.append, i) for i in range(500)]
        for i, handle in enumerate(handles):
            if i % 100:
                handle.cancel()
        await asyncio.sleep(600)

    loop.run_until_complete(main())
    assert fired == [0, 100, 200, 300, 400]


def test_timeouts_go_off_at_their_instant(loop: VirtualLoop) -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(100), 2)
        return loop.time()

    assert loop.run_until_complete(main()) == 7


def test_queues_events_and_task_groups_work_as_ever(loop: VirtualLoop) -> None:
    async def main() -> list[int]:
        queue: asyncio.Queue[int] = asyncio.Queue(1)
        go = asyncio.Event()

        async def produce() -> None:
            await go.wait()
            for i in range(5):
                await queue.put(i)
                await asyncio.sleep(1)

        async def consume() -> list[int]:
            return [await queue.get() for _ in range(5)]

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            consumer = group.create_task(consume())
            go.set()
        return consumer.result()

    assert loop.run_until_complete(main()) == [0, 1, 2, 3, 4]


def test_a_failing_task_group_cancels_the_others_at_once(loop: VirtualLoop) -> None:
    async def fail() -> None:
        await asyncio.sleep(1)
        raise KeyError("x")

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(1000))
            group.create_task(fail())

    with pytest.raises(ExceptionGroup):
        loop.run_until_complete(main())
    assert loop.time() == 1


def test_a_jam_says_who_waits_where_and_for_what(loop: VirtualLoop) -> None:
    async def patient(event: asyncio.Event) -> None:
        await event.wait()

    async def main() -> None:
        await asyncio.create_task(patient(asyncio.Event()), name="patient")

    with pytest.raises(Deadlock) as jam:
        loop.run_until_complete(main())
    message = str(jam.value)
    assert "nothing is ready and no timer is set" in message
    assert "patient: Event.wait" in message
    assert "patient (sim/test_loop.py:" in message
    assert "an Event that is not set" in message
    assert "main-1: " in message
    assert "for task patient" in message


def test_those_who_wait_at_the_same_place_are_told_of_together_and_after_all_others(
    loop: VirtualLoop,
) -> None:
    async def work(queue: asyncio.Queue[int]) -> None:
        await queue.get()

    async def hold(mine: asyncio.Lock, other: asyncio.Lock) -> None:
        async with mine:
            await asyncio.sleep(1)
            async with other:
                raise AssertionError("both cannot be held")

    async def main() -> None:
        queue: asyncio.Queue[int] = asyncio.Queue()
        left, right = asyncio.Lock(), asyncio.Lock()
        for number in range(6):
            loop.create_task(work(queue), name=f"worker-{number}")
        one = loop.create_task(hold(left, right), name="one")
        two = loop.create_task(hold(right, left), name="two")
        await asyncio.gather(one, two)

    with pytest.raises(Deadlock) as jam:
        loop.run_until_complete(main())
    lines = str(jam.value).splitlines()[1:]
    assert len(lines) == 3
    assert lines[0].startswith("  main-1: ")
    assert lines[0].endswith("for tasks one, two")
    assert lines[1].startswith("  one, two: Lock.acquire")
    assert lines[1].endswith("for a Lock held by another task")
    assert lines[2].startswith("  worker-0, worker-1, worker-2, worker-3 and 2 more: Queue.get")
    assert lines[2].endswith("for an item in a Queue")


def test_going_in_circles_is_noticed() -> None:
    loop = VirtualLoop(patience=1000)

    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(
        Livelock, match=r"1000 iterations without time passing(.|\n)*spin-1: .*for the event loop"
    ):
        loop.run_until_complete(spin())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(next(iter(asyncio.all_tasks(loop))))
    loop.close()


def test_what_fails_the_loop_is_raised_by_whoever_runs_it(loop: VirtualLoop) -> None:
    async def main() -> None:
        loop.call_later(3, loop.fail, KeyError("broken"))
        await asyncio.sleep(10)

    with pytest.raises(KeyError, match="broken"):
        loop.run_until_complete(main())
    assert loop.time() == 3


def order(shuffle: random.Random | None) -> list[int]:
    loop = VirtualLoop(shuffle=shuffle)
    ran: list[int] = []

    async def step(i: int) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            ran.append(i)

    async def main() -> None:
        await asyncio.gather(*(step(i) for i in range(6)))

    loop.run_until_complete(main())
    loop.close()
    return ran


def test_tasks_take_turns_in_the_order_they_became_ready() -> None:
    assert order(None) == [0, 1, 2, 3, 4, 5] * 3


def test_a_shuffled_order_is_another_one_and_the_same_for_the_same_seed() -> None:
    shuffled = order(random.Random(1))
    assert shuffled == order(random.Random(1))
    assert shuffled != order(None)
    assert shuffled != order(random.Random(2))
    assert sorted(shuffled) == sorted(order(None))


def test_a_shuffle_leaves_plain_callbacks_in_their_order() -> None:
    loop = VirtualLoop(shuffle=random.Random(3))
    ran: list[int] = []

    async def main() -> None:
        for i in range(20):
            loop.call_soon(ran.append, i)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    loop.run_until_complete(main())
    loop.close()
    assert ran == list(range(20))


def test_idle_waits_for_everything_of_this_instant_and_no_longer(loop: VirtualLoop) -> None:
    ran: list[str] = []

    async def chain() -> None:
        for i in range(10):
            await asyncio.sleep(0)
            ran.append(str(i))
        await asyncio.sleep(1)
        ran.append("later")

    async def main() -> float:
        task = asyncio.create_task(chain())
        await loop.idle()
        instant = loop.time()
        assert len(ran) == 10
        await task
        return instant

    assert loop.run_until_complete(main()) == 0


def test_until_lets_everything_of_the_instant_happen(loop: VirtualLoop) -> None:
    ran: list[str] = []

    async def late() -> None:
        await asyncio.sleep(5)
        await asyncio.sleep(0)
        ran.append("late")

    async def main() -> None:
        waiting = asyncio.create_task(loop.until(5))
        task = asyncio.create_task(late())
        await waiting
        assert ran == ["late"]
        await task

    loop.run_until_complete(main())


def test_timers_of_upkeep_run_but_are_not_due(loop: VirtualLoop) -> None:
    beats: list[float] = []

    async def beat() -> None:
        assert in_background()
        while True:
            await asyncio.sleep(1)
            beats.append(loop.time())

    async def main() -> None:
        with background():
            task = asyncio.create_task(beat())
        assert not in_background()
        await loop.idle()
        assert loop.due() is None
        loop.call_later(7, lambda: None)
        assert loop.due() == 7
        await asyncio.sleep(3.5)
        task.cancel()

    loop.run_until_complete(main())
    assert beats == [1, 2, 3]


def test_a_halt_leaves_what_is_ready_for_the_next_run(loop: VirtualLoop) -> None:
    ran: list[str] = []
    loop.call_soon(ran.append, "before")
    loop.call_soon(loop.halt)
    loop.call_soon(ran.append, "after")
    loop.run_forever()
    assert ran == ["before"]
    loop.call_soon(loop.halt)
    loop.run_forever()
    assert ran == ["before", "after"]


def test_threads_are_refused(loop: VirtualLoop) -> None:
    async def main() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(RuntimeError, match="no threads under virtual time"):
        loop.run_until_complete(main())


def test_a_runner_can_be_given_the_loop() -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(asyncio.sleep(1000))
        assert runner.get_loop().time() == 1000
