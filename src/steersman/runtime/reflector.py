"""The reflector: keeps a sink equal to the server's list of one kind, with a list and then a watch.

`steersman.runtime.reflector_state` decides what to do next; this does it. An error never means that there are no
objects: the sink keeps its objects until a complete list replaces them.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar

from steersman.api.clock import Clock
from steersman.api.errors import ApiError, Unreachable
from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api, EventType, UndecodableObject, WatchEvent
from steersman.client.pager import list_page
from steersman.runtime.backoff import Backoff, jittered
from steersman.runtime.reflector_state import (
    Broken,
    Empty,
    Ended,
    Failed,
    Paged,
    Paging,
    Proceed,
    ReflectorEvent,
    ShortWatch,
    State,
    Streaming,
    Synced,
    Watching,
    cannot_resume,
    step,
)
from steersman.runtime.store import revision_of

O = TypeVar("O", bound=Object)
log = logging.getLogger(__name__)

WATCH = 300.0
"""The shortest timeout of a watch, in seconds; the longest is twice that, as upstream's."""
SHORT = 1.0
"""Seconds; a watch that ends sooner without any event is a failure, because retrying it at once would spin."""
SILENT = 0.9 * WATCH
"""Seconds; a watch that lasted this long without any event, not even a bookmark, may be watching nothing."""
LATE = 30.0
"""Seconds after its timeout at which the connection of a watch counts as dead."""
PATIENCE = 60.0
"""Seconds a streamed list may make no progress before a paged list is tried."""
BREATH = 256
"""Events handled before yielding to the event loop: a stream that is always ready must not hog it."""
REMIND = 300.0
"""Seconds after which an error that goes on is logged again: every kind logs that a server is unreachable."""


class Sink(Protocol[O]):
    """The receiver of a reflector's objects. Its methods must not raise."""

    def held(self, key: Key) -> O | None:
        """The object that the sink holds under a key, so that a list need not keep a second copy."""
        ...

    def replaced(
        self, objects: Mapping[Key, O], unreadable: Mapping[Key, str], resource_version: str
    ) -> None:
        """Replace all objects. Of the unreadable ones only the metadata is known."""
        ...

    def changed(self, obj: O, error: str, resource_version: str) -> None:
        """An object was added or updated; ``error`` says why only its metadata could be decoded."""
        ...

    def removed(self, obj: O, error: str, resource_version: str) -> None:
        """An object was deleted; this was its last state."""
        ...

    def reached(self, resource_version: str) -> None:
        """There is no other change up to this resourceVersion."""
        ...


class Reflector(Generic[O]):
    """Keeps a sink equal to the server's list of a kind."""

    def __init__(
        self,
        api: Api,
        kind: Kind[O],
        sink: Sink[O],
        clock: Clock,
        *,
        backoff: Backoff | None = None,
        streams: bool = True,
    ) -> None:
        """``streams``: whether to try a streamed list (WatchList) before a paged one."""
        self.state: State = Empty()
        self.kind = kind
        self._api = api
        self._sink = sink
        self._clock = clock
        self._backoff = backoff or Backoff(clock)
        self._streams = streams
        self._at = ""
        """The resourceVersion that a watch has reached, from which a broken watch resumes."""
        self._revision = 0
        """`_at` as a number; 0 if it is none."""
        self._found: dict[Key, O] = {}
        """The objects of the current list so far."""
        self._unreadable: dict[Key, str] = {}
        self._listed_at = ""
        self._last_reported = ("", -math.inf)
        """The error that was logged last, and when."""

    async def run(self) -> None:
        """Run until cancelled. Never ends or fails by itself."""
        while True:
            event = await self._do(self.state)
            # Not the state it began with: a stream moves on by itself when its initial events end.
            before = self.state
            self.state = step(before, event)
            self._tell(before, event)
            if isinstance(self.state, Streaming) and not self._streams:
                self.state = Paging()

    async def _do(self, state: State) -> ReflectorEvent:
        self._begin_at(state.since if isinstance(state, Watching) else "")
        try:
            match state:
                case Empty():
                    return Proceed()
                case Broken():
                    await asyncio.sleep(max(self._backoff.next(), state.at_least))
                    return Proceed()
                case Paging():
                    return await self._page(state)
                case Streaming():
                    self._forget()
                    return await self._follow("", initial=True)
                case Watching():
                    return await self._follow(state.since, initial=False)
        except Exception as error:
            return Failed(error, self._at)

    def _begin_at(self, resource_version: str) -> None:
        self._at = resource_version
        self._revision = revision_of(resource_version) or 0

    def _tell(self, before: State, event: ReflectorEvent) -> None:
        """Log an error and what follows from it. Errors carry the server's message, never a body."""
        if isinstance(event, Synced | Ended) and not isinstance(self.state, Broken):
            self._last_reported = ("", -math.inf)
        if isinstance(before, Streaming) and isinstance(self.state, Paging):
            why = event.error if isinstance(event, Failed) else "the stream ended"
            log.info("%s: WatchList failed, using a paged list: %s", self.kind, why)
        elif isinstance(before, Watching) and isinstance(self.state, Streaming):
            log.info("%s: the watch was silent, listing again", self.kind)
        elif isinstance(self.state, Broken):
            error, then = self.state.error, self.state.then
            known = isinstance(error, ApiError | ShortWatch)
            level = logging.WARNING if known else logging.ERROR
            last_error, at = self._last_reported
            if last_error == str(error) and self._clock.monotonic() - at < REMIND:
                level = logging.DEBUG
            else:
                self._last_reported = str(error), self._clock.monotonic()
            log.log(
                level,
                "%s: %s failed, %s: %s",
                self.kind,
                type(before).__name__.lower(),
                "listing again" if isinstance(then, Streaming) else "resuming the watch",
                error,
                exc_info=None if known else error,
            )

    def _read(self, item: O | UndecodableObject) -> tuple[O, str]:
        """An object and an empty string, or its metadata and the decoding error."""
        if isinstance(item, UndecodableObject):
            return self.kind.type(metadata=item.metadata), item.error or "unreadable"
        return item, ""

    # -- lists

    def _forget(self) -> None:
        self._found = {}
        self._unreadable = {}
        self._listed_at = ""

    def _find(self, item: O | UndecodableObject) -> None:
        obj, error = self._read(item)
        key = obj.key
        held = self._sink.held(key)
        if held is not None and same(held, obj):
            # Drop the new copy now, not at the end of the list: a list over a full store would double its
            # memory.
            obj, error = held, ""
        self._found[key] = obj
        if error:
            self._unreadable[key] = error
        else:
            self._unreadable.pop(key, None)

    def _complete(self, resource_version: str) -> None:
        found, unreadable = self._found, self._unreadable
        self._forget()
        self._sink.replaced(found, unreadable, resource_version)

    async def _page(self, state: Paging) -> ReflectorEvent:
        if not state.page.token:
            self._forget()
        # differs: client-go's first list asks for resourceVersion "0", which any cache may answer. This always
        # asks for the newest, so that a restart never goes back in time.
        page = await list_page(self._api, self.kind, state.page, field_selector=self.kind.fields)
        for item in page.items:
            self._find(item)
        if not state.page.token:
            self._listed_at = page.resource_version
        if page.continue_:
            return Paged(page.continue_)
        at = self._listed_at
        self._complete(at)
        return Synced(at)

    # -- streams

    async def _follow(self, since: str, *, initial: bool) -> ReflectorEvent:
        """Read a watch to its end. With ``initial`` it begins with all objects."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        # In the server's own process no connection can die, so a watch need not be renewed.
        lasts = math.inf if self._api.capabilities.steady else jittered(self._clock.random, WATCH, 1.0)
        end = started + lasts + LATE if lasts < math.inf else None
        stream = self._api.watch(
            self.kind,
            field_selector=self.kind.fields,
            resource_version=since,
            send_initial_events=initial,
            timeout_seconds=int(lasts) if lasts < math.inf else None,
            level_triggered=True,
        )
        events = 0
        try:
            patience = started + PATIENCE if initial and end is not None else end
            async with _closing(stream), asyncio.timeout_at(patience) as limit:
                async for event in stream:
                    if not initial:
                        self._take(event)
                    elif self._gather(event):
                        initial = False
                        if end is not None:
                            limit.reschedule(end)
                    events += 1
                    if events % BREATH == 0:
                        await asyncio.sleep(0)
                        if initial and end is not None:
                            limit.reschedule(loop.time() + PATIENCE)
        except TimeoutError:
            if not limit.expired():
                raise
            # The connection is dead, or the server ignores sendInitialEvents and will never end them.
            raise Unreachable("the stream went silent", uncertain=True) from None
        lasted = loop.time() - started
        return Ended(
            self._at,
            short=self._at == since and lasted < SHORT,
            silent=not events and lasted >= SILENT,
        )

    def _gather(self, event: WatchEvent[O | UndecodableObject]) -> bool:
        """Handle an event of a streamed list; returns whether it was the last."""
        if event.type is EventType.BOOKMARK:
            if not event.initial_end:
                return False
            self._begin_at(event.resource_version)
            self._complete(self._at)
            self.state = step(self.state, Synced(self._at))
            return True
        assert event.obj is not None
        if event.type is EventType.DELETED:
            key = self._read(event.obj)[0].key
            self._found.pop(key, None)
            self._unreadable.pop(key, None)
        else:
            self._find(event.obj)
        return False

    def _take(self, event: WatchEvent[O | UndecodableObject]) -> None:
        """Handle an event of a watch."""
        reached = self._reach(event)
        if event.type is EventType.BOOKMARK:
            self._sink.reached(reached)
            return
        assert event.obj is not None
        obj, error = self._read(event.obj)
        if event.type is EventType.DELETED:
            self._sink.removed(obj, error, reached)
        else:
            self._sink.changed(obj, error, reached)

    def _reach(self, event: WatchEvent[Any]) -> str:
        """Advance to the resourceVersion of an event, never back; returns the one reached."""
        after = event.resource_version
        if cannot_resume(self._at) and event.type is EventType.ADDED:
            # A watch from "0" begins with all objects in any order: it cannot be resumed from one of them.
            return self._at
        revision = revision_of(after)
        if revision is not None and revision < self._revision:
            log.warning("%s: an event at %s came after %s", self.kind, after, self._at)
        elif after:
            self._at = after
            self._revision = revision or 0
        return self._at


def same(one: Object, other: Object) -> bool:
    """Whether two copies are of the same version of the same object."""
    a, b = one.metadata, other.metadata
    return a.resourceVersion == b.resourceVersion and a.uid == b.uid


@asynccontextmanager
async def _closing(stream: AsyncIterator[Any]) -> AsyncIterator[None]:
    """Close a stream on leaving the context, if it can be closed."""
    try:
        yield
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
