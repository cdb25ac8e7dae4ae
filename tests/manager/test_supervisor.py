"""The supervisor of a control plane."""

from __future__ import annotations

import asyncio

import pytest

from steersman.manager.supervisor import ComponentFailed, Supervisor


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
        (end, "it returned without an error"),
    ],
)
async def test_the_first_that_ends_is_named_with_its_reason(work: object, why: str) -> None:
    supervisor = Supervisor()
    supervisor.start(forever(), "the kubelets")
    supervisor.start(work(), "the scheduler")
    async with asyncio.timeout(10):
        failure = await supervisor.failed()
    assert str(failure) == f"the scheduler ended, so the control plane stops: {why}"
    await supervisor.stop()


async def test_the_first_failure_is_reported_before_the_other_components_stop() -> None:
    told: list[str] = []

    async def note() -> None:
        try:
            await forever()
        finally:
            told.append("stopped")

    supervisor = Supervisor(lambda: told.append("failed"))
    supervisor.start(note(), "the kubelets")
    supervisor.start(fail(), "the scheduler")
    supervisor.start(fail(), "the controllers")
    async with asyncio.timeout(10):
        await supervisor.failed()
    await supervisor.stop()
    assert told == ["failed", "stopped"]


async def test_who_waits_for_readiness_is_told_of_a_loss_instead() -> None:
    supervisor = Supervisor()
    supervisor.start(fail(), "the controllers")
    with pytest.raises(ComponentFailed, match="the controllers ended"):
        await supervisor.wait_for(asyncio.Event())
    await supervisor.stop()


async def test_leaving_ends_everything_and_is_no_loss() -> None:
    supervisor = Supervisor()
    ended: list[str] = []

    async def note() -> None:
        try:
            await forever()
        finally:
            ended.append("ended")

    supervisor.start(note(), "a")
    ready = asyncio.Event()
    ready.set()
    await supervisor.wait_for(ready)
    await supervisor.stop()
    assert ended == ["ended"]
    waiting = asyncio.create_task(supervisor.failed())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
