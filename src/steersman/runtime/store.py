"""The store of an informer: one copy of each object of a kind, and indexes that point into it.

Only its informer changes a store, between two steps of the event loop. All reads of one synchronous step see the same
instant, so they return views and never copies.
"""

from __future__ import annotations

import builtins
import logging
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar, cast

from steersman.api.kinds import Object
from steersman.api.scheme import Key
from steersman.intent.controller import Change, Index

O = TypeVar("O", bound=Object)
log = logging.getLogger(__name__)

NAMESPACE = "namespace"
"""The index behind `Store.list` of one namespace; made when first asked for."""


def revision_of(resource_version: str) -> int | None:
    """A resourceVersion as a number, or None where a server does not number its versions."""
    # Longer than any 64-bit number is not a count of anything.
    return int(resource_version) if resource_version.isdecimal() and len(resource_version) <= 20 else None


def namespace_of(obj: Object) -> Iterable[Hashable]:
    return (obj.metadata.namespace,)


class _Bucket(dict[Key, O]):
    """Several objects under one value. A value with one object holds just that: most do, and a
    dictionary is as large as all else a store keeps for an object."""

    __slots__ = ()


class _Index(Generic[O]):
    """Objects by the values an index function computes. Values are not kept: they are computed again."""

    __slots__ = ("buckets", "find", "name")

    def __init__(self, name: str, find: Index) -> None:
        self.name = name
        self.find: Callable[[O], Iterable[Hashable]] = find
        self.buckets: dict[Hashable, O | _Bucket[O]] = {}

    def values(self, obj: O) -> tuple[Hashable, ...]:
        """The values of an object, each once, in order. An object that cannot be filed has none."""
        try:
            values = tuple(self.find(obj))
            hash(values)  # an unhashable value cannot be filed: fail here
            return values if len(values) < 2 else tuple(dict.fromkeys(values))
        except Exception:
            log.exception("index %s cannot file %s %s", self.name, type(obj).__name__, obj.key)
            return ()

    def move(self, key: Key, old: O | None, new: O | None) -> None:
        """Refile an object. Under a value that it keeps, it keeps its place."""
        before = self.values(old) if old is not None else ()
        after = self.values(new) if new is not None else ()
        if before != after:
            for value in before:
                if value not in after:
                    self._drop(key, value, old)
        if new is not None:
            for value in after:
                self._file(key, value, old, new)

    def _file(self, key: Key, value: Hashable, old: O | None, new: O) -> None:
        bucket = self.buckets.get(value)
        if bucket is None or bucket is old:
            self.buckets[value] = new
        elif type(bucket) is _Bucket:
            bucket[key] = new
        else:
            alone = cast("O", bucket)
            self.buckets[value] = _Bucket(((alone.key, alone), (key, new)))

    def _drop(self, key: Key, value: Hashable, old: O | None) -> None:
        bucket = self.buckets.get(value)
        if type(bucket) is _Bucket:
            bucket.pop(key, None)
            if len(bucket) == 1:
                # The last one needs no dictionary.
                self.buckets[value] = next(iter(bucket.values()))
        elif bucket is old:
            self.buckets.pop(value, None)

    def under(self, value: Hashable) -> Iterable[O]:
        bucket = self.buckets.get(value)
        if bucket is None:
            return ()
        return bucket.values() if isinstance(bucket, _Bucket) else (bucket,)


class Store(Generic[O]):
    """The objects of one kind by key and by index; a `Cache`."""

    __slots__ = ("_indexes", "_objects", "resource_version", "revision", "unreadable")

    def __init__(self) -> None:
        self.revision = 0
        """The resourceVersion reached, as a number; 0 before the first sync."""
        self.resource_version = ""
        """The same as the server wrote it."""
        self.unreadable: dict[Key, str] = {}
        """Why objects of which only the metadata is known could not be decoded."""
        self._objects: dict[Key, O] = {}
        self._indexes: dict[str, _Index[O]] = {}

    # -- reading

    def get(self, key: Key) -> O | None:
        return self._objects.get(key)

    def list(self, namespace: str | None = None) -> Iterable[O]:
        """All objects, or those of one namespace, in the order they were first seen."""
        if namespace is None:
            return self._objects.values()
        if NAMESPACE not in self._indexes:
            self.add_index(NAMESPACE, namespace_of)
        return self._indexes[NAMESPACE].under(namespace)

    def count(self, namespace: str) -> int:
        """The number of objects in a namespace."""
        return sum(1 for _ in self.list(namespace))

    def by(self, index: str, value: Hashable) -> Iterable[O]:
        """The objects an index files under a value. Raises `LookupError` for an unknown index."""
        try:
            found = self._indexes[index]
        except KeyError:
            raise LookupError(f"no index {index!r}; there are {sorted(self._indexes)}") from None
        return found.under(value)

    def values(self, index: str, obj: O) -> Iterable[Hashable]:
        """The values under which an index would file an object. Raises `LookupError` for an unknown index."""
        try:
            return self._indexes[index].find(obj)
        except KeyError:
            raise LookupError(f"no index {index!r}; there are {sorted(self._indexes)}") from None

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    # -- changing: for the informer alone

    def add_index(self, name: str, find: Index) -> None:
        """Add an index that files every object under the values of ``find``.

        The same function may be added again; another one under the same name is a mistake.
        """
        known = self._indexes.get(name)
        if known is not None:
            if known.find is not find and known.find != find:
                raise ValueError(f"index {name!r} already exists with another function")
            return
        index = self._indexes[name] = _Index[O](name, find)
        for key, obj in self._objects.items():
            index.move(key, None, obj)

    def put(self, obj: O) -> O | None:
        """Add or replace an object; returns the one it replaces."""
        key = obj.key
        old = self._objects.get(key)
        self.swap(key, old, obj)
        return old

    def swap(self, key: Key, old: O | None, new: O) -> None:
        """Like `put`, for a caller that knows the key and the object it replaces."""
        self._objects[key] = new
        for index in self._indexes.values():
            index.move(key, old, new)

    def remove(self, key: Key) -> O | None:
        """Remove an object; returns its last state."""
        self.unreadable.pop(key, None)
        old = self._objects.pop(key, None)
        if old is not None:
            for index in self._indexes.values():
                index.move(key, old, None)
        return old

    def reach(self, resource_version: str, *, forced: bool = False) -> bool:
        """Record the resourceVersion up to which the store is complete; returns whether it changed.

        It only goes back when ``forced``: a full list is right about the server even when the server
        was restored from a backup.
        """
        revision = revision_of(resource_version)
        if revision is None:
            # A server that does not number its versions: count the versions seen, so that progress
            # stays visible. Such a count is never compared with anything but itself.
            if resource_version == self.resource_version and self.revision:
                return False
            revision = self.revision + 1
        if revision == self.revision or (revision < self.revision and not forced):
            return False
        self.revision = revision
        self.resource_version = resource_version
        return True

    def replace(self, objects: Mapping[Key, O], unreadable: Mapping[Key, str]) -> Sequence[Change[O]]:
        """Replace all objects with these; returns the changes: first deletions, then additions and updates.

        An object of the same version is not a change, and the copy already held is kept. An object that
        was deleted and created again under the same name is two changes.
        """
        changes: builtins.list[Change[O]] = [
            Change(old, None) for key, old in self._objects.items() if key not in objects
        ]
        for key, new in objects.items():
            old = self._objects.get(key)
            if old is None:
                changes.append(Change(None, new))
            elif old.metadata.uid != new.metadata.uid:
                changes.append(Change(old, None))
                changes.append(Change(None, new))
            elif old.metadata.resourceVersion != new.metadata.resourceVersion or (key in unreadable) != (
                key in self.unreadable
            ):
                changes.append(Change(old, new))
        for change in changes:
            if change.new is None:
                self.remove(change.obj.key)
            else:
                self.put(change.new)
        self.unreadable.clear()
        self.unreadable.update(unreadable)
        return changes
