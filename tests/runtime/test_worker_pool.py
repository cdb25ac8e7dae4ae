"""Crews: as many workers as there is work for, and no more than allowed."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from steersman.runtime.worker_pool import WorkerPool

MOOD: ContextVar[str] = ContextVar("mood", default="calm")


async def test_workers_are_hired_as_they_are_called_for_and_no_more_than_allowed() -> None:
    started: list[str] = []

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        started.append(task.get_name())
        await asyncio.Event().wait()

    async def boss() -> None:
        async with asyncio.TaskGroup() as group:
            pool = WorkerPool(group, work, 3, "w")
            await asyncio.sleep(0)
            assert started == []
            pool.call()
            await asyncio.sleep(0)
            assert started == ["w#0"]
            pool.call(5)
            pool.call()
            await asyncio.sleep(0)
            assert started == ["w#0", "w#1", "w#2"]
            await asyncio.Event().wait()

    task = asyncio.create_task(boss())
    for _ in range(6):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait((task,))
    assert task.cancelled()


async def test_a_worker_lives_in_the_context_of_its_crew_not_of_who_called_for_it() -> None:
    moods: list[str] = []

    async def work() -> None:
        moods.append(MOOD.get())

    async with asyncio.TaskGroup() as group:
        pool = WorkerPool(group, work, 2, "w")
        MOOD.set("hurried")
        pool.call()
    assert moods == ["calm"]


async def test_nobody_is_hired_by_a_group_that_is_ending() -> None:
    worked: list[int] = []

    async def work() -> None:
        worked.append(1)

    async def fail() -> None:
        raise KeyError("lost")

    async def late() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            pool.call()

    try:
        async with asyncio.TaskGroup() as group:
            pool = WorkerPool(group, work, 2, "w")
            group.create_task(late())
            await asyncio.sleep(0)
            group.create_task(fail())
    except* KeyError:
        pass
    assert worked == []


async def test_a_worker_that_waits_lends_its_place_and_one_too_many_retires() -> None:
    running: list[int] = []

    async def work() -> None:
        running.append(1)
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        pool = WorkerPool(group, work, 1, "w")
        pool.call(5)
        await asyncio.sleep(0)
        assert len(running) == 1
        with pool.lend(backlog=0):
            await asyncio.sleep(0)
            assert len(running) == 1, "no key waits for a worker"
            pool.call()
            pool.call()
            await asyncio.sleep(0)
            assert len(running) == 2
            assert not pool.retire()
        assert pool.retire(), "the loan is over"
        assert not pool.retire()
        with pool.lend(backlog=7):
            await asyncio.sleep(0)
            assert len(running) == 3, "one place, one worker"
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


async def test_a_slow_worker_lends_its_place_to_two_others_until_it_is_done() -> None:
    running: list[int] = []

    async def work() -> None:
        running.append(1)
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        pool = WorkerPool(group, work, 1, "w")
        pool.call()
        await asyncio.sleep(0)
        lent = asyncio.Event()

        def backlog() -> int:
            lent.set()
            return 5

        with pool.lend_after(60.0, backlog):
            pool.call()
            await asyncio.sleep(0)
            assert len(running) == 1, "it is not slow yet"
        assert not pool.retire()
        with pool.lend_after(0.0, backlog):
            await lent.wait()
            await asyncio.sleep(0)
            assert len(running) == 3
        assert pool.retire(), "the loan is over"
        assert pool.retire()
        assert not pool.retire()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
