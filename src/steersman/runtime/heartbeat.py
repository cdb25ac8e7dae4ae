"""Heartbeats: periodic writes that only say that a process is alive, and the timers they renew.

On a real cluster every heartbeat is written. Under virtual time most can be left out: a heartbeat that is followed
by the next before anything else happens has been overwritten before any reader could see it. The virtual loop moves
from one event to the next, and right before each lets every heartbeat that was due in between happen once, at the last
of its instants. Readers see the same state at every instant, to the second, and months without events take no time.

Two things limit that:

* a watch that wants every single change of the written resource gets every single heartbeat
  (`steersman.client.api.Api.watch` without ``level_triggered``);
* where requests may fail by chance (`Capabilities.steady` is false) no two heartbeats are alike, and each is tried.

`call_unless_renewed` is the counterpart: a timer that heartbeats renew. While they go on it cannot fire, so the virtual
loop does not stop for it either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import floor
from typing import Protocol, TypeVarTuple, Unpack, cast

Ts = TypeVarTuple("Ts")


class Heartbeat:
    """A periodic event at ``begin``, ``begin + period``, ``begin + 2 * period`` and so on, in seconds of the loop."""

    def __init__(
        self,
        period: float,
        begin: float,
        *,
        writes: str = "",
        repeatable: Callable[[], bool] = lambda: False,
        renews: Callable[[str], bool] = lambda heartbeat: False,
        reads: bool = False,
    ) -> None:
        """``writes`` is the resource that each beat writes; ``reads`` says that a beat reads what other beats write.
        ``repeatable`` says whether the coming beats all have the same effect except for their time. ``renews`` says
        whether the beats renew the timers of a heartbeat with this name (`steersman.intent.verdict.heartbeat_of`).
        """
        if period <= 0.0:
            raise ValueError("the period of a heartbeat must be positive")
        self.period = period
        self.due = begin
        """The instant of the next beat."""
        self.writes = writes
        self.repeatable = repeatable
        self.renews = renews
        self.reads = reads
        self._begin = begin

    def last(self, until: float) -> float:
        """The last beat up to an instant, which must not be before `due`."""
        count = floor((until - self._begin) / self.period)
        # Division rounds; the beat must be no later, and the one after it must be.
        while self._begin + (count + 1) * self.period <= until:
            count += 1
        while count > 0 and self._begin + count * self.period > until:
            count -= 1
        return max(self.due, self._begin + count * self.period)

    async def beat(self) -> None:
        """Wait for the next beat. If some were missed, one of them is made up for at once."""
        loop = asyncio.get_running_loop()
        virtual = _virtual(loop)
        if virtual is not None:
            await virtual.until_beat(self)
        elif self.due > (now := loop.time()):
            await asyncio.sleep(self.due - now)
        self.due = self.last(max(self.due, loop.time())) + self.period


class HeartbeatLoop(Protocol):
    """An event loop under virtual time that leaves out heartbeats without an effect."""

    async def until_beat(self, heartbeat: Heartbeat) -> None:
        """Wait for a beat that a reader could see: the next, or a later one."""
        ...

    def call_unless_renewed_at(
        self, when: float, heartbeat: str, callback: Callable[[Unpack[Ts]], object], *args: *Ts
    ) -> asyncio.TimerHandle:
        """Like ``call_at``, but the timer does not count while a heartbeat renews it in time."""
        ...


def call_unless_renewed(
    seconds: float, heartbeat: str, callback: Callable[[Unpack[Ts]], object], *args: *Ts
) -> asyncio.TimerHandle:
    """Call back after some seconds, unless the caller cancels the timer because it saw a heartbeat.

    Only for callers that watch through a steady `Api` and see every beat: they can be sure that a beat that happens
    cancels the timer.
    """
    loop = asyncio.get_running_loop()
    when = loop.time() + seconds
    virtual = _virtual(loop)
    if virtual is not None:
        return virtual.call_unless_renewed_at(when, heartbeat, callback, *args)
    return loop.call_at(when, callback, *args)


def _virtual(loop: asyncio.AbstractEventLoop) -> HeartbeatLoop | None:
    # isinstance() on a protocol takes longer than all the rest of a beat.
    return cast("HeartbeatLoop", loop) if hasattr(loop, "until_beat") else None
