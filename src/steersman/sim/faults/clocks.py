"""Clocks that are wrong: a manager's wall time jumps, or runs at another speed than the server's.

Time that is measured stays right: it is that of the event loop, whose timers all live by.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from steersman.runtime.clock import Clock
from steersman.sim.faults.crashes import describe
from steersman.sim.faults.fault import Armed, Call, Fault
from steersman.sim.faults.injector import Stage

WRONG = frozenset({"state", "expect", "creates", "deletes"})
"""What follows from a wrong time: deadlines and schedules are met at another."""


@dataclass(frozen=True, slots=True)
class ClockJump(Fault):
    """With the manager's nth write its wall clock jumps by so many seconds, forwards or back.

    With ``heals`` it is set right again after so many seconds.
    """

    seconds: float
    n: int = 1
    heals: float = 0.0
    word: ClassVar[str] = "clock_jump"
    excuses: ClassVar[frozenset[str]] = WRONG

    def arm(self, stage: Stage) -> Armed:
        return _Jump(self, stage)


@dataclass(frozen=True, slots=True)
class ClockRate(Fault):
    """The manager's wall clock runs at another speed: 1.1 is ten percent fast."""

    rate: float
    word: ClassVar[str] = "clock_rate"
    excuses: ClassVar[frozenset[str]] = WRONG

    def arm(self, stage: Stage) -> Armed:
        return _Rate(self)


class _Jump(Armed):
    def __init__(self, fault: ClockJump, stage: Stage) -> None:
        self._fault = fault
        self._stage = stage
        self._since: float | None = None

    def offset(self) -> float:
        """By how much the wall clock is wrong."""
        fault, since = self._fault, self._since
        if since is None:
            return 0.0
        if fault.heals and self._stage.world.monotonic() >= since + fault.heals:
            return 0.0
        return fault.seconds

    async def after(self, call: Call, answer: Any) -> Any:
        if call.write == self._fault.n:
            self._since = self._stage.world.monotonic()
            self._stage.strike(f"the clock jumps by {self._fault.seconds:g} s after {describe(call)}")
        return answer

    def clock(self, clock: Clock) -> Clock:
        return _Shifted(clock, self)


class _Shifted:
    def __init__(self, clock: Clock, jump: _Jump) -> None:
        self.random = clock.random
        self._clock = clock
        self._jump = jump

    def now(self) -> datetime:
        return self._clock.now() + timedelta(seconds=self._jump.offset())

    def monotonic(self) -> float:
        return self._clock.monotonic()


class _Rate(Armed):
    def __init__(self, fault: ClockRate) -> None:
        self._fault = fault

    def clock(self, clock: Clock) -> Clock:
        return _Stretched(clock, self._fault.rate)


class _Stretched:
    def __init__(self, clock: Clock, rate: float) -> None:
        self.random = clock.random
        self._clock = clock
        self._rate = rate
        self._start = clock.now()

    def now(self) -> datetime:
        return self._start + (self._clock.now() - self._start) * self._rate

    def monotonic(self) -> float:
        return self._clock.monotonic()
