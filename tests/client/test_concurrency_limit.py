"""The limit of concurrent requests: order, growth, cancellation."""

from __future__ import annotations

import asyncio

import pytest

from steersman.client.transport import ConcurrencyLimit


class Crowd:
    """Tasks that hold their slot until told to leave."""

    def __init__(self, limit: ConcurrencyLimit, size: int) -> None:
        self.leave = [asyncio.Event() for _ in range(size)]
        self.inside: list[int] = []
        self.tasks = [asyncio.create_task(self._one(limit, i)) for i in range(size)]

    async def _one(self, limit: ConcurrencyLimit, number: int) -> None:
        async with limit:
            self.inside.append(number)
            await self.leave[number].wait()
            self.inside.remove(number)

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def end(self) -> None:
        for event in self.leave:
            event.set()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_the_first_few_go_and_the_others_wait_in_order() -> None:
    crowd = Crowd(ConcurrencyLimit(initial=3, limit=100), 10)
    await crowd.settle()
    assert crowd.inside == [0, 1, 2]
    await crowd.end()


async def test_each_that_comes_back_while_others_wait_lets_two_go() -> None:
    crowd = Crowd(ConcurrencyLimit(initial=2, limit=100), 10)
    await crowd.settle()
    crowd.leave[0].set()
    await crowd.settle()
    assert crowd.inside == [1, 2, 3]
    crowd.leave[1].set()
    await crowd.settle()
    assert crowd.inside == [2, 3, 4, 5]
    await crowd.end()


async def test_there_are_never_more_than_the_most() -> None:
    crowd = Crowd(ConcurrencyLimit(initial=2, limit=4), 20)
    await crowd.settle()
    for number in range(16):
        crowd.leave[number].set()
        await crowd.settle()
        assert len(crowd.inside) <= 4
    assert len(crowd.inside) == 4
    await crowd.end()


async def test_after_a_quiet_moment_it_starts_from_the_first_few_again() -> None:
    limit = ConcurrencyLimit(initial=2, limit=100)
    await Crowd(limit, 50).end()
    crowd = Crowd(limit, 10)
    await crowd.settle()
    assert crowd.inside == [0, 1]
    await crowd.end()


async def test_a_cancelled_waiter_leaves_its_place_to_the_next() -> None:
    crowd = Crowd(ConcurrencyLimit(initial=1, limit=1), 3)
    await crowd.settle()
    crowd.tasks[1].cancel()
    crowd.leave[0].set()
    await crowd.settle()
    assert crowd.inside == [2]
    await crowd.end()


async def test_a_turn_given_to_a_task_that_is_cancelled_at_that_moment_is_not_lost() -> None:
    limit = ConcurrencyLimit(initial=1, limit=1)
    crowd = Crowd(limit, 3)
    await crowd.settle()
    crowd.leave[0].set()
    await asyncio.sleep(0)
    assert crowd.inside == [], "the first has left, the second not noticed its turn yet"
    crowd.tasks[1].cancel()
    await crowd.settle()
    with pytest.raises(asyncio.CancelledError):
        await crowd.tasks[1]
    assert crowd.inside == [2]
    await crowd.end()
