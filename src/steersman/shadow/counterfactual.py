"""Caches as they would be without a write: an object hidden that was created, or put back that was deleted.

The acting manager may be faster than we are, so its write is often in the caches before our controller has looked. Whether we would have
written the same is then asked of the caches without it.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.intent.all_resources import AllObjects
from steersman.intent.controller import Cache, Caches
from steersman.runtime.store import Store

O = TypeVar("O", bound=Object)


class AlteredStore:
    """A store with some objects in another state; a `Cache`."""

    def __init__(self, store: Store[Any], altered: Mapping[Key, Any | None]) -> None:
        """``altered`` objects take the place of those of their keys; None hides an object."""
        self._store = store
        self._altered = altered

    def get(self, key: Key) -> Any | None:
        return self._altered[key] if key in self._altered else self._store.get(key)

    def list(self, namespace: str | None = None) -> Iterable[Any]:
        yield from self._others(self._store.list(namespace))
        yield from (obj for obj in self._put_back() if namespace in (None, obj.key.namespace))

    def by(self, index: str, value: Hashable) -> Iterable[Any]:
        yield from self._others(self._store.by(index, value))
        yield from (obj for obj in self._put_back() if value in tuple(self._store.values(index, obj)))

    def _others(self, objects: Iterable[Any]) -> Iterator[Any]:
        return (obj for obj in objects if obj.key not in self._altered)

    def _put_back(self) -> Iterator[Any]:
        return (obj for obj in self._altered.values() if obj is not None)


class AlteredCaches:
    """The caches of a controller with some objects of one resource in another state; a `Caches`.

    The memory is a copy, so that a decision which is not a round leaves no trace in it.
    """

    def __init__(self, caches: Caches, resource: str, altered: Mapping[Key, Any | None]) -> None:
        self._caches = caches
        self._resource = resource
        self._altered = altered
        self.memory: object = copy.deepcopy(caches.memory)

    def __getitem__(self, kind: Kind[O]) -> Cache[O]:
        cache = self._caches[kind]
        if kind.resource != self._resource or not isinstance(cache, Store):
            return cache
        return AlteredStore(cache, self._altered)

    @property
    def all_objects(self) -> AllObjects:
        return self._caches.all_objects

    def monotonic(self) -> float:
        return self._caches.monotonic()
