"""Clock faults: a manager's wall clock jumps, or runs at another rate than the server's.

The monotonic clock stays right: it is the event loop's, which all timers use.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

from steersman.api.clock import Clock
from steersman.sim.faults.fault import ActiveFault, Call, Fault, describe
from steersman.sim.faults.injector import FaultInjector

WRONG_TIME = frozenset({"state", "expect", "creates", "deletes"})
"""Invariants that a wrong time breaks: deadlines and schedules are met at another time."""


class ClockJump(Fault, frozen=True):
    """The manager's wall clock jumps by ``seconds``, forwards or back, at its nth write.

    With ``heals`` it is right again after that many seconds.
    """

    seconds: float
    n: int = 1
    heals: float = 0.0
    name: ClassVar[str] = "clock_jump"
    allowed_violations: ClassVar[frozenset[str]] = WRONG_TIME

    def check(self, argument: str, value: Any) -> str:
        # A clock may go back.
        return super().check(argument, abs(value) if argument == "seconds" else value)

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Jump(self, injector)


class ClockRate(Fault, frozen=True):
    """The manager's wall clock runs at another rate: 1.1 is ten percent fast."""

    rate: float
    name: ClassVar[str] = "clock_rate"
    allowed_violations: ClassVar[frozenset[str]] = WRONG_TIME

    def activate(self, injector: FaultInjector) -> ActiveFault:
        return _Rate(self, injector)


class _Jump(ActiveFault):
    def __init__(self, fault: ClockJump, injector: FaultInjector) -> None:
        self._fault = fault
        self._injector = injector
        self._since: float | None = None

    def offset(self) -> float:
        """Seconds by which the wall clock is wrong."""
        fault, since = self._fault, self._since
        if since is None:
            return 0.0
        if fault.heals and self._injector.world.monotonic() >= since + fault.heals:
            return 0.0
        return fault.seconds

    async def after(self, call: Call, answer: Any) -> Any:
        if call.write == self._fault.n:
            self._since = self._injector.world.monotonic()
            self._injector.record(self, f"clock jumps by {self._fault.seconds:g} s after {describe(call)}")
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


class _Rate(ActiveFault):
    def __init__(self, fault: ClockRate, injector: FaultInjector) -> None:
        self._fault = fault
        self._injector = injector

    def begin(self) -> None:
        self._injector.record(self, f"clock runs at {self._fault.rate:g} times its rate")

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
