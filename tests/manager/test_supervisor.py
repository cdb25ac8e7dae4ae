"""Tasks that stand and fall together."""

from __future__ import annotations

import asyncio

import pytest

from steersman.manager.supervisor import Crew, Lost


async def forever() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise ValueError("no such luck")


async def fail_within() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(forever())
        group.create_task(fail())


async def end() -> None:
    return


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (fail, "ValueError: no such luck"),
        (fail_within, "ValueError: no such luck"),
        (end, "nobody said why"),
    ],
)
async def test_the_first_that_ends_is_named_with_its_reason(work: object, why: str) -> None:
    crew = Crew()
    crew.take(forever(), "the kubelets")
    crew.take(work(), "the scheduler")  # type: ignore[operator]
    async with asyncio.timeout(10):
        lost = await crew.lost()
    assert str(lost) == f"the scheduler ended, so the control plane stops: {why}"
    await crew.leave()


async def test_who_waits_for_readiness_is_told_of_a_loss_instead() -> None:
    crew = Crew()
    crew.take(fail(), "the controllers")
    with pytest.raises(Lost, match="the controllers ended"):
        await crew.until(asyncio.Event())
    await crew.leave()


async def test_leaving_ends_everything_and_is_no_loss() -> None:
    crew = Crew()
    ended: list[str] = []

    async def note() -> None:
        try:
            await forever()
        finally:
            ended.append("ended")

    crew.take(note(), "a")
    ready = asyncio.Event()
    ready.set()
    await crew.until(ready)
    await crew.leave()
    assert ended == ["ended"]
    waiting = asyncio.create_task(crew.lost())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
