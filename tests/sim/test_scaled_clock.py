"""Time that runs faster than the wall."""

import asyncio
import time

import pytest

from steersman.sim.scaled_clock import ScaledClock, ScaledLoop


def test_an_hour_passes_in_a_blink_for_timers_and_clock_alike() -> None:
    loop = ScaledLoop(1_000_000)
    clock = ScaledClock(loop)
    before, began = clock.now(), time.monotonic()
    try:
        loop.run_until_complete(asyncio.sleep(3600))
    finally:
        loop.close()
    assert (clock.now() - before).total_seconds() >= 3600
    assert time.monotonic() - began < 60


def test_sockets_work_as_ever() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    async def main() -> bytes:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello\n")
            answer = await reader.readline()
            writer.close()
            return answer

    loop = ScaledLoop(60)
    try:
        assert loop.run_until_complete(main()) == b"hello\n"
    finally:
        loop.close()


@pytest.mark.parametrize("speed", [0, -1])
def test_time_does_not_stand_still_or_go_back(speed: float) -> None:
    with pytest.raises(ValueError, match="speed must be more than 0"):
        ScaledLoop(speed)
