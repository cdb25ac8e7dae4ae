"""Revisioned objects: one counter, one table per resource, a window of history, many watchers.

The store knows nothing of Kubernetes but that an object has metadata. It never changes an object:
a write puts a new one in place, so readers, watchers and forks share what they hold. Everything here
is synchronous; only following a watch waits.

Keys are ``namespace/name`` (or the bare name), ordered as etcd orders them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from steersman.client.api import EventType, WatchEvent
from steersman.server import status_errors
from steersman.server.storage.watch import Commit, Rest, Selection, Subscription, Watchers, with_version

HISTORY = 2048
"""How many changes of each resource a watch can be resumed across, at least."""

Tap: TypeAlias = Callable[[Commit], None]
"""Told of every write once it is in place, before anybody who watches."""

Gate: TypeAlias = Callable[[], None]
"""Raises where nothing can be written any more: nothing has happened then."""


def path(namespace: str, name: str) -> str:
    """The key of an object."""
    return f"{namespace}/{name}" if namespace else name


class Store:
    """All objects of one server, and the counter that orders their changes."""

    def __init__(self, *, history: int = HISTORY, revision: int = 1, floor: int = 0) -> None:
        """``revision`` is what the store starts at: a fresh one at 1, since 0 means "any" on the wire.

        A store that goes on from a disk knows no changes up to ``floor``.
        """
        self.revision = revision
        """Of the last write."""
        self.history = history
        self.floor = floor
        self.taps: list[Tap] = []
        self.gate: Gate | None = None
        """Asked before every write, where some cannot be."""
        self._tables: dict[str, Table] = {}

    @property
    def version(self) -> str:
        """The resourceVersion the next write must bear."""
        return str(self.revision + 1)

    def table(self, resource: str) -> Table:
        """The table of a resource, named as in ``deployments.apps``."""
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = Table(self, resource)
        return table

    def place(self, table: Table) -> None:
        """Put a table of another make where a resource's is looked for."""
        self._tables[table.resource] = table

    def tables(self) -> Iterator[Table]:
        """Every table that was ever asked for, in that order."""
        return iter(tuple(self._tables.values()))

    def fork(self) -> Store:
        """The same state to go on from separately: objects are shared; watchers, taps and the gate stay behind."""
        fork = Store(history=self.history, revision=self.revision, floor=self.floor)
        for name, table in self._tables.items():
            fork._tables[name] = table._fork(fork)
        return fork


class Table:
    """The objects of one resource, their recent changes, and who watches them."""

    def __init__(self, store: Store, resource: str) -> None:
        self.resource = resource
        self.watchers = Watchers()
        self._store = store
        self._objects: dict[str, Any] = {}
        self._log: list[Commit] = []
        self._floor = store.floor
        """Every change after this revision is in the log."""
        self._order: list[str] = []
        """Keys in order; may hold dead ones, and lacks those in `_fresh`."""
        self._fresh: list[str] = []
        self._dead = False

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> Any | None:
        """The object at a key, or None."""
        return self._objects.get(key)

    @property
    def changed(self) -> int:
        """The revision of the latest change, or one since which there was none."""
        return self._log[-1].revision if self._log else self._floor

    # -- writing ------------------------------------------------------------------------------

    def put(self, key: str, obj: Any) -> None:
        """Put an object in place. It bears `Store.version` as its resourceVersion."""
        old = self._objects.get(key)
        self._commit(EventType.ADDED if old is None else EventType.MODIFIED, key, obj, old)

    def remove(self, key: str) -> Any:
        """Take an object away; returns its last state as watchers see it, at the revision it went."""
        old = self._objects[key]
        last = with_version(old, self._store.version)
        self._commit(EventType.DELETED, key, last, old)
        return last

    def load(self, objects: Mapping[str, Any]) -> None:
        """Fill an empty table with what is not news: objects as they were written before."""
        self._objects = dict(objects)
        self._order = sorted(self._objects)

    def recast(self, make: Callable[[Any], Any]) -> None:
        """Put others in place of all objects: not they have changed, but what they are read as.

        What happened before cannot be told any more, since it is still in the old form.
        """
        self._objects = {key: make(obj) for key, obj in self._objects.items()}
        self._log.clear()
        self._floor = self._store.revision

    def _commit(self, type_: EventType, key: str, obj: Any, old: Any | None) -> None:
        store = self._store
        if store.gate is not None:
            store.gate()
        revision = store.revision + 1
        version = str(revision)
        if obj.metadata.resourceVersion != version:
            raise ValueError(f"{self.resource} {key} bears {obj.metadata.resourceVersion}, not {version}")
        store.revision = revision
        if type_ is EventType.DELETED:
            del self._objects[key]
            self._dead = True
        else:
            self._objects[key] = obj
            if old is None:
                self._fresh.append(key)
        commit = Commit(self.resource, key, revision, obj, old, WatchEvent(type_, obj, version))
        self._log.append(commit)
        for tap in store.taps:
            tap(commit)
        self.watchers.tell(commit)
        if len(self._log) > 2 * store.history:
            self._trim()

    def _trim(self) -> None:
        """Forget the older half of the log.

        Whoever watches a part of this table that stayed quiet meanwhile would be unable to resume,
        so it is told how far things have moved on.
        """
        keep = self._store.history
        self._floor = self._log[-keep - 1].revision
        del self._log[:-keep]
        self.watchers.bookmark(before=self._floor, revision=self._store.revision)

    # -- reading ------------------------------------------------------------------------------

    def keys(self) -> list[str]:
        """All keys in order. Not to be changed, and only good until the next write."""
        if self._dead:
            # A key may have gone and come again, so it may be in both lists.
            alive = dict.fromkeys(self._order)
            alive.update(dict.fromkeys(self._fresh))
            self._order = [key for key in alive if key in self._objects]
        elif self._fresh:
            self._order.extend(self._fresh)
        else:
            return self._order
        self._fresh, self._dead = [], False
        self._order.sort()
        return self._order

    def select(self, selection: Selection) -> Iterator[Any]:
        """The objects of a selection, in order."""
        return choose(self.keys(), self._objects, selection)

    def at(self, revision: int) -> tuple[list[str], Mapping[str, Any]]:
        """Keys and objects as they were at a revision. Raises `Expired` where that is forgotten."""
        start = self._after(revision)
        if start is None:
            raise status_errors.expired("The resourceVersion for the provided list is too old.")
        if start == len(self._log):
            return self.keys(), self._objects
        objects = dict(self._objects)
        for commit in reversed(self._log[start:]):
            if commit.old is None:
                del objects[commit.key]
            else:
                objects[commit.key] = commit.old
        return sorted(objects), objects

    # -- watching -----------------------------------------------------------------------------

    def watch(
        self, selection: Selection, *, since: int | None = None, initial_end: bool = False
    ) -> Subscription:
        """Follow a selection: after a revision, or from what is there now (``since`` None).

        ``initial_end`` marks the end of what was there with a bookmark. Raises `Expired` where the
        changes since then are forgotten.
        """
        current = self._store.revision
        if since is None:
            backlog = [
                WatchEvent(EventType.ADDED, obj, obj.metadata.resourceVersion)
                for obj in self.select(selection)
            ]
            if initial_end:
                backlog.append(WatchEvent(EventType.BOOKMARK, None, str(current), initial_end=True))
            return self.watchers.add(selection, seen=current, backlog=backlog)
        start = self._after(since)
        if start is None:
            raise status_errors.expired(f"too old resource version: {since} ({self._floor})")
        missed = (selection.sees(commit) for commit in self._log[start:])
        backlog = [event for event in missed if event is not None]
        return self.watchers.add(
            selection, seen=max(since, current), backlog=backlog, floor=since if since > current else 0
        )

    def rest(self, selection: Selection, wake: Callable[[], None]) -> Rest | None:
        """That nothing is selected, until ``wake`` is called; None where something is."""
        if next(self.select(selection), None) is not None:
            return None
        return Rest(self.watchers, selection, self._store.revision, wake)

    def _after(self, revision: int) -> int | None:
        """Where in the log the changes after a revision begin; None where they are forgotten."""
        if revision < self._floor:
            return None
        low, high = 0, len(self._log)
        while low < high:
            middle = (low + high) // 2
            if self._log[middle].revision <= revision:
                low = middle + 1
            else:
                high = middle
        return low

    def _fork(self, store: Store) -> Table:
        fork = Table(store, self.resource)
        fork._objects = dict(self._objects)
        fork._log = list(self._log)
        fork._floor = self._floor
        fork._order = list(self.keys())
        return fork


def choose(keys: list[str], objects: Mapping[str, Any], selection: Selection) -> Iterator[Any]:
    """The objects of a selection, among objects with their keys in order."""
    return (objects[key] for key in matching(keys, objects, selection))


def matching(keys: list[str], objects: Mapping[str, Any], selection: Selection) -> Iterator[str]:
    """The keys of a selection, in order."""
    chosen: Iterable[str]
    exact = path(selection.namespace, selection.name) if selection.name else ""
    if exact and (selection.namespace or exact in objects):
        chosen = (exact,) if exact in objects else ()
    else:
        first, last = span(keys, f"{selection.namespace}/" if selection.namespace else "")
        chosen = keys[first:last]
        if exact:
            tail = f"/{exact}"
            chosen = [key for key in chosen if key.endswith(tail)]
    test = selection.test
    return iter(chosen) if test is None else (key for key in chosen if test(objects[key]))


def span(keys: list[str], prefix: str) -> tuple[int, int]:
    """Where the keys with a prefix begin and end."""
    if not prefix:
        return 0, len(keys)
    # What follows all "namespace/…" is "namespace0": "0" comes after "/".
    return bisect_left(keys, prefix), bisect_left(keys, prefix[:-1] + chr(ord(prefix[-1]) + 1))
