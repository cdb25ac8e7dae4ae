"""Scaled time: real sockets and processes, but the clock runs ``speed`` times as fast.

Unlike a virtual loop this one waits, so other processes can take part. The loop's time, its timers and the clock are all scaled. Its speed
can be changed while it runs; it can be paused; and it can be fast-forwarded: whenever nothing is left to do, time moves on
to the next timer at once. No timer is skipped, so Leases are renewed and heartbeats are written as ever, only sooner.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import random
import selectors
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from steersman.api.clock import Clock


class Pace:
    """The relation of the loop's time to real time, in seconds. At each change it goes on from where it was."""

    def __init__(self, speed: float, now: float) -> None:
        self.speed = speed
        """Seconds of the loop in a second of real time."""
        self.paused = False
        self._real = now
        self._scaled = now * speed

    def at(self, real: float) -> float:
        """The loop's time at an instant of real time."""
        return self._scaled if self.paused else self._scaled + (real - self._real) * self.speed

    def change(self, real: float, *, speed: float | None = None, paused: bool | None = None) -> None:
        """Go on at another speed, pause, or go on after a pause."""
        self._scaled, self._real = self.at(real), real
        self.speed = self.speed if speed is None else speed
        self.paused = self.paused if paused is None else paused

    def skip(self, seconds: float) -> None:
        """Move the loop's time on at once."""
        self._scaled += seconds

    def wait(self, seconds: float) -> float:
        """The real seconds until some of the loop's have passed."""
        return math.inf if self.paused else seconds / self.speed


class RealTimers:
    """Timers in real time, however fast the loop's time goes."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, asyncio.Future[None]]] = []
        self._serial = 0

    def add(self, when: float, waiter: asyncio.Future[None]) -> None:
        """Set a result at an instant, unless the future is cancelled before."""
        self._serial += 1
        heapq.heappush(self._heap, (when, self._serial, waiter))

    def wait(self, now: float) -> float:
        """Real seconds until the first timer."""
        while self._heap and self._heap[0][2].done():
            heapq.heappop(self._heap)
        return max(self._heap[0][0] - now, 0.0) if self._heap else math.inf

    def ring(self, now: float) -> None:
        """Wake those that are due."""
        while self._heap and self._heap[0][0] <= now:
            waiter = heapq.heappop(self._heap)[2]
            if not waiter.done():
                waiter.set_result(None)


class FastForward:
    """A stretch of the loop's time that passes as fast as the work in it can be done."""

    def __init__(self, until: float, deadline: float, ended: asyncio.Future[None]) -> None:
        self.until = until
        """The loop's time at which it ends."""
        self.deadline = deadline
        """The real time at which it ends at the latest: a loop that is never idle would not get anywhere."""
        self.ended = ended

    def end(self) -> None:
        """Let time pass as before, from here on."""
        if not self.ended.done():
            self.ended.set_result(None)


class ScaledSelector(selectors.BaseSelector):
    """Waits for the scaled part of a timeout."""

    def __init__(self, pace: Pace, timers: RealTimers) -> None:
        self.fast_forward: FastForward | None = None
        self._real = selectors.DefaultSelector()
        self._pace = pace
        self._timers = timers

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for the loop's next timer, the next timer in real time, or a socket. ``timeout`` is in the loop's seconds."""
        now = monotonic()
        if timeout is not None and timeout <= 0.0:
            found = self._real.select(0)
            if self.fast_forward is not None and now >= self.fast_forward.deadline:
                self.end()
        elif self.fast_forward is not None:
            found = self._real.select(0)
            if not found:
                # Neither a callback nor a socket is ready, so the next thing to happen is the next timer.
                self._skip(self.fast_forward, math.inf if timeout is None else timeout, now)
        else:
            wait = math.inf if timeout is None else self._pace.wait(timeout)
            wait = min(wait, self._timers.wait(now))
            found = self._real.select(None if wait == math.inf else wait)
        self._timers.ring(monotonic())
        return found

    def _skip(self, fast: FastForward, seconds: float, now: float) -> None:
        left = fast.until - self._pace.at(now)
        self._pace.skip(max(min(seconds, left), 0.0))
        if seconds >= left or now >= fast.deadline:
            self.end()

    def end(self) -> None:
        """End a fast-forward, if there is one."""
        fast, self.fast_forward = self.fast_forward, None
        if fast is not None:
            fast.end()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class ScaledLoop(asyncio.SelectorEventLoop):
    """An event loop whose time runs ``speed`` times as fast as real time."""

    def __init__(self, speed: float) -> None:
        self._pace = Pace(speed, monotonic())
        self._real_timers = RealTimers()
        self._scaled_selector = ScaledSelector(self._pace, self._real_timers)
        super().__init__(self._scaled_selector)
        try:
            _check_speed(speed)
        except ValueError:
            self.close()
            raise

    @property
    def speed(self) -> float:
        """The loop's seconds in one of real time, while it is not paused."""
        return self._pace.speed

    @property
    def paused(self) -> bool:
        """Whether the loop's time stands still."""
        return self._pace.paused

    def time(self) -> float:
        return self._pace.at(monotonic())

    # -- steering, from the loop's own thread -----------------------------------------------------

    def set_speed(self, speed: float) -> None:
        """Go on at another speed. Raises `ValueError`."""
        _check_speed(speed)
        self._pace.change(monotonic(), speed=speed)

    def set_paused(self, paused: bool) -> None:
        """Let the loop's time stand still, or go on. What needs no time goes on: requests are answered, tasks run."""
        self._pace.change(monotonic(), paused=paused)

    def fast_forward(self, seconds: float, within: float) -> FastForward:
        """Let some seconds of the loop's time pass as fast as possible, within some real seconds."""
        now = monotonic()
        fast = FastForward(self._pace.at(now) + seconds, now + within, self.create_future())
        self._scaled_selector.fast_forward = fast
        return fast

    def stop_fast_forward(self) -> None:
        """Let time pass as before."""
        self._scaled_selector.end()

    # -- real time --------------------------------------------------------------------------------

    def real_time(self) -> float:
        """Seconds of real time, for what waits for other processes: HTTP connections, Leases."""
        return monotonic()

    async def sleep_in_real_time(self, seconds: float) -> None:
        """Wait for seconds of real time."""
        waiter = self.create_future()
        self._real_timers.add(monotonic() + seconds, waiter)
        await waiter

    @asynccontextmanager
    async def timeout_in_real_time(self, seconds: float | None) -> AsyncIterator[None]:
        """As ``asyncio.timeout``, in seconds of real time."""
        if seconds is None:
            yield
            return
        task, expired = asyncio.current_task(), False
        assert task is not None

        def expire(waiter: asyncio.Future[None]) -> None:
            nonlocal expired
            if not waiter.cancelled():
                expired = True
                task.cancel()

        waiter = self.create_future()
        waiter.add_done_callback(expire)
        self._real_timers.add(monotonic() + seconds, waiter)
        try:
            yield
        except asyncio.CancelledError:
            if expired and task.uncancel() <= 0:
                raise TimeoutError from None
            raise
        finally:
            waiter.cancel()


def _check_speed(speed: float) -> None:
    if not 0 < speed < math.inf:
        raise ValueError(f"speed must be more than 0, not {speed:g}")


class ScaledClock:
    """Wall time that starts at the machine's and then follows the loop's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.random = random.Random()
        self._loop = loop
        self._start = datetime.now(UTC)
        self._begin = loop.time()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._loop.time() - self._begin)

    def monotonic(self) -> float:
        return self._loop.time()


class RealMonotonicClock:
    """The wall time of another clock, with intervals in real time: for what other processes take part in."""

    def __init__(self, clock: Clock) -> None:
        self.random = clock.random
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return monotonic()
