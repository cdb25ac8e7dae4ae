"""Caches that show objects which cannot be decoded as such, wherever a decision might take them for absent or empty.

The store has their metadata alone, so that an index of anything else does not file them. Here they stand under every value that
they might have: a round that asks for the pods of a claim gets the pods that cannot be decoded, too, and fails when it looks
inside (`steersman.intent.undecodable`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.intent.all_resources import AllObjects
from steersman.intent.controller import Cache, Caches
from steersman.intent.undecodable import Undecodable, stand_in
from steersman.runtime.store import Store

O = TypeVar("O", bound=Object)


class UndecodableCache(Generic[O]):
    """The cache of a kind of which some objects cannot be decoded."""

    def __init__(self, kind: Kind[O], store: Store[O], caches: UndecodableCaches) -> None:
        self._kind = kind
        self._store = store
        self._caches = caches

    def get(self, key: Key) -> O | None:
        found = self._store.get(key)
        return found if found is None else self._shown(found)

    def list(self, namespace: str | None = None) -> Iterable[O]:
        return map(self._shown, self._store.list(namespace))

    def by(self, index: str, value: Hashable) -> Iterator[O]:
        """The objects under a value, and those that might be, which come last."""
        filed = dict.fromkeys(obj.key for obj in self._store.by(index, value))
        yield from map(self._shown, self._store.by(index, value))
        for key in self._store.unreadable:
            found = self._store.get(key)
            if found is not None and key not in filed and self._may_be_under(index, value, found):
                yield self._shown(found)

    def _shown(self, obj: O) -> O:
        error = self._store.unreadable.get(obj.key)
        if error is None:
            return obj
        self._caches.shown = True
        return stand_in(self._kind, obj.metadata, error)

    def _may_be_under(self, index: str, value: Hashable, obj: O) -> bool:
        """Whether an index could file an object under a value if it were decoded."""
        namespace = obj.metadata.namespace
        if isinstance(value, Key) and "" not in (value.namespace, namespace) and value.namespace != namespace:
            return False  # an object of a namespace only ever refers to others of the same
        try:
            return value in tuple(self._store.values(index, stand_in(self._kind, obj.metadata, "")))
        except Undecodable:
            return True


class UndecodableCaches:
    """The caches of a controller while objects in them cannot be decoded; a `Caches`."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self.shown = False
        """Whether a decision was shown such an object, so that it may be another one once the object can be decoded."""

    def __getitem__(self, kind: Kind[O]) -> Cache[O]:
        cache = self._caches[kind]
        return UndecodableCache(kind, cache, self) if isinstance(cache, Store) and cache.unreadable else cache

    @property
    def all_objects(self) -> AllObjects:
        return self._caches.all_objects

    def monotonic(self) -> float:
        return self._caches.monotonic()

    @property
    def memory(self) -> object:
        return self._caches.memory
