"""Fan-out: who watches what, and what each of them has yet to read.

A watcher costs nothing until something it selects changes: a write is offered only to the watchers
of the whole resource, of its namespace and of its very name. Each has its own bounded backlog; one that
does not read is cut off, as a real server does, and may resume from what it saw last.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from steersman.client.api import EventType, WatchEvent
from steersman.client.capabilities import LEVEL

BACKLOG = 4096
"""How many unread events a watcher may have before it is cut off."""

Test: TypeAlias = Callable[[Any], bool]


class Commit(NamedTuple):
    """One write: where, at which revision, what it made, what was there before, what watchers are told."""

    resource: str
    key: str
    revision: int
    obj: Any
    """As written; for a deletion the last state, at the revision it went."""
    old: Any | None
    event: WatchEvent[Any]


class Selection(msgspec.Struct, frozen=True):
    """Which objects of a resource: of a namespace, of a name, and those that pass a test."""

    namespace: str = ""
    name: str = ""
    test: Test | None = None

    def sees(self, commit: Commit) -> WatchEvent[Any] | None:
        """What a commit looks like from here: objects enter and leave a selection as they change."""
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
            # It left: told as deleted, with what it looked like while it was in.
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
    """One watcher's side of a table: an async iterator over what it selects."""

    __slots__ = (
        "_backlog",
        "_floor",
        "_limit",
        "_open",
        "_waiter",
        "_watchers",
        "level",
        "seen",
        "selection",
    )

    def __init__(
        self,
        watchers: Watchers,
        selection: Selection,
        *,
        seen: int,
        backlog: Sequence[WatchEvent[Any]],
        floor: int,
        limit: int,
    ) -> None:
        self.selection = selection
        self.seen = seen
        """The revision this watcher could resume from, having read its backlog."""
        self.level = LEVEL.get()
        """Whether it need not see each single change."""
        self._watchers = watchers
        self._backlog = deque(backlog)
        self._floor = floor
        self._limit = len(backlog) + limit
        self._open = True
        self._waiter: asyncio.Future[None] | None = None

    @property
    def unread(self) -> int:
        """How many events wait to be read."""
        return len(self._backlog)

    def offer(self, commit: Commit) -> None:
        """Take note of a commit whose namespace and name are of the selection."""
        if commit.revision <= self._floor:
            return
        event = commit.event if self.selection.test is None else self.selection.sees(commit)
        if event is not None:
            self.seen = commit.revision
            self._push(event)

    def bookmark(self, revision: int) -> None:
        """Say how far time has moved on."""
        if revision > self.seen:
            self.seen = revision
            self._push(WatchEvent(EventType.BOOKMARK, None, str(revision)))

    def close(self) -> None:
        """End the watch once its backlog is read."""
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
                # As an async generator would: a reader that was cancelled does not come back.
                self.close()
                raise
        return backlog.popleft()


class Rest:
    """A watcher that has nothing to read, and wants to hear just once: that this may have changed."""

    __slots__ = ("_wake", "_watchers", "level", "seen", "selection", "version")

    def __init__(
        self, watchers: Watchers, selection: Selection, revision: int, wake: Callable[[], None]
    ) -> None:
        self.selection = selection
        self.seen = revision
        self.level = True
        self.version = str(revision)
        """The resourceVersion at which there was nothing."""
        self._watchers = watchers
        self._wake = wake
        watchers.join(self)

    def offer(self, commit: Commit) -> None:
        """Take note of a commit whose namespace and name are of the selection."""
        if self.selection.sees(commit) is not None:
            self.close()

    def bookmark(self, revision: int) -> None:
        """Time has moved on, which is nothing to wake for."""
        self.seen = revision

    def close(self) -> None:
        """Stop resting."""
        self.end()
        self._wake()

    def end(self) -> None:
        """Nobody waits for it any more."""
        self._watchers.drop(self)


class Watchers:
    """The watchers of one table, by the namespace and name they select."""

    def __init__(self) -> None:
        self._scopes: dict[tuple[str, str], dict[Subscription | Rest, None]] = {}

    def __len__(self) -> int:
        return sum(len(group) for group in self._scopes.values())

    @property
    def eager(self) -> bool:
        """Whether somebody wants to see each single change."""
        return any(not each.level for group in self._scopes.values() for each in group)

    def add(
        self,
        selection: Selection,
        *,
        seen: int,
        backlog: Sequence[WatchEvent[Any]],
        floor: int = 0,
        limit: int = BACKLOG,
    ) -> Subscription:
        """A new watcher with what it has to read first; commits up to ``floor`` are not for it."""
        subscription = Subscription(self, selection, seen=seen, backlog=backlog, floor=floor, limit=limit)
        self.join(subscription)
        return subscription

    def join(self, watcher: Subscription | Rest) -> None:
        """Have a watcher be told."""
        scope = (watcher.selection.namespace, watcher.selection.name)
        self._scopes.setdefault(scope, {})[watcher] = None

    def drop(self, subscription: Subscription | Rest) -> None:
        """Forget a watcher."""
        scope = (subscription.selection.namespace, subscription.selection.name)
        group = self._scopes.get(scope, {})
        group.pop(subscription, None)
        if not group:
            self._scopes.pop(scope, None)

    def tell(self, commit: Commit) -> None:
        """Offer a commit to everybody whose selection it may be of."""
        scopes = self._scopes
        if not scopes:
            return
        namespace, name = commit.obj.metadata.namespace, commit.obj.metadata.name
        for scope in {("", ""): 0, (namespace, ""): 0, ("", name): 0, (namespace, name): 0}:
            group = scopes.get(scope)
            if group is not None:
                # A watcher that is cut off drops out while we go through them.
                for subscription in tuple(group):
                    subscription.offer(commit)

    def close(self) -> None:
        """End all watches, once what they have is read."""
        for group in tuple(self._scopes.values()):
            for subscription in tuple(group):
                subscription.close()

    def bookmark(self, *, before: int, revision: int) -> None:
        """Send a bookmark to everybody who could resume only from before a revision."""
        for group in tuple(self._scopes.values()):
            for subscription in tuple(group):
                if subscription.seen < before:
                    subscription.bookmark(revision)
