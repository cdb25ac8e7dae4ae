"""The revisioned store: one revision counter, a table per resource with its watch window, and watchers.

The store knows nothing of Kubernetes but that an object has metadata. It never changes an object:
a write replaces it, so readers, watchers and forks share objects. Everything here is synchronous; only
reading a watch waits.

Keys are ``namespace/name`` (or the bare name), ordered as etcd orders them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from steersman.client.api import EventType, WatchEvent
from steersman.server import status_errors
from steersman.server.storage.watch import Commit, IdleWatch, Selection, Subscription, Watchers, with_version

WATCH_WINDOW = 2048
"""The watch window: across how many changes of a resource a watch can resume, at least."""

CommitHook: TypeAlias = Callable[[Commit], None]
"""Called for every committed write, before watchers get its event."""

WriteGate: TypeAlias = Callable[[], None]
"""Called before every write; raises to refuse it, and then the store does not change."""


def object_key(namespace: str, name: str) -> str:
    """The key of an object: ``namespace/name``, or the name of a cluster-scoped one."""
    return f"{namespace}/{name}" if namespace else name


class Store:
    """All objects of one server, and the counter that orders their changes."""

    def __init__(self, *, watch_window: int = WATCH_WINDOW, revision: int = 1, compacted: int = 0) -> None:
        """``revision`` is where the store starts: a new one at 1, since 0 means "any" on the wire.

        Changes up to revision ``compacted`` are unknown to a store that was loaded from disk.
        """
        self.revision = revision
        """The revision of the last write."""
        self.watch_window = watch_window
        self.compacted = compacted
        self.commit_hooks: list[CommitHook] = []
        self.write_gate: WriteGate | None = None
        """None if every write is accepted."""
        self._tables: dict[str, Table] = {}

    @property
    def next_version(self) -> str:
        """The resourceVersion of the next write."""
        return str(self.revision + 1)

    def table(self, resource: str) -> Table:
        """The table of a resource, named as in ``deployments.apps``."""
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = Table(self, resource)
        return table

    def replace_table(self, table: Table) -> None:
        """Installs a table of another class for its resource."""
        self._tables[table.resource] = table

    def tables(self) -> Iterator[Table]:
        """Every table that was requested so far, in that order."""
        return iter(tuple(self._tables.values()))

    def fork(self) -> Store:
        """An independent copy that shares the objects; it has no watchers, commit hooks or write gate."""
        fork = Store(watch_window=self.watch_window, revision=self.revision, compacted=self.compacted)
        for name, table in self._tables.items():
            fork._tables[name] = table._fork(fork)
        return fork


class Table:
    """The objects of one resource, their recent changes, and their watchers."""

    def __init__(self, store: Store, resource: str) -> None:
        self.resource = resource
        self.watchers = Watchers()
        self._store = store
        self._objects: dict[str, Any] = {}
        self._log: list[Commit] = []
        self._compacted = store.compacted
        """The log holds every change after this revision."""
        self._sorted_keys: list[str] = []
        """Keys in order; may contain removed ones, and lacks those in `_added_keys`."""
        self._added_keys: list[str] = []
        self._has_removed_keys = False

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> Any | None:
        """The object at a key, or None."""
        return self._objects.get(key)

    @property
    def latest_revision(self) -> int:
        """The revision of the latest change, or the compacted revision if there was none since."""
        return self._log[-1].revision if self._log else self._compacted

    # -- writing ------------------------------------------------------------------------------

    def put(self, key: str, obj: Any) -> None:
        """Creates or replaces an object. Its resourceVersion must be `Store.next_version`."""
        old = self._objects.get(key)
        self._commit(EventType.ADDED if old is None else EventType.MODIFIED, key, obj, old)

    def remove(self, key: str) -> Any:
        """Removes an object and returns its last state, at the revision of the removal, as watchers get it."""
        old = self._objects[key]
        last = with_version(old, self._store.next_version)
        self._commit(EventType.DELETED, key, last, old)
        return last

    def load(self, objects: Mapping[str, Any]) -> None:
        """Fills an empty table with stored objects, without a commit."""
        self._objects = dict(objects)
        self._sorted_keys = sorted(self._objects)

    def convert_objects(self, make: Callable[[Any], Any]) -> None:
        """Converts all objects in place, without a commit: their representation changes, not their state.

        The log is compacted, since its objects have the old representation.
        """
        self._objects = {key: make(obj) for key, obj in self._objects.items()}
        self._log.clear()
        self._compacted = self._store.revision

    def _commit(self, type_: EventType, key: str, obj: Any, old: Any | None) -> None:
        store = self._store
        if store.write_gate is not None:
            store.write_gate()
        revision = store.revision + 1
        version = str(revision)
        if obj.metadata.resourceVersion != version:
            raise ValueError(
                f"{self.resource} {key} has resourceVersion {obj.metadata.resourceVersion}, not {version}"
            )
        store.revision = revision
        if type_ is EventType.DELETED:
            del self._objects[key]
            self._has_removed_keys = True
        else:
            self._objects[key] = obj
            if old is None:
                self._added_keys.append(key)
        commit = Commit(self.resource, key, revision, obj, old, WatchEvent(type_, obj, version))
        self._log.append(commit)
        for hook in store.commit_hooks:
            hook(commit)
        self.watchers.dispatch(commit)
        if len(self._log) > 2 * store.watch_window:
            self._compact()

    def _compact(self) -> None:
        """Compacts the log: drops its older half.

        A watcher whose selection had no events meanwhile could not resume, so it gets a bookmark.
        """
        keep = self._store.watch_window
        self._compacted = self._log[-keep - 1].revision
        del self._log[:-keep]
        self.watchers.bookmark(before=self._compacted, revision=self._store.revision)

    # -- reading ------------------------------------------------------------------------------

    def keys(self) -> list[str]:
        """All keys in order. Never change the list; it is valid until the next write."""
        if self._has_removed_keys:
            # A key that was removed and added again is in both lists.
            alive = dict.fromkeys(self._sorted_keys)
            alive.update(dict.fromkeys(self._added_keys))
            self._sorted_keys = [key for key in alive if key in self._objects]
        elif self._added_keys:
            self._sorted_keys.extend(self._added_keys)
        else:
            return self._sorted_keys
        self._added_keys, self._has_removed_keys = [], False
        self._sorted_keys.sort()
        return self._sorted_keys

    def select(self, selection: Selection) -> Iterator[Any]:
        """The objects of a selection, in order."""
        return select_objects(self.keys(), self._objects, selection)

    def at(self, revision: int) -> tuple[list[str], Mapping[str, Any]]:
        """Keys and objects as of a revision. Raises `Expired` if it is compacted."""
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
        self,
        selection: Selection,
        *,
        since: int | None = None,
        initial_end: bool = False,
        level_triggered: bool = False,
    ) -> Subscription:
        """Watches a selection after a revision, or from its current objects (``since`` is None).

        ``initial_end`` marks the end of the current objects with a bookmark. Raises `Expired` if the
        changes since that revision are compacted. A ``level_triggered`` watcher need not get every single event.
        """
        current = self._store.revision
        if since is None:
            backlog = [
                WatchEvent(EventType.ADDED, obj, obj.metadata.resourceVersion)
                for obj in self.select(selection)
            ]
            if initial_end:
                backlog.append(WatchEvent(EventType.BOOKMARK, None, str(current), initial_end=True))
            return self.watchers.add(
                selection, resume_revision=current, backlog=backlog, level_triggered=level_triggered
            )
        start = self._after(since)
        if start is None:
            raise status_errors.expired(f"too old resource version: {since} ({self._compacted})")
        missed = (selection.event_for(commit) for commit in self._log[start:])
        backlog = [event for event in missed if event is not None]
        return self.watchers.add(
            selection,
            resume_revision=max(since, current),
            backlog=backlog,
            after=since if since > current else 0,
            level_triggered=level_triggered,
        )

    def idle_watch(self, selection: Selection, wake: Callable[[], None]) -> IdleWatch | None:
        """An idle watch that calls ``wake`` when the selection may no longer be empty; None if it is not empty."""
        if next(self.select(selection), None) is not None:
            return None
        return IdleWatch(self.watchers, selection, self._store.revision, wake)

    def _after(self, revision: int) -> int | None:
        """The index in the log of the first change after a revision; None if that is compacted."""
        if revision < self._compacted:
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
        fork._compacted = self._compacted
        fork._sorted_keys = list(self.keys())
        return fork


def select_objects(keys: list[str], objects: Mapping[str, Any], selection: Selection) -> Iterator[Any]:
    """The selected objects in order; ``keys`` are the sorted keys of ``objects``."""
    return (objects[key] for key in select_keys(keys, objects, selection))


def select_keys(keys: list[str], objects: Mapping[str, Any], selection: Selection) -> Iterator[str]:
    """The selected keys in order; ``keys`` are the sorted keys of ``objects``."""
    chosen: Iterable[str]
    exact = object_key(selection.namespace, selection.name) if selection.name else ""
    if exact and (selection.namespace or exact in objects):
        chosen = (exact,) if exact in objects else ()
    else:
        first, last = prefix_range(keys, f"{selection.namespace}/" if selection.namespace else "")
        chosen = keys[first:last]
        if exact:
            tail = f"/{exact}"
            chosen = [key for key in chosen if key.endswith(tail)]
    test = selection.test
    return iter(chosen) if test is None else (key for key in chosen if test(objects[key]))


def prefix_range(keys: list[str], prefix: str) -> tuple[int, int]:
    """The range of sorted keys with a prefix, as indexes."""
    if not prefix:
        return 0, len(keys)
    # The first key after all "namespace/…" is "namespace0": "0" follows "/".
    return bisect_left(keys, prefix), bisect_left(keys, prefix[:-1] + chr(ord(prefix[-1]) + 1))
