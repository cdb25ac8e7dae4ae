"""Beats: what is written again and again only to say that somebody is still there.

Over a socket a beat is a beat. Under virtual time most of them can be left out: a beat that is followed by
the next before anything else happens in the world has been overwritten before anybody could look. So the
virtual loop moves from one thing that happens to the next, and right before each lets every rhythm beat that
would have beaten in between, once, at the last of its instants. Whoever looks at any instant sees what
they would have seen, to the second; months in which nothing happens take no time.

Two things limit that, and both are told by those who know:

* who follows every single change of the beaten resource gets every single one: `steersman.client.capabilities.LEVEL`;
* where a request may fail by chance (`steersman.client.capabilities.is_steady`), no beat is like the next, and each
  is tried.

A watchdog is the other side of it: `after_silence` calls back unless a voice is heard. While its rhythm beats,
a watchdog cannot go off, so it does not make time stop either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import floor
from typing import Protocol, TypeVarTuple, Unpack, cast

Ts = TypeVarTuple("Ts")


class Rhythm:
    """Beats at ``begin``, ``begin + period``, ``begin + 2 * period`` and so on."""

    def __init__(
        self,
        period: float,
        begin: float,
        *,
        stirs: str = "",
        alike: Callable[[], bool] = lambda: False,
        feeds: Callable[[str], bool] = lambda voice: False,
        looks: bool = False,
    ) -> None:
        """``stirs`` is the resource that is written at each beat. ``alike`` says whether the coming beats have
        the same effect, but for the time. ``feeds`` says whose silence they prevent, as long as they do.
        ``looks``: a beat reads what others write at theirs."""
        if period <= 0.0:
            raise ValueError("a rhythm needs a period")
        self.period = period
        self.due = begin
        """When the next beat is."""
        self.stirs = stirs
        self.alike = alike
        self.feeds = feeds
        self.looks = looks
        self._begin = begin

    def last(self, until: float) -> float:
        """The last beat up to an instant that is not before `due`."""
        count = floor((until - self._begin) / self.period)
        # Division rounds; the beat must be no later, and the one after it must be.
        while self._begin + (count + 1) * self.period <= until:
            count += 1
        while count > 0 and self._begin + count * self.period > until:
            count -= 1
        return max(self.due, self._begin + count * self.period)

    async def beat(self) -> None:
        """Wait for the next beat. Of those that were missed one is made up for, at once."""
        loop = asyncio.get_running_loop()
        elastic = _elastic(loop)
        if elastic is not None:
            await elastic.until_beat(self)
        elif self.due > (now := loop.time()):
            await asyncio.sleep(self.due - now)
        self.due = self.last(max(self.due, loop.time())) + self.period


class Elastic(Protocol):
    """A loop under virtual time, which knows what can be left out."""

    async def until_beat(self, rhythm: Rhythm) -> None:
        """Wait for a beat of the rhythm that somebody could see: the next, or a later one."""
        ...

    def call_in_silence(
        self, when: float, voice: str, callback: Callable[[Unpack[Ts]], object], *args: *Ts
    ) -> asyncio.TimerHandle:
        """Like ``call_at``, but the timer does not count while a rhythm feeds the voice in time."""
        ...


def after_silence(
    seconds: float, voice: str, callback: Callable[[Unpack[Ts]], object], *args: *Ts
) -> asyncio.TimerHandle:
    """Call back after so long, unless the timer is cancelled since the voice was heard.

    For those who read through a steady `Api`, and are told of every beat: they alone can be sure that a voice
    that is heard is heard by them.
    """
    loop = asyncio.get_running_loop()
    when = loop.time() + seconds
    elastic = _elastic(loop)
    if elastic is not None:
        return elastic.call_in_silence(when, voice, callback, *args)
    return loop.call_at(when, callback, *args)


def _elastic(loop: asyncio.AbstractEventLoop) -> Elastic | None:
    # Asking for a protocol takes longer than all the rest of a beat.
    return cast("Elastic", loop) if hasattr(loop, "until_beat") else None
