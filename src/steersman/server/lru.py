"""A memory of what was used of late.

It needs no lock: nothing walks through it, so a thread that writes to disk may use it along with everybody.
"""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Remembers at least so many things, and at most twice as many; those put first are forgotten first."""

    __slots__ = ("_least", "_older", "_young")

    def __init__(self, least: int) -> None:
        self._least = least
        self._young: dict[K, V] = {}
        self._older: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._older)

    def get(self, key: K) -> V | None:
        found = self._young.get(key)
        return self._older.get(key) if found is None else found

    def put(self, key: K, value: V) -> None:
        if len(self._young) >= self._least:
            self._older, self._young = self._young, {}
        self._young[key] = value
