"""Rhythms: when their beats are, on any loop."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as some

from steersman.runtime.heartbeat import Heartbeat, call_unless_renewed


@given(
    period=some.floats(0.001, 1e4), begin=some.floats(0, 1e6), elapsed=some.floats(0, 1e7, allow_nan=False)
)
def test_the_last_beat_up_to_an_instant_is_within_a_period_of_it(
    period: float, begin: float, elapsed: float
) -> None:
    rhythm = Heartbeat(period, begin)
    until = begin + elapsed
    last = rhythm.last(until)
    assert last <= until
    assert until < last + period or last + period == pytest.approx(until)


@pytest.mark.parametrize(
    ("until", "last"), [(10.0, 10.0), (19.999, 10.0), (20.0, 20.0), (2_592_000.0, 2_592_000.0)]
)
def test_beats_are_multiples_of_the_period(until: float, last: float) -> None:
    assert Heartbeat(10.0, 10.0).last(until) == last


def test_a_rhythm_without_a_period_is_none() -> None:
    with pytest.raises(ValueError, match="period"):
        Heartbeat(0.0, 1.0)


def test_over_a_socket_a_beat_is_a_beat_and_of_those_that_were_missed_one_is_made_up_for() -> None:
    class Loop(asyncio.SelectorEventLoop):
        """Time passes when somebody waits, and when told."""

        now = 0.0

        def time(self) -> float:
            return self.now

        def call_at(self, when: float, callback: object, *args: object, context: object = None) -> object:  # type: ignore[override]
            self.now = max(self.now, when)
            return super().call_at(self.now, callback, *args)  # type: ignore[arg-type]

    async def main(loop: Loop) -> list[float]:
        rhythm, beats = Heartbeat(10.0, 10.0), []
        for work in (0.0, 0.0, 35.0, 0.0):
            await rhythm.beat()
            beats.append(loop.now)
            loop.now += work
        await rhythm.beat()
        return [*beats, loop.now]

    loop = Loop()
    try:
        assert loop.run_until_complete(main(loop)) == [10.0, 20.0, 30.0, 65.0, 70.0]
    finally:
        loop.close()


async def test_a_watchdog_on_an_ordinary_loop_is_a_timer() -> None:
    heard = asyncio.Event()
    cancelled = call_unless_renewed(0.0, "somebody", pytest.fail, "cancelled")
    cancelled.cancel()
    call_unless_renewed(0.0, "somebody", heard.set)
    await heard.wait()
