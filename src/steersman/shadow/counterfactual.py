"""Caches as they would be without one write: an object hidden that was created, or put back that was deleted.

The acting manager may be faster than we are, so its write is often in the caches before our controller has looked. Whether we would have
written the same is then asked of the caches without it.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeVar

from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.intent.all_resources import AllObjects
from steersman.intent.controller import Cache, Caches
from steersman.runtime.store import Store

O = TypeVar("O", bound=Object)


class AlteredStore:
    """A store with one object in another state; a `Cache`."""

    def __init__(self, store: Store[Any], key: Key, obj: Any | None) -> None:
        """``obj`` takes the place of the object of this key; None hides it."""
        self._store = store
        self._key = key
        self._obj = obj

    def get(self, key: Key) -> Any | None:
        return self._obj if key == self._key else self._store.get(key)

    def list(self, namespace: str | None = None) -> Iterable[Any]:
        yield from self._others(self._store.list(namespace))
        if self._obj is not None and namespace in (None, self._key.namespace):
            yield self._obj

    def by(self, index: str, value: Hashable) -> Iterable[Any]:
        yield from self._others(self._store.by(index, value))
        if self._obj is not None and value in tuple(self._store.values(index, self._obj)):
            yield self._obj

    def _others(self, objects: Iterable[Any]) -> Iterator[Any]:
        return (obj for obj in objects if obj.key != self._key)


class AlteredCaches:
    """The caches of a controller with one object in another state; a `Caches`.

    The memory is a copy, so that a decision which is not a round leaves no trace in it.
    """

    def __init__(self, caches: Caches, resource: str, key: Key, obj: Any | None) -> None:
        self._caches = caches
        self._resource = resource
        self._key = key
        self._obj = obj
        self.memory: object = copy.deepcopy(caches.memory)

    def __getitem__(self, kind: Kind[O]) -> Cache[O]:
        cache = self._caches[kind]
        if kind.resource != self._resource or not isinstance(cache, Store):
            return cache
        return AlteredStore(cache, self._key, self._obj)

    @property
    def all_objects(self) -> AllObjects:
        return self._caches.all_objects

    def monotonic(self) -> float:
        return self._caches.monotonic()
