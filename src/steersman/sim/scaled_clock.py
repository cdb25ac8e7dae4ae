"""Scaled time: real sockets and processes, but the clock runs ``speed`` times as fast.

Unlike a virtual loop this one waits, so other processes can take part. The loop's time, its timers and the clock are all scaled.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any


class ScaledSelector(selectors.BaseSelector):
    """Waits for the scaled part of a timeout."""

    def __init__(self, speed: float) -> None:
        self._real = selectors.DefaultSelector()
        self._speed = speed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._real.select(timeout / self._speed if timeout else timeout)

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
        self._speed = speed
        super().__init__(ScaledSelector(speed))
        if speed <= 0:
            self.close()
            raise ValueError(f"speed must be more than 0, not {speed:g}")

    @property
    def speed(self) -> float:
        """The loop's seconds in one of real time."""
        return self._speed

    def time(self) -> float:
        return super().time() * self._speed


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
