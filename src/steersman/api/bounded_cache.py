"""Caches of bounded size: `BoundedCache`, `ExpiringCache` whose entries also expire, and `short_cache` for functions.

The oldest entries make room for new ones. A hit through `BoundedCache.get` costs as much as a dict's `get`, and does
not count as a use; a cache that should evict the least recently used entry first is read through
`BoundedCache.use`. Threads may share a cache without weights: no step needs a lock.

Values derived from an object are cached by the object's ``id``. The entry must then hold the object as well, so
that no other object can get the same id.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


MAX_SHORT = 512
"""Characters of the longest text that is cached by `short_cache`."""


def short_cache(max_entries: int) -> Callable[[Callable[[K], V]], Callable[[K], V]]:
    """Decorate a function of one argument so that its latest results are cached, but for long texts.

    Clients choose the texts. A cache of those that are megabytes long would be bounded in name only.
    """

    def decorate(function: Callable[[K], V]) -> Callable[[K], V]:
        cached = lru_cache(max_entries)(function)

        @wraps(function)
        def call(argument: K) -> V:
            if isinstance(argument, (str, bytes)) and len(argument) > MAX_SHORT:
                return function(argument)
            return cached(argument)

        return call

    return decorate


class BoundedCache(Generic[K, V]):
    """A mapping of at most ``max_entries`` entries, which together weigh at most ``max_weight``.

    The weight is given with each entry, in bytes for instance. None cannot be cached: it stands for a miss.
    """

    __slots__ = ("_entries", "_max_entries", "_max_weight", "_weight", "_weights", "get")

    def __init__(self, max_entries: int, max_weight: int = sys.maxsize) -> None:
        self._max_entries = max_entries
        self._max_weight = max_weight
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._weights: dict[K, int] = {}
        self._weight = 0
        self.get: Callable[[K], V | None] = self._entries.get
        """Return a value, or None; does not count as a use. The dict's own method, for speed."""

    def use(self, key: K) -> V | None:
        """Return a value, or None, and make it the last to be evicted."""
        value = self._entries.pop(key, None)
        if value is not None:
            self._entries[key] = value
        return value

    def put(self, key: K, value: V, weight: int = 0) -> None:
        """Add or replace an entry, and evict the oldest ones beyond the bounds.

        An entry that alone is heavier than the whole cache may be is not added.
        """
        entries = self._entries
        if key in entries:
            self.discard(key)
        if weight:
            if weight > self._max_weight:
                return
            self._weights[key] = weight
            self._weight += weight
        entries[key] = value
        while len(entries) > self._max_entries or self._weight > self._max_weight:
            evicted, _ = entries.popitem(last=False)
            if self._weights:
                self._weight -= self._weights.pop(evicted, 0)

    def discard(self, key: K) -> None:
        """Remove an entry, if there is one."""
        self._entries.pop(key, None)
        if self._weights:
            self._weight -= self._weights.pop(key, 0)

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self._weights.clear()
        self._weight = 0

    def items(self) -> tuple[tuple[K, V], ...]:
        """Return all entries, the next to be evicted first."""
        return tuple(self._entries.items())

    def __len__(self) -> int:
        return len(self._entries)


class ExpiringCache(Generic[K, V]):
    """A cache of at most ``max_entries`` entries, each of which expires after its own time to live."""

    __slots__ = ("_entries", "_monotonic")

    def __init__(self, monotonic: Callable[[], float], max_entries: int) -> None:
        """``monotonic`` returns the time in seconds."""
        self._monotonic = monotonic
        self._entries: BoundedCache[K, tuple[float, V]] = BoundedCache(max_entries)

    def get(self, key: K) -> V | None:
        """Return a value that has not expired, or None."""
        found = self._entries.get(key)
        if found is None:
            return None
        expires, value = found
        if self._monotonic() < expires:
            return value
        self._entries.discard(key)
        return None

    def put(self, key: K, value: V, ttl: float) -> None:
        """Add or replace an entry that expires after ``ttl`` seconds; with 0 seconds it is not added."""
        if ttl > 0:
            self._entries.put(key, (self._monotonic() + ttl, value))

    def __len__(self) -> int:
        return len(self._entries)
