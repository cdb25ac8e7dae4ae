"""The metadata cache: one view over the stores of all followed resources, with indexes across them.

Objects stay in the store of their resource. The cache only finds them: by uid, and by the declared indexes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.intent.all_resources import Item
from steersman.intent.controller import Change, Index
from steersman.runtime.store import Store

log = logging.getLogger(__name__)


class _UidIndex:
    """Uids by the values an index function computes. A value with one object holds just its uid: most do."""

    __slots__ = ("_find", "_under", "name")

    def __init__(self, name: str, find: Index) -> None:
        self.name = name
        self._find = find
        self._under: dict[Hashable, str | dict[str, None]] = {}

    def values(self, obj: Object | None) -> tuple[Hashable, ...]:
        if obj is None:
            return ()
        try:
            return tuple(dict.fromkeys(self._find(obj)))
        except Exception:
            log.exception("index %s cannot file %s %s", self.name, type(obj).__name__, obj.key)
            return ()

    def move(self, uid: str, old: Object | None, new: Object | None) -> None:
        before, after = self.values(old), self.values(new)
        if before == after:
            return
        for value in before:
            if value not in after:
                self._drop(value, uid)
        for value in after:
            if value not in before:
                self._file(value, uid)

    def _file(self, value: Hashable, uid: str) -> None:
        under = self._under.get(value)
        if under is None:
            self._under[value] = uid
        elif isinstance(under, dict):
            under[uid] = None
        elif under != uid:
            self._under[value] = {under: None, uid: None}

    def _drop(self, value: Hashable, uid: str) -> None:
        under = self._under.get(value)
        if isinstance(under, dict):
            under.pop(uid, None)
            if len(under) == 1:
                self._under[value] = next(iter(under))
        elif under == uid:
            del self._under[value]

    def under(self, value: Hashable) -> Iterable[str]:
        """The uids under a value: a view, valid until the next change."""
        under = self._under.get(value)
        if under is None:
            return ()
        return under if isinstance(under, dict) else (under,)


class MetadataCache:
    """The objects of all followed resources: a `steersman.intent.all_resources.AllObjects`."""

    def __init__(self, unfilled: Callable[[], tuple[str, ...]] = tuple) -> None:
        self.discovered = DiscoveryResult()
        self._unfilled = unfilled
        self._stores: dict[str, tuple[Kind[Any], Store[Any]]] = {}
        self._items: dict[str, Item] = {}
        self._indexes: dict[str, _UidIndex] = {}

    # -- reading

    @property
    def unfilled(self) -> tuple[str, ...]:
        return self._unfilled()

    def get(self, key: Key) -> Item | None:
        resource, _, name = key.name.partition("/")
        return self._at(resource, key.namespace, name)

    def at(self, resource: ApiResource, namespace: str, name: str) -> Item | None:
        return self._at(resource.id, namespace, name)

    def _at(self, resource: str, namespace: str, name: str) -> Item | None:
        found = self._stores.get(resource)
        obj = found[1].get(Key(namespace, name)) if found is not None else None
        return self._items.get(obj.metadata.uid) if obj is not None else None

    def of(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def count(self, resource: str, namespace: str) -> int | None:
        found = self._stores.get(resource)
        return None if found is None else found[1].count(namespace)

    def by(self, index: str, value: Hashable) -> Iterator[Item]:
        items = self._items
        return (items[uid] for uid in self._indexes[index].under(value))

    def __len__(self) -> int:
        return len(self._items)

    # -- changes: for `DynamicInformers` alone

    def add_index(self, name: str, find: Index) -> None:
        """Add an index that files every object under the values of ``find``. Adding it again does nothing."""
        if name in self._indexes:
            return
        files = self._indexes[name] = _UidIndex(name, find)
        for uid, item in self._items.items():
            files.move(uid, None, item.obj)

    def attach(self, kind: Kind[Any], store: Store[Any]) -> None:
        """Add the store of a resource."""
        self._stores[kind.resource] = (kind, store)

    def detach(self, kind: Kind[Any]) -> None:
        """Remove the store of a resource, and its objects."""
        found = self._stores.pop(kind.resource, None)
        for obj in tuple(found[1].list()) if found is not None else ():
            self.take(kind, Change(obj, None))

    def take(self, kind: Kind[Any], change: Change[Any]) -> None:
        """Apply a change of an object."""
        old, new = change.old, change.new
        uid: str = change.obj.metadata.uid
        if not uid:
            return
        if new is None:
            known = self._items.pop(uid, None)
            # The deleted state may not be the last one that was filed.
            old = known.obj if known is not None else None
        else:
            known = self._items.get(uid)
            old = known.obj if known is not None else None
            self._items[uid] = Item(kind, new)
        for files in self._indexes.values():
            files.move(uid, old, new)
