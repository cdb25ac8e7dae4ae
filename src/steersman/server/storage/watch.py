"""Watches of a table: selections, subscriptions, and the dispatch of commits to them.

A commit is offered only to the watchers of the whole resource, of its namespace and of its name, so a watcher
costs nothing until an object it selects changes. Each watcher has a bounded backlog; one that does not read is
closed, as upstream's watch cache does, and may resume from the revision it read last.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from steersman.client.api import EventType, WatchEvent

MAX_UNREAD_EVENTS = 4096
"""How many unread events a watcher may have before it is closed."""

Predicate: TypeAlias = Callable[[Any], bool]


class Commit(msgspec.Struct, frozen=True):
    """One committed write and the watch event it causes."""

    resource: str
    key: str
    revision: int
    obj: Any
    """The object as written; for a deletion its last state, at the revision of the deletion."""
    old: Any | None
    """The object before; None for a creation."""
    event: WatchEvent[Any]


class Selection(msgspec.Struct, frozen=True):
    """Selects objects of a resource by namespace, name and predicate; empty fields select all."""

    namespace: str = ""
    name: str = ""
    test: Predicate | None = None

    def event_for(self, commit: Commit) -> WatchEvent[Any] | None:
        """The event a watcher of this selection gets for a commit: an object may enter or leave the selection."""
        obj, event = commit.obj, commit.event
        if self.namespace and obj.metadata.namespace != self.namespace:
            return None
        if self.name and obj.metadata.name != self.name:
            return None
        test = self.test
        if test is None:
            return event
        old = commit.old
        was = old is not None and test(old)
        if event.type is EventType.DELETED:
            return event if was else None
        if test(obj):
            entered = event.type is EventType.MODIFIED and not was
            return WatchEvent(EventType.ADDED, obj, event.resource_version) if entered else event
        if was and old is not None:
            # It left the selection: a DELETED event with the last state that was selected.
            return WatchEvent(
                EventType.DELETED, with_version(old, event.resource_version), event.resource_version
            )
        return None


def with_version(obj: Any, version: str) -> Any:
    """The object at another resourceVersion."""
    return msgspec.structs.replace(
        obj, metadata=msgspec.structs.replace(obj.metadata, resourceVersion=version)
    )


class Subscription:
    """One watcher of a table: an async iterator over the events of its selection."""

    __slots__ = (
        "_after_revision",
        "_backlog",
        "_limit",
        "_open",
        "_waiter",
        "_watchers",
        "level_triggered",
        "resume_revision",
        "selection",
    )

    def __init__(
        self,
        watchers: Watchers,
        selection: Selection,
        *,
        resume_revision: int,
        backlog: Sequence[WatchEvent[Any]],
        after: int,
        limit: int,
        level_triggered: bool,
    ) -> None:
        self.selection = selection
        self.resume_revision = resume_revision
        """The revision from which this watcher can resume once it has read its backlog."""
        self.level_triggered = level_triggered
        """Whether the watcher is level-triggered: it need not get every single event."""
        self._watchers = watchers
        self._backlog = deque(backlog)
        self._after_revision = after
        self._limit = len(backlog) + limit
        self._open = True
        self._waiter: asyncio.Future[None] | None = None

    @property
    def unread(self) -> int:
        """The number of unread events."""
        return len(self._backlog)

    def offer(self, commit: Commit) -> None:
        """Handles a commit whose namespace and name are selected."""
        if commit.revision <= self._after_revision:
            return
        event = commit.event if self.selection.test is None else self.selection.event_for(commit)
        if event is not None:
            self.resume_revision = commit.revision
            self._push(event)

    def bookmark(self, revision: int) -> None:
        """Sends a bookmark of a revision, unless the watcher is past it."""
        if revision > self.resume_revision:
            self.resume_revision = revision
            self._push(WatchEvent(EventType.BOOKMARK, None, str(revision)))

    def close(self) -> None:
        """Ends the watch once its backlog is read."""
        if self._open:
            self._open = False
            self._watchers.drop(self)
            self._wake()

    def _push(self, event: WatchEvent[Any]) -> None:
        if len(self._backlog) >= self._limit:
            self.close()
            return
        self._backlog.append(event)
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> WatchEvent[Any]:
        backlog = self._backlog
        while not backlog:
            if not self._open:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            except BaseException:
                # As an async generator would: a cancelled reader does not read again.
                self.close()
                raise
        return backlog.popleft()


class IdleWatch:
    """A watch of an empty selection: it calls ``wake`` once, when an object may have entered the selection."""

    __slots__ = ("_wake", "_watchers", "level_triggered", "resume_revision", "selection", "version")

    def __init__(
        self, watchers: Watchers, selection: Selection, revision: int, wake: Callable[[], None]
    ) -> None:
        self.selection = selection
        self.resume_revision = revision
        self.level_triggered = True
        self.version = str(revision)
        """The resourceVersion at which the selection was empty."""
        self._watchers = watchers
        self._wake = wake
        watchers.join(self)

    def offer(self, commit: Commit) -> None:
        """Handles a commit whose namespace and name are selected."""
        if self.selection.event_for(commit) is not None:
            self.close()

    def bookmark(self, revision: int) -> None:
        """Notes the revision; a bookmark does not wake."""
        self.resume_revision = revision

    def close(self) -> None:
        """Ends the idle watch and wakes its watcher."""
        self.end()
        self._wake()

    def end(self) -> None:
        """Ends the idle watch without waking."""
        self._watchers.drop(self)


class Watchers:
    """The watchers of one table, by the namespace and name they select."""

    def __init__(self) -> None:
        self._scopes: dict[tuple[str, str], dict[Subscription | IdleWatch, None]] = {}

    def __len__(self) -> int:
        return sum(len(group) for group in self._scopes.values())

    @property
    def wants_every_event(self) -> bool:
        """Whether a watcher needs every single event (is not level-triggered)."""
        return any(not each.level_triggered for group in self._scopes.values() for each in group)

    def add(
        self,
        selection: Selection,
        *,
        resume_revision: int,
        backlog: Sequence[WatchEvent[Any]],
        after: int = 0,
        limit: int = MAX_UNREAD_EVENTS,
        level_triggered: bool = False,
    ) -> Subscription:
        """Adds a watcher with a backlog to read first; commits up to revision ``after`` are not offered to it."""
        subscription = Subscription(
            self,
            selection,
            resume_revision=resume_revision,
            backlog=backlog,
            after=after,
            limit=limit,
            level_triggered=level_triggered,
        )
        self.join(subscription)
        return subscription

    def join(self, watcher: Subscription | IdleWatch) -> None:
        """Adds a watcher."""
        scope = (watcher.selection.namespace, watcher.selection.name)
        self._scopes.setdefault(scope, {})[watcher] = None

    def drop(self, subscription: Subscription | IdleWatch) -> None:
        """Removes a watcher."""
        scope = (subscription.selection.namespace, subscription.selection.name)
        group = self._scopes.get(scope, {})
        group.pop(subscription, None)
        if not group:
            self._scopes.pop(scope, None)

    def dispatch(self, commit: Commit) -> None:
        """Offers a commit to the watchers of its resource, namespace and name."""
        scopes = self._scopes
        if not scopes:
            return
        namespace, name = commit.obj.metadata.namespace, commit.obj.metadata.name
        for scope in {("", ""): 0, (namespace, ""): 0, ("", name): 0, (namespace, name): 0}:
            group = scopes.get(scope)
            if group is not None:
                # A copy: a watcher that is closed removes itself from the group.
                for subscription in tuple(group):
                    subscription.offer(commit)

    def close(self) -> None:
        """Ends all watches once their backlogs are read."""
        for group in tuple(self._scopes.values()):
            for subscription in tuple(group):
                subscription.close()

    def bookmark(self, *, before: int, revision: int) -> None:
        """Sends a bookmark to every watcher that could resume only from before a revision."""
        for group in tuple(self._scopes.values()):
            for subscription in tuple(group):
                if subscription.resume_revision < before:
                    subscription.bookmark(revision)
